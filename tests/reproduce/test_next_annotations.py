"""The table of what `crowdzoo next` saves."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "reproduce"))
    monkeypatch.delitem(sys.modules, "next_annotations", raising=False)
    import next_annotations

    return next_annotations


def test_a_row_is_the_mean_of_its_runs(script):
    runs = [
        {"tasks": 10, "all": 100, "target": 0.9, "random": 80, "chosen": chosen, "saved": 1 - chosen / 80,
         "stopped": 60, "stopped accuracy": 0.91, "random accuracy there": 0.85}
        for chosen in (40, 48, 32)
    ]  # fmt: skip
    text = script.table({"until equal accuracy": {"rte": {"runs": runs}}})
    # Student's interval of .5, .4 and .6: 4.303 times .1 over the root of three
    assert "| RTE | 10 | 100 | 0.900 | 80 | 40 | 50 ± 25 % | 60 | 0.910 | 0.850 |" in text
