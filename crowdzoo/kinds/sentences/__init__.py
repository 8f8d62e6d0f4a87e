"""Sentences: spans, one label a token."""
