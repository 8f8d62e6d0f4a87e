"""Classes: one label a task."""
