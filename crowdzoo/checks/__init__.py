"""Checks that say what is wrong: settings, options of the command line."""
