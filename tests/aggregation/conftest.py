"""Fixtures of the tests of aggregation."""

import re

import numpy as np
import pytest

from crowdzoo import Annotations


@pytest.fixture(scope="session")
def rows_of():
    """Rows of a marked table of a page by their first cell; cells as text."""

    def rows(page, name):
        lines = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", page, flags=re.S)[1].splitlines()[2:]
        cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line]
        return {row[0]: row[1:] for row in cells}

    return rows


@pytest.fixture(scope="session")
def misled():
    """Graders of an ordered scale who read the same tasks wrongly, and their true grades."""
    rng, num_tasks = np.random.default_rng(2), 800
    truth = rng.choice(4, num_tasks, p=[0.5, 0.25, 0.15, 0.1])
    shared = rng.normal(0.6, 0.9, num_tasks)[:, None] + rng.normal(0, 0.6, (num_tasks, 4))[:, np.arange(16) % 4]
    seen = truth[:, None] * rng.uniform(0.4, 1.1, 16) + shared + rng.normal(0, 0.5, 16)
    said = np.clip(np.rint(seen + rng.normal(0, 0.5, (num_tasks, 16))), 0, 3).astype(int)
    return Annotations.from_dense(said, classes=range(4)), truth
