"""Algorithms for ratings, one per file."""
