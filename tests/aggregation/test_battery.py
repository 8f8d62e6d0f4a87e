import inspect
from dataclasses import replace

import numpy as np
import pytest

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import (
    EBCC,
    GLAD,
    IBCC,
    MACE,
    METHODS,
    ConvergenceWarning,
    DawidSkene,
    MajorityVote,
    OneCoinDawidSkene,
    RatingMean,
    Wawa,
    create,
)
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.testing.aggregators import AGGREGATOR_CHECKS, check_aggregator, simulated_crowd

# of what its defaults are: fewer starts of EBCC, which has the same code for each
DEFAULTS = {name: EBCC(num_starts=6) if name == "ebcc" else create(name) for name in METHODS}
VARIANTS = {
    "hard, random ties": MajorityVote(voting="hard", ties="random", seed=3),
    "hard, lowest class": MajorityVote(voting="hard", ties="lowest"),
    "maximum likelihood": DawidSkene(prior=0),
    "ebcc, other priors": EBCC(subtypes=3, subtype_prior=2.0, prior=0.5, diagonal=1.0, class_prior=1.0, num_starts=3),
    "glad, estimated": GLAD(class_prior="estimated"),
    "glad, wide priors": GLAD(alpha_mean=2, alpha_variance=100, b_mean=0, b_variance=0.25),
    "ibcc, other priors": IBCC(prior=0.1, diagonal=0.5, class_prior=5.0),
    "mace, em": MACE(inference="em"),
    "mace, several starts": MACE(num_starts=3, seed=2, class_prior="uniform"),
    "one coin, maximum likelihood": OneCoinDawidSkene(right=0, wrong=0, class_prior="estimated", class_count=0),
    "iwmv": Wawa(num_rounds=10, weights="iwmv"),
}
SLOW = ("ebcc, other priors", "mace, several starts")
AGGREGATORS = {
    name: pytest.param(one, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name, one in (DEFAULTS | VARIANTS).items()
}
every_method = pytest.mark.parametrize("name", METHODS)


@pytest.mark.parametrize("check", AGGREGATOR_CHECKS.values(), ids=AGGREGATOR_CHECKS)
@pytest.mark.parametrize("aggregator", AGGREGATORS.values())
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_battery(aggregator, check):
    check(aggregator)


def takes(name, what):
    return what in inspect.signature(METHODS[name].fit).parameters


@pytest.mark.parametrize("name", [name for name in METHODS if "max_iter" in METHODS[name].rules])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_not_converged_is_said_where_fit_is_called_with_advice(name):
    few = {"num_starts": 2} if name == "ebcc" else {}
    crowd, _ = simulated_crowd(redundancy=2)
    with pytest.warns(ConvergenceWarning, match=r"did not converge in 1 iter.*raise max_iter") as caught:
        result = create(name, max_iter=1, tol=0, **few).fit(crowd)
    assert caught[0].filename == __file__
    assert not result.converged
    assert result.num_iterations == 1


@pytest.mark.parametrize("name", [name for name in METHODS if takes(name, "initial")])
@pytest.mark.parametrize(
    "initial",
    [np.ones((2, 3)) / 3, np.ones((60, 3)), np.full((60, 3), np.nan), np.tile([1.5, -0.5, 0.0], (60, 1))],
    ids=["shape", "sums", "nan", "negative"],
)
def test_initial_posteriors_that_do_not_fit_are_refused(name, initial):
    with pytest.raises(DataError, match=r"initial|shape|sums to one|non-negative"):
        create(name).fit(simulated_crowd(num_classes=3)[0], initial=initial)


# priors that do not take a side
CAMPS = {"ebcc": {"diagonal": 0.0, "num_starts": 3}, "ibcc": {"diagonal": 0.0}, "dawid-skene": {"diagonal": 0.0}}


@pytest.mark.parametrize("name", [name for name in METHODS if takes(name, "initial")])
def test_initial_posteriors_or_an_earlier_result_decide_which_camp_is_believed(name):
    truth = np.random.default_rng(0).integers(2, size=60)
    crowd = Annotations.from_dense(np.stack([truth, truth, 1 - truth, 1 - truth], axis=1))
    aggregator = create(name, **CAMPS.get(name, {}))
    for camp in (truth, 1 - truth):
        first = aggregator.fit(crowd, initial=np.eye(2)[camp])
        np.testing.assert_array_equal(first.labels, camp)
        again = aggregator.fit(crowd, initial=first)
        np.testing.assert_array_equal(again.labels, camp)
        assert again.num_iterations <= first.num_iterations


@pytest.mark.parametrize("name", ["dawid-skene", "glad", "mace", "one-coin", "robust", "wawa"])
def test_gold_teaches_whom_to_believe(name):
    truth = np.random.default_rng(0).integers(2, size=40)
    crowd = Annotations.from_dense(np.stack([truth, truth, 1 - truth, 1 - truth], axis=1))
    for right in (truth, 1 - truth):
        known = np.where(np.arange(40) < 8, right, -1)
        np.testing.assert_array_equal(create(name).fit(crowd, gold=known).labels, right)


# Two tasks, three classes, and annotator 1 without annotations
LITTLE = Annotations.from_arrays([0, 1], [0, 0], [0, 1], annotators=[0, 1], classes=[0, 1, 2])
THIRDS, EYE = np.full((3, 3), 1 / 3), np.eye(3)
UNSEEN = {
    "dawid-skene": (DawidSkene(diagonal=0.0), "confusions", THIRDS),
    "dawid-skene, with a diagonal": (DawidSkene(prior=0.5, diagonal=1.0), "confusions", 0.2 + 0.4 * EYE),
    "ibcc": (IBCC(prior=1.0, diagonal=3.0), "confusions", 1 / 6 + 0.5 * EYE),
    "one-coin": (OneCoinDawidSkene(right=3, wrong=1), "skills", 3 / 4),
    "one-coin, maximum likelihood": (OneCoinDawidSkene(right=0, wrong=0), "skills", 1 / 3),
    "one-coin, its matrices": (OneCoinDawidSkene(right=0, wrong=0), "confusions", THIRDS),
    "mace": (MACE(know=3), "skills", 3 / 3.5),
    "mace, em": (MACE(know=3, inference="em"), "skills", 0.5),
    "glad": (GLAD(alpha_mean=0.7, b_mean=0.3), "skills", 0.7),
}


@pytest.mark.parametrize(("aggregator", "name", "expected"), UNSEEN.values(), ids=UNSEEN)
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_annotators_without_annotations_have_the_mean_of_the_prior(aggregator, name, expected):
    result = aggregator.fit(LITTLE)
    np.testing.assert_allclose(getattr(result, name)[1], expected, rtol=1e-9)
    assert result.annotations_per_annotator.tolist() == [2, 0]


class NoBlocks(Wawa):
    """A method for the whole table that does not say so."""

    whole_table = False


class HiddenBlocks(MajorityVote):
    """A method that adds up blocks and says that it has none."""

    whole_table = True


@every_method
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


@every_method
def test_every_setting_is_described(name):
    method = METHODS[name]
    for setting in inspect.signature(method).parameters:
        assert f"    {setting}: " in inspect.getdoc(method)


class Wrong(MajorityVote):
    """Majority vote with a defect, which the battery must notice."""

    def fit(self, annotations, gold=None):
        result = super().fit(annotations, gold)
        result.posteriors[...] = result.posteriors[::-1].copy()
        return result


class NoSkills(MajorityVote):
    """Skills that are not numbers."""

    def fit(self, annotations, gold=None):
        return replace(super().fit(annotations, gold), skills=np.full(annotations.num_annotators, np.nan))


class Seeds(MajorityVote):
    """Seeds the random numbers of everybody."""

    def fit(self, annotations, gold=None):
        np.random.seed(0)
        return super().fit(annotations, gold)


class NoResult(MajorityVote):
    """Posteriors alone."""

    def fit(self, annotations, gold=None):
        return super().fit(annotations, gold).posteriors


def test_the_battery_is_for_classes():
    with pytest.raises(ConfigError, match="RatingMean is for kind 'regression'"):
        check_aggregator(RatingMean())


class Forgetful(MajorityVote):
    """Majority vote that does not look at gold."""

    def fit(self, annotations, gold=None):
        return super().fit(annotations)


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


class TooUnsure(Unsure):
    """Of whom less doubt is declared than there is."""

    unanimous_probability = 0.95


@pytest.mark.parametrize(
    ("method", "check", "reason"),
    [
        (NoBlocks, "blocks_are_irrelevant", "nothing was checked"),
        (HiddenBlocks, "blocks_are_irrelevant", "is cut into blocks"),
        (Wrong, "result_is_sound", None),
        (NoSkills, "result_is_sound", "skills hold NaN"),
        (Seeds, "settings_and_input_stay", "random numbers were"),
        (NoResult, "result_is_sound", "must return a result, such as Aggr"),
        (Forgetful, "gold_is_clamped", None),
        (CarelessBinary, "more_classes_than_it_knows_are_refused", "3 classes are not refused"),
        (FirstAnnotatorDecides, "renaming_permutes", None),  # declared draws may change one label in twenty
        (TooUnsure, "unanimous_crowd_is_believed", None),
    ],
)
def test_battery_notices(method, check, reason):
    with pytest.raises(AssertionError, match=reason):
        AGGREGATOR_CHECKS[check](method())
    with pytest.raises(AssertionError):
        check_aggregator(method())


def test_an_aggregator_of_two_classes_is_checked_with_two():
    check_aggregator(Binary())


def test_declared_doubt_is_allowed():
    AGGREGATOR_CHECKS["unanimous_crowd_is_believed"](Unsure())
