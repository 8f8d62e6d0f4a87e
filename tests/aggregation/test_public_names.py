"""What an aggregator shows beyond its settings and what all of them have."""

import inspect

import pytest

from crowdzoo import aggregation
from crowdzoo.aggregation import Aggregator

OF_EVERY_METHOD = {*dir(Aggregator), "fit", "kind", "name", "title"}
# the others show nothing more; a name that is removed or renamed here needs a deprecation first, see CONTRIBUTING.md
OF_ONE_METHOD = {
    "AnnotatorBradleyTerry": "partial_fit",
    "BradleyTerry": "partial_fit",
    "CrowdBT": "partial_fit",
    "DawidSkene": "partial_fit result step warm_start",
    "EBCC": "whole_table",
    "HierarchicalDawidSkene": "partial_fit",
    "IBCC": "partial_fit",
    "MACE": "draws_by_code",
    "MajorityVote": "partial_fit",
    "NoisyBradleyTerry": "partial_fit",
    "OneCoinDawidSkene": "partial_fit result step warm_start",
    "RatingEM": "partial_fit",
    "RatingMean": "answers check",
    "RatingMedian": "answers check",
    "Robust": "result",
    "TokenAggregation": "of_tokens result table",
    "Wawa": "whole_table",
}
METHODS = [
    name
    for name in aggregation.__all__
    if inspect.isclass(getattr(aggregation, name)) and issubclass(getattr(aggregation, name), Aggregator)
]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_shows_the_names_of_the_list(name):
    method = getattr(aggregation, name)
    settings = inspect.signature(method.__init__).parameters
    public = {each for each in dir(method) if each[0] != "_"} - OF_EVERY_METHOD - {*settings}
    assert public == set(OF_ONE_METHOD.get(name, "").split())


def test_the_list_names_methods():
    assert set(OF_ONE_METHOD) <= set(METHODS)
