import inspect

import pytest

from crowdzoo.aggregation import METHODS, DawidSkene, MajorityVote
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


def test_every_method_is_in_the_battery():
    assert {type(aggregator) for aggregator in AGGREGATORS.values()} == set(METHODS.values())


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
