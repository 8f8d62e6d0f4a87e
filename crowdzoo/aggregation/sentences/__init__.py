"""Algorithms for tagged sentences, one a file."""
