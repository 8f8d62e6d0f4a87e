"""How crowd-kit is called in the benchmarks."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.testing.aggregators import simulated_crowd

pytest.importorskip("crowdkit")

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)  # the process that runs crowd-kit imports it by name
    spec = importlib.util.spec_from_file_location("peers", FOLDER / "peers.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "peers", module)
    spec.loader.exec_module(module)
    return module


def test_frame_has_a_row_for_each_annotation(peers):
    annotations, _ = simulated_crowd(10, 4, 2, redundancy=3)
    frame = peers.crowdkit_frame(annotations)
    assert list(frame.columns) == ["task", "worker", "label"]
    np.testing.assert_array_equal(frame["worker"], annotations.annotator_ids)


def test_tasks_and_classes_without_an_answer(peers):
    import pandas as pd

    class Aggregator:
        def fit_predict_proba(self, frame):
            return pd.DataFrame({2: [1.0, 0.25], 0: [0.0, 0.75]}, index=[3, 1])

    posteriors = peers.crowdkit_posteriors(Aggregator(), None, num_tasks=4, num_classes=3)
    third = [1 / 3] * 3
    np.testing.assert_allclose(posteriors, [third, [0.75, 0, 0.25], third, [0, 0, 1]])
