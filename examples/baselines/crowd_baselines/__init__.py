"""Baselines of five papers on crowds that crowdzoo does not have itself."""
