"""Files of what was labelled."""
