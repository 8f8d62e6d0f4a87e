"""Writes the tables of docs/results.md, docs/papers/ and benchmarks/results/README.md; runs nothing.

    python benchmarks/reproduce/pages.py              # all pages
    python benchmarks/reproduce/pages.py conal        # one, and its counts

A table is between `<!-- table: NAME -->` and `<!-- end -->`; the words around it are written by hand.

Marks of published figures. ✓ reproduced: the means differ by at most one standard deviation, the paper's or that of our
runs, whichever is larger (LIA: of our draws). ~ order only: they do not, but the row is on the same side of the table's
baseline, in the same training, as in the paper (the baseline itself: on the same side of the paper's own method). ✗ not
reproduced. – not run.
Where data or features are not the paper's, equal numbers would be chance, and ~ is the best mark.
"""

import argparse
import dataclasses
import functools
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import deep_methods as deep
import geo_crowd_net as geo
import imagenet_features as images
import lia
import numpy as np
import recipe
import starts
from intervals import shown as interval
from published_rows import ROWS, SPAM, published
from rows import grid, read, seconds_of, shown

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import crowds  # noqa: E402  it is in the folder above, which Python does not search by itself
import gold  # noqa: E402  likewise

__all__ = ["MARKS", "PAGES", "TABLES", "Cell", "Table", "counts", "verdict", "written"]

DOCS = HERE.parents[1] / "docs"
RESULTS = HERE.parent / "results"
PAPERS = ("lia", "rodrigues", "conal", "waum", "ibrahim", "zhang")
PAGES = {
    "results": DOCS / "results.md",
    "tables": RESULTS / "README.md",
    "papers": DOCS / "papers" / "README.md",
    **{name: DOCS / "papers" / f"{name}.md" for name in PAPERS},
}
MARKED = re.compile(r"(<!-- table: ([\w ]+) -->\n).*?(<!-- end -->)", re.S)
MARKS = {"reproduced": "✓", "order": "~", "not": "✗", "missing": "–"}
ROUNDING = 0.05  # published figures have one decimal
Runs = tuple[float, ...]
TABLES: dict[str, Callable[[], str]] = {}


@functools.cache
def saved(name: str) -> dict[str, Any]:
    """One file of benchmarks/results."""
    return read(RESULTS / f"{name}.json")


def table(make: Callable[[], str]) -> Callable[[], str]:
    """Enters a function under its name with spaces."""
    TABLES[make.__name__.replace("_", " ")] = make
    return make


def per_cent(row: dict[str, Any], figure: str) -> Runs:
    """A figure of the runs of a row, times 100."""
    return tuple(100 * run[figure] for run in row["runs"])


# === Verdicts on published figures ===


def verdict(published: float, draws: Sequence[float], order: bool | None = None, spread: float = 0.0) -> str:
    """Whether a published mean is reproduced: see the head of this file.

    Args:
        published: the paper's figure.
        draws: ours, one per draw.
        order: whether the row is on the paper's side of the baseline; None where it is the baseline itself.
        spread: the published standard deviation, or 0.
    """
    if not draws:
        return "missing"
    ours = statistics.stdev(draws) if len(draws) > 1 else 0.0
    if abs(statistics.mean(draws) - published) <= max(ours, spread, ROUNDING) + 1e-9:
        return "reproduced"
    return "order" if order else "not"


@dataclasses.dataclass(frozen=True)
class Cell:
    """A published figure.

    Attributes:
        row: the paper's name of the row.
        published: the figure, in per cent.
        draws: ours, one per run; several groups where it was run on several sets that may be the paper's one.
        spread: its published standard deviation, or 0.
        column: the figure's name, where a table has several.
        against: ours of the row that the order is judged against, where that is not the table's.
    """

    row: str
    published: float
    draws: tuple[Runs, ...] = ()
    spread: float = 0.0
    column: str = ""
    against: tuple[Runs, ...] = ()


