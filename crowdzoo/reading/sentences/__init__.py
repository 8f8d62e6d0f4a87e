"""Files of sentences."""
