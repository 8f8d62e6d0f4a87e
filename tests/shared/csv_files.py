"""CSV files as tests write them, and the rows of those that were written."""

import csv


def write_csv(path, *rows):
    """Rows, the header first; returns the path."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def read_csv(path):
    """A dictionary of each row."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
