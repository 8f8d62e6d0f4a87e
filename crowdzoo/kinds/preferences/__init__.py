"""Preferences: which of two is better."""
