"""Algorithms for regions of images, one a file."""
