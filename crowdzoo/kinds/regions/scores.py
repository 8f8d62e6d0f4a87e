"""How well exported networks find regions, asked as a server asks them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.data.regions import MarkedImage, dice
from crowdzoo.export.predict import load_predictor
from crowdzoo.kinds.regions.kind import KIND
from crowdzoo.kinds.regions.masks import marked_images
from crowdzoo.records.example_dataset import read_batches
from crowdzoo.records.instance_features import parsed_instances

_HELD = 32  # most images that are held in memory at a time
_LABEL = {"evaluation_label": tf.io.FixedLenFeature([], tf.string)}


def model_scores(
    models: Mapping[str, str], files: str, info: Mapping[str, Any], output: str, pipeline: Any
) -> dict[str, dict[str, Any]]:
    """Dice coefficients of models on the images whose regions are known.

    Args: see `crowdzoo.kinds.parts`.

    Returns:
        For each model `tasks`, what `Kind.scores` gives, and `by_task`, [N], whose mean is the Dice coefficient.
    """
    scores = {}
    for name, folder in models.items():
        predict, truth, answers = load_predictor(folder), list[MarkedImage](), list[MarkedImage]()
        for batch in read_batches([files], info, "eval", _HELD, others=_LABEL, evaluation_weight=1):
            known = batch["evaluation_weight"][:, 0] > 0
            images = [MarkedImage.parse(text.decode()) for text in batch["evaluation_label"][known].tolist()]
            masks = predict(parsed_instances(batch)[known], _HELD)["label"]
            truth += images
            answers += marked_images(masks, info["classes"], images).tolist()
        overlaps = [dice(*pair) for pair in zip(truth, answers, strict=True)]
        figures = KIND.scores(np.array(truth, object), {"regions": np.array(answers, object)})
        scores[name] = {"tasks": len(truth), **figures, "by_task": np.array(overlaps)}
    return scores
