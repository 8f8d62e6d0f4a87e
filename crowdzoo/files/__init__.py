"""The one place where paths are taken, and files read and written."""
