"""Answers for train and eval, without a pipeline around them."""

from dataclasses import replace

import numpy as np
import pytest

from crowdzoo.aggregation import create
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.classes.records import ClassRecords
from crowdzoo.records.crowd_answers import BOTH


@pytest.fixture
def crowds():
    """20 and 10 tasks of three classes; five annotators are right two times in three."""
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 30)
    said = np.where(random.random((30, 5)) < 2 / 3, truth[:, None], random.integers(0, 3, (30, 5)))
    crowd = Annotations.from_dense(said, kind="classification")
    return {
        BOTH: crowd,
        "train": crowd.select_tasks(np.arange(30) < 20),
        "eval": crowd.select_tasks(np.arange(30) >= 20),
    }


@pytest.mark.parametrize(
    ("name", "learns"),
    [
        *((name, False) for name in ("majority-vote", "robust", "wawa", "glad")),
        *((name, True) for name in ("dawid-skene", "one-coin", "ibcc", "mace")),
    ],
)
def test_eval_follows_from_train_by_bayes_rule_or_from_a_fit_to_both(crowds, name, learns):
    method = create(name, seed=0)
    found = ClassRecords().aggregate(method, crowds, method.fit, "").tables["eval"].to_pydict()
    both, taught = method.fit(crowds[BOTH]), method.fit(crowds["train"])
    expected = taught.posteriors_of(crowds["eval"]) if learns else both.posteriors[20:]
    assert found["task"] == list(map(str, crowds["eval"].tasks))
    np.testing.assert_allclose(found["posterior"], expected, atol=1e-6)


def test_eval_counts_annotations_by_their_confidence_as_train_does(crowds):
    method = create("dawid-skene", confidence=True)
    crowds = {
        split: replace(crowd, confidence=np.where(np.arange(len(crowd)) % 2, 0.5, 0.9))
        for split, crowd in crowds.items()
    }
    found = ClassRecords().aggregate(method, crowds, method.fit, "").tables["eval"].to_pydict()
    whole = replace(method.fit(crowds["train"]), confidence=False).posteriors_of(crowds["eval"])
    assert np.abs(np.array(found["posterior"]) - whole).max() > 0.05
