"""Algorithms for ratings, one a file."""
