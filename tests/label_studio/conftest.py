"""A Label Studio that all tests of this folder share; each makes a project of its own."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from server import PROGRAM, label_studio


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    """A running server; tests that use it are marked slow and `xdist_group("label_studio")`."""
    if not PROGRAM.exists():
        pytest.skip("no Label Studio: run `make engines`")
    with label_studio(tmp_path_factory.mktemp("label-studio")) as server:
        yield server
