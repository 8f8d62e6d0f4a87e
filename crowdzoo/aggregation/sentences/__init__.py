"""Algorithms for tagged sentences, one per file."""
