from itertools import combinations

import numpy as np
import pytest
from scipy.stats import hypergeom

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import Aggregation, MajorityVote, accept
from crowdzoo.aggregation.acceptance import _crossed, _most_wrong


def crowd_of(errors, seed=0, answers=3):
    """Two classes; each task has some answers, each wrong with the task's probability; and the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, len(errors))
    wrong = rng.random((len(errors), answers)) < np.asarray(errors)[:, None]
    return Annotations.from_dense(np.where(wrong, 1 - truth[:, None], truth[:, None])), truth


def drawn(truth, number, seed):
    """Gold of random tasks."""
    known = np.random.default_rng((9, seed)).permutation(len(truth))[:number]
    gold = np.full(len(truth), -1)
    gold[known] = truth[known]
    return gold


def broken(found, gold, truth, error):
    """Whether too many of the accepted labels of tasks without gold are wrong."""
    others = found.accepted & (gold < 0)
    return (found.labels != truth)[others].sum() > error * others.sum()


def test_the_probability_of_crossing_a_boundary_is_that_of_counting_all_draws():
    draws = list(combinations(range(10), 4))  # 4 of 10 tasks are gold; the first 7 have a wrong label
    crossed = [sum(task < 3 for task in draw) <= 0 or sum(task < 7 for task in draw) <= 2 for draw in draws]
    assert _crossed([(0, 3), (2, 7)], 10, 4) == pytest.approx(np.mean(crossed), abs=1e-12)


def test_where_the_order_tells_nothing_the_bound_is_broken_in_one_draw_of_twenty():
    # the hardest case: one answer per task, so that all labels are equally sure, and a few too many are wrong
    truth = np.zeros(1000, int)
    said = np.where(np.arange(1000) % 19 == 0, 1, truth)  # 53 wrong
    crowd = Annotations.from_dense(said[:, None])
    raw = MajorityVote().fit(crowd)
    share = np.mean([
        broken(accept(raw, crowd, gold, seed=seed), gold, truth, 0.05)
        for seed in range(400) for gold in [drawn(truth, 200, seed)]
    ])  # fmt: skip
    assert 0.005 < share < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_the_bound_holds_for_all_parts_of_the_order_at_once():
    # of 53 wrong labels, each gold with probability 1/5, the bound on the first ones is above their number
    most, inside = _most_wrong(1000, 200, 0.05, 0.05), []
    for seed in range(2000):
        gold = np.zeros(1000, bool)
        gold[np.random.default_rng(seed).permutation(1000)[:200]] = True
        seen = np.cumsum(gold[:53])  # the wrong ones come first
        inside.append((np.arange(1, 54) - seen <= most[seen]).all())
    assert 0.95 - 0.015 < np.mean(inside) < 0.99


def test_sure_labels_are_accepted_and_unsure_ones_are_not():
    crowd, truth = crowd_of(np.repeat([0.02, 0.4], [700, 300]), answers=5)
    raw = MajorityVote().fit(crowd)
    gold = drawn(truth, 200, 0)
    found = accept(raw, crowd, gold)
    known = gold >= 0
    assert found.accepted[known].all()
    np.testing.assert_array_equal(found.labels[known], truth[known])
    np.testing.assert_array_equal(found.labels[~known], raw.labels[~known])
    np.testing.assert_array_equal(found.posteriors[known], np.eye(2)[truth[known]])
    assert found.error_bound == (0.05, 0.95)
    assert found.accepted[:700].mean() > 0.9
    assert not broken(found, gold, truth, 0.05)
    assert accept(raw, crowd, gold, error=0.3).accepted.all()
    strict = accept(raw, crowd, gold, error=0.05, confidence=0.99).accepted
    assert strict.sum() < found.accepted.sum()
    again = accept(raw, crowd, gold)
    np.testing.assert_array_equal(again.accepted, found.accepted)


def test_a_gold_sample_drawn_with_the_same_seed_does_not_decide_the_order():
    truth = np.zeros(1000, int)
    said = np.where(np.arange(1000) % 5 == 0, 1, truth)  # one in five is wrong
    crowd = Annotations.from_dense(said[:, None])
    gold = np.where(np.random.default_rng(0).random(1000) < 0.2, truth, -1)
    found = accept(MajorityVote().fit(crowd), crowd, gold, seed=0)
    np.testing.assert_array_equal(found.accepted, gold >= 0)


def test_as_many_gold_tasks_as_it_asks_for_are_enough():
    crowd, truth = crowd_of(np.zeros(500))
    raw = MajorityVote().fit(crowd)
    with pytest.raises(DataError, match="30 annotated tasks have gold"):
        accept(raw, crowd, drawn(truth, 30, 0))
    with pytest.raises(DataError, match="59 annotated tasks have gold"):
        accept(raw, crowd, drawn(truth, 59, 0))
    # of 440 without gold 22 may be wrong; if 23 were, a draw of 60 would miss all of them less than once in twenty
    assert hypergeom.pmf(0, 500, 23, 60) < 0.05 < hypergeom.pmf(0, 500, 23, 59)
    assert accept(raw, crowd, drawn(truth, 60, 0)).accepted.all()
    assert accept(raw, crowd, truth).accepted.all()
    with pytest.raises(DataError, match=r"15 annotated tasks have gold, .* takes 20:"):  # fewer tell nothing
        accept(raw, crowd, drawn(truth, 15, 0), error=0.4)


def test_what_is_no_random_sample_or_does_not_fit_is_refused():
    crowd, truth = crowd_of(np.repeat([0.05, 0.4], 300), answers=5)
    raw = MajorityVote().fit(crowd)
    some, first, gold = np.arange(600) % 2 == 0, np.arange(600) < 300, drawn(truth, 200, 0)
    for result, table, known, reason in (
        (raw, crowd, np.where(some & first, truth, -1), "their labels are more certain"),
        (raw, crowd, np.where(some & ~first, truth, -1), "their labels are less certain"),
        (MajorityVote().fit(crowd, gold), crowd, gold, "fit it without gold"),
        (raw, crowd.select_tasks(np.arange(300)), gold[:300], "other tasks than the aggregation"),
        (raw, crowd, None, "0 annotated tasks have gold"),
    ):
        with pytest.raises(DataError, match=reason):
            accept(result, table, known)
    with pytest.raises(ConfigError, match="error"):
        accept(raw, crowd, gold, error=5)


def test_tasks_without_annotations_are_accepted_only_with_gold():
    number = 3000
    truth = np.zeros(number, int)
    crowd = Annotations.from_arrays(np.arange(number - 100), np.zeros(number - 100), truth[:-100], tasks=range(number),
                                    classes=[0, 1])  # fmt: skip
    gold = drawn(truth, 1500, 1)
    found = accept(MajorityVote().fit(crowd), crowd, gold, error=0.01)
    empty = np.arange(number) >= number - 100
    np.testing.assert_array_equal(found.accepted, ~empty | (gold >= 0))


def test_it_is_written_and_read_back(tmp_path):
    crowd, truth = crowd_of(np.repeat([0.02, 0.4], [700, 300]), answers=5)
    found = accept(MajorityVote().fit(crowd), crowd, drawn(truth, 200, 0))
    read = Aggregation.from_parquet(found.to_parquet(tmp_path / "result"))
    np.testing.assert_array_equal(read.accepted, found.accepted)
    assert read.error_bound == found.error_bound
    assert MajorityVote().fit(crowd).accepted is None
