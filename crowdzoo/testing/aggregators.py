"""check_aggregator: checks that every aggregation algorithm must pass."""

import copy
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any
from unittest.mock import patch

import numpy as np

from crowdzoo.aggregation import Aggregation, Block, ConvergenceWarning
from crowdzoo.aggregation.base import Aggregator, ignored
from crowdzoo.aggregation.named import result_of
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import label_kind
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.testing.explained import explained


def check_aggregator(aggregator: Aggregator) -> None:
    """Runs every check of `AGGREGATOR_CHECKS` on a custom aggregator for classes.

    To see all failures and not only the first, parametrise a test over that dictionary.

    An aggregator may declare exceptions as attributes, each of which relaxes one requirement:

    - `max_classes`, an integer: the largest number of classes. It is checked with that many (at most three), and must
      reject more with a DataError that names their number.
    - `draws_by_code`, true: its result depends on numbers drawn for the codes of annotators, tasks or classes (such as
      several random starts). Other codes may then change one label in twenty, posteriors and confusions.
    - `whole_table`, true: it processes the whole table at once and not in blocks, as most vectorised methods do.
    - `unanimous_probability`, below the usual 0.99: least probability of the class that all four annotators of a task
      chose, in a crowd that always agrees. For posteriors that are uncertain on purpose.

    Args:
        aggregator: an instance with `fit(annotations, ...) -> Aggregation`; for any redundancy.

    Raises:
        AssertionError: the first check that fails, with the check, the data, the aggregator's error or result, and
            advice.
        ConfigError: an aggregator for labels of another kind.

    Example:
        >>> from crowdzoo.aggregation import MajorityVote
        >>> from crowdzoo.testing import check_aggregator
        >>> check_aggregator(MajorityVote())
    """
    if not label_kind(kind := getattr(aggregator, "kind", "classification")).one_class:
        raise ConfigError(f"check_aggregator: is for classes, and {type(aggregator).__name__} is for kind {kind!r}.")
    for check in AGGREGATOR_CHECKS.values():
        check(aggregator)


