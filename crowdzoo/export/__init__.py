"""Trained models as TensorFlow SavedModels."""

from crowdzoo.export.saved_model import (
    MODEL_CARD_FILE,
    REQUEST_FILES,
    WARMUP_FILE,
    WARMUP_INSTANCES,
    export_model,
    load_and_predict,
    load_saved_model,
    stacked,
)
from crowdzoo.files.version_folders import newest_version

__all__ = [
    "MODEL_CARD_FILE",
    "REQUEST_FILES",
    "WARMUP_FILE",
    "WARMUP_INSTANCES",
    "export_model",
    "load_and_predict",
    "load_saved_model",
    "newest_version",
    "stacked",
]
