"""How well exported taggers find spans, asked as a server asks them: with text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crowdzoo.components.sequence_examples import ReadSentences, read_examples
from crowdzoo.export.predict import load_and_predict
from crowdzoo.sequences import span_scores

__all__ = ["tagger_summary"]


def tagger_summary(models: Mapping[str, str], patterns: Sequence[str], info: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of models on the sentences whose tags are known.

    Args:
        models: name -> folder of the SavedModel.
        patterns: patterns of the files of eval.
        info: result of `read_dataset_info`.

    Returns:
        `truth`, and for each of "candidate" and "baseline" its scores, None where it is not among the models.

    Raises:
        ValueError: a model cuts a text into other tokens than it was tagged by.
    """
    sentences = read_examples(patterns, dict(info))
    known = np.flatnonzero(sentences.evaluation_weights > 0)
    summary: dict[str, Any] = {"truth": info["truth"], "candidate": None, "baseline": None}
    for name, folder in models.items():
        summary[name] = {"model": folder, "tasks": len(known), **_scores(folder, sentences, known, info)}
    return summary


def _scores(folder: str, sentences: ReadSentences, known: np.ndarray, info: Mapping[str, Any]) -> dict[str, Any]:
    order = known[np.argsort([len(sentences.tokens[task]) for task in known], kind="stable")]
    answers = load_and_predict(folder, [sentences.texts[task] for task in order], batch_size=128)
    truth, said = [], []
    for row, task in enumerate(order):
        length = int(answers["lengths"][row])
        tokens = answers["tokens"][row, :length].tolist()
        if tokens != sentences.tokens[task]:
            raise ValueError(f"{folder}: cuts {sentences.texts[task]!r} into {tokens}, not {sentences.tokens[task]}")
        truth.append([info["classes"][code] for code in sentences.evaluation_labels[task]])
        said.append(answers["tags"][row, :length].tolist())
    scores = span_scores(truth, said, scheme=info["scheme"])
    return {
        "f1": scores.f1, "precision": scores.precision, "recall": scores.recall,
        "token_accuracy": scores.token_accuracy, "types": scores.rows(),
    }  # fmt: skip
