"""Imports of what is in benchmarks/reproduce, which is no package."""

import importlib
import sys
from pathlib import Path

import pytest

from crowdzoo import plugins

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"
REGISTERED = {}  # by scripts, at their first import


@pytest.fixture(scope="module")
def reproduce():
    """Imports a module of that folder by its name; what it registers is unknown to other tests."""
    sys.path.insert(0, str(FOLDER))
    before = {**plugins._registered}
    plugins._registered.update(REGISTERED)
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(FOLDER))
        REGISTERED.update({name: thing for name, thing in plugins._registered.items() if name not in before})
        plugins._registered.clear()
        plugins._registered.update(before)
