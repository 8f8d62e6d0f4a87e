"""What the configuration of each kind of label has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["BASES", "TASKS"]


@dataclass(frozen=True)
class _Task:
    """What belongs to a task: bases, keys of sections that it has, files that it needs, bar, default of aggregation."""

    bases: tuple[str, ...]
    keys: Mapping[str, tuple[str, ...]]
    files: tuple[str, ...]
    minimum: str
    aggregation: str


# What each base can be told, and what it is without
BASES: dict[str, dict[str, Any]] = {
    "feature-classifier": {"hidden": [128], "dropout": 0.5, "batch_normalization": False},
    "feature-regressor": {"hidden": [128], "dropout": 0.5, "batch_normalization": False},
    "text-regressor": {
        "form": "convolutional",
        "embedding": 64,
        "filters": 128,
        "hidden": None,
        "dropout": 0.5,
        "max_words": 20_000,
        "min_texts": 1,
        "max_length": None,
    },
    "sequence-tagger": {
        "dropout": 0.5,
        "embedding": 100,
        "filters": 512,
        "units": 50,
        "bidirectional": False,
        "characters": False,
        "crf": False,
    },
}

TASKS = {
    "classification": _Task(
        ("feature-classifier",),
        {
            "data": ("dataset", "annotations", "instances", "classes", "on_bad_rows", "on_duplicate", "eval_fraction"),
            "evaluation": ("tolerance", "minimum_accuracy"),
        },
        ("annotations", "instances"),
        "minimum_accuracy",
        "dawid-skene",
    ),
    "sequence": _Task(
        ("sequence-tagger",),
        {
            "data": ("dataset", "annotations", "gold", "scheme", "classes", "on_bad_tags", "eval_fraction"),
            "evaluation": ("tolerance", "minimum_f1"),
        },
        ("annotations",),
        "minimum_f1",
        "bsc-seq",
    ),
    "regression": _Task(
        ("feature-regressor", "text-regressor"),
        {
            "data": (
                "dataset",
                "annotations",
                "instances",
                "low",
                "high",
                "on_bad_rows",
                "on_duplicate",
                "eval_fraction",
            ),
            "evaluation": ("tolerance", "minimum_r2"),
        },
        ("annotations", "instances"),
        "minimum_r2",
        "rating-em",
    ),
}
