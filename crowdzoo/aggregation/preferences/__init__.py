"""Algorithms for preferences between two tasks, one per file."""
