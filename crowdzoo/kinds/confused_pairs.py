"""confused_pairs: pairs of classes that annotators confuse, as a table of a page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.kinds.page_parts import DIGITS, Columns

MOST_PAIRS = 100
UNCLEAR = 0.75  # agreement of a pair of classes below which their definition is called unclear
MUCH = 0.1  # share of all disagreement from which a pair of classes is warned of


def confused_pairs(counts: NDArray[np.float64], names: list[str], nothing: bool = False) -> Columns:
    """Pairs of classes that are confused, the largest share of the disagreement first.

    Args:
        counts: how often two classes meet in a task, [K, K].
        names: of the classes, [K].
        nothing: whether the last class is that nothing was said: nobody counts where two say nothing.

    Returns:
        Columns `first`, `second`, `agreement` of the two, `disagreement`, their share of all of it, and `pairs`.
    """
    total, size = counts.sum() - np.trace(counts), len(counts)
    first, second = np.triu_indices(size, 1)
    between = 2 * counts[first, second]
    order = np.argsort(-between, kind="stable")[:MOST_PAIRS]
    order = order[between[order] > 0]
    first, second, between = first[order], second[order], between[order]
    both = counts[first, first] + counts[second, second]
    if nothing:
        both = np.where(second == size - 1, counts[first, : size - 1].sum(axis=1), both)
    figures = {"agreement": both / (both + between), "disagreement": between / total, "pairs": between}
    columns = {name: np.round(values, DIGITS).tolist() for name, values in figures.items()}
    return {"first": [names[code] for code in first], "second": [names[code] for code in second], **columns}


def rows_confused(pairs: Columns) -> list[tuple[str, str, float, float]]:
    """Pairs whose definition may be unclear: first, second, agreement, and share of all disagreement."""
    rows = zip(*(pairs[key] for key in ("first", "second", "agreement", "disagreement")), strict=True)
    return [row for row in rows if row[2] < UNCLEAR and row[3] >= MUCH]