@dataclasses.dataclass(frozen=True)
class Table:
    """Figures of a paper that are judged together.

    Attributes:
        title: what the counts call it.
        cells: the figures.
        baseline: row against which the order is judged.
        method: row against which the baseline's own order is judged.
        same_data: whether data and features are the paper's. If not, "order" is the best verdict.
        uncounted: a row that another table counts, here for the order only.
    """

    title: str
    cells: tuple[Cell, ...]
    baseline: str
    method: str
    same_data: bool = True
    uncounted: str = ""

    def verdicts(self) -> list[str]:
        """One for each figure that counts."""
        return [self.verdict(cell) for cell in self.cells if cell.row != self.uncounted]

    def verdict(self, cell: Cell) -> str:
        """Of one figure."""
        if not any(cell.draws):
            return "missing"
        order = self._in_order(cell)
        verdicts = {verdict(cell.published, group, order, cell.spread) for group in cell.draws}
        if verdicts == {"reproduced"} and self.same_data:
            return "reproduced"
        return "order" if order else "not"

    def _in_order(self, cell: Cell) -> bool:
        """Whether the row is on the paper's side of the baseline, in all groups; equal to it counts as both."""
        name = self.method if cell.row == self.baseline else self.baseline
        same_column = [first for first in self.cells if (first.row, first.column) == (name, cell.column)]
        theirs = cell.against or same_column[0].draws
        published = cell.published - same_column[0].published
        return all(
            published * (statistics.mean(ours) - statistics.mean(other)) >= 0
            for ours, other in zip(cell.draws, theirs, strict=True)
        )

    def lines(self) -> list[list[str]]:
        """Row, published and ours with the mark."""
        rows = []
        for cell in self.cells:
            digits = max(1, len(f"{cell.published:g}".partition(".")[2]))
            ours = "; ".join(shown(group, digits) for group in cell.draws)
            published = f"{cell.published:.{digits}f}" + (f" ± {cell.spread:.2f}" if cell.spread else "")
            mark = "" if cell.row == self.uncounted else MARKS[self.verdict(cell)]
            rows.append([f"{cell.row} {cell.column}".strip(), published, f"{ours} {mark}".strip()])
        return rows


def counts(tables: dict[str, list[str]]) -> str:
    """How many figures of each table are reproduced."""
    rows = {**tables, "all": [mark for marks in tables.values() for mark in marks]} if len(tables) > 1 else tables
    return grid(
        ["figures of", "published", *(f"{name} {mark}" for name, mark in MARKS.items())],
        [(name, len(marks), *(marks.count(mark) for mark in MARKS)) for name, marks in rows.items()],
    )


# === Aggregation ===

CROWD_COLUMNS = ("method", "crowds", "families", "clearly below", "worst", "off", "sure", "right")


@table
def crowds_all() -> str:
    """The methods that crowdzoo has, and the columns that a choice depends on."""
    columns = [crowds.HEADER.index(name) for name in CROWD_COLUMNS]
    rows = crowds.summary(_crowds(), tuple(crowds.CROWDS))
    shown_rows = [row for row in rows if row[0] not in (crowds.POOL, *crowds.BASELINES)]
    return grid(CROWD_COLUMNS, [[row[column] for column in columns] for row in shown_rows])


@table
def crowds_by_kind() -> str:
    header, *rows = crowds.by_kind(_crowds())
    return grid(header, rows)


def _crowds() -> dict[str, Any]:
    """Without `robust` on crowds that it has learnt from."""
    return {
        crowd: {method: cell for method, cell in row.items() if method != "robust"}
        for crowd, row in saved("crowds").items()
    }


@table
def calibration() -> str:
    header = ["gold tasks, method", "calibrated", "before", "annotator the gold picks", "trees on the votes", "covers"]
    rows = []
    for name, row in sorted(saved("calibration")["llm-judges"].items(), key=lambda item: int(item[0].split(", ")[1])):
        method, number = name.split(", ")
        figures = [np.mean([run[key] for run in row["runs"]]) for key in ("accuracy", "raw", "judge", "trees")]
        cover = np.mean([run["covered"] for run in row["runs"]])
        rows.append([f"{number}, `{method}`", *(f"{value:.3f}" for value in figures), f"{cover:.3f}"])
    return grid(header, rows)


