"""What makes a value of a file, and writes it."""
