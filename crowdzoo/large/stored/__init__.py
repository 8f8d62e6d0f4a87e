"""Aggregation of annotations that do not fit into memory: blocks of tasks in files, and methods that stream them."""