@table
def gold_tasks() -> str:
    parts = {part.split()[1]: gold.shown(rows) for part, rows in saved("gold").items() if part.startswith("real")}
    return grid(["gold tasks", *next(iter(parts.values()))], [(each, *row.values()) for each, row in parts.items()])


@table
def gold_simulated() -> str:
    keys = ("above before", "above, by hierarchical-dawid-skene", "above", "sure", "covered")
    rows = [(sort, *(f"{row[key]:.3f}" for key in keys)) for sort, row in saved("gold")["simulated"].items()]
    return grid(["annotators", "`robust`", "`hierarchical-dawid-skene`", "50 gold tasks", "sure", "covers"], rows)


@table
def coverage() -> str:
    rows = []
    for cell, row in saved("interval_coverage")["calibration"].items():
        means = [np.mean([run[name] for run in row["runs"]]) for name in ("covered", "bias", "width")]
        rows.append([f"calibration: {cell}", f"{means[0]:.3f}", f"{means[1]:+.4f}", f"{means[2]:.3f}"])
    return grid(["interval", "covers", "bias", "width"], rows)


# === Deep methods ===


@table
def deep_methods() -> str:
    """Mean accuracy of each method on the nine sets, Music and LabelMe, under crowdzoo's names."""
    nine, results = recipe.complete(saved("recipe")), saved("reproduce_deep")
    rows = []
    for row in recipe.COMPARED:
        means = [statistics.mean(per_cent(results[name][row], "last")) for name in ("music", "labelme")]
        figures = [recipe.average(nine, row), *means, seconds_of(results["labelme"][row])]
        method = ", ".join(filter(None, (f"`{deep.ROWS[row].method}`", deep.ROWS[row].labels)))
        rows.append([method, *(f"{figure:.1f}" for figure in figures)])
    return grid(["method", "nine sets", "Music", "LabelMe", "CPU s"], rows)


@table
def nine_sets() -> str:
    """By their mean, the best first."""
    results = recipe.complete(saved("recipe"))
    rows = []
    for row in sorted(recipe.COMPARED, key=lambda row: -recipe.average(results, row)):
        apart, half = recipe.compared(results, row)
        seconds = np.mean([run["cpu_seconds"] for rows in results.values() for run in rows[row]])
        difference = "" if row == recipe.RECIPE else f"{-apart:+.1f} ± {half:.1f}"
        means = (f"{100 * np.mean([run['test'] for run in rows[row]]):.1f}" for rows in results.values())
        rows.append([row, f"{recipe.average(results, row):.1f}", difference, *means, f"{seconds:.1f}"])
    return grid(["trained by", "mean", "less cross-fitted EM", *results, "CPU s"], rows)


@table
def music_and_labelme() -> str:
    results = saved("reproduce_deep")
    rows = []
    for row in (row for row in deep.ROWS if row not in STRENGTHS):
        cells = []
        for name in ("music", "labelme"):
            row_result, floor = results[name][row], results[name]["DL-MV"]
            cells += [
                deep.mean_and_deviation(row_result, "last"),
                "" if row == "DL-MV" else deep.against(name, row_result, floor),
            ]
        tasks = deep.mean_and_deviation(results["labelme"][row], "tasks")
        rows.append([row, *cells, tasks, f"{seconds_of(results['labelme'][row]):.1f}"])
    header = ["trained by", "Music", "less DL-MV", "LabelMe", "less DL-MV", "LabelMe, own tasks", "CPU s"]
    return grid(header, rows)


@table
def starts_development() -> str:
    """Accuracy of each start, and the runs that lose a class."""
    parts = [saved("starts")[starts.cell(name, rate)] for name in starts.DEVELOPMENT for rate in starts.RATES]
    rows = []
    for method in starts.STARTED:
        cells = [
            _of_start([part[f"{method}: {starts.called(start)}"] for part in parts]) for start in starts.CANDIDATES
        ]
        default = starts.CANDIDATES.index(starts.AFTER[method])
        cells[default] = f"**{cells[default]}**"
        rows.append([_method(method), *cells])
    return grid(["method", "as in the papers", "1/2", ".65", ".8"], rows)


