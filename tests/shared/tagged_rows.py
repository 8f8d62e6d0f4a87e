"""Sentences of what was said of them, by codes."""

import numpy as np

from crowdzoo import Annotations
from crowdzoo.sequences import CrowdSequences


def crowd_of_rows(rows, num_annotators, classes, tokens, gold=None, scheme="BIO"):
    """CrowdSequences of (sentence, annotator, codes of its tags)."""
    sizes = [len(codes) for _, _, codes in rows]
    annotations = Annotations(
        "sequence",
        *(np.repeat([row[place] for row in rows], sizes) for place in (0, 1)),
        np.concatenate([codes for _, _, codes in rows]),
        np.arange(len(tokens)),
        np.arange(num_annotators),
        np.array(classes, object),
        positions=np.concatenate([np.arange(size) for size in sizes]),
    )
    return CrowdSequences(tokens, annotations, gold, scheme=scheme)
