"""docs/methods-results.md says what the saved results say."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"


@pytest.fixture(scope="module")
def page():
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("page")
    finally:
        sys.path.remove(str(FOLDER))


def test_the_page_is_what_the_results_render_to(page):
    assert page.PAGE.read_text(encoding="utf-8") == page.render()


def test_every_table_has_its_floor_and_its_ceiling(page):
    results = page.json.loads(page.deep_methods.RESULTS.read_text(encoding="utf-8"))
    for rows in results.values():
        assert {"gold", "DL-MV"} <= {*rows}
        for row in rows.values():
            assert len({run["seed"] for run in row["runs"]}) == len(row["runs"]) >= 3
