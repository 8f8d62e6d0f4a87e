"""Tables that scripts write into the guide to aggregation: what the results render to, and that the guide has it."""

import importlib
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"


@pytest.fixture(scope="module")
def scripts():
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in ("interval_coverage",)}
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("name", ["interval_coverage"])
def test_the_guide_has_the_table_of_the_results(scripts, name):
    script = scripts[name]
    table = script.table(json.loads(script.RESULTS.read_text(encoding="utf-8")))
    assert f"{script.START}\n\n{table}\n\n{script.END}" in script.PAGE.read_text(encoding="utf-8")
