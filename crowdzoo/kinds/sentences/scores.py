"""How well exported taggers find spans, asked as a server asks them: with text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crowdzoo.export.predict import load_and_predict
from crowdzoo.kinds.sentences.kind import Sentences
from crowdzoo.kinds.sentences.records import read_examples
from crowdzoo.metrics import span_scores


def model_scores(
    models: Mapping[str, str], files: str, info: Mapping[str, Any], output: str, pipeline: Any
) -> dict[str, dict[str, Any]]:
    """Scores of models on the sentences whose tags are known.

    Args: see `crowdzoo.kinds.parts`.

    Returns:
        For each model `tasks`, what `Kind.scores` gives, and `by_task`, [N], whose mean is F1.

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
        scores[name] = {"tasks": len(known), **found, "by_task": _shares(truth, answers, info["scheme"])}
    return scores


def _shares(truth: Sequence[Sequence[str]], answers: Mapping[str, np.ndarray], scheme: str) -> np.ndarray:
    """What each sentence adds to F1, linearised: F1 + (2 right - F1 (true + found)) / mean of (true + found)."""
    one = [span_scores([tags], [said[:length].tolist()], scheme)
           for tags, said, length in zip(truth, answers["tags"], answers["lengths"], strict=True)]  # fmt: skip
    right = np.array([2 * each.num_correct for each in one], float)
    spans = np.array([each.num_gold + each.num_predicted for each in one], float)
    f1 = right.sum() / (spans.sum() or 1)
    shares: np.ndarray = f1 + (right - f1 * spans) / (spans.mean() or 1)
    return shares
