"""An earlier result as the prior of a new fit."""

from dataclasses import replace

import numpy as np
import pytest

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import IBCC, Aggregation, DawidSkene, HierarchicalDawidSkene, RatingMean, Robust, create
from crowdzoo.aggregation.named import result_of
from crowdzoo.testing.aggregators import simulated_crowd

METHODS = {
    "dawid-skene": DawidSkene(),
    "hierarchical-dawid-skene": HierarchicalDawidSkene(),
    "ibcc": IBCC(),
    "robust": Robust(),
}
CLASSES = ["cat", "dog", "owl"]


def batches(seed=0):
    """Two batches of tasks by the same annotators, who are named in another order in the second, and their truth."""
    crowd, truth = simulated_crowd(num_tasks=200, num_annotators=9, redundancy=4, seed=seed)
    names = np.array([f"a{code}" for code in range(9)])
    parts = []
    for chosen in (crowd.task_ids < 150, crowd.task_ids >= 150):
        order = np.flatnonzero(chosen)[:: -1 if parts else 1]
        labels = np.array(CLASSES, object)[crowd.labels[order]]
        parts.append(
            Annotations.from_arrays(
                crowd.task_ids[order], names[crowd.annotator_ids[order]], labels, classes=CLASSES[:: -1 if parts else 1]
            )
        )
    return *parts, truth


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_annotators_and_classes_of_the_prior_are_found_by_name(method):
    first, second, _ = batches()
    earlier = method.fit(first)
    result = method.fit(second, prior=earlier)
    forward = Annotations.from_arrays(
        second.tasks[second.task_ids],
        second.annotators[second.annotator_ids],
        second.classes[second.labels],
        annotators=first.annotators[::-1],
        classes=CLASSES,
    )
    same = method.fit(forward, prior=earlier)
    assert result.classes.tolist() == CLASSES[::-1]
    np.testing.assert_allclose(result.posteriors[:, ::-1], same.posteriors, atol=1e-9)


def test_pseudo_counts_of_dawid_skene_are_those_of_a_fit_to_known_classes():
    """Old tasks whose class is known add to each count exactly once; so batches equal one fit."""
    first, second, truth = batches()
    both = Annotations.from_arrays(
        *(
            np.concatenate([getattr(part, names)[getattr(part, codes)] for part in (first, second)])
            for names, codes in (("tasks", "task_ids"), ("annotators", "annotator_ids"), ("classes", "labels"))
        ),
        classes=CLASSES,
    )
    gold = np.where(both.tasks < 150, truth[both.tasks], -1)
    forward = replace(second, classes=first.classes, labels=len(CLASSES) - 1 - second.labels)
    for method in (DawidSkene(tol=1e-12, max_iter=9999), IBCC(tol=1e-12, max_iter=9999)):
        whole = method.fit(both, gold=gold)
        result = method.fit(forward, prior=method.fit(first, gold=truth[first.tasks]))
        new = np.searchsorted(both.tasks, forward.tasks)
        np.testing.assert_allclose(result.posteriors, whole.posteriors[new], atol=1e-5)
        np.testing.assert_allclose(result.class_counts, whole.class_counts, atol=1e-3)
        order = np.searchsorted(whole.annotators.astype(str), result.annotators.astype(str))
        np.testing.assert_allclose(result.counts, whole.counts[order], atol=1e-3)
        assert (np.diff(result.history) > -1e-9).all()


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_prior_knows_whom_to_believe_where_two_contradict_each_other(method):
    """Two annotators alone on a task: only the old tasks tell that one guesses."""
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=80)
    answers = np.stack([truth, truth, truth, rng.integers(2, size=80)], axis=1)
    earlier = method.fit(Annotations.from_dense(answers, annotators=["ann", "bob", "cem", "guess"]))
    new = Annotations.from_arrays([0, 0, 1, 1], ["ann", "guess"] * 2, [0, 1, 1, 0])
    assert method.fit(new, prior=earlier).labels.tolist() == [0, 1]


def test_a_chain_of_batches_keeps_annotators_and_classes_that_were_away(tmp_path):
    first, second, _ = batches()
    some = second.select_rows(np.flatnonzero(np.isin(second.annotators[second.annotator_ids], ["a0", "a1", "a2"])))
    named = Annotations.from_arrays(some.tasks[some.task_ids], some.annotators[some.annotator_ids], ["cat"] * len(some))
    earlier = DawidSkene().fit(first)
    earlier.to_parquet(tmp_path / "first")
    result = DawidSkene().fit(named, prior=Aggregation.from_parquet(tmp_path / "first"))
    assert result.annotators.tolist() == ["a0", "a1", "a2", *(f"a{code}" for code in range(3, 9))]
    assert result.annotations_per_annotator[3:].tolist() == [0] * 6
    assert result.classes.tolist() == CLASSES
    np.testing.assert_allclose(result.counts[3:], earlier.counts[3:], rtol=1e-9)
    assert result.counts[:3].sum() == pytest.approx(earlier.counts[:3].sum() + len(named))
    assert result.class_counts.sum() == pytest.approx(150 + named.num_tasks)


def test_results_without_counts_are_a_prior_by_their_matrices():
    """As earlier releases wrote them: numbers of annotations x class prior x confusion."""
    first, second, _ = batches()
    earlier = DawidSkene().fit(first)
    old = replace(earlier, counts=None, class_counts=None)
    from_old, from_new = (DawidSkene().fit(second, prior=prior) for prior in (old, earlier))
    assert (from_old.labels == from_new.labels).mean() > 0.95
    expected = old.annotations_per_annotator.sum() + len(second)
    assert from_old.counts.sum() == pytest.approx(expected)


def test_what_cannot_be_a_prior_is_refused():
    first, second, _ = batches()
    ratings = RatingMean().fit(Annotations.from_arrays([1, 2], ["a0", "a1"], [1.0, 2.0], kind="regression"))
    with pytest.raises(DataError, match="got RatingAggregation"):
        Robust().fit(second, prior=ratings)
    with pytest.raises(DataError, match=r"wawa has no confusion matrices\. Use a result of robust"):
        Robust().fit(second, prior=create("wawa").fit(first))
    with pytest.raises(DataError, match=r"has the classes \['cat', 'dog', 'owl'\]"):
        Robust().fit(Annotations.from_arrays([1, 2], ["a0", "a1"], ["yes", "no"]), prior=Robust().fit(first))
    with pytest.raises(ConfigError, match=r"GLAD cannot use an earlier result.*dawid-skene, robust"):
        result_of(create("glad"), second, prior=Robust().fit(first))


def test_notes_name_shared_tasks_and_strange_annotators():
    first, second, _ = batches()
    earlier = Robust().fit(first)
    assert not any("prior" in note for note in Robust().fit(second, prior=earlier).notes)
    assert any(
        note.startswith("150 of the tasks are in the prior") for note in Robust().fit(first, prior=earlier).notes
    )
    strange = replace(second, annotators=np.array([f"b{code}" for code in range(9)], object))
    assert any("none of the annotators" in note for note in Robust().fit(strange, prior=earlier).notes)
