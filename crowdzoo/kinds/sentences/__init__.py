"""Sentences: spans, one label per token."""
