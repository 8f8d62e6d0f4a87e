"""How well exported taggers find spans, asked as a server asks them: with text."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdzoo.export.predict import load_and_predict
from crowdzoo.kinds.sentences.kind import Sentences
from crowdzoo.kinds.sentences.records import read_examples


def model_scores(
    models: Mapping[str, str], files: str, info: Mapping[str, Any], output: str, pipeline: Any
) -> dict[str, dict[str, Any]]:
    """Scores of models on the sentences whose tags are known.

    Args: see `crowdzoo.kinds.parts.model_scores`.

    Returns:
        For each model `tasks`, and what `Kind.scores` gives.

    Raises:
        ValueError: a model cuts a text into other tokens than it was tagged by.
    """
    sentences = read_examples([files], dict(info))
    known = np.flatnonzero(sentences.evaluation_weights > 0)
    # sentences of like length are asked together
    order = known[np.argsort([len(sentences.tokens[task]) for task in known], kind="stable")]
    truth = [[info["classes"][code] for code in sentences.evaluation_labels[task]] for task in order]
    scores = {}
    for name, folder in models.items():
        answers = load_and_predict(folder, [sentences.texts[task] for task in order], batch_size=128)
        for task, cut, length in zip(order, answers["tokens"], answers["lengths"], strict=True):
            tokens, own = cut[:length].tolist(), sentences.tokens[task]
            if tokens != own:
                raise ValueError(f"{folder}: cuts {sentences.texts[task]!r} into {tokens}, not {own}")
        found = Sentences().scores(truth, answers, scheme=info["scheme"])
        scores[name] = {"tasks": len(known), **found}
    return scores