@table
def starts_without() -> str:
    """The methods that have no start, by crowd."""
    rows = []
    for method in starts.COUNTED:
        cells = [
            [part[method] for rate in starts.RATES if method in (part := saved("starts")[starts.cell(name, rate)])]
            for name in starts.DEVELOPMENT
        ]
        rows.append([_method(method), *(_of_start(part) if part else "" for part in cells)])
    return grid(["method", *starts.DEVELOPMENT], rows)


@table
def starts_confirmation() -> str:
    """The default against the one before and the papers' start, paired; trained by `fit` where that was run."""
    rows, by_fit = [], saved("starts")["by fit"]
    for method, after in starts.AFTER.items():
        before = starts.BEFORE[method]
        against = [_less(method, after, start) if after != start else "" for start in (before, None)]
        lost = [
            sum(run["lost"] > 0 for row_result in _confirmed(method, start) for run in row_result["runs"])
            for start in (None, after)
        ]
        fits = [by_fit.get(f"{method}: {starts.called(start)}") for start in (before, after)]
        cells = [f"{_accuracy(row)} ({_lost(row)})" if row else "" for row in fits]
        rows.append([_method(method), starts.called(before), f"{after:g}", *against, *lost, *cells])
    header = ["method", "before", "now", "now less before", "now less papers", "papers lose", "now lose"]
    return grid([*header, "`fit`, before", "`fit`, now"], rows)


def _confirmed(method: str, start: float | None) -> list[dict[str, Any]]:
    """Rows of the confirmation, set by set."""
    row = f"{method}: {starts.called(start)}"
    return [saved("starts")[starts.cell(name, rate)][row] for name in starts.OTHERS for rate in starts.OTHER_RATES]


def _method(name: str) -> str:
    method, *more = name.split()
    return " ".join([f"`{method}`", *more])


def _of_start(cells: Sequence[dict[str, Any]]) -> str:
    """Mean accuracy over the cells, and how many of all runs lose a class."""
    runs = [run for cell in cells for run in cell["runs"]]
    mean = statistics.mean(statistics.mean(per_cent(cell, "test")) for cell in cells)
    return f"{mean:.1f}, {sum(run['lost'] > 0 for run in runs)} of {len(runs)}"


def _less(method: str, start: float | None, other: float | None) -> str:
    """Paired difference of two starts; a set is a group, a run the mean of its rates."""
    rates_of_start, rates_of_other = (
        np.array([per_cent(row, "test") for row in _confirmed(method, value)]) for value in (start, other)
    )
    return interval(
        [geo.Runs(rates.mean(axis=0)) for rates in np.split(rates_of_start - rates_of_other, len(starts.OTHERS))]
    )


def _accuracy(row: dict[str, Any]) -> str:
    return f"{statistics.mean(per_cent(row, 'test')):.1f}"


def _lost(row: dict[str, Any]) -> str:
    return f"{sum(run['lost'] > 0 for run in row['runs'])} of {len(row['runs'])}"


@table
def imagenet_features() -> str:
    results = saved("imagenet_features")
    rows = []
    for row in images.TRAINED:
        cells = [
            cell for name in ("labelme-imagenet-folds", "bluebirds-imagenet-folds")
            for cell in images.figures(name, results[name], row)
        ]  # fmt: skip
        rows.append([row, *cells, f"{seconds_of(results['labelme-imagenet-folds'][row]):.1f}"])
    header = ["LabelMe", "less DL-MV", "of the gap", "Blue Birds", "less DL-MV", "of the gap", "CPU s"]
    return grid(["trained by", *header], rows)


# === CoNAL ===

STRENGTHS = ("CoNAL 0", "CoNAL 1e-4", "CoNAL 1e-6")  # table 2; 1e-5 is the CoNAL of table 1
SIMULATED = ("gold", "DL-MV", "DL-EM (AggNet)", "CL MW", "CoNAL", "CoNAL, scale 1")


