import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import annotations

from crowdzoo.aggregation import Aggregation, ConvergenceWarning, DawidSkene, MajorityVote

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")

AGGREGATORS = {
    "majority-vote": MajorityVote(),
    "hard, random ties": MajorityVote(voting="hard", ties="random", seed=1),
    "dawid-skene": DawidSkene(max_iter=30),
    "maximum likelihood": DawidSkene(max_iter=30, prior=0),
    "two starts": DawidSkene(max_iter=30, num_starts=2, diagonal=0.3),
}


def fit(aggregator, *arguments, **extra):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return aggregator.fit(*arguments, **extra)


@pytest.mark.parametrize("aggregator", AGGREGATORS.values(), ids=AGGREGATORS)
@settings(max_examples=40, deadline=None)
@given(crowd=annotations(), data=st.data())
def test_any_table_with_any_gold_gives_probabilities(aggregator, crowd, data):
    gold = np.array(
        data.draw(st.lists(st.integers(-1, crowd.num_classes - 1), min_size=crowd.num_tasks, max_size=crowd.num_tasks))
    )
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        result = fit(aggregator, crowd, gold=gold)
    assert (result.posteriors >= 0).all()
    np.testing.assert_allclose(result.posteriors.sum(axis=1), 1)
    np.testing.assert_allclose(result.confusions.sum(axis=2), 1)
    np.testing.assert_array_equal(result.labels[gold >= 0], gold[gold >= 0])
    assert (np.diff(result.history) >= -1e-9).all()
    assert result.annotations_per_task.sum() == result.annotations_per_annotator.sum() == len(crowd)


@settings(max_examples=25, deadline=None)
@given(crowd=annotations(named=True))
def test_any_result_is_read_back_as_written(crowd):
    result = fit(DawidSkene(max_iter=3), crowd)
    with tempfile.TemporaryDirectory() as folder:
        read = Aggregation.from_parquet(result.to_parquet(Path(folder) / "result"))
    for name in ("posteriors", "labels", "confusions", "class_prior", "tasks", "annotators", "classes"):
        np.testing.assert_array_equal(getattr(read, name), getattr(result, name))
        assert getattr(read, name).dtype == getattr(result, name).dtype
    assert read.history == result.history
