"""Classes: one label per task."""
