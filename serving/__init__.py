"""Client and local server for exported models."""
