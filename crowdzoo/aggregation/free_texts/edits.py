"""edits: substitutions, insertions and deletions between texts."""

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.free_texts.tokens import Tokens

ERRORS = ("substitutions", "insertions", "deletions")
_ONE, _INSERTION, _DELETION = 1 << 40, 1 << 20, 1  # an edit, and what kind it is besides: the least sum is the path


@compiled()
def _paths(
    codes: NDArray[np.int64], starts: NDArray[np.int64], said: NDArray[np.int64], true: NDArray[np.int64]
) -> NDArray[np.int64]:  # pragma: no cover
    found = np.zeros(len(said), np.int64)
    row = np.empty(np.max(starts[1:] - starts[:-1]) + 1, np.int64)
    for pair in range(len(said)):
        if said[pair] == true[pair]:
            continue
        own = codes[starts[said[pair]] : starts[said[pair] + 1]]
        other = codes[starts[true[pair]] : starts[true[pair] + 1]]
        for place in range(len(other) + 1):
            row[place] = place * (_ONE + _DELETION)
        for token in own:
            before = row[0]
            row[0] += _ONE + _INSERTION
            for place in range(len(other)):
                least = before if token == other[place] else before + _ONE
                before = row[place + 1]
                row[place + 1] = min(least, before + _ONE + _INSERTION, row[place] + _ONE + _DELETION)
        found[pair] = row[len(other)]
    return found


def edits(tokens: Tokens, said: NDArray[np.int64], true: NDArray[np.int64]) -> NDArray[np.int64]:
    """Levenshtein's edits that make true texts what was said, by kind.

    Args:
        tokens: of all texts.
        said: places of texts, [P].
        true: and of those they are compared with, [P].

    Returns:
        Numbers of `ERRORS`, [P, 3]: a token in place of another one, one too many, one too few. Their sum is the least
        there is.
    """
    if not len(said):
        return np.zeros((0, len(ERRORS)), np.int64)
    paths = _paths(tokens.codes, tokens.starts, said, true)
    inserted, deleted = (paths // _INSERTION) % (_ONE // _INSERTION), paths % _INSERTION
    return np.stack([paths // _ONE - inserted - deleted, inserted, deleted], axis=1)


def error_rates(tokens: Tokens, said: NDArray[np.int64], true: NDArray[np.int64]) -> NDArray[np.float64]:
    """Edits over the tokens of the longer of two texts, from 0 to 1, [P]; arguments as for `edits`."""
    longer = np.maximum(tokens.lengths[said], tokens.lengths[true])
    return np.asarray(edits(tokens, said, true).sum(axis=1) / np.maximum(longer, 1))