def conal_tables() -> list[Table]:
    rows = [row for row in published("conal", "music") if row not in STRENGTHS]
    tables = []
    both = (1, rows, "DL-MV", "CoNAL"), (2, ("CoNAL", *STRENGTHS), "CoNAL", STRENGTHS[0])
    for number, names, baseline, method in both:
        for name, title in (("music", "Music"), ("labelme", "LabelMe")):
            cells = tuple(_conal_cell(name, row, number == 1) for row in names)
            uncounted = "CoNAL" if number == 2 else ""
            tables.append(Table(f"table {number}, {title}", cells, baseline, method, name == "music", uncounted))
    classes = saved("conal")["classes"]
    cells = tuple(
        Cell(row, value, (per_cent(classes[row], "opencountry"),))
        for row, (value,) in published("conal", "open country").items()
    )
    return [*tables, Table("open country, LabelMe", cells, "Max-MIG", "CoNAL", same_data=False)]


def _conal_cell(name: str, row: str, authors: bool) -> Cell:
    """By the authors' training where it was run and asked for, at the epoch that the paper shows."""
    there, figure, results = name, "last", saved("reproduce_deep")
    if name == "music":
        there, figure = ("music-conal" if authors and row in results["music-conal"] else "music"), "best"
    runs, floor = (per_cent(results[there][row_name], figure) for row_name in (row, "DL-MV"))
    against = (floor,) if authors and row != "DL-MV" else ()
    mean, spread = published("conal", name)[row]
    return Cell(row, mean, (runs,), spread, against=against)


@table
def conal_counts() -> str:
    return counts({table.title: table.verdicts() for table in conal_tables()})


@table
def conal_tables_1_and_2() -> str:
    first, second, strengths, also, _ = conal_tables()
    lines = [*zip(first.lines(), second.lines(), strict=True)]
    lines += [*zip(strengths.lines()[1:], also.lines()[1:], strict=True)]
    rows = [[music[0], *music[1:], *labelme[1:]] for music, labelme in lines]
    return grid(["row", "Music, paper", "ours", "LabelMe, paper", "ours"], rows)


@table
def conal_simulated() -> str:
    results, rows = saved("reproduce_deep"), []
    for name in (name for name in deep.SIMULATED if name.endswith("share 0.5")):
        means = (statistics.mean(per_cent(results[name][row], "last")) for row in SIMULATED)
        rows.append([name.removesuffix(", share 0.5"), *(f"{mean:.1f}" for mean in means)])
    return grid(["crowd", *SIMULATED], rows)


# === Rodrigues and Pereira ===

# table -> results file, part and figures; baseline and method
RODRIGUES: dict[str, tuple[Any, ...]] = {
    "table 1, LabelMe": ("crowd_layer", "thirty runs", ("last",), "DL-MV", "CL (MW)"),
    "table 1, Dogs vs. Cats": ("crowd_layer", "five annotators", ("last",), "DL-MV", "CL (MW)"),
    "table 2, MovieReviews": ("movie_reviews", "bag of words", ("R2",), "DL-MEAN", "CL (B)"),
    "table 3, CoNLL-2003": ("reproduce_ner", "CoNLL-2003", ("precision", "recall", "f1"), "DL-MV", "CL (MW)"),
}


def rodrigues_tables() -> list[Table]:
    tables = []
    for title, (name, part, figures, baseline, method) in RODRIGUES.items():
        cells = []
        for row, values in published("rodrigues", title).items():
            ours = saved(name)[part][ROWS["rodrigues"][title][row].row]
            if len(figures) > 1:
                cells += [
                    Cell(row, value, (per_cent(ours, figure),), column=figure)
                    for figure, value in zip(figures, values, strict=True)
                ]
            else:  # each value is a run
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                mean = round(statistics.mean(values), 2)
                cells.append(Cell(row, mean, (per_cent(ours, figures[0]),), round(spread, 2)))
        tables.append(Table(title.rpartition(", ")[2], tuple(cells), baseline, method, same_data=False))
    return tables


