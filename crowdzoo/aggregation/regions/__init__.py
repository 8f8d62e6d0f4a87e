"""Algorithms for regions of images, one per file."""
