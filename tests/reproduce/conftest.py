"""Imports of what is in benchmarks/reproduce, which is no package."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"


@pytest.fixture(scope="module")
def reproduce():
    """Imports a module of that folder by its name."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture
def three_clouds(reproduce):
    """`Data` of 300 tasks of three classes that lie apart, three labels each, nine of ten right."""
    from crowdzoo import Annotations

    rng = np.random.default_rng(1)
    gold = rng.integers(3, size=300)
    x = (np.eye(3)[gold] * 4 + rng.normal(size=(300, 3))).astype("float32")
    tasks, annotators = np.divmod(np.arange(900), 3)
    labels = np.where(rng.random(900) < 0.9, gold[tasks], rng.integers(3, size=900))
    annotations = Annotations.from_arrays(tasks, annotators, labels, classes=[0, 1, 2])
    return reproduce("deep_methods").Data(x, annotations, gold, x, gold, {})
