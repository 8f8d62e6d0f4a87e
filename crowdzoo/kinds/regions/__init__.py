"""Regions of images: masks and boxes."""
