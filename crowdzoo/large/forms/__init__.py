"""The algorithms as Beam runs them, one a file."""