def simulated_crowd(
    num_tasks: int = 60, num_annotators: int = 8, num_classes: int = 3, redundancy: int = 5, seed: int = 0
) -> tuple[Annotations, np.ndarray]:
    """Simulates annotators who are right 60 to 90 % of the time and whose errors are twice as often the next class.

    Returns:
        Annotations, rows in random order, and the true class codes, int64 [N].
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(num_classes, size=num_tasks)
    skill = rng.uniform(0.6, 0.9, num_annotators)
    odds = np.ones((num_classes, num_classes)) + np.roll(np.eye(num_classes), 1, axis=1)
    np.fill_diagonal(odds, 0.0)
    slips = odds / np.maximum(odds.sum(axis=1, keepdims=True), 1)
    task_ids = np.repeat(np.arange(num_tasks), redundancy)
    annotator_ids = np.concatenate([rng.permutation(num_annotators)[:redundancy] for _ in range(num_tasks)])
    right = rng.random(len(task_ids)) < skill[annotator_ids]
    wrong = np.array([rng.choice(num_classes, p=slips[k]) if num_classes > 1 else 0 for k in truth[task_ids]])
    labels = np.where(right, truth[task_ids], wrong)
    order = rng.permutation(len(task_ids))
    return _table(task_ids[order], annotator_ids[order], labels[order], num_tasks, num_annotators, num_classes), truth


def _table(
    task_ids: Any, annotator_ids: Any, labels: Any, num_tasks: int, num_annotators: int, num_classes: int
) -> Annotations:
    columns = (np.asarray(column, np.int64) for column in (task_ids, annotator_ids, labels))
    return Annotations.from_arrays(
        *columns, tasks=np.arange(num_tasks), annotators=np.arange(num_annotators), classes=np.arange(num_classes)
    )


def _num_classes(aggregator: Aggregator) -> int:
    return min(getattr(aggregator, "max_classes", 3), 3)


def _crowd(aggregator: Aggregator, seed: int = 0) -> tuple[Annotations, np.ndarray]:
    _data[:] = [f"simulated_crowd(num_classes={_num_classes(aggregator)}, seed={seed}) of crowdzoo.testing"]
    return simulated_crowd(num_classes=_num_classes(aggregator), seed=seed)


_data: list[str] = []  # data of the current check: the simulation, and the last fitted table


def _fit(aggregator: Aggregator, annotations: Any, **extra: Any) -> Aggregation:
    names = () if len(annotations) > 8 else ("task_ids", "annotator_ids", "labels")
    rows = [f"{name} {getattr(annotations, name).tolist()}" for name in names]
    _data[1:] = [", ".join([f"last fitted to {annotations!r}", *rows, *extra])]
    with ignored(ConvergenceWarning):  # convergence on odd data is not checked
        return result_of(aggregator, annotations, **extra)


def _assert_sound(result: Aggregation, annotations: Annotations) -> None:
    """Checks shapes, no NaN, rows that sum to one, most probable labels, and a history that never falls."""
    n, r, k = annotations.num_tasks, annotations.num_annotators, annotations.num_classes
    assert result.posteriors.shape == (n, k)
    assert result.labels.shape == (n,)
    assert result.labels.dtype == np.int64
    assert (result.posteriors >= 0).all()  # false for NaN
    np.testing.assert_allclose(result.posteriors.sum(axis=1), 1, atol=1e-9)
    chosen = result.posteriors[np.arange(n), result.labels]
    np.testing.assert_allclose(chosen, result.posteriors.max(axis=1, initial=0), atol=1e-9)
    if result.confusions is not None:
        assert result.confusions.shape == (r, k, k)
        assert (result.confusions >= 0).all()
        np.testing.assert_allclose(result.confusions.sum(axis=2), 1, atol=1e-9)
    if result.class_prior is not None:
        np.testing.assert_allclose(result.class_prior.sum(), 1, atol=1e-9)
    assert result.skills is None or not np.isnan(result.skills).any(), "skills hold NaN"
    history = np.asarray(result.history)
    assert np.isfinite(history).all()
    assert (np.diff(history) >= -1e-9 * np.abs(history[:1]).max(initial=1.0)).all(), "the history falls"
    np.testing.assert_array_equal(result.annotations_per_task, annotations.redundancy)
    assert result.annotations_per_annotator.sum() == len(annotations)
    for name in ("tasks", "annotators", "classes"):
        np.testing.assert_array_equal(getattr(result, name), getattr(annotations, name))


def _assert_same(left: Aggregation, right: Aggregation, atol: float = 0.0) -> None:
    np.testing.assert_allclose(left.posteriors, right.posteriors, rtol=0, atol=atol)
    np.testing.assert_array_equal(left.labels, right.labels)
    if left.confusions is not None and right.confusions is not None:
        np.testing.assert_allclose(left.confusions, right.confusions, rtol=0, atol=atol)
    np.testing.assert_allclose(left.history, right.history, rtol=1e-9)


# === The checks ===


def check_result_is_sound(aggregator: Aggregator) -> None:
    """For a plain crowd: shapes, sums, no NaN, and most tasks are right.

    `Aggregation.of(name, annotations, posteriors)` derives all other fields from posteriors [N, K]. Arrays of the input
    are read-only: work on copies.
    """
    annotations, truth = _crowd(aggregator)
    result = _fit(aggregator, annotations)
    _assert_sound(result, annotations)
    assert result.accuracy(truth) >= 0.8


def check_settings_and_input_stay(aggregator: Aggregator) -> None:
    """`fit` changes neither the aggregator nor its input, nor NumPy's global random numbers.

    Work on copies, store what is learned in the result, and draw from your own generator.
    """
    annotations, _ = _crowd(aggregator)
    settings = copy.deepcopy(vars(aggregator))
    before = {name: getattr(annotations, name).copy() for name in ("task_ids", "annotator_ids", "labels")}
    np.random.random()  # so that a seed that an earlier fit set is noticed as well
    state = np.random.get_state()
    _fit(aggregator, annotations)
    assert vars(aggregator) == settings
    assert all(map(np.array_equal, state, np.random.get_state())), "the global random numbers were drawn or seeded"
    for name, values in before.items():
        np.testing.assert_array_equal(getattr(annotations, name), values)


def check_fit_twice_equals_once(aggregator: Aggregator) -> None:
    """A second fit gives exactly the same result, also after a fit on other data.

    Create a random number generator in each `fit`, from a setting `seed`.
    """
    annotations, _ = _crowd(aggregator)
    first = _fit(aggregator, annotations)
    _fit(aggregator, _crowd(aggregator, seed=1)[0])
    _assert_same(first, _fit(aggregator, annotations))


def check_unanimous_crowd_is_believed(aggregator: Aggregator) -> None:
    """If all annotators agree, their answer is the result.

    For posteriors that are uncertain on purpose, declare `unanimous_probability`.
    """
    _data[:] = ["30 tasks of four annotators who agree"]
    k = _num_classes(aggregator)
    truth = np.random.default_rng(0).integers(k, size=30)
    annotations = _table(np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30), np.repeat(truth, 4), 30, 4, k)
    result = _fit(aggregator, annotations)
    np.testing.assert_array_equal(result.labels, truth)
    least = getattr(aggregator, "unanimous_probability", 0.99)
    assert (result.posteriors[np.arange(30), truth] > least).all()


def check_row_order_is_irrelevant(aggregator: Aggregator) -> None:
    """Shuffled rows give the same result up to rounding.

    Results must not depend on the order of rows: sum over rows, and draw by the codes of tasks.
    """
    annotations, _ = _crowd(aggregator)
    order = np.random.default_rng(1).permutation(len(annotations))
    columns = {name: getattr(annotations, name)[order] for name in ("task_ids", "annotator_ids", "labels")}
    _assert_same(_fit(aggregator, annotations), _fit(aggregator, replace(annotations, **columns)), atol=1e-7)


def check_renaming_permutes(aggregator: Aggregator) -> None:
    """Other codes for tasks, annotators and classes permute the result; only drawn ties may differ.

    Use codes as positions only. If random starts are drawn by code, declare `draws_by_code = True`.
    """
    annotations, _ = _crowd(aggregator)
    rng = np.random.default_rng(2)
    n, r, k = annotations.num_tasks, annotations.num_annotators, annotations.num_classes
    task, annotator, label = (rng.permutation(size) for size in (n, r, k))
    renamed = _table(
        task[annotations.task_ids], annotator[annotations.annotator_ids], label[annotations.labels], n, r, k
    )
    before, after = _fit(aggregator, annotations), _fit(aggregator, renamed)
    if getattr(aggregator, "draws_by_code", False):
        _assert_sound(after, renamed)
        assert (after.labels[task] == label[before.labels]).mean() >= 0.95
        return
    comparable = ~_drawn(before, annotations)
    assert comparable.sum() > n / 2
    np.testing.assert_allclose(after.posteriors[task][:, label][comparable], before.posteriors[comparable], atol=1e-6)
    top = np.sort(before.posteriors, axis=1)
    clear = comparable & (top[:, -1] - top[:, -2] > 1e-6)
    np.testing.assert_array_equal(after.labels[task][clear], label[before.labels][clear])
    if before.confusions is not None and after.confusions is not None:
        np.testing.assert_allclose(after.confusions[annotator][:, label][:, :, label], before.confusions, atol=1e-6)


def _drawn(result: Aggregation, annotations: Annotations) -> np.ndarray:
    """Mask of tasks with tied votes but a certain answer, by a draw or the order of the classes, bool [N]."""
    votes = np.zeros(result.posteriors.shape)
    np.add.at(votes, (annotations.task_ids, annotations.labels), 1)
    tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return tied & (result.posteriors.max(axis=1) == 1.0)


def check_blocks_are_irrelevant(aggregator: Aggregator) -> None:
    """Blocks of a few annotations give the same result as one block, unless declared otherwise.

    If the method processes the whole table at once, declare `whole_table = True`.
    """
    annotations, _ = _crowd(aggregator)
    whole = _fit(aggregator, annotations)
    cut, numbers = Block.cut, [1]

    def counted(block: Block, max_annotations: int) -> list[Block]:
        blocks = cut(block, max_annotations)
        numbers.append(len(blocks))
        return blocks

    with patch.object(Block, "cut", counted), patch("crowdzoo.aggregation.engine.block.MAX_ANNOTATIONS", 7):
        _assert_same(whole, _fit(aggregator, annotations), atol=1e-7)
    if getattr(aggregator, "whole_table", False):
        assert max(numbers) == 1, "the table is cut into blocks, although `whole_table` says that it is not"
    else:
        assert max(numbers) > 1, "the table is not cut into blocks, so nothing was checked: declare `whole_table`"


def check_gold_is_clamped(aggregator: Aggregator) -> None:
    """A known class is the answer, even against the whole crowd.

    If `fit` takes gold [N], -1 for unknown, give these tasks a posterior of one in every iteration.
    """
    if "gold" not in signature(aggregator.fit).parameters:
        return
    annotations, truth = _crowd(aggregator)
    gold = np.full(len(truth), -1)
    k = annotations.num_classes
    gold[:5] = (truth[:5] + 1) % k
    result = _fit(aggregator, annotations, gold=gold)
    _assert_sound(result, annotations)
    np.testing.assert_array_equal(result.labels[:5], gold[:5])
    np.testing.assert_array_equal(result.posteriors[:5], np.eye(k)[gold[:5]])
    _assert_same(_fit(aggregator, annotations, gold=np.full(len(truth), -1)), _fit(aggregator, annotations))


def check_sparse_and_odd_tables(aggregator: Aggregator) -> None:
    """One annotation; one class; tasks, annotators and classes without annotations; a tie: never NaN.

    Avoid divisions by zero counts and logarithms of 0: add a small count, or use at least 1e-300. A tie of two votes
    has equal posteriors, or is broken at random: then one class has a posterior of 1.
    """
    tables = {
        "a single annotation": _table([0], [0], [1], 1, 1, 2),
        "one class only": _table([0, 0, 1], [0, 1, 0], [0, 0, 0], 2, 2, 1),
        "a task without annotations": _table([0, 0, 2], [0, 1, 1], [1, 1, 0], 3, 2, 2),
        "an annotator without annotations": _table([0, 1], [0, 0], [0, 1], 2, 3, 2),
        "a class never seen": _table([0, 0, 1], [0, 1, 0], [0, 0, 2], 2, 2, 4),
        "a tie": _table([0, 0], [0, 1], [0, 1], 1, 2, 2),
        "no annotations at all": _table([], [], [], 3, 2, 2),
        "no tasks at all": _table([], [], [], 0, 0, 2),
    }
    for name, table in tables.items():
        if table.num_classes > getattr(aggregator, "max_classes", table.num_classes):
            continue
        _data[:] = [name]
        with np.errstate(divide="raise", invalid="raise", over="raise"):
            _assert_sound(_fit(aggregator, table), table)
    tied = _fit(aggregator, tables["a tie"])
    if not _drawn(tied, tables["a tie"]).any():
        np.testing.assert_allclose(tied.posteriors, 0.5, atol=1e-9)


def check_unknown_tasks_get_the_class_prior(aggregator: Aggregator) -> None:
    """A task without annotations has the class prior as posterior, and is marked by its count of zero.

    Put the class prior into the result, if there is one, and use it for these tasks.
    """
    annotations, _ = _crowd(aggregator)
    longer = replace(annotations, tasks=np.arange(annotations.num_tasks + 2))
    result, known = _fit(aggregator, longer), _fit(aggregator, annotations)
    np.testing.assert_array_equal(np.flatnonzero(result.annotations_per_task == 0), [60, 61])
    np.testing.assert_allclose(result.posteriors[:60], known.posteriors, rtol=0, atol=1e-9)
    if result.class_prior is not None:
        np.testing.assert_allclose(result.posteriors[60:], [result.class_prior] * 2, atol=1e-12)


def check_more_classes_than_it_knows_are_refused(aggregator: Aggregator) -> None:
    """An aggregator with a limit on classes rejects more, and names their number.

    Raise DataError if annotations.num_classes is above `max_classes`, with the number in the message.
    """
    most = getattr(aggregator, "max_classes", None)
    if most is None:
        return
    refusal, _data[:] = "", [f"simulated_crowd(num_classes={most + 1}) of crowdzoo.testing"]
    try:
        _fit(aggregator, simulated_crowd(num_classes=most + 1)[0])
    except DataError as error:
        refusal = str(error)
    assert refusal, f"{most + 1} classes are not refused"
    assert str(most + 1) in refusal, f"the refusal does not name {most + 1} classes: {refusal}"


AGGREGATOR_CHECKS: dict[str, Callable[[Any], None]] = {
    name.removeprefix("check_"): explained(check, lambda _: "; ".join(_data))
    for name, check in list(globals().items())
    if name.startswith("check_") and name != "check_aggregator"
}
"""Every check by name; each takes an aggregator and raises AssertionError, as `check_aggregator` says."""
