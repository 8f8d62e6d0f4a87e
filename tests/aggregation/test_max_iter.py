"""max_iter counts what comes after the start, as in scikit-learn, in every method and on Beam's forms."""

import numpy as np
import pytest

import crowdzoo
from crowdzoo.aggregation import IBCC, ConvergenceWarning, PlackettLuce, create
from crowdzoo.aggregation.engine.block import blocks_of
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.registry import METHODS_OF
from crowdzoo.large.forms import form_of
from crowdzoo.tables import Rankings
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = [
    pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning"),
    pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning"),
]
RATED = crowdzoo.Annotations.from_dense(np.random.default_rng(0).normal(size=(20, 5)), kind="regression")
ITERATIVE = [
    (kind, name)
    for kind in ("classification", "regression", "sequence")
    for name, method in METHODS_OF[kind].items()
    if "max_iter" in getattr(method, "rules", {})
]


@pytest.mark.parametrize(("kind", "name"), ITERATIVE, ids=["-".join(each) for each in ITERATIVE])
def test_so_many_iterations_are_made_and_counted(kind, name):
    if kind == "classification":
        data = simulated_crowd(redundancy=3)[0]
    else:
        data = RATED if kind == "regression" else crowdzoo.datasets.generated_ner(10)
    few = {"num_starts": 1} if name == "ebcc" else {}
    histories = [create(name, kind=kind, max_iter=most, tol=0, **few).fit(data).history for most in (1, 3)]
    starts = kind != "regression"  # whose bound needs an iteration
    assert [len(history) - starts for history in histories] == [1, 3]
    assert histories[1][: len(histories[0])] == pytest.approx(histories[0])


def region(left):
    return f'{{"size": [9, 9], "regions": [{{"category": "cat", "bbox": [{left}, 1, 4, 4]}}]}}'


@pytest.mark.filterwarnings("default::crowdzoo.aggregation.ConvergenceWarning")
@pytest.mark.parametrize("name", ["plackett-luce", "bradley-terry", "text-rasa", "text-hrrasa", "staple", "rating-em"])
def test_the_warning_names_the_line_that_called_fit(name):
    rng = np.random.default_rng(0)
    task, who = np.repeat(np.arange(9), 4), np.tile(np.arange(4), 9)
    if name == "plackett-luce":
        orders = np.concatenate([rng.permutation(9) for _ in range(4)])
        rankings = Rankings.from_arrays(np.tile(np.arange(9), 4), np.repeat(np.arange(4), 9), orders)
        method, data = PlackettLuce(max_iter=1), rankings
    else:
        kind = next(kind for kind, methods in METHODS_OF.items() if name in methods)
        labels = {
            "preference": rng.choice(["left", "right"], 36),
            "free-text": [" ".join(rng.choice(list("abcdefg"), 4)) for _ in range(36)],
            "region": [region(left) for left in rng.integers(0, 5, 36)],
            "regression": rng.normal(size=36),
        }[kind]
        right = {"right": (task + who + 1) % 9} if kind == "preference" else {}
        method = create(name, kind=kind, max_iter=2, tol=1e-9)
        data = crowdzoo.Annotations.from_arrays(task, who, labels, kind=kind, **right)
    with pytest.warns(ConvergenceWarning) as caught:
        method.fit(data)
    assert [warning.filename for warning in caught if warning.category is ConvergenceWarning] == [__file__]


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin"])
def test_forms_on_beam_end_after_as_many_iterations(name):
    """Steps of a pass, without a runner."""
    data, method = simulated_crowd(redundancy=3)[0], create(name, max_iter=2, tol=0)
    form = form_of(method, data.num_annotators, data.num_classes)
    block, run = blocks_of(data, None)[0], Run(None)
    while not run.done:
        total = form.zero()
        if run.params is None:
            form.first(total, block, 0, None)
        else:
            form.expect(total, block, form.prepared(run.params))
        run = form.next_run(run, total)
    assert run.num_iterations == 2
    assert run.history == pytest.approx(method.fit(data).history)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_ibcc_s_none_is_one_wrong_and_four_right_answers(classes):
    data = simulated_crowd(num_classes=classes, redundancy=3)[0]
    found = IBCC(prior=None, diagonal=None).fit(data).posteriors
    wrong = 1 / (classes - 1)
    np.testing.assert_allclose(found, IBCC(prior=wrong, diagonal=4 - wrong).fit(data).posteriors, atol=1e-12)
    np.testing.assert_allclose(
        IBCC(prior=0.5).fit(data).posteriors, IBCC(prior=0.5, diagonal=3.5).fit(data).posteriors, atol=1e-12
    )
