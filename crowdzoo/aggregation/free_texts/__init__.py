"""Algorithms for free texts, one a file."""
