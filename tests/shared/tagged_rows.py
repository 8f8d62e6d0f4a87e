"""Sentences of what was said of them, by codes."""

import numpy as np

from crowdzoo import Annotations
from crowdzoo.sequences import CrowdSequences


def crowd_of_rows(rows, annotators, classes, tokens, *further, tasks=None, scheme="BIO"):
    """CrowdSequences of (sentence, annotator, codes of its tags), which may be none; annotators are a number, or names.

    `further` are gold, texts and offsets.
    """
    sizes = np.array([len(codes) for _, _, codes in rows], np.int64)
    annotations = Annotations(
        "sequence",
        *(np.repeat(np.array([row[place] for row in rows], np.int64), sizes) for place in (0, 1)),
        np.concatenate([np.empty(0, np.int64), *(codes for _, _, codes in rows)]),
        np.arange(len(tokens)) if tasks is None else np.array(tasks, object),
        np.arange(annotators) if isinstance(annotators, int) else np.asarray(annotators),
        np.array(classes, object),
        positions=np.concatenate([np.arange(0), *map(np.arange, sizes)]),
    )
    return CrowdSequences(tokens, annotations, *further, scheme=scheme)
