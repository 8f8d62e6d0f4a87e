"""Labels from votes: one algorithm per file, one result type.

`crowdzoo.aggregation.beam` runs the same algorithms on Apache Beam; it is not imported here.
"""

from inspect import signature
from typing import Any

from crowdzoo.aggregation.base import Aggregation, ConvergenceWarning
from crowdzoo.aggregation.block import Block
from crowdzoo.aggregation.bwa import BWA
from crowdzoo.aggregation.dawid_skene import DawidSkene
from crowdzoo.aggregation.ebcc import EBCC
from crowdzoo.aggregation.glad import GLAD
from crowdzoo.aggregation.ibcc import IBCC
from crowdzoo.aggregation.kos import KOS
from crowdzoo.aggregation.label_model import LabelModel
from crowdzoo.aggregation.mace import MACE
from crowdzoo.aggregation.majority_vote import MajorityVote
from crowdzoo.aggregation.mmce import MMCE
from crowdzoo.aggregation.mmsr import MMSR
from crowdzoo.aggregation.one_coin import OneCoinDawidSkene
from crowdzoo.aggregation.wawa import Wawa
from crowdzoo.aggregation.worker_clustering import WorkerClustering
from crowdzoo.aggregation.zero_based_skill import ZeroBasedSkill
from crowdzoo.errors import ConfigError, did_you_mean

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
    "Aggregation",
    "Block",
    "ConvergenceWarning",
    "DawidSkene",
    "LabelModel",
    "MajorityVote",
    "OneCoinDawidSkene",
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


def create(method: str, **settings: Any) -> Any:
    """An aggregator by its name, as configurations and the command line spell it.

    Args:
        method: a key of `METHODS`.
        **settings: arguments of that class.

    Raises:
        ConfigError: an unknown method or setting (with the nearest known one), or a value out of range.
    """
    _check_known("aggregation method", method, list(METHODS))
    for name in settings:
        _check_known(f"setting of {method}", name, list(signature(METHODS[method]).parameters))
    return METHODS[method](**settings)


def _check_known(what: str, name: str, known: list[str]) -> None:
    if name not in known:
        hint = did_you_mean(name, known)
        raise ConfigError(f"{name!r} is no {what}; there are {', '.join(map(repr, known))}.{hint}")
