import inspect
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import DataError
from crowdzoo.aggregation import METHODS, DawidSkene, MajorityVote, Wawa, create
from crowdzoo.aggregation.engine.block import Block, blocks_of
from crowdzoo.testing.aggregators import AGGREGATOR_CHECKS, check_aggregator

AGGREGATORS = {
    "majority-vote": MajorityVote(),
    "hard": MajorityVote(voting="hard"),
    "hard, random ties": MajorityVote(voting="hard", ties="random", seed=3),
    "hard, lowest class": MajorityVote(voting="hard", ties="lowest"),
    "soft, lowest class": MajorityVote(ties="lowest"),
    "dawid-skene": DawidSkene(),
    "maximum likelihood": DawidSkene(prior=0),
    "diagonal prior": DawidSkene(diagonal=1.0),
    "to the end": DawidSkene(tol=1e-10, max_iter=2000),
}


@pytest.mark.parametrize("check", AGGREGATOR_CHECKS.values(), ids=AGGREGATOR_CHECKS)
@pytest.mark.parametrize("aggregator", AGGREGATORS.values(), ids=AGGREGATORS)
def test_battery(aggregator, check):
    check(aggregator)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method_is_in_the_battery(method):
    own = Path(__file__).parent / f"test_{method.__module__.rpartition('.')[2]}.py"
    others = own.read_text() if own.exists() else ""
    assert method in set(map(type, AGGREGATORS.values())) or (
        "AGGREGATOR_CHECKS.values()" in others and f" {method.__name__}(" in others
    )


class FirstBlockOnly(MajorityVote):
    """Majority vote that forgets all blocks but the first."""

    def fit(self, annotations, gold=None):
        result = super().fit(annotations, gold)
        for block in blocks_of(annotations)[1:]:
            result.posteriors[block.tasks] = 1 / annotations.num_classes
        return result


def test_battery_notices_a_forgotten_block():
    with pytest.raises(AssertionError):
        AGGREGATOR_CHECKS["blocks_are_irrelevant"](FirstBlockOnly())


class NoBlocks(Wawa):
    """A method for the whole table that does not say so."""

    whole_table = False


class HiddenBlocks(MajorityVote):
    """A method that adds up blocks and says that it has none."""

    whole_table = True


@pytest.mark.parametrize(
    ("aggregator", "reason"), [(NoBlocks(), "nothing was checked"), (HiddenBlocks(), "is cut into blocks")], ids=str
)
def test_battery_notices_a_wrong_word_on_blocks(aggregator, reason):
    with pytest.raises(AssertionError, match=reason):
        AGGREGATOR_CHECKS["blocks_are_irrelevant"](aggregator)


@pytest.mark.parametrize("name", METHODS)
def test_a_fault_in_a_block_is_noticed_in_every_method_that_has_blocks(name, monkeypatch):
    """The second of several blocks loses its annotations; a method for the whole table never asks for a second."""
    aggregator, cut = create(name), Block.cut

    def forgetful(block, max_annotations):
        first, *others = cut(block, max_annotations)
        return [first, *(Block([], [], [], tasks=other.tasks, gold=other.gold) for other in others[:1]), *others[1:]]

    monkeypatch.setattr(Block, "cut", forgetful)
    if getattr(aggregator, "whole_table", False):
        AGGREGATOR_CHECKS["blocks_are_irrelevant"](aggregator)
    else:
        with pytest.raises(AssertionError):
            AGGREGATOR_CHECKS["blocks_are_irrelevant"](aggregator)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_setting_is_described(method):
    for name in inspect.signature(method).parameters:
        assert f"    {name}: " in inspect.getdoc(method)


class Wrong(MajorityVote):
    """Majority vote with a defect, which the battery must notice."""

    def fit(self, annotations, gold=None):
        result = super().fit(annotations, gold)
        result.posteriors[...] = result.posteriors[::-1].copy()
        return result


def test_battery_notices_answers_given_to_the_wrong_tasks():
    with pytest.raises(AssertionError):
        check_aggregator(Wrong())


class Forgetful(MajorityVote):
    """Majority vote that does not look at gold."""

    def fit(self, annotations, gold=None):
        return super().fit(annotations)


def test_battery_notices_gold_that_is_not_clamped():
    with pytest.raises(AssertionError):
        AGGREGATOR_CHECKS["gold_is_clamped"](Forgetful())


class Binary(MajorityVote):
    """Majority vote of two classes."""

    max_classes = 2

    def fit(self, annotations, gold=None):
        if annotations.num_classes > 2:
            raise DataError(f"Two classes at most; there are {annotations.num_classes}.")
        return super().fit(annotations, gold)


class CarelessBinary(MajorityVote):
    """Says that it knows two classes, and takes any number."""

    max_classes = 2


class FirstAnnotatorDecides(MajorityVote):
    """A vote in which the annotator of code 0 has a thousand votes, as no renaming would leave it."""

    draws_by_code = True

    def fit(self, annotations, gold=None):
        result = super().fit(annotations, gold)
        first = annotations.annotator_ids == 0
        result.posteriors[annotations.task_ids[first]] = np.eye(annotations.num_classes)[annotations.labels[first]]
        result.labels[annotations.task_ids[first]] = annotations.labels[first]
        return result


class Unsure(MajorityVote):
    """Majority vote whose posteriors are drawn to the middle."""

    unanimous_probability = 0.8

    def fit(self, annotations, gold=None):
        result = super().fit(annotations, gold)
        known = np.zeros(len(result.labels), bool) if gold is None else np.asarray(gold) >= 0
        result.posteriors[~known] = 0.9 * result.posteriors[~known] + 0.1 / annotations.num_classes
        return result


def test_an_aggregator_of_two_classes_is_checked_with_two():
    check_aggregator(Binary())


def test_battery_notices_classes_beyond_those_declared():
    with pytest.raises(AssertionError, match="3 classes are not refused"):
        check_aggregator(CarelessBinary())


def test_declared_draws_may_not_change_more_than_one_label_in_twenty():
    with pytest.raises(AssertionError):
        AGGREGATOR_CHECKS["renaming_permutes"](FirstAnnotatorDecides())


def test_declared_doubt_is_allowed_so_far_and_no_further(monkeypatch):
    AGGREGATOR_CHECKS["unanimous_crowd_is_believed"](Unsure())
    monkeypatch.setattr(Unsure, "unanimous_probability", 0.95)
    with pytest.raises(AssertionError):
        AGGREGATOR_CHECKS["unanimous_crowd_is_believed"](Unsure())
