"""Algorithms for free texts, one per file."""
