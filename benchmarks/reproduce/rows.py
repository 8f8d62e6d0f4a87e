"""Rows of a results file, computed one by one: what scripts of small experiments share."""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from settings import recorded
from stack import stack

from crowdzoo.report.tables import print_table

__all__ = ["Parts", "add_again", "differences", "grid", "run", "save", "shown"]

# part -> row -> what gives its runs: one dictionary a run, of numbers (and of texts that say which run it is)
Parts = dict[str, dict[str, Callable[[], Iterator[dict[str, Any]]]]]


def run(
    path: Path, parts: Parts, doc: str | None, write_page: Callable[[], None] | None = None, keras: bool = True
) -> None:
    """The command line: computes the rows that the file does not have, and prints its tables.

    Each row is saved when it is done, with its settings, its stack and its CPU seconds.

    Args:
        path: results file, JSON.
        parts: all rows. A row without runs is not saved.
        doc: description of the command.
        write_page: writes the page of the saved results, or prints their table, for `--page`; None if there is no page.
        keras: whether the rows train networks.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts), metavar="NAME")
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="of these parts; otherwise all")
    add_again(parser)
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    if write_page is not None:
        parser.add_argument("--page", action="store_true", help="write or print the table of the results, and stop")
    args = parser.parse_args()
    if write_page is not None and args.page:
        write_page()
        return
    saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if not args.only_print:
        for part in args.parts:
            for row, runs in parts[part].items():
                if args.rows and row not in args.rows:
                    continue
                if args.again or row not in saved.get(part, {}):
                    started = time.process_time()
                    with recorded() as settings:
                        runs_made = list(runs())
                    if not runs_made:  # it failed, and said so
                        continue
                    seconds = round(time.process_time() - started, 1)
                    row_result = {
                        "runs": runs_made,
                        "cpu_seconds": seconds,
                        "stack": stack(keras),
                        "settings": settings,
                    }
                    print(f"{part}: {row}, {seconds} s", flush=True)
                    save(args, path, saved, (part, row), row_result)
    for part, rows in saved.items():
        if part in args.parts:
            names = list(dict.fromkeys(name for row_result in rows.values() for name in row_result["runs"][0]))
            print_table(
                part,
                ("row", "runs", *names),
                [(row, *_cells(row_result["runs"], names)) for row, row_result in rows.items()],
            )
            print()


def add_again(parser: argparse.ArgumentParser) -> None:
    """The options of a script whose results are saved."""
    parser.add_argument(
        "--again", action="store_true", help="also rows that are in the results, which stay as they are"
    )
    parser.add_argument("--save", action="store_true", help="with --again: replace the rows in the results")


def save(args: argparse.Namespace, path: Path, results: dict[str, Any], place: Sequence[str], row: Any) -> None:
    """Puts a row into results and their file; with `--again` only if `--save` was asked for.

    Without it, says in what the row differs from the saved one.

    Args:
        args: the command line; see `add_again`.
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
