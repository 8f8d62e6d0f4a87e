"""Crowd layers: one public layer per file."""
