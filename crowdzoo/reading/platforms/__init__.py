"""Exports of labelling platforms."""
