"""Ordered lists as text, such as a>b=c: a is better than b, and b is as good as c."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from crowdzoo.errors import DataError

Order = list[list[str]]  # best first; tasks of an inner list are equally good


def parse_order(text: str) -> Order:
    """Parses an ordered list of tasks.

    Args:
        text: "a>b=c", or if a name contains these marks a list of JSON or Python, `["a", ["b", "c"]]`.

    Raises:
        DataError: not such a list, fewer than two tasks, an empty name, or a task twice.

    Example:
        >>> from crowdzoo.data.orders import parse_order
        >>> parse_order("a > b=c")
        [['a'], ['b', 'c']]
    """
    tiers: list[object] = [tier.split("=") for tier in text.split(">")]
    if text.lstrip()[:1] in ("[", "("):
        try:
            tiers = [*ast.literal_eval(text.strip())]
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            raise DataError('is not an ordered list. Write a>b=c, or ["a", ["b", "c"]].') from None
    order = [[*map(_name, tier)] if isinstance(tier, (list, tuple)) else [_name(tier)] for tier in tiers]
    names = [name for tier in order for name in tier]
    if "" in names or [] in order:
        raise DataError("has an empty name. Write the best first, as in a>b=c.")
    if len(names) < 2:
        parts = [part.strip() for part in re.split("[,;|]", "".join(names)) if part.strip()]
        fix = "Remove the row." if len(parts) < 2 else f"If it is several tasks, write {'>'.join(parts)}, best first."
        raise DataError(f"is a list of one task: there is nothing to compare. {fix}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"has {twice[0]!r} twice. Keep one.")
    return order


def _name(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise DataError('contains something other than names. Write a>b=c, or ["a", ["b", "c"]].')
    return str(value).strip()


def order_pairs(order: Sequence[Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """Yields all pairs of tasks of a list as left, right, and which is better ("left", "right" or "equal").

    The side of a task depends only on the names, so that it carries no information on quality.
    """
    tiers = {name: tier for tier, names in enumerate(order) for name in names}
    names = sorted(tiers)
    for place, first in enumerate(names):
        for other, second in enumerate(names[place + 1 :], start=place + 1):
            left, right = (second, first) if (place + other) % 2 else (first, second)
            gap = tiers[left] - tiers[right]
            yield left, right, "equal" if gap == 0 else "left" if gap < 0 else "right"
