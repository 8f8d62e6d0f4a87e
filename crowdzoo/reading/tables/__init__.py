"""Tables of annotations."""