@table
def rodrigues_counts() -> str:
    return counts({table.title: table.verdicts() for table in rodrigues_tables()})


@table
def rodrigues_figures() -> str:
    rows = [[f"{table.title}, {row}", *cells] for table in rodrigues_tables() for row, *cells in table.lines()]
    return grid(["set, row", "authors' notebook", "ours"], rows)


@table
def rodrigues_starts() -> str:
    parts = saved("crowd_layer")
    rows = [
        [row, shown(per_cent(row_result, "last")), shown([run["matrices"] for run in row_result["runs"]], 2),
         shown([run["told apart"] for run in row_result["runs"]], 2)]
        for row, row_result in parts["identity"].items()
    ]  # fmt: skip
    return grid(["start", "accuracy", "matrices", "told apart"], rows)


@table
def rodrigues_other_rows() -> str:
    """Rows without a published figure."""
    lines = []
    for title, (name, part, figures, *_) in RODRIGUES.items():
        for row, how in ROWS["rodrigues"][title].items():
            if isinstance(how, str) or row in published("rodrigues", title) or how.row not in saved(name)[part]:
                continue
            ours = saved(name)[part][how.row]
            figures_shown = (shown(per_cent(ours, figure)) for figure in figures)
            lines.append((f"{title.rpartition(', ')[2]}, {row}", len(ours["runs"]), " / ".join(figures_shown)))
    return grid(["set, row", "runs", "ours"], lines)


# === WAUM ===

CROWDS = ("neighbours", "small classifiers", "three classifiers")


def waum_tables() -> list[Table]:
    figures = published("waum", "CIFAR-10H")
    cifar = [Cell(row, accuracy, spread=spread, column="accuracy") for row, (accuracy, spread, _) in figures.items()]
    cifar += [Cell(row, round(100 * error, 1), column="ECE") for row, (*_, error) in figures.items()]
    parts = [saved("waum")[f"circles, {crowd}"] for crowd in CROWDS]
    circles = tuple(
        Cell(row, round(100 * value, 1), tuple(per_cent(part[row], "accuracy") for part in parts))
        for row, (value,) in published("waum", "three circles").items()
    )
    return [
        Table("CIFAR-10H", tuple(cifar), "majority vote", "WAUM"),
        Table("three circles", circles, "majority vote", "WAUM", same_data=False),
    ]


@table
def waum_counts() -> str:
    return counts({table.title: table.verdicts() for table in waum_tables()})


@table
def waum_circles() -> str:
    parts, row = (saved("waum")[f"circles, {crowd}"] for crowd in CROWDS), SPAM
    ours = "; ".join(shown(per_cent(part[row], "accuracy")) for part in parts)
    return grid(["row", "paper", "ours, three crowds"], [*waum_tables()[1].lines(), (row, "", ours)])


@table
def waum_rankings() -> str:
    rows = []
    parts = saved("waum_variants")
    for name, title in (("labelme", "LabelMe"), ("music", "Music")):
        pruned = {row: shown(per_cent(row_result, "accuracy")) for row, row_result in parts[f"pruned, {name}"].items()}
        for row, row_result in parts[f"ranking, {name}"].items():
            figures = [shown(per_cent(row_result, figure)) for figure in ("finds wrong votes", "worst 10%")]
            rows.append([f"{title}, {row}", *figures, pruned.get(row, "")])
        rows.append([f"{title}, nothing pruned", "", "", pruned["nothing"]])
    return grid(["set, ranked by", "finds", "votes right, worst 10 %", "pruned"], rows)


@table
def waum_music() -> str:
    rows = [
        [row, *(shown(per_cent(row_result, figure)) for figure in ("accuracy", "ece"))]
        for row, row_result in saved("waum")["training"].items()
    ]
    return grid(["trained on", "accuracy", "calibration error"], rows)


# === LIA ===

