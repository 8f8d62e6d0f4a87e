"""Algorithms for classes, one a file."""
