"""All rows of the saved results: whether a command would train them today as it did when they were saved.

    python benchmarks/reproduce/all_rows.py                            # settings of all rows, nothing is trained
    python benchmarks/reproduce/all_rows.py conal waum --first         # and trains the first run of each row again
    python benchmarks/reproduce/all_rows.py conal --save               # writes the settings of the rows that differ

A row whose figures are as saved prints "as saved" and nothing else. Save settings only of such rows.
"""

import argparse
import importlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rows import differences, read
from settings import settings_of

RESULTS = Path(__file__).parents[1] / "results"
First = Callable[[], dict[str, Any]]
# results file -> script, whose rows are in `PARTS`
SCRIPTS = {
    **{name: name for name in (
        "calibration", "conal", "crowd_layer", "geo_crowd_net", "imagenet_features", "interval_coverage",
        "lia_annotators", "models_and_people", "movie_reviews", "preferences",
        "recipe", "segmentation", "text_forms", "unlabelled", "waum", "waum_variants",
    )},
    "reproduce_deep": "deep_methods", "reproduce_lia": "lia", "reproduce_ner": "ner",
}  # fmt: skip


def rows_of(name: str) -> Iterator[tuple[tuple[str, str], First]]:
    """Rows that a script can make: part and name, and what gives the first run."""
    script = importlib.import_module(SCRIPTS[name])
    if name == "imagenet_features":  # which are not kept; the settings are those of any
        script.features_of = _no_features
    for part, rows in script.PARTS.items():
        for row, runs in rows.items():
            yield (part, row), partial(_first, runs)


def _no_features(name: str) -> tuple[np.ndarray, Any]:
    tasks = range(1000) if name.startswith("labelme") else importlib.import_module("lia").bluebirds().annotations.tasks
    return np.zeros((len(tasks), 8), "float32"), tasks


def _first(runs: Callable[[], Iterator[dict[str, Any]]]) -> dict[str, Any]:
    return next(iter(runs()))


def saved(name: str) -> dict[str, Any]:
    """A results file."""
    return read(RESULTS / f"{name}.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*SCRIPTS, []], metavar="RESULTS", help="otherwise all")
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="rows or parts; otherwise all")
    parser.add_argument("--first", action="store_true", help="train the first run of each row, and compare it")
    parser.add_argument("--save", action="store_true", help="save the settings of the rows, but no figures")
    args = parser.parse_args()
    for name in args.names or SCRIPTS:
        results = saved(name)
        for (part, row), first in rows_of(name):
            place = results.get(part, {}).get(row)
            if place is None or (args.rows and not {part, row} & {*args.rows}):
                continue
            settings = settings_of(first)
            changes = list(differences({"settings": place["settings"]}, {"settings": settings}))
            if args.first:
                changes += differences({"runs": place["runs"][:1]}, {"runs": [first()]})
            if changes or args.first:
                print(f"{name}: {part}, {row}: {'; '.join(changes) or 'as saved'}", flush=True)
            place["settings"] = settings
        if args.save:
            text = json.dumps(results, indent=1, ensure_ascii=False)
            (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
