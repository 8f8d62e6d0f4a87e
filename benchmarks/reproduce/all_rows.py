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
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from rows import differences
from settings import settings_of

from crowdzoo.datasets import load_labelme

RESULTS = Path(__file__).parents[1] / "results"
First = Callable[[], dict[str, Any]]
# scripts whose rows are in `PARTS`, or in what `parts` gives
PARTS = (
    "calibration", "conal", "crowd_layer", "interval_coverage", "lia_annotators", "lost_classes", "models_and_people",
    "movie_reviews", "next_annotations", "preferences", "segmentation", "text_forms", "unlabelled", "waum",
    "waum_variants",
)  # fmt: skip
OTHERS = {
    "geo_crowd_net": "geo_crowd_net", "imagenet_features": "imagenet_features", "recipe": "recipe",
    "reproduce_deep": "deep_methods", "reproduce_lia": "lia", "reproduce_ner": "ner",
}  # fmt: skip
NAMES = (*PARTS, *OTHERS)  # of results files


def rows_of(name: str) -> Iterator[tuple[tuple[str, ...], First]]:
    """Rows that a script can make: their place in its results, and what gives the first run."""
    script = importlib.import_module(OTHERS.get(name, name))
    if name in PARTS:
        parts = script.parts() if hasattr(script, "parts") else script.PARTS
        for part, rows in parts.items():
            for row, runs in rows.items():
                yield (part, row), partial(_next, runs)
    elif name == "reproduce_deep":
        for data in script.DATA:
            for row in script.rows_of(data):
                yield (data, row), partial(_first, script.measured, data, row, 1)
    elif name == "reproduce_ner":
        for row in script.ROWS:
            yield (row,), partial(_first, script.measured, row, [0])
    elif name == "reproduce_lia":
        for data in script.SETS:
            for row in (row_name for row_name in script.ROWS if row_name not in script.NOT_OF[data]):
                yield ("sets", data, row), partial(_draw, script, data, row)
    elif name == "geo_crowd_net":
        for part in ("floors", "recovery"):
            for row in script.rows_of(part):
                yield (part, script.name_of(row)), partial(_of_draws, script, row)
    elif name == "recipe":
        for data, make in script.SETS.items():
            for row in script.COMPARED:
                yield (data, row), partial(_of_recipe, script, make, row)
    else:
        for data in script.DATA:
            for row in script.TRAINED:
                yield (data, row), partial(_of_features, script, data, row)


def _next(runs: Callable[[], Iterator[dict[str, Any]]]) -> dict[str, Any]:
    return next(iter(runs()))


def _first(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    run: dict[str, Any] = work(*arguments)["runs"][0]
    return run


def _of_draws(script: Any, row: dict[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = script.runs_of(row | {"seeds": row["seeds"][:1]})[0]
    return run


def _draw(script: Any, data: str, row: str) -> dict[str, Any]:
    run: dict[str, Any] = script.measured(data, row, script.REDUNDANCIES[data][0], [0])[0]
    return run


def _of_recipe(script: Any, make: Callable[[int], Any], row: str) -> dict[str, Any]:
    run: dict[str, Any] = script.work(_drawn(make), row, 0, False)
    return run


@lru_cache(maxsize=1)
def _drawn(make: Callable[[int], Any]) -> Any:
    return make(0)


def _of_features(script: Any, data: str, row: str) -> dict[str, Any]:
    """Without the features, which are not kept; the settings are those of any."""
    source = load_labelme() if data.startswith("labelme") else script.lia.bluebirds()
    tasks = source.annotations.tasks
    no_features = np.zeros((len(tasks), 8), "float32")
    run: dict[str, Any] = script.run_of(row, script.data_of(no_features, source.annotations, source.gold, tasks), 0)
    return run


def saved(name: str) -> dict[str, Any]:
    """A results file."""
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return results


def at(results: Any, place: tuple[str, ...]) -> Any:
    """The value at a place, or None."""
    for key in place:
        results = results.get(key, {})
    return results or None


def holder(name: str, results: dict[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    """What has the settings of a saved row under "settings"."""
    if name != "recipe":  # whose rows are lists of runs
        row: dict[str, Any] = at(results, place)
        return row
    return results.setdefault("about", {}).setdefault(place[0], {}).setdefault(place[1], {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="RESULTS", help="otherwise all")
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="rows or parts; otherwise all")
    parser.add_argument("--first", action="store_true", help="train the first run of each row, and compare it")
    parser.add_argument("--save", action="store_true", help="save the settings of the rows, but no figures")
    args = parser.parse_args()
    for name in args.names or NAMES:
        results = saved(name)
        for place, first in rows_of(name):
            row = at(results, place)
            if row is None or (args.rows and not {*place} & {*args.rows}):
                continue
            about = holder(name, results, place)
            settings = settings_of(first)
            changes = list(differences({"settings": about.get("settings", [])}, {"settings": settings}))
            if args.first:
                changes += differences({"runs": [_first_saved(row)]}, {"runs": [first()]})
            if changes or args.first:
                print(f"{name}: {', '.join(place)}: {'; '.join(changes) or 'as saved'}", flush=True)
            about["settings"] = settings
        if args.save:
            text = json.dumps(results, indent=1, ensure_ascii=False)
            (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _first_saved(row: Any) -> dict[str, Any]:
    """The run that `first` gives again."""
    runs = row if isinstance(row, list) else row.get("runs") or [draws["0"] for draws in row["draws"].values()]
    run: dict[str, Any] = next((saved_run for saved_run in runs if str(saved_run.get("seed")) == "0"), runs[0])
    return run


if __name__ == "__main__":
    main()
