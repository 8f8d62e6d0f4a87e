"""How often exported reward models prefer the better side of a pair, asked as a server asks them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.data.annotations import Annotations
from crowdzoo.export.predict import load_predictor
from crowdzoo.kinds.preferences.kind import Preferences
from crowdzoo.networks.reward_model import SIDES, input_name
from crowdzoo.records.example_dataset import SAID, read_batches, said_of
from crowdzoo.records.instance_features import parsed_instances

BATCH = 256  # most pairs that are held in memory at a time
_LEAST = 1e-7  # probability that counts for an answer that a model calls impossible


def model_scores(
    models: Mapping[str, str], files: str, info: Mapping[str, Any], output: str, pipeline: Any
) -> dict[str, dict[str, Any]]:
    """Scores of models on the pairs whose answer is known, and on what annotators said of all pairs.

    Args: see `crowdzoo.kinds.parts`.

    Returns:
        For each model `tasks` (pairs), what `Kind.scores` gives, and `log_likelihood`: the mean log probability of the
        annotators' preferences by the signature "pairs", nats; None where there are none. And `by_task`, of each pair
        whose known answer is left or right, whose mean is the share of right pairs.

    Raises:
        FileNotFoundError: no file fits.
        ServingError: a model that does not load, or does not take these instances.
        ValueError: no known answer is left or right.
    """
    scorers = {name: load_predictor(folder) for name, folder in models.items()}
    comparers = {name: load_predictor(folder, "pairs") for name, folder in models.items()}
    truth: list[np.ndarray] = []
    scores: dict[str, list[np.ndarray]] = {name: [] for name in models}  # of both sides, [2, pairs]
    logs: dict[str, list[np.ndarray]] = {name: [] for name in models}
    others = {**SAID, "evaluation_label": tf.io.FixedLenFeature([1], tf.int64)}
    for batch in read_batches([files], dict(info), "eval", BATCH, instances=SIDES, others=others, evaluation_weight=1):
        sides = {side: parsed_instances(batch, side) for side in SIDES}
        known = batch["evaluation_weight"][:, 0] > 0
        truth.append(batch["evaluation_label"][known, 0])
        pair_of, _, labels = said_of(batch)
        for name in models:
            found = np.stack([scorers[name](part, BATCH)["score"] for part in sides.values()])
            scores[name].append(found.reshape(2, -1)[:, known])
            answers = comparers[name](_named(sides), BATCH)["probabilities"]
            logs[name].append(np.log(np.maximum(answers[pair_of, labels], _LEAST)))
    labels = np.concatenate(truth)
    number = len(labels)
    preferences = Annotations(
        "preference", np.arange(number), np.zeros(number, np.int64), labels, np.arange(2 * number),
        np.array(["truth"], object), np.array(info["classes"], object), right_ids=number + np.arange(number),
    )  # fmt: skip
    result: dict[str, dict[str, Any]] = {}
    for name in models:
        sides_of = np.concatenate(scores[name], axis=1)
        lead, said = (sides_of[0] - sides_of[1])[labels < 2], np.concatenate(logs[name])
        result[name] = {
            "tasks": number,
            **Preferences().scores(preferences, {"score": sides_of.ravel()}),
            "log_likelihood": float(said.mean()) if len(said) else None,
            "by_task": np.where(lead == 0, 0.5, (lead > 0) == (labels[labels < 2] == 0)),
        }
    return result


def _named(sides: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs of the signature "pairs" by their names."""
    return {
        input_name(side, name): values
        for side, part in sides.items()
        for name, values in (part if isinstance(part, Mapping) else {"instances": part}).items()
    }