# published row -> its name in the paper, and our rows with which label; the first that has a figure counts
LIA = {
    "majority": ("MAJ", ("majority", "posterior")),
    "MAJ*-E": ("MAJ\\*-E", ("MAJ*-E", "h")),
    "MAJ*": ("MAJ\\*", ("MAJ*", "h")),
    "MMCE": ("MMCE", ("MMCE, ridge per label", "posterior")),
    "MMCE*-E": ("MMCE\\*-E", ("MMCE*-E", "h")),
    "MMCE*": ("MMCE\\*", ("MMCE*", "h")),
    "Snorkel": ("Snorkel", ("Snorkel", "posterior")),
    "MeTaL": ("MeTaL", ("MeTaL", "posterior")),
    "LIA-E": ("LIA-E", ("LIA-E, 2 rounds", "h"), ("LIA-E", "posterior")),
    "LIA": ("LIA", ("LIA, 2 rounds", "h"), ("LIA", "posterior")),
    "LIA-ML": ("LIA-ML", ("LIA-ML", "posterior")),
}
PUBLIC = ("bluebirds", "wordsim", "rte")


def _draws(name: str, row: str, redundancy: int, figure: str) -> list[float]:
    """Per cent, one a draw."""
    runs = saved("reproduce_lia")[name].get(row, {"runs": []})["runs"]
    return [100 * run[f"{redundancy}: {figure}"] for run in runs if f"{redundancy}: {figure}" in run]


def lia_judged(name: str, row: str, figures: Sequence[float], suffix: str = "") -> list[tuple[list[float], str]]:
    """Ours that counts at each redundancy, and its verdict by the side of majority vote on the same draws."""
    verdicts = []
    for column, redundancy in enumerate(lia.REDUNDANCIES[name]):
        lines = (_draws(name, ours, redundancy, label + suffix) for ours, label in LIA[row][1:])
        draws = next((line for line in lines if line), [])
        order = None
        if draws and row != "majority":
            votes = _draws(name, "majority", redundancy, "posterior")[: len(draws)]
            apart = round(statistics.mean(draws) - statistics.mean(votes), 9)
            order = (figures[column] - published("lia", name)["majority"][column]) * apart >= 0
        mark = verdict(figures[column], draws, order)
        if name in lia.MEDICAL and draws:  # of which only the order can be compared
            mark = "order" if order else "not"
        verdicts.append((draws, mark))
    return verdicts


@table
def lia_counts() -> str:
    counts_by_table = {
        f"table 2, {lia.TITLES[name]}": [
            mark for row, figures in published("lia", name).items() for _, mark in lia_judged(name, row, figures)
        ]
        for name in lia.SETS
    }
    alone = [
        mark for name, figures in published("lia", "table 3").items()
        for _, mark in lia_judged(name, "LIA", figures, lia.EM_ALONE)
    ]  # fmt: skip
    return counts({**counts_by_table, "table 3": alone})


@table
def lia_table_2() -> str:
    """The rows of the three public sets that an aggregation method or LIA has."""
    places = [(name, r) for name in PUBLIC for r in lia.REDUNDANCIES[name]]
    rows = []
    for row in ("majority", "MAJ*-E", "MAJ*", "MMCE", "MMCE*-E", "MMCE*", "Snorkel", "MeTaL", "LIA-E", "LIA"):
        figures = {name: published("lia", name)[row] for name in PUBLIC}
        rows.append([f"{LIA[row][0]}, paper", *(f"{value:.1f}" for values in figures.values() for value in values)])
        judged = [cell for name, values in figures.items() for cell in lia_judged(name, row, values)]
        rows.append(
            [f"{LIA[row][0]}, ours", *(f"{statistics.mean(draws):.1f} {MARKS[mark]}" for draws, mark in judged)]
        )
    for row in ("LIA, ridge 0.1", "Dawid-Skene"):
        rows.append([row, *(f"{statistics.mean(_draws(name, row, r, 'posterior')):.1f}" for name, r in places)])
    return grid(["row", *(f"{lia.TITLES[name]}, {r}" for name, r in places)], rows)


# === GeoCrowdNet ===

