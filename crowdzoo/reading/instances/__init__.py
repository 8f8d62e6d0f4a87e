"""Files of instances."""
