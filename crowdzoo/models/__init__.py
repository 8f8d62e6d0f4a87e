"""Models: any base with any crowd layer, and the zoo's ready ones. Names load when first used."""

import importlib
from typing import Any

_NAMES = {
    "ArrayData": "crowdzoo.training.data",
    "CrowdBatches": "crowdzoo.training.batches",
    "CrowdModel": "crowdzoo.models.crowd_model",
    "FeatureClassifier": "crowdzoo.models.feature_classifier",
    "FeatureRegressor": "crowdzoo.models.feature_regressor",
    "METHODS": "crowdzoo.training.methods",
    "RATING_METHODS": "crowdzoo.training.methods",
    "SEQUENCE_METHODS": "crowdzoo.training.methods",
    "SequenceTagger": "crowdzoo.models.sequence_tagger",
    "TaggerSettings": "crowdzoo.training.taggers",
    "TextIds": "crowdzoo.models.text_ids",
    "TextRegressor": "crowdzoo.models.text_regressor",
    "TextSettings": "crowdzoo.training.texts",
    "TokenEncoder": "crowdzoo.models.token_encoder",
    "TrainingData": "crowdzoo.training.data",
    "TrainingSettings": "crowdzoo.training.features",
    "build_model": "crowdzoo.training.features",
    "label_pairs": "crowdzoo.training.multi_label",
    "pair_instances": "crowdzoo.training.multi_label",
    "rating_unit": "crowdzoo.training.rating_units",
    "train": "crowdzoo.training.features",
    "train_tagger": "crowdzoo.training.taggers",
    "train_text_regressor": "crowdzoo.training.texts",
}

__all__ = [*_NAMES]  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'crowdzoo.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
