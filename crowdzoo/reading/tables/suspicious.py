"""Detection of class names that may be mistakes."""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from crowdzoo.errors import LONGEST_VALUE, Setting, short_repr

NOTHING = frozenset({"na", "n/a", "nan", "none", "null", "-", "--", "?", "nil", "missing", "unknown label"})
MOST_CLASSES = 10_000  # with more, names are not checked
RARE = 1000  # mean annotations per class, from which a class with a single one looks like a typing mistake
SHARE = 20  # ratio of a class's annotations to those of a misspelling
MOST_COMPARED = 1000  # classes whose names are compared with each other
SHOWN = 3
RowOf = Callable[[int], int]


def suspicious_classes(
    names: Sequence[object], counts: np.ndarray, no_label: str | None = None, row_of: RowOf | None = None
) -> list[str]:
    """Sentences on possible mistakes in class names; usually empty.

    Checks for similar names (see `spelt_alike`), names that usually mean a missing label, numbers with decimals,
    leading or trailing white space, a rare class whose name is one letter away from a common one, and a class with one
    annotation among many large ones.

    Args:
        names: names of the classes, [K].
        counts: number of annotations per class, int [K].
        no_label: the label for none, if tasks may have several labels.
        row_of: returns the row of an annotation of a class, given its index in `names`; None: messages have no rows.
    """
    if len(names) > MOST_CLASSES:
        return []
    texts = [name for name in names if isinstance(name, str)]
    similar = spelt_alike(names, "classes", counts, row_of)
    codes = [str(name) for name in names if isinstance(name, int)]
    nothing = [text for text in texts if text.strip().casefold() in NOTHING and text != no_label]
    if {"-1", "0"} <= {*texts, *codes} and no_label != "-1":  # abstentions among class codes
        nothing.append("-1")
    if nothing:
        what, noun = ("class", "label") if no_label is None else ("label", "answer")
        none = f" If it is the answer that none holds, say so: {Setting('no_label', nothing[0])}."
        similar.append(
            f"{_listed([*map(repr, nothing)])} counts as a {what}.{'' if no_label is None else none} If it means that "
            f"there is no {noun}, leave the rows out: {Setting('missing', nothing[:1])}."
        )
    commas = any("," in text for text in texts) and not any(re.search(r"\.|,\d{3}$", text) for text in texts)
    numbers = [_number(name.replace(",", ".") if commas and isinstance(name, str) else name) for name in names]
    pairs = zip(names, numbers, strict=True)
    decimals = [short_repr(name) for name, number in pairs if number is not None and number % 1]
    if len(decimals) > 2 and None not in numbers:  # fewer may be version numbers
        use = f"{Setting('kind', 'regression')}" + f" and {Setting('decimal', ',')}" * commas
        similar.append(f"classes are numbers, some with decimals: {_listed(decimals)}. If they are ratings, use {use}.")
    if ends := [short_repr(text) for text in texts if text != text.strip()]:
        similar.append(f"white space at the ends is part of a class's name: {_listed(ends)}.")
    near = _near_names(names, counts)
    if near:
        said = [f"{_with_row(names, code, row_of)}, which is almost {names[right]!r}" for code, right in near.items()]
        number = sum(int(counts[code]) for code in near)
        fix = _renamed({names[code]: names[right] for code, right in near.items()})
        verb = "says" if number == 1 else "say"
        text = f"{number:,} of {int(np.sum(counts)):,} annotations {verb} {_listed(said)}."
        similar.append(f"{text} If that is a spelling mistake, correct it{fix}.")
    single = np.setdiff1d(np.flatnonzero(np.asarray(counts) == 1), [*near])
    if len(single) and np.sum(counts) >= RARE * max(len(names) - len(single), 1):
        rare = [short_repr(names[code]) for code in single.tolist()]
        similar.append(f"only one of {int(np.sum(counts)):,} annotations says {_listed(rare)}. Is it written wrongly?")
    return similar


