"""Sentences cut into the tokens that a served model will see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdzoo.sequences.crowd_sequences import CrowdSequences
from crowdzoo.sequences.tags import TagSet
from crowdzoo.sequences.tokens import split_tokens
from crowdzoo.tables.annotations import Annotations

__all__ = ["retokenized"]


def retokenized(sequences: CrowdSequences) -> CrowdSequences:
    """Cuts tokens further where `split_tokens` would cut them, tags and all; spans stay what they were.

    A model that is served gets text, not tokens, so it should be trained on what `split_tokens` makes of text: "U.S."
    as three tokens. What an annotator said of a token, and gold, is said of its parts: B-X of three parts is B-X, I-X,
    I-X.

    Args:
        sequences: any.

    Returns:
        The same tasks, annotators and classes. Texts are those of before or, where there are none, tokens with a space
        between; `split_tokens` of each text gives its tokens.
    """
    texts = sequences.texts
    if texts is None or any(
        split_tokens(text)[0] != [part for token in tokens for part in split_tokens(token)[0]]
        for text, tokens in zip(texts, sequences.tokens, strict=True)
    ):
        texts = [" ".join(tokens) for tokens in sequences.tokens]
    parts = [[split_tokens(token)[0] for token in tokens] for tokens in sequences.tokens]
    counts = [np.array([len(part) for part in sentence], np.int64) for sentence in parts]
    pieces = _pieces(sequences.tag_set)
    crowd = sequences.annotations
    assert crowd.positions is not None
    # where each token's parts begin in its sentence
    begins = [np.concatenate([[0], np.cumsum(count)]) for count in counts]
    each = np.concatenate([*counts, np.zeros(1, np.int64)])[sequences.starts[crowd.task_ids] + crowd.positions]
    first = np.concatenate([begin[:-1] for begin in begins])
    rows = np.repeat(np.arange(len(crowd)), each)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(each) - each, each)
    annotations = Annotations(
        "sequence",
        crowd.task_ids[rows],
        crowd.annotator_ids[rows],
        pieces[crowd.labels[rows], _place(within, each[rows])],
        crowd.tasks,
        crowd.annotators,
        crowd.classes,
        positions=first[sequences.starts[crowd.task_ids[rows]] + crowd.positions[rows]] + within,
        num_rejected=crowd.num_rejected,
    )
    cut = [split_tokens(text) for text in texts]
    return replace(
        sequences,
        tokens=[tokens for tokens, _ in cut],
        annotations=annotations,
        gold=None if sequences.gold is None else _cut(sequences.gold, counts, pieces),
        texts=texts,
        offsets=[offsets for _, offsets in cut],
    )


def _pieces(tag_set: TagSet) -> NDArray[np.int64]:
    """Codes of a tag's parts [K, 4]: the only part, the first of several, one in between, the last."""
    codes = {name: code for code, name in enumerate(tag_set.classes)}
    ends = "E" if tag_set.scheme == "IOBES" else "I"
    # by the tag's own letter: first, between, last
    letters = {"B": ("B", "I", "I"), "I": ("I", "I", "I"), "E": ("I", "I", ends), "S": ("B", "I", ends)}
    rows = []
    for code, name in enumerate(tag_set.classes):
        several = (code,) * 3 if name == "O" else (codes[f"{letter}{name[1:]}"] for letter in letters[name[0]])
        rows.append((code, *several))
    return np.array(rows, np.int64)


def _place(within: NDArray[np.int64], of: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns of `_pieces` for parts that are number `within` of so many."""
    place = np.where(within == 0, 1, np.where(within == of - 1, 3, 2))
    return np.where(of == 1, 0, place)


def _cut(
    gold: Sequence[NDArray[np.int64]], counts: Sequence[NDArray[np.int64]], pieces: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    found = []
    for codes, count in zip(gold, counts, strict=True):
        of = np.repeat(count, count)
        within = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
        found.append(pieces[np.repeat(codes, count), _place(within, of)])
    return found
