"""How near exported regressors come to the true ratings, asked as a server asks them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdzoo.errors import DataError
from crowdzoo.export.predict import load_predictor
from crowdzoo.kinds.ratings.kind import Ratings
from crowdzoo.reading.instances.instances import take_rows
from crowdzoo.records.example_dataset import read_batches
from crowdzoo.records.instance_features import parsed_instances

BATCH = 256  # most instances that are held in memory at a time


def model_scores(
    models: Mapping[str, str], files: str, info: Mapping[str, Any], output: str, pipeline: Any
) -> dict[str, dict[str, Any]]:
    """Errors of models on the tasks whose rating is known.

    Args: see `crowdzoo.kinds.parts`.

    Returns:
        For each model `tasks`, what `Kind.scores` gives, and `by_task`, [N], whose mean is R².

    Raises:
        FileNotFoundError: no file fits.
        ServingError: a model that does not load, or does not take these instances.
        ValueError: a model's answer is not a finite number.
    """
    models_of = {name: load_predictor(folder) for name, folder in models.items()}
    truth: list[np.ndarray] = []
    answers: dict[str, list[np.ndarray]] = {name: [] for name in models}
    for batch in read_batches([files], info, "eval", BATCH, evaluation_label=1, evaluation_weight=1):
        known = batch["evaluation_weight"][:, 0] > 0
        truth.append(batch["evaluation_label"][known, 0].astype(np.float64))
        instances = take_rows(parsed_instances(batch), known)
        for name, predict in models_of.items():
            answers[name].append(predict(instances, BATCH)["value"])
    scores = {}
    for name, folder in models.items():
        found, gold = {"value": np.concatenate(answers[name])}, np.concatenate(truth)
        try:
            scores[name] = {"tasks": len(gold), **Ratings().scores(gold, found)}
        except DataError as error:
            raise ValueError(f"{folder}: {error}") from error
        scores[name]["by_task"] = 1 - (gold - found["value"]) ** 2 / (gold.var() or 1)
    return scores
