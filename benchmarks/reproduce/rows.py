"""Rows of a results file, computed one by one: what scripts of small experiments share."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from run_alone import run_alone
from settings import recorded
from stack import stack

from crowdzoo.report.tables import print_table

__all__ = ["Parts", "differences", "grid", "read", "run", "save", "seconds_of", "shown"]

# part -> row -> what gives its runs: one dictionary a run, of numbers (and of texts that say which run it is)
Parts = dict[str, dict[str, Callable[[], Iterator[dict[str, Any]]]]]


def run(
    path: Path,
    parts: Parts,
    doc: str | None,
    write_page: Callable[[], None] | None = None,
    *,
    keras: bool = True,
    alone: bool = False,
    option: str = "--parts",
) -> None:
    """The command line: computes the rows that the file does not have, and prints its tables.

    Each row is saved when it is done, with its settings, its stack and its CPU seconds.

    Args:
        path: results file, JSON.
        parts: all rows. A row without runs is not saved.
        doc: description of the command.
        write_page: writes the page of the saved results, or prints their table, for `--page`; None if there is no page.
        keras: whether the rows train networks.
        alone: whether each row runs in a process of its own.
        option: chooses parts.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(option, nargs="+", choices=parts, default=list(parts), metavar="NAME", dest="parts")
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="of these parts; otherwise all")
    parser.add_argument(
        "--again", action="store_true", help="also rows that are in the results, which stay as they are"
    )
    parser.add_argument("--save", action="store_true", help="with --again: replace the rows in the results")
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    if write_page is not None:
        parser.add_argument("--page", action="store_true", help="write or print the table of the results, and stop")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        part, row = args.worker
        print("RESULT" + json.dumps(_measured(parts[part][row], keras)))
        return
    if write_page is not None and args.page:
        write_page()
        return
    wanted = [(part, row) for part in args.parts for row in parts[part] if not args.rows or row in args.rows]
    for part, row in [] if args.only_print else wanted:
        if row in read(path).get(part, {}) and not args.again:
            continue
        if alone:
            result = run_alone(sys.argv[0], ["--worker", part, row], f"{part}: {row}")
        else:
            result = _measured(parts[part][row], keras)
        if result and result["runs"]:  # else it failed, and said so
            print(f"{part}: {row}, {result['cpu_seconds']} s", flush=True)
            save(args, path, read(path), (part, row), result)
    for part, rows in read(path).items():
        if part in args.parts:
            names = list(dict.fromkeys(name for row_result in rows.values() for name in row_result["runs"][0]))
            print_table(
                part,
                ("row", "runs", *names),
                [(row, *_cells(row_result["runs"], names)) for row, row_result in rows.items()],
            )
            print()


def _measured(runs: Callable[[], Iterator[dict[str, Any]]], keras: bool) -> dict[str, Any]:
    """A row as it is saved."""
    started = time.process_time()
    with recorded() as settings:
        runs_made = list(runs())
    seconds = round(time.process_time() - started, 1)
    return {"runs": runs_made, "cpu_seconds": seconds, "stack": stack(keras), "settings": settings}


def read(path: Path) -> dict[str, Any]:
    """The saved results, which other processes may write to at the same time."""
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return results


def seconds_of(row: dict[str, Any]) -> float:
    """CPU seconds of one run of a saved row."""
    return row["cpu_seconds"] / len(row["runs"])


def save(args: argparse.Namespace, path: Path, results: dict[str, Any], place: Sequence[str], row: Any) -> None:
    """Puts a row into results and their file; with `--again` only if `--save` was asked for.

    Without it, says in what the row differs from the saved one.

    Args:
        args: the command line, of which `again` and `save` count.
        path: results file, JSON.
        results: what it has; changed.
        place: keys of the row.
        row: what is saved there.
    """
    *outer, last = place
    rows = results
    for key in outer:
        rows = rows.setdefault(key, {})
    if args.again and not args.save:
        changes = "; ".join(differences(rows.get(last, {}), row)) or "as saved"
        print(f"{', '.join(place)}: not saved, as --save is missing; {changes}", flush=True)
        return
    rows[last] = row
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """In which figures and settings two states of a row differ, but for seconds."""
    before, now = dict(_figures(old)), dict(_figures(new))
    for name in before.keys() & now.keys():
        old_figure, new_figure = (f"{figures[name]:.4f}" for figures in (before, now))
        if old_figure != new_figure:
            yield f"{name}: {old_figure} before, {new_figure} now"
    words = [{*row.get("settings", [])} for row in (old, new)]
    yield from (f"no longer {line}" for line in words[0] - words[1])
    yield from (f"new: {line}" for line in words[1] - words[0])


def _figures(row: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every figure of a row's runs or draws, with the keys above it."""
    if isinstance(row, dict):
        for key in row.keys() - {"seconds", "cpu_seconds"} if name else row.keys() & {"runs", "draws"}:
            yield from _figures(row[key], f"{name} {key}".strip())
    elif isinstance(row, list):
        for place, part in enumerate(row):
            yield from _figures(part, f"{name} {place}")
    elif isinstance(row, float):
        yield name, row


def _cells(runs: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Number of runs, and mean ± standard deviation of each figure; nothing for texts."""
    cells = [str(len(runs))]
    for name in names:
        values = [run[name] for run in runs if isinstance(run.get(name), float)]
        spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
        cells.append(f"{statistics.mean(values):.3f}{spread}" if values else "")
    return cells


def grid(header: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """A Markdown table, whose columns but the first `words` are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---" * words + "|---:" * (len(header) - words) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)]) + "\n"


def shown(values: Sequence[float], digits: int = 1) -> str:
    """A cell: "71.5 ± 2.0", empty where there are no values."""
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread}"
