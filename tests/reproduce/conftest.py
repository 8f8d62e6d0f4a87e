"""Imports of what is in benchmarks/reproduce, which is no package."""

import importlib
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"
REGISTERED = {}  # by scripts, at their first import


@pytest.fixture(scope="module")
def reproduce():
    """Imports a module of that folder by its name; what it registers is unknown to other tests."""
    sys.path.insert(0, str(FOLDER))
    with patch.dict("crowdzoo.plugins._registered") as registered:
        before = {*registered}
        registered.update(REGISTERED)
        try:
            yield importlib.import_module
        finally:
            sys.path.remove(str(FOLDER))
            REGISTERED.update({name: thing for name, thing in registered.items() if name not in before})
