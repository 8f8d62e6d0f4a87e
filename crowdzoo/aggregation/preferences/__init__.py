"""Algorithms for preferences between two tasks, one a file."""
