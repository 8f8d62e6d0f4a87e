"""Ratings: numbers on a scale."""
