"""Models: any base with any crowd layer, and the zoo's ready ones. Names load when first used."""

import importlib
from typing import Any

_NAMES = {
    "ArrayData": "crowdzoo.models.training_data",
    "CrowdBatches": "crowdzoo.models.crowd_batches",
    "CrowdModel": "crowdzoo.models.crowd_model",
    "FeatureClassifier": "crowdzoo.models.feature_classifier",
    "METHODS": "crowdzoo.models.methods",
    "TrainingData": "crowdzoo.models.training_data",
    "TrainingSettings": "crowdzoo.models.training",
    "build_model": "crowdzoo.models.training",
    "label_pairs": "crowdzoo.models.multi_label",
    "pair_instances": "crowdzoo.models.multi_label",
    "train": "crowdzoo.models.training",
}

__all__ = [*_NAMES]  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'crowdzoo.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
