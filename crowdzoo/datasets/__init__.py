"""Loaders of real crowd sets, and simulated annotators."""
