"""Changes since an earlier report on the same crowd."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crowdzoo.errors import DataError, short_repr
from crowdzoo.files.json import check_format, read_json
from crowdzoo.kinds.page_parts import FLAGS, SERIOUS, Numbers, first_names

FORMAT = "crowdzoo-report"
FORMAT_VERSION = 1
MOST_LISTED = 10  # annotators and tasks
Facts = Mapping[str, Any]
Places = Mapping[str, int]  # row of each name in a table


def read_numbers(path: str | Path) -> dict[str, Any]:
    """Read the numbers of an earlier page.

    Args:
        path: path of a report.json.

    Raises:
        DataError: no such file, not JSON, not a report, or a report of a later version.
    """
    numbers = read_json(path)
    if not isinstance(numbers, dict) or numbers.get("format") != FORMAT:
        raise DataError(f"{path}: is not a report. Give the file .json that crowdzoo report wrote next to its page.")
    check_format(numbers.get("format_version", 0), path, FORMAT_VERSION)
    return numbers


def changes_since(
    before: Facts, numbers: Numbers, values: Facts, hashed: bool, options: Facts | None = None
) -> dict[str, Any]:
    """Compare a report with an earlier one.

    Args:
        before: result of `read_numbers`.
        numbers: numbers of the new report.
        values: values that conditions compare, rounded as in the file.
        hashed: whether the new report's names are hashes.
        options: options of reading and measuring of the new report, see `report_page`.

    Returns:
        `title` and `method` of the earlier report; `options` that differ, as [name, before, now], since they may
        explain other differences; `values` that differ, in the same form; `new` and `gone` warnings, as "about:
        finding", where warnings on annotators list those who have them in only one of the reports; for `annotators` and
        `tasks`, how many were `added`, are `gone` and are in `both`; how many annotators `moved`, which means that
        their reliability (for ratings: agreement) differs by more than the interval of the difference; how many tasks
        `changed` their label (null if they have a number instead); both with the ten largest or first in `listed`, as
        [name, before, now].

    Raises:
        DataError: reports of different kinds, reports without a common name, or a damaged report.
    """
    if before.get("kind") != numbers.kind:
        raise DataError(
            f"The earlier report is of kind {short_repr(before.get('kind'))}, this one of {numbers.kind!r}."
        )
    try:
        then = before.get("options")
        differing = [] if then is None else _differences(then, options or {})
        return {**_changes(before, numbers, values, hashed), "options": differing}
    except DataError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"The earlier report is damaged ({type(error).__name__}: {error}). Make it again.") from error


def _changes(before: Facts, numbers: Numbers, values: Facts, hashed: bool) -> dict[str, Any]:
    then, now = before["tables"], numbers.tables
    annotators = _places(then["annotators"]["values"]["annotator"]), _places(now["annotators"].values["annotator"])
    tasks = _places(then["tasks"]["values"]["task"]), _places(now["tasks"].values["task"])
    if annotators[0] and annotators[1] and annotators[0].keys().isdisjoint(annotators[1]):
        reason = "no annotator is in both reports"
        if hashed or before.get("hashed"):
            reason += ": their names are hashes; make both with the same --hash-ids KEY"
        raise DataError(f"Nothing can be compared: {reason}.")
    keyed = all("key" in item for item in before["warnings"])  # reports of earlier versions have no keys
    warnings = before["warnings"], [vars(item) for item in numbers.warnings]
    kept = ([item for item in items if not keyed or item["key"] not in FLAGS] for items in warnings)
    old, new = ({_identity(item, keyed): f"{item['about']}: {item['finding']}" for item in items} for items in kept)
    flagged = [_with_notes(item) if keyed else {} for item in (then["annotators"]["values"], now["annotators"].values)]
    moved = _moves(numbers.annotator_column, then["annotators"]["values"], now["annotators"].values, *annotators)
    what = numbers.task_column
    both = [(name, place, tasks[1][name]) for name, place in tasks[0].items() if name in tasks[1]]
    past, present = then["tasks"]["values"], now["tasks"].values
    pairs = [(name, past[what][old], present[what][new]) for name, old, new in both]
    if "label" in present:
        places = [row for row, pair in zip(both, pairs, strict=True) if pair[1] != pair[2]]
        changed = [[name, past["label"][old], present["label"][new]] for name, old, new in places]
        of_tasks = {"changed": len(changed), "listed": changed[:MOST_LISTED]}
    elif any(isinstance(item, str) for _, *values in pairs for item in values):  # labels, not numbers
        changed = [list(item) for item in pairs if item[1] != item[2]]
        of_tasks = {"changed": len(changed), "listed": changed[:MOST_LISTED]}
    else:
        apart = [list(item) for item in pairs if None not in item and item[1] != item[2]]
        apart.sort(key=lambda item: -abs(item[1] - item[2]))
        of_tasks = {"changed": None, "listed": apart[:MOST_LISTED]}
    return {
        "title": str(before["title"]),
        "method": str(before["method"]),
        "values": _differences(before["values"], values),
        "new": sorted([*(new[item] for item in new.keys() - old.keys()), *_new_notes(flagged[1], flagged[0])]),
        "gone": sorted([*(old[item] for item in old.keys() - new.keys()), *_new_notes(flagged[0], flagged[1])]),
        "annotators": {**_counts(*annotators), "moved": len(moved), "listed": moved[:MOST_LISTED]},
        "tasks": {**_counts(*tasks), **of_tasks},
    }


def _differences(then: Facts, now: Facts) -> list[list[Any]]:
    """Entries that differ, as [name, before, now]."""
    names = dict.fromkeys([*now, *then])
    return [[name, then.get(name), now.get(name)] for name in names if then.get(name) != now.get(name)]


def _with_notes(annotators: Mapping[str, Sequence[Any]]) -> dict[str, set[str]]:
    """Names of the annotators with each serious note."""
    names_of: dict[str, set[str]] = {note: set() for note in SERIOUS}
    for name, notes in zip(annotators["annotator"], annotators["notes"], strict=True):
        for note in SERIOUS.intersection(notes):
            names_of[note].add(str(name))
    return names_of


def _new_notes(those: Mapping[str, set[str]], rest: Mapping[str, set[str]]) -> list[str]:
    """For each note, the annotators who have it in only the first of two reports."""
    apart = {note: sorted(names - rest[note]) for note, names in those.items()}
    return [f"{first_names(names)}: {FLAGS[note].describe(len(names))[0]}" for note, names in apart.items() if names]


def _identity(item: Facts, keyed: bool) -> tuple[str, str]:
    """Subject and type of a warning, without the numbers of its finding, which may change."""
    about = ", ".join(sorted(item["about"].split(", ")))
    return about, (keyed and item["key"]) or re.sub(r"(less than )?\d[\d.,]*", "#", item["finding"])


def _places(names: Sequence[Any]) -> dict[str, int]:
    return {str(name): place for place, name in enumerate(names)}


def _counts(old: Places, new: Places) -> dict[str, int]:
    both = len(old.keys() & new.keys())
    return {"added": len(new) - both, "gone": len(old) - both, "both": both}


def _moves(
    what: str, then: Mapping[str, Sequence[Any]], now: Mapping[str, Sequence[Any]], old: Places, new: Places
) -> list[list[Any]]:
    """Annotators who moved by more than the interval of the difference, largest moves first."""
    moves = []
    for name in old.keys() & new.keys():
        places = old[name], new[name]
        (low, high, value), (low_now, high_now, value_now) = (
            [table[key][place] for key in (f"{what}_low", f"{what}_high", what)]
            for table, place in zip((then, now), places, strict=True)
        )
        if None in (low, high, low_now, high_now):
            continue
        # the interval for independent estimates; estimates that share annotations have a narrower one
        if abs(value_now - value) > math.hypot((high - low) / 2, (high_now - low_now) / 2):
            moves.append([name, value, value_now])
    return sorted(moves, key=lambda move: (-abs(move[1] - move[2]), move[0]))
