"""Models: any base with any crowd layer, and the zoo's ready ones. Names load when first used."""

import importlib
from typing import Any

_NAMES = {
    "ArrayData": "crowdzoo.models.training_data",
    "CrowdBatches": "crowdzoo.models.crowd_batches",
    "CrowdModel": "crowdzoo.models.crowd_model",
    "FeatureClassifier": "crowdzoo.models.feature_classifier",
    "FeatureRegressor": "crowdzoo.models.feature_regressor",
    "METHODS": "crowdzoo.models.methods",
    "RATING_METHODS": "crowdzoo.models.methods",
    "SEQUENCE_METHODS": "crowdzoo.models.methods",
    "SequenceTagger": "crowdzoo.models.sequence_tagger",
    "TaggerSettings": "crowdzoo.models.tagger_training",
    "TextIds": "crowdzoo.models.text_ids",
    "TextRegressor": "crowdzoo.models.text_regressor",
    "TextSettings": "crowdzoo.models.text_training",
    "TokenEncoder": "crowdzoo.models.token_encoder",
    "TrainingData": "crowdzoo.models.training_data",
    "TrainingSettings": "crowdzoo.models.training",
    "build_model": "crowdzoo.models.training",
    "label_pairs": "crowdzoo.models.multi_label",
    "pair_instances": "crowdzoo.models.multi_label",
    "rating_unit": "crowdzoo.models.rating_units",
    "train": "crowdzoo.models.training",
    "train_tagger": "crowdzoo.models.tagger_training",
    "train_text_regressor": "crowdzoo.models.text_training",
}

__all__ = [*_NAMES]  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'crowdzoo.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
