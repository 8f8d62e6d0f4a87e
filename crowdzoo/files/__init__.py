"""Checks of paths, and all reading and writing of files."""
