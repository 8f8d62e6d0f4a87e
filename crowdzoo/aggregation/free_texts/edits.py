"""edits: substitutions, insertions and deletions between texts."""

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.loops import compiled
from crowdzoo.aggregation.free_texts.tokens import Tokens

ERRORS = ("substitutions", "insertions", "deletions")
_ONE, _INSERTION, _DELETION = 1 << 40, 1 << 20, 1  # cost of an edit, and counters of its kind

Codes = NDArray[np.int64]


@compiled()
def _paths(codes: Codes, starts: Codes, answer: Codes, true: Codes) -> Codes:  # pragma: no cover
    path = np.zeros(len(answer), np.int64)
    row = np.empty(np.max(starts[1:] - starts[:-1]) + 1, np.int64)
    for pair in range(len(answer)):
        if answer[pair] == true[pair]:
            continue
        other = codes[starts[true[pair]] : starts[true[pair] + 1]]
        for place in range(len(other) + 1):
            row[place] = place * (_ONE + _DELETION)
        for token in codes[starts[answer[pair]] : starts[answer[pair] + 1]]:
            before = row[0]
            row[0] += _ONE + _INSERTION
            for place in range(len(other)):
                same = before if token == other[place] else before + _ONE
                before = row[place + 1]
                row[place + 1] = min(same, before + _ONE + _INSERTION, row[place] + _ONE + _DELETION)
        path[pair] = row[len(other)]
    return path


def edits(tokens: Tokens, answer: Codes, true: Codes) -> Codes:
    """Counts the Levenshtein edits from true texts to answers, by kind.

    Args:
        tokens: tokens of all texts.
        answer: indices of the answers, [P].
        true: indices of the true texts, [P].

    Returns:
        Numbers of `ERRORS`, [P, 3]: substituted, inserted and missing tokens. Their sum is minimal.

    Examples:
        >>> import numpy as np
        >>> from crowdzoo.aggregation.free_texts.edits import edits
        >>> from crowdzoo.aggregation.free_texts.tokens import Tokens
        >>> edits(Tokens.of(["a cat sat down", "the cat sat"]), np.array([0]), np.array([1])).tolist()
        [[1, 1, 0]]
    """
    paths = _paths(tokens.codes, tokens.starts, answer, true)
    inserted, deleted = paths % _ONE // _INSERTION, paths % _INSERTION
    return np.stack([paths // _ONE - inserted - deleted, inserted, deleted], axis=1)


def error_rates(tokens: Tokens, answer: Codes, true: Codes) -> NDArray[np.float64]:
    """Edits over the tokens of the longer of two texts, from 0 to 1, [P]; arguments as in `edits`."""
    longer = np.maximum(tokens.lengths[answer], tokens.lengths[true])
    return np.asarray(edits(tokens, answer, true).sum(axis=1) / np.maximum(longer, 1))
