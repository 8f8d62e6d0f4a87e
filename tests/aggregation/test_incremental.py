import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import IBCC, DawidSkene, HierarchicalDawidSkene, MajorityVote, OneCoinDawidSkene, Wawa
from crowdzoo.testing.aggregators import simulated_crowd

TO_THE_END = {"tol": 1e-14, "max_iter": 20_000}
METHODS = {
    "dawid-skene": DawidSkene(**TO_THE_END),
    "one-coin": OneCoinDawidSkene(**TO_THE_END),
    "ibcc": IBCC(**TO_THE_END),
}


@pytest.fixture(scope="module")
def growing():
    """Annotations of 120 tasks by 8 annotators, and those of 300 tasks by 12, in another order of annotators."""
    crowd, truth = simulated_crowd(num_tasks=300, num_annotators=12, redundancy=6, seed=7)
    names = np.array([f"a{code}" for code in np.random.default_rng(0).permutation(12)])
    tasks, who, said = crowd.task_ids, names[crowd.annotator_ids], crowd.labels
    early = (tasks < 120) & np.isin(who, [f"a{code}" for code in range(8)])
    classes = range(3)
    before = Annotations.from_arrays(tasks[early], who[early], said[early], classes=classes)
    return before, Annotations.from_arrays(tasks, who, said, classes=classes), truth


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_at_convergence_it_is_a_fit_to_all_annotations(growing, method):
    before, after, _ = growing
    whole = method.fit(after)
    found = method.partial_fit(after, method.fit(before))
    assert found.converged
    np.testing.assert_allclose(found.posteriors, whole.posteriors, atol=1e-6)
    np.testing.assert_allclose(found.confusions, whole.confusions, atol=1e-6)
    np.testing.assert_array_equal(found.annotators, whole.annotators)


def test_it_begins_with_the_earlier_parameters(growing):
    before, after, _ = growing
    found = DawidSkene(max_iter=1, tol=0.0)
    with pytest.warns(UserWarning, match="did not converge|max_iter"):
        one_more = found.partial_fit(after, DawidSkene().fit(before))
    with pytest.warns(UserWarning, match="did not converge|max_iter"):
        from_votes = found.fit(after)
    assert one_more.history[0] > from_votes.history[0]


@pytest.mark.parametrize("method", [MajorityVote(), HierarchicalDawidSkene()], ids=str)
def test_methods_without_one_maximum(growing, method):
    before, after, truth = growing
    found, whole = method.partial_fit(after, method.fit(before)), method.fit(after)
    if isinstance(method, MajorityVote):
        np.testing.assert_allclose(found.posteriors, whole.posteriors, rtol=1e-9, atol=1e-12)
    assert found.accuracy(truth) == pytest.approx(whole.accuracy(truth), abs=0.01)


def test_the_first_time_and_known_classes(growing):
    before, _, truth = growing
    gold = np.where(np.arange(before.num_tasks) < 5, (truth[: before.num_tasks] + 1) % 3, -1)
    first = DawidSkene().partial_fit(before, gold=gold)
    np.testing.assert_allclose(first.posteriors, DawidSkene().fit(before, gold).posteriors, rtol=1e-9, atol=1e-12)
    second = DawidSkene().partial_fit(before, first, gold)
    np.testing.assert_array_equal(second.labels[:5], gold[:5])


def test_an_earlier_result_that_does_not_fit_is_refused(growing):
    before, after, _ = growing
    with pytest.raises(DataError, match="no confusion matrices to continue from"):
        DawidSkene().partial_fit(after, Wawa().fit(before))
    other = Annotations.from_arrays([0, 0], ["a0", "a1"], [0, 1], classes=range(2))
    with pytest.raises(DataError, match=r"classes \[0, 1\], the annotations have \[0, 1, 2\]"):
        DawidSkene().partial_fit(after, DawidSkene().fit(other))
