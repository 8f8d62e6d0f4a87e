"""Annotations of sentences, made of whole answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations


def sentence_annotations(
    answers: Sequence[tuple[int, int, NDArray[np.int64]]],
    tasks: NDArray[Any],
    annotators: NDArray[Any],
    classes: Sequence[str],
) -> Annotations:
    """Annotations of kind "sequence" from one answer after the other.

    Args:
        answers: task code, annotator code, and codes of the tags of all tokens, int64 [T].
        tasks: names of the tasks, [N].
        annotators: names of the annotators, [R].
        classes: tags in the order of their codes.

    Returns:
        The annotations, in the order of the answers.
    """
    lengths = [len(codes) for _, _, codes in answers]
    pairs = np.array([pair for *pair, _ in answers], np.int64).reshape(-1, 2)
    task_ids, annotator_ids = (np.repeat(column, np.array(lengths, np.int64)) for column in pairs.T)
    none = np.empty(0, np.int64)
    labels = np.concatenate([none, *(codes for _, _, codes in answers)])
    positions = np.concatenate([none, *map(np.arange, lengths)])
    names = np.array(classes, object)
    return Annotations("sequence", task_ids, annotator_ids, labels, tasks, annotators, names, positions=positions)