REAL = {
    "gold": "true labels", "DL-MV": "majority vote", "DL-EM (AggNet)": "AggNet", "CL MW": "CrowdLayer",
    "Anno-Reg": "TraceReg", "Max-MIG": "Max-MIG", "DoctorNet": "DoctorNet", "CoNAL": "CoNAL",
    "CCEM": "no regularization", "GeoCrowdNet F": "GeoCrowdNet(F)", "GeoCrowdNet W": "GeoCrowdNet(W)",
}  # fmt: skip


@table
def ibrahim_recovery() -> str:
    rows = []
    for start in geo.STARTS:
        for crowd in geo.CROWDS:
            plain_row, *regularized = (
                geo.recovered(saved("geo_crowd_net"), crowd, penalty, start) for penalty in (None, "F", "W")
            )
            plain = np.array([run["l1"] for run in plain_row["runs"]])
            apart = [
                interval([geo.Runs(np.array([run["l1"] for run in row["runs"]]) - plain)], 3) for row in regularized
            ]
            begun = "default" if start is None else f"{start:g}"
            rows.append([f"{crowd}, {begun}", *(geo.level(row, "l1") for row in (plain_row, *regularized)), *apart])
    return grid(["crowd, start", "CCEM", "F", "W", "F less CCEM", "W less CCEM"], rows)


@table
def ibrahim_real_sets() -> str:
    results = saved("reproduce_deep")
    rows = [[name, *(shown(per_cent(results[data][row], "last")) for data in ("labelme", "music"))]
            for row, name in REAL.items()]  # fmt: skip
    return grid(["trained by", "LabelMe", "Music"], rows)


@table
def zhang_masks() -> str:
    """Dice, and paired differences from the better STAPLE (of one mask an image from the base on it)."""
    rows = []
    for part, part_rows in saved("segmentation").items():
        runs = {row: np.array(per_cent(row_result, "dice")) for row, row_result in part_rows.items()}
        best = max((row for row in runs if "STAPLE" in row), key=lambda row: runs[row].mean(), default="pixel votes")
        for row, dice in runs.items():
            apart = "" if row == best else interval([geo.Runs(dice - runs[best])])
            is_aggregated = "aggregated" in part_rows[row]["runs"][0]
            own = f"{np.mean(per_cent(part_rows[row], 'aggregated')):.1f}" if is_aggregated else ""
            rows.append([f"{part}: {row}", own, shown(tuple(dice)), apart])
    return grid(["drawn by: learned from", "of the masks", "of the base", "less the better STAPLE"], rows)


# === Pages ===


@table
def papers_counts() -> str:
    rows, total = [], Counter[int]()
    for name in PAPERS:
        line = [0] * 5
        if f"{name} counts" in TABLES:
            line = [int(cell) for cell in TABLES[f"{name} counts"]().splitlines()[-1].split("|")[2:-1]]
        total.update(dict(enumerate(line)))
        rows.append([f"[{name}]({name}.md)", *line])
    rows.append(["all", *(total[place] for place in range(5))])
    return grid(["page", "published", "reproduced", "order only", "not reproduced", "not run"], rows)


def rows_of(paper: str) -> str:
    """Which command measures which rows of a paper, and why others have none."""
    lines = []
    for title, rows in ROWS[paper].items():
        groups: dict[str, list[str]] = {}
        for row, how in rows.items():
            command = how if isinstance(how, str) else f"`{how.command}`"
            groups.setdefault(command, []).append(row.replace("*", r"\*"))
        lines += [(title, ", ".join(names), command) for command, names in groups.items()]
    return grid(["table", "rows", "measured by, or why not"], lines, words=3)


for _paper in ROWS:
    TABLES[f"{_paper} rows"] = functools.partial(rows_of, _paper)


def written(text: str) -> str:
    """A page with its tables as the saved results have them."""
    return MARKED.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(PAGES)}; otherwise all")
    for name in parser.parse_args().pages or PAGES:
        PAGES[name].write_text(written(PAGES[name].read_text(encoding="utf-8")), encoding="utf-8")
        print(f"written: {PAGES[name].relative_to(DOCS.parent)}")
        if f"{name} counts" in TABLES:
            print(TABLES[f"{name} counts"]())


if __name__ == "__main__":
    main()
