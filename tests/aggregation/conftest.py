"""Fixtures of the tests of aggregation."""

import re

import pytest


@pytest.fixture(scope="session")
def rows_of():
    """Rows of a marked table of a page by their first cell; cells as text."""

    def rows(page, name):
        lines = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", page, flags=re.S)[1].splitlines()[2:]
        cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line]
        return {row[0]: row[1:] for row in cells}

    return rows
