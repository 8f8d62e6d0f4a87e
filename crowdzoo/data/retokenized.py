"""Sentences split into the tokens that a served model will see."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.drawn_spans import DrawnSpan
from crowdzoo.data.tags import TagSet
from crowdzoo.data.tokens import split_tokens


def retokenized(sequences: CrowdSequences) -> CrowdSequences:
    """Splits tokens further where `split_tokens` would split them, together with their tags; spans are unchanged.

    A served model gets text, not tokens, so train it on the tokens of `split_tokens`, which splits "U.S."
    into four. Parts of a token inherit its tags, gold included: B-X on three parts becomes B-X, I-X, I-X.

    Args:
        sequences: any sentences.

    Returns:
        The same tasks, annotators and classes. Texts are unchanged, or without texts the tokens joined by spaces;
        `split_tokens` of a text returns its tokens.
    """
    texts = sequences.texts
    if texts is None or any(
        split_tokens(text)[0] != [part for token in tokens for part in split_tokens(token)[0]]
        for text, tokens in zip(texts, sequences.tokens, strict=True)
    ):
        texts = [" ".join(tokens) for tokens in sequences.tokens]
    crowd, starts = sequences.annotations, sequences.starts
    # parts of each token, all sentences concatenated, and where they begin in their sentence
    counts = np.array([len(split_tokens(token)[0]) for tokens in sequences.tokens for token in tokens], np.int64)
    begins = np.cumsum(counts) - counts
    begins -= np.repeat(begins[starts[:-1]], sequences.lengths)
    pieces = _pieces(sequences.tag_set)
    of_rows = starts[crowd.task_ids] + np.asarray(crowd.positions)
    rows, within, labels = _parts(crowd.labels, counts[of_rows], pieces)
    annotations = Annotations(
        "sequence",
        crowd.task_ids[rows],
        crowd.annotator_ids[rows],
        labels,
        crowd.tasks,
        crowd.annotators,
        crowd.classes,
        positions=begins[of_rows[rows]] + within,
        num_rejected=crowd.num_rejected,
        num_replaced=crowd.num_replaced,
    )
    cut = [split_tokens(text) for text in texts]
    counts_of_tasks, gold = np.split(counts, starts[1:-1]), None
    if sequences.gold is not None:
        gold = [
            None if codes is None else _parts(codes, parts, pieces)[2]
            for codes, parts in zip(sequences.gold, counts_of_tasks, strict=True)
        ]
    drawn = None
    if sequences.drawn is not None:
        edges = [np.cumsum([0, *parts]).tolist() for parts in counts_of_tasks]
        drawn = {
            (task, who): tuple(
                DrawnSpan(span.label, tuple((edges[task][start], edges[task][end]) for start, end in span.fragments))
                for span in spans
            )
            for (task, who), spans in sequences.drawn.items()
        }
    return replace(
        sequences,
        tokens=[tokens for tokens, _ in cut],
        annotations=annotations,
        gold=gold,
        texts=texts,
        offsets=[offsets for _, offsets in cut],
        drawn=drawn,
    )


def _pieces(tag_set: TagSet) -> NDArray[np.int64]:
    """Tag codes of the parts of a token by its tag, [K, 4]: only part, first, middle, last."""
    codes = {name: code for code, name in enumerate(tag_set.classes)}
    ends = "E" if tag_set.scheme == "IOBES" else "I"
    # by the tag's own letter: first, middle, last
    letters = {"B": ("B", "I", "I"), "I": ("I", "I", "I"), "E": ("I", "I", ends), "S": ("B", "I", ends)}
    rows = []
    for code, name in enumerate(tag_set.classes):
        several = (code,) * 3 if name == "O" else (codes[f"{letter}{name[1:]}"] for letter in letters[name[0]])
        rows.append((code, *several))
    return np.array(rows, np.int64)


def _parts(
    codes: NDArray[np.int64], counts: NDArray[np.int64], pieces: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For all parts of tokens with these codes: the token, the number of the part in it, and its code."""
    rows = np.repeat(np.arange(len(codes)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    of = counts[rows]
    place = np.where(of == 1, 0, np.where(within == 0, 1, np.where(within == of - 1, 3, 2)))
    return rows, within, pieces[codes[rows], place]
