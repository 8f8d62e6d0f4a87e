"""How the names that one model knows differ from those of another: of classes, of columns."""

from collections.abc import Sequence

SHOWN = 3


def name_difference(what: str, now: Sequence[str], before: Sequence[str]) -> str:
    """In what two lists of names differ, their order included.

    Args:
        what: a name of the list, such as "class".
        now: the new list.
        before: the old one.

    Returns:
        A clause such as "class 'dog' is new", or "" where they are equal.
    """
    if list(now) == list(before):
        return ""
    known, kept = set(before), set(now)
    found = [f"{_named(what, names)} {verb}" for names, verb in (
        ([name for name in now if name not in known], "new"),
        ([name for name in before if name not in kept], "missing"),
    ) if names]  # fmt: skip
    if found:
        return ", ".join(found)
    if len(now) != len(before):
        return f"there are {len(now)} {_plural(what)}, were {len(before)}"
    place, name, old = next((at, *pair) for at, pair in enumerate(zip(now, before, strict=True)) if pair[0] != pair[1])
    return f"the order is another one: {what} {place} is {name!r}, was {old!r}"


def _named(what: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    title, verb = (what, "is") if len(names) == 1 else (_plural(what), "are")
    return f"{title} {', '.join(map(repr, names[:SHOWN]))}{more} {verb}"


def _plural(what: str) -> str:
    return f"{what}es" if what.endswith("s") else f"{what}s"
