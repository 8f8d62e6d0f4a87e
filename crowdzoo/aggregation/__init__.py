"""Labels from votes: one algorithm per file, one result type.

`crowdzoo.beam.transforms` runs the same algorithms on Apache Beam; it is not imported here.
"""

from inspect import signature
from typing import Any

from crowdzoo.aggregation.against_votes import VotesWarning
from crowdzoo.aggregation.classes.bwa import BWA
from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.aggregation.classes.ebcc import EBCC
from crowdzoo.aggregation.classes.glad import GLAD
from crowdzoo.aggregation.classes.ibcc import IBCC
from crowdzoo.aggregation.classes.kos import KOS
from crowdzoo.aggregation.classes.label_model import LabelModel
from crowdzoo.aggregation.classes.mace import MACE
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.classes.mmce import MMCE
from crowdzoo.aggregation.classes.mmsr import MMSR
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.aggregation.classes.wawa import Wawa
from crowdzoo.aggregation.classes.worker_clustering import WorkerClustering
from crowdzoo.aggregation.classes.zero_based_skill import ZeroBasedSkill
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.ratings.ordinal_thresholds import OrdinalThresholds
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.aggregation.ratings.rating_em import RatingEM
from crowdzoo.aggregation.ratings.rating_mean import RatingMean
from crowdzoo.aggregation.ratings.rating_median import RatingMedian
from crowdzoo.aggregation.result import Aggregation, ConvergenceWarning
from crowdzoo.aggregation.sentences.bayesian_sequence_combination import BayesianSequenceCombination
from crowdzoo.aggregation.sentences.hmm_crowd import HMMCrowd
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.span_majority_vote import SpanMajorityVote
from crowdzoo.aggregation.sentences.token_aggregation import TokenAggregation
from crowdzoo.errors import ConfigError, did_you_mean, short_repr

__all__ = [
    "BWA",
    "EBCC",
    "GLAD",
    "IBCC",
    "KOS",
    "MACE",
    "METHODS",
    "MMCE",
    "MMSR",
    "RATING_METHODS",
    "SEQUENCE_METHODS",
    "Aggregation",
    "BayesianSequenceCombination",
    "Block",
    "ConvergenceWarning",
    "DawidSkene",
    "HMMCrowd",
    "LabelModel",
    "MajorityVote",
    "OneCoinDawidSkene",
    "OrdinalThresholds",
    "RatingAggregation",
    "RatingEM",
    "RatingMean",
    "RatingMedian",
    "SequenceAggregation",
    "SpanMajorityVote",
    "TokenAggregation",
    "VotesWarning",
    "Wawa",
    "WorkerClustering",
    "ZeroBasedSkill",
    "create",
]

METHODS: dict[str, type] = {
    "majority-vote": MajorityVote,
    "wawa": Wawa,
    "zero-based-skill": ZeroBasedSkill,
    "dawid-skene": DawidSkene,
    "one-coin": OneCoinDawidSkene,
    "glad": GLAD,
    "mace": MACE,
    "ibcc": IBCC,
    "ebcc": EBCC,
    "bwa": BWA,
    "mmce": MMCE,
    "kos": KOS,
    "mmsr": MMSR,
    "worker-clustering": WorkerClustering,
    "label-model": LabelModel,
}

RATING_METHODS: dict[str, type] = {
    "mean": RatingMean,
    "median": RatingMedian,
    "rating-em": RatingEM,
    "ordinal": OrdinalThresholds,
}

# For tagged sentences: methods of their own, and each of those for classes with every token as a task
SEQUENCE_METHODS: dict[str, type] = {
    **dict.fromkeys(METHODS, TokenAggregation),
    "span-majority-vote": SpanMajorityVote,
    "hmm-crowd": HMMCrowd,
    "bsc-seq": BayesianSequenceCombination,
}

# By kind of annotations
_METHODS_OF = {"classification": METHODS, "regression": RATING_METHODS, "sequence": SEQUENCE_METHODS}


def create(method: str, *, kind: str = "classification", **settings: Any) -> Any:
    """An aggregator by its name, as configurations and the command line spell it.

    Args:
        method: a key of `METHODS`, or of what `kind` says.
        kind: of the annotations: "classification", "regression" (`RATING_METHODS`) or "sequence"
            (`SEQUENCE_METHODS`).
        **settings: arguments of that class. For sequences, a method for classes takes its own settings and those of
            `TokenAggregation` (decoding, scheme).

    Raises:
        ConfigError: an unknown method, kind or setting (with the nearest known one), or a value out of range.
    """
    _check_known("kind of annotations", kind, list(_METHODS_OF))
    methods = _METHODS_OF[kind]
    _check_known("aggregation method", method, list(methods))
    chosen = methods[method]
    by_token = chosen is TokenAggregation
    of_token = ["decoding", "scheme"] if by_token else []
    for name in settings:
        known = list(signature(METHODS[method] if by_token else chosen).parameters)
        _check_known(f"setting of {method}", name, known + of_token)
    if not by_token:
        return chosen(**settings)
    own = {name: settings.pop(name) for name in of_token if name in settings}
    return TokenAggregation(method, settings=settings, **own)


def _check_known(what: str, name: str, known: list[str]) -> None:
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(name, known) if isinstance(name, str) else ""
        raise ConfigError(f"{short_repr(name)} is no {what}; there are {', '.join(map(repr, known))}.{hint}")
