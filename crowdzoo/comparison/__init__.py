"""Several methods on one crowd, side by side, with intervals."""