def spelt_alike(
    names: Sequence[object], what: str, counts: np.ndarray | None = None, row_of: RowOf | None = None
) -> list[str]:
    """A sentence on names that differ only in case, white space, Unicode form or number format, if any.

    Args:
        names: names of classes or annotators; very many are not checked.
        what: what the names are, for the message.
        counts: number of annotations per class, int [K], to suggest the most frequent spelling; None: no suggestion.
        row_of: as for `suspicious_classes`.
    """
    alike: dict[object, list[int]] = {}
    for place, name in enumerate(names) if len(names) <= MOST_CLASSES else ():
        if isinstance(name, str):
            number = _number(name)
            plain = "".join(sign for sign in name if unicodedata.category(sign) != "Cf")  # such as a zero-width space
            key = " ".join(unicodedata.normalize("NFKC", plain).casefold().split()) if number is None else number
            alike.setdefault(key, []).append(place)
    groups = [places for places in alike.values() if len(places) > 1]
    if not groups:
        return []
    same, fix = [" and ".join(_with_row(names, place, row_of) for place in places) for places in groups], ""
    if counts is not None:
        usual = [max(places, key=lambda place: (counts[place], -len(str(names[place])))) for places in groups]
        pairs = [(place, best) for places, best in zip(groups, usual, strict=True) for place in places if place != best]
        fix = _renamed({names[place]: names[best] for place, best in pairs})
    form = "case, white space, Unicode form or the form of a number"
    return [f"{what} differ only in {form}: {_listed(same)}. Write them alike{fix}."]


def _with_row(names: Sequence[object], place: int, row_of: RowOf | None) -> str:
    """Format a name with its row."""
    return short_repr(names[place]) + ("" if row_of is None else f" (row {row_of(place):,})")


def _renamed(names: Mapping[object, object]) -> str:
    """The setting that renames names, as the end of a sentence; "" if a name cannot be pasted."""
    for old, new in names.items():
        text = f"{old}{new}"
        if "," in text or "=" in str(new) or len(text) > LONGEST_VALUE or not text.isprintable():
            return ""
    return f": {Setting('rename', names)}"


def _near_names(names: Sequence[object], counts: np.ndarray) -> dict[int, int]:
    """Rare classes that may be misspellings: index in `names` -> index of the likely intended class."""
    if len(names) > MOST_COMPARED:
        return {}
    near = {}
    for place, name in enumerate(names):
        common = np.flatnonzero(counts >= SHARE * counts[place]) if counts[place] else ()
        right = next((each for each in common if _is_misspelt(name, names[each])), None)
        if right is not None:
            near[place] = int(right)
    return near


def _is_misspelt(name: object, right: object) -> bool:
    """Whether a letter after the first is wrong, missing, added or swapped with the next one."""
    if not (isinstance(name, str) and isinstance(right, str) and min(len(name), len(right)) > 2):
        return False
    pairs = enumerate(zip(name, right, strict=False))
    start = next((place for place, (one, other) in pairs if one != other), min(len(name), len(right)))
    one, other = name[start:], right[start:]
    if not (start and (one[:1] + other[:1]).isalpha()):
        return False
    swapped = one[:2] == other[1::-1] and one[2:] == other[2:]
    return one[1:] == other[1:] or one[1:] == other or one == other[1:] or swapped


def strange_ids(names: Sequence[object], what: str) -> list[str]:
    """Sentences on names of tasks or annotators that look missing, or shortened by a spreadsheet."""
    texts, strange = [name for name in names if isinstance(name, str)], list[str]()
    if nobody := [text for text in texts if text.casefold() in NOTHING | {"unassigned"}]:
        leave_out = f"leave them out: {Setting('exclude', nobody[:SHOWN])}"
        way_out = leave_out if what == "annotators" else "remove the rows"
        strange.append(f"{_listed([*map(repr, nobody)])} count as {what}. If none are meant, {way_out}.")
    if short := [text for text in texts if re.fullmatch(r"\d[.,]\d+E\+\d+", text)]:
        text = "looks like a number that a spreadsheet has shortened, so that several may have become one"
        strange.append(f"{short_repr(short[0])}, one of the {what}, {text}. Export them again as text.")
    return strange


def _number(name: object) -> float | None:
    """A class name as a number; None if it is not one."""
    try:
        number = float(name) if isinstance(name, (str, float, int)) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
