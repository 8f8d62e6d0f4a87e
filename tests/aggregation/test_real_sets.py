"""Figures that others published or measured, on the real crowds below CROWDZOO_DATA."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.aggregation import DawidSkene, MajorityVote

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "aggregation_quality.py"

# majority vote, expected under random ties, as the sets' own papers and audits give it; Dawid-Skene by crowd-kit 1.4.2
FIGURES = {
    "bluebird": (0.7593, 0.889),
    "dog": (0.8222, 0.843),
    "rte": (0.8969, 0.928),
    "trec": (0.6514, 0.702),
    "web": (0.7307, 0.829),
    "d_sentiment": (0.9335, 0.960),
    "face": (0.6367, 0.640),
    "music": (0.7042, 0.769),
    "labelme": (0.7660, 0.792),
}


@pytest.fixture(scope="module")
def real_sets():
    spec = importlib.util.spec_from_file_location("aggregation_quality", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.real_sets


@pytest.fixture(params=FIGURES)
def crowd(request, real_sets):
    found = list(real_sets((request.param,)))
    if not found:
        pytest.skip(f"CROWDZOO_DATA has no {request.param}")
    return found[0]


def test_majority_vote_has_the_published_accuracy(crowd):
    name, annotations, gold = crowd
    assert MajorityVote().fit(annotations).expected_accuracy(gold) == pytest.approx(FIGURES[name][0], abs=5e-5)


def test_dawid_skene_is_as_good_as_elsewhere(crowd):
    name, annotations, gold = crowd
    result = DawidSkene().fit(annotations)
    known = (gold >= 0).sum()
    # half a hundredth, or one task of a small set
    assert result.expected_accuracy(gold) >= FIGURES[name][1] - 0.005
    assert result.expected_accuracy(gold) <= FIGURES[name][1] + max(0.005, 1.1 / known)
    assert result.converged
    assert (np.diff(result.history) > -1e-9 * abs(result.history[0])).all()


def test_music_keeps_its_accuracy_where_annotators_have_few_labels(real_sets):
    found = list(real_sets(("music",)))
    if not found:
        pytest.skip("CROWDZOO_DATA has no music")
    _, annotations, gold = found[0]
    assert DawidSkene().fit(annotations).expected_accuracy(gold) >= 0.765
    assert DawidSkene(prior=1.0).fit(annotations).expected_accuracy(gold) < 0.70  # what a flat prior does
