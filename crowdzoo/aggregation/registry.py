"""The methods of all kinds by name, and create, which makes an aggregator from the name of its method."""

from collections.abc import Iterable, Mapping
from inspect import signature
from typing import Any

from crowdzoo.aggregation.free_texts.chosen_text import MostFrequentText, TextMedoid
from crowdzoo.aggregation.free_texts.rover import ROVER
from crowdzoo.aggregation.free_texts.text_rasa import TextHRRASA, TextRASA
from crowdzoo.aggregation.named import FOR_CLASSES, METHODS, aggregator_named, of_kind
from crowdzoo.aggregation.preferences.bradley_terry import (
    AnnotatorBradleyTerry,
    BradleyTerry,
    CrowdBT,
    NoisyBradleyTerry,
)
from crowdzoo.aggregation.ratings.plain_ratings import RatingMean, RatingMedian
from crowdzoo.aggregation.ratings.rating_em import RatingEM
from crowdzoo.aggregation.regions.matched_objects import MatchedObjects
from crowdzoo.aggregation.regions.pixel_vote import PixelVote
from crowdzoo.aggregation.regions.staple import STAPLE
from crowdzoo.aggregation.sentences.chain_method import BayesianSequenceCombination, HMMCrowd
from crowdzoo.aggregation.sentences.span_majority_vote import SpanMajorityVote
from crowdzoo.aggregation.sentences.span_votes import SpanVotes
from crowdzoo.aggregation.sentences.token_aggregation import TokenAggregation
from crowdzoo.checks.constraints import Choice
from crowdzoo.errors import ConfigError, Setting
from crowdzoo.plugins import Table


def _by_name(*methods: Any) -> dict[str, type]:
    return {method.name: method for method in methods}


RATING_METHODS: dict[str, type] = {"mean": RatingMean, "median": RatingMedian, "rating-em": RatingEM}
SEQUENCE_METHODS: dict[str, type] = {
    **dict.fromkeys(METHODS, TokenAggregation),  # each token is a task
    "span-majority-vote": SpanMajorityVote,
    "span-votes": SpanVotes,
    "hmm-crowd": HMMCrowd,
    "bsc-seq": BayesianSequenceCombination,
}
PREFERENCE_METHODS = _by_name(BradleyTerry, NoisyBradleyTerry, CrowdBT, AnnotatorBradleyTerry)
TEXT_METHODS = _by_name(MostFrequentText, TextMedoid, ROVER, TextRASA, TextHRRASA)
REGION_METHODS = _by_name(MatchedObjects, PixelVote, STAPLE)
# By kind of label, as in the attribute `kind` of the classes
_ALL: tuple[dict[str, Any], ...] = (
    METHODS, RATING_METHODS, SEQUENCE_METHODS, PREFERENCE_METHODS, TEXT_METHODS, REGION_METHODS,
)  # fmt: skip
_OTHERS: dict[str, dict[str, type]] = {"sequence": {"classification": TokenAggregation}}  # each token is a task
METHODS_OF = {
    kind: Table("aggregator", methods, of_kind(kind, _OTHERS.get(kind)))
    for kind, methods in ((next(iter(methods.values())).kind, methods) for methods in _ALL)
}
OF_TOKENS = ("decoding", "scheme")


def create(method: str, *, kind: str = "classification", **settings: Any) -> Any:
    """Creates an aggregator from the name of its method, as in configurations and on the command line.

    Args:
        method: a key of `METHODS`, or of the table that `kind` selects.
        kind: kind of the annotations, a key of `METHODS_OF`.
        **settings: arguments of the method's class. For sequences, a method for classes accepts its own settings and
            those of `TokenAggregation` (decoding, scheme).

    Raises:
        ConfigError: an unknown method, kind or setting (with the nearest known one), or a value out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import create
        >>> annotations = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], ["cat", "cat", "dog"])
        >>> result = create("dawid-skene", max_iter=50).fit(annotations)
        >>> result.classes[result.labels].tolist()
        ['cat']
    """
    Choice(METHODS_OF).checked("", "kind of annotations", kind)
    methods = METHODS_OF[kind]
    if methods.get(method) is not TokenAggregation:
        return aggregator_named(methods, method, settings)
    known = Choice([*signature(FOR_CLASSES[method]).parameters, *OF_TOKENS])
    for name in settings:
        known.checked("", f"setting of {method}", name)
    of_tokens = {name: settings.pop(name) for name in OF_TOKENS if name in settings}
    return TokenAggregation(method, settings=settings, **of_tokens)


def check_settings_of_default(methods: Mapping[str, type], default: str, names: Iterable[str]) -> None:
    """Raises an error for settings that a kind's default method does not have, naming a method that has them.

    Raises:
        ConfigError: such a setting.
    """
    for name in names:
        having = [method for method, of_method in methods.items() if name in signature(of_method).parameters]
        if having and default not in having:
            example = having[0] if "dawid-skene" not in having else "dawid-skene"
            fix = f"name a method that has it, for example {example}"
            raise ConfigError(f"{Setting(name)} is not a setting of {default}, the default method: {fix}.")
