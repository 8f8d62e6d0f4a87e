"""Algorithms for classes, one per file."""
