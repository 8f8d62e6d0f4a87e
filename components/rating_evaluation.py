"""How near exported regressors come to the true ratings, asked as a server asks them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.export.predict import load_and_predict
from crowdzoo.metrics import mean_absolute_error, r2_score, root_mean_squared_error

__all__ = ["regressor_summary"]


def regressor_summary(models: Mapping[str, str], patterns: Sequence[str], info: Mapping[str, Any]) -> dict[str, Any]:
    """Errors of models on the tasks whose rating is known.

    Args:
        models: name -> folder of the SavedModel.
        patterns: patterns of the files of eval, as CrowdAggregator writes them.
        info: result of `read_dataset_info`.

    Returns:
        `truth`, and for each of "candidate" and "baseline" its `model`, number of `tasks`, `r2`, `mae` and `rmse` (both
        in the labels' unit), None where it is not among the models.

    Raises:
        FileNotFoundError: no file fits.
        ServingError: a model that does not load, or does not take these instances.
        ValueError: a model's answer is not a finite number.
    """
    instances, truth = _known(patterns, info["num_features"])
    summary: dict[str, Any] = {"truth": info["truth"], "candidate": None, "baseline": None}
    for name, folder in models.items():
        found = load_and_predict(folder, instances)["value"].astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(found))
        if len(bad):
            raise ValueError(f"{folder}: says {found[bad[0]]} of {len(bad):,} of the {len(found):,} tasks of eval")
        summary[name] = {
            "model": folder,
            "tasks": len(truth),
            "r2": r2_score(truth, found),
            "mae": mean_absolute_error(truth, found),
            "rmse": root_mean_squared_error(truth, found),
        }
    return summary


def _known(patterns: Sequence[str], num_features: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Instances float32 [n, D], or texts as bytes [n], and ratings float64 [n] of the tasks that count."""
    files = sorted(file for pattern in patterns for file in tf.io.gfile.glob(pattern))
    if not files:
        raise FileNotFoundError(f"no Examples in {', '.join(patterns)}")
    features = {name: tf.io.FixedLenFeature([1], tf.float32) for name in ("evaluation_label", "evaluation_weight")}
    features["instances"] = (
        tf.io.FixedLenFeature([], tf.string) if num_features is None
        else tf.io.FixedLenFeature([num_features], tf.float32)
    )  # fmt: skip
    records = tf.data.TFRecordDataset(files, "GZIP").batch(1024)
    parts = list(records.map(lambda batch: tf.io.parse_example(batch, features)).as_numpy_iterator())
    columns = {name: np.concatenate([part[name] for part in parts]) for name in features}
    known = columns["evaluation_weight"][:, 0] > 0
    return columns["instances"][known], columns["evaluation_label"][known, 0].astype(np.float64)
