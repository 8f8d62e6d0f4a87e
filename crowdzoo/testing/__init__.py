"""Batteries of checks for layers and aggregators, and strategies for property tests."""
