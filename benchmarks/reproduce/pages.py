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
import json
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
import published_rows
import recipe
import starts
from intervals import shown as interval
from rows import grid, shown

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
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return results


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
        figures = [recipe.average(nine, row, "test"), *means, results["labelme"][row]["cpu_seconds_a_training"]]
        method = ", ".join(filter(None, (f"`{deep.ROWS[row].method}`", deep.ROWS[row].labels)))
        rows.append([method, *(f"{figure:.1f}" for figure in figures)])
    return grid(["method", "nine sets", "Music", "LabelMe", "CPU s"], rows)


@table
def nine_sets() -> str:
    """By their mean, the best first."""
    results = recipe.complete(saved("recipe"))
    lines = {line["row"]: line for line in recipe.compared(results, "test")}
    rows = []
    for row in sorted(recipe.COMPARED, key=lambda row: -recipe.average(results, row, "test")):
        line = lines.get(row)
        seconds = np.mean([run["cpu_seconds"] for rows in results.values() for run in rows[row]])
        difference = f"{-line['difference']:+.1f} ± {line['half']:.1f}" if line else ""
        means = (f"{100 * np.mean([run['test'] for run in rows[row]]):.1f}" for rows in results.values())
        rows.append([row, f"{recipe.average(results, row, 'test'):.1f}", difference, *means, f"{seconds:.1f}"])
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
        rows.append([row, *cells, tasks, f"{results['labelme'][row]['cpu_seconds_a_training']:.1f}"])
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
    rows, by_fit = [], saved("starts").get("by fit", {})
    for method, after in starts.AFTER.items():
        before = starts.BEFORE[method]
        against = [_less(method, after, start) if after != start else "" for start in (before, None)]
        lost = [
            sum(run["lost"] > 0 for row_result in _confirmed(method, start) for run in row_result["runs"])
            for start in (None, after)
        ]
        fits = [by_fit.get(f"{method}: {starts.called(start)}") for start in (before, after)] if by_fit else []
        cells = [f"{_accuracy(row_result)} ({_lost(row_result)})" if row_result else "" for row_result in fits]
        rows.append([_method(method), starts.called(before), f"{after:g}", *against, *lost, *cells])
    header = ["method", "before", "now", "now less before", "now less papers", "papers lose", "now lose"]
    return grid([*header, *(["`fit`, before", "`fit`, now"] if by_fit else [])], rows)


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
        rows.append([row, *cells, f"{results['labelme-imagenet-folds'][row]['cpu_seconds_a_training']:.1f}"])
    header = ["LabelMe", "less DL-MV", "of the gap", "Blue Birds", "less DL-MV", "of the gap", "CPU s"]
    return grid(["trained by", *header], rows)


# === CoNAL ===

STRENGTHS = ("CoNAL 0", "CoNAL 1e-4", "CoNAL 1e-6")  # table 2; 1e-5 is the CoNAL of table 1
# Chu, Ma, Wang, AAAI 2021, tables 1 and 2: standard deviations of five runs, of `CONAL_PAPER`
SPREADS = {
    "music": {
        "DL-MV": 0.41, "CL MW": 0.53, "DoctorNet": 0.47, "Anno-Reg": 0.36, "Max-MIG": 0.33, "DL-GLAD": 0.37,
        "DL-WC": 0.24, "DL-EM (AggNet)": 0.41, "CoNAL": 0.42, "CoNAL 0": 0.31, "CoNAL 1e-4": 0.25, "CoNAL 1e-6": 0.37,
    },
    "labelme": {
        "DL-MV": 0.34, "CL MW": 0.52, "DoctorNet": 0.43, "Anno-Reg": 0.48, "Max-MIG": 0.61, "DL-GLAD": 0.34,
        "DL-WC": 0.33, "DL-EM (AggNet)": 0.27, "CoNAL": 0.55, "CoNAL 0": 0.38, "CoNAL 1e-4": 0.41, "CoNAL 1e-6": 0.47,
    },
}  # fmt: skip
OPEN_COUNTRY = {"CoNAL": 67.21, "Max-MIG": 54.19}
SIMULATED = ("gold", "DL-MV", "DL-EM (AggNet)", "CL MW", "CoNAL", "CoNAL, scale 1")


def conal_tables() -> list[Table]:
    rows = [row for row in deep.CONAL_PAPER["music"] if row not in STRENGTHS]
    tables = []
    both = (1, rows, "DL-MV", "CoNAL"), (2, ("CoNAL", *STRENGTHS), "CoNAL", STRENGTHS[0])
    for number, names, baseline, method in both:
        for name, title in (("music", "Music"), ("labelme", "LabelMe")):
            cells = tuple(_conal_cell(name, row, number == 1) for row in names)
            uncounted = "CoNAL" if number == 2 else ""
            tables.append(Table(f"table {number}, {title}", cells, baseline, method, name == "music", uncounted))
    classes = saved("conal")["classes"]
    cells = tuple(Cell(row, value, (per_cent(classes[row], "opencountry"),)) for row, value in OPEN_COUNTRY.items())
    return [*tables, Table("open country, LabelMe", cells, "Max-MIG", "CoNAL", same_data=False)]


def _conal_cell(name: str, row: str, authors: bool) -> Cell:
    """By the authors' training where it was run and asked for, at the epoch that the paper shows."""
    there, figure, results = name, "last", saved("reproduce_deep")
    if name == "music":
        there, figure = ("music-conal" if authors and row in results["music-conal"] else "music"), "best"
    runs, floor = (per_cent(results[there][row_name], figure) for row_name in (row, "DL-MV"))
    against = (floor,) if authors and row != "DL-MV" else ()
    return Cell(row, deep.CONAL_PAPER[name][row], (runs,), SPREADS[name][row], against=against)


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

# The notebooks of the authors' repository (fmpr/CrowdLayer), each stored run: the paper's name, ours, the figures
NOTEBOOK_LABELME = {
    "gold": ("gold", 91.2, 89.4), "DL-MV": ("DL-MV", 77.2, 76.4), "DL-DS": ("DL-DS", 81.2, 81.0),
    "DL-EM": ("DL-EM (AggNet)", 82.8, 82.7), "DL-DN": ("DoctorNet", 80.98), "DL-WDN": ("WDN", 81.73),
    "CL (MW)": ("CL MW", 83.9, 82.2),
}  # fmt: skip
NOTEBOOK_PETS = {"gold": 84.1, "DL-MV": 70.2, "DL-DS": 77.2, "DL-EM": 80.5, "CL (MW)": 81.2}
NOTEBOOK_RATINGS = {"gold": ("gold", 45.3), "DL-MEAN": ("mean", 30.1), "CL (B)": ("CL (B)", 40.0)}
NOTEBOOK_NER = {
    "gold": ("gold", 70.28, 72.45, 71.35), "DL-MV": ("DL-MV", 64.48, 44.54, 52.68),
    "CL (MW)": ("CL MW", 65.21, 59.27, 62.10),
}  # fmt: skip


def rodrigues_tables() -> list[Table]:
    thirty, five = (saved("crowd_layer")[part] for part in ("thirty runs", "five annotators"))
    ratings, ner = saved("movie_reviews")["bag of words"], saved("reproduce_ner")
    labelme = tuple(
        Cell(
            row, round(statistics.mean(runs), 2), (per_cent(thirty[ours], "last"),),
            round(statistics.stdev(runs), 2) if len(runs) > 1 else 0.0,
        )
        for row, (ours, *runs) in NOTEBOOK_LABELME.items()
    )  # fmt: skip
    pets = tuple(
        Cell(row, value, (per_cent(five[NOTEBOOK_LABELME[row][0]], "last"),)) for row, value in NOTEBOOK_PETS.items()
    )
    reviews = tuple(
        Cell(row, value, (per_cent(ratings[ours], "R2"),)) for row, (ours, value) in NOTEBOOK_RATINGS.items()
    )
    names = tuple(
        Cell(row, value, (per_cent(ner[ours], figure),), column=figure)
        for row, (ours, *values) in NOTEBOOK_NER.items()
        for figure, value in zip(("precision", "recall", "f1"), values, strict=True)
    )
    return [
        Table("LabelMe", labelme, "DL-MV", "CL (MW)", same_data=False),
        Table("Dogs vs. Cats", pets, "DL-MV", "CL (MW)", same_data=False),
        Table("MovieReviews", reviews, "DL-MEAN", "CL (B)", same_data=False),
        Table("CoNLL-2003", names, "DL-MV", "CL (MW)", same_data=False),
    ]


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
    files = {"crowd_layer": ("crowd_layer", "last"), "movie_reviews": ("movie_reviews", "R2"),
             "ner": ("reproduce_ner", "precision", "recall", "f1")}  # fmt: skip
    known, lines = {(table.title, cell.row) for table in rodrigues_tables() for cell in table.cells}, []
    for title, rows in published_rows.ROWS["rodrigues"].items():
        title = title.rpartition(", ")[2]
        for row, how in rows.items():
            if isinstance(how, str) or (title, row) in known:
                continue
            name, *figures = files[how.script]
            results = saved(name)[how.parts[0]] if how.parts else saved(name)
            if how.row in results:
                figures_shown = (shown(per_cent(results[how.row], figure)) for figure in figures)
                lines.append((f"{title}, {row}", len(results[how.row]["runs"]), " / ".join(figures_shown)))
    return grid(["set, row", "runs", "ours"], lines)


# === WAUM ===

# Lefort et al., TMLR 2024: accuracy with its standard deviation, calibration error
CIFAR = {
    "majority vote": (69.533, 0.84, 0.175), "naive soft": (72.149, 2.74, 0.132), "Dawid-Skene": (70.268, 0.93, 0.173),
    "Dawid-Skene, spammers left out": (70.053, 0.81, 0.174), "GLAD": (66.569, 8.48, 0.173),
    "WAUM": (72.747, 1.93, 0.124),
}  # fmt: skip
# three circles, one run: printed in the authors' slides
PRINTED = {"majority vote": 0.727, "naive soft": 0.697, "Dawid-Skene": 0.753, "GLAD": 0.578, "WAUM": 0.806}
CROWDS = ("neighbours", "small classifiers", "three classifiers")


def waum_tables() -> list[Table]:
    cifar = [Cell(row, figures[0], spread=figures[1], column="accuracy") for row, figures in CIFAR.items()]
    cifar += [Cell(row, round(100 * figures[2], 1), column="ECE") for row, figures in CIFAR.items()]
    parts = [saved("waum")[f"circles, {crowd}"] for crowd in CROWDS]
    circles = tuple(
        Cell(row, round(100 * value, 1), tuple(per_cent(part[row], "accuracy") for part in parts))
        for row, value in PRINTED.items()
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
    parts, row = (saved("waum")[f"circles, {crowd}"] for crowd in CROWDS), published_rows.SPAM
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
    draws = saved("reproduce_lia")["sets"][name].get(row, {}).get("draws", {}).get(str(redundancy), {}).values()
    return [100 * draw[figure] for draw in draws if figure in draw]


def lia_judged(name: str, row: str, published: Sequence[float], suffix: str = "") -> list[tuple[list[float], str]]:
    """Ours that counts at each redundancy, and its verdict by the side of majority vote on the same draws."""
    verdicts = []
    for column, redundancy in enumerate(lia.REDUNDANCIES[name]):
        lines = (_draws(name, ours, redundancy, label + suffix) for ours, label in LIA[row][1:])
        draws = next((line for line in lines if line), [])
        order = None
        if draws and row != "majority":
            votes = _draws(name, "majority", redundancy, "posterior")[: len(draws)]
            apart = round(statistics.mean(draws) - statistics.mean(votes), 9)
            order = (published[column] - lia.PUBLISHED[name]["majority"][column]) * apart >= 0
        mark = verdict(published[column], draws, order)
        if name in lia.MEDICAL and draws:  # of which only the order can be compared
            mark = "order" if order else "not"
        verdicts.append((draws, mark))
    return verdicts


@table
def lia_counts() -> str:
    counts_by_table = {
        f"table 2, {lia.TITLES[name]}": [
            mark for row, figures in rows.items() for _, mark in lia_judged(name, row, figures)
        ]
        for name, rows in lia.PUBLISHED.items()
    }
    alone = [
        mark for name, figures in lia.PUBLISHED_EM_ALONE.items()
        for _, mark in lia_judged(name, "LIA", figures, lia.EM_ALONE)
    ]  # fmt: skip
    return counts({**counts_by_table, "table 3": alone})


@table
def lia_table_2() -> str:
    """The rows of the three public sets that an aggregation method or LIA has."""
    places = [(name, r) for name in PUBLIC for r in lia.REDUNDANCIES[name]]
    rows = []
    for row in ("majority", "MAJ*-E", "MAJ*", "MMCE", "MMCE*-E", "MMCE*", "Snorkel", "MeTaL", "LIA-E", "LIA"):
        published = [value for name in PUBLIC for value in lia.PUBLISHED[name][row]]
        rows.append([f"{LIA[row][0]}, paper", *(f"{value:.1f}" for value in published)])
        judged = [cell for name in PUBLIC for cell in lia_judged(name, row, lia.PUBLISHED[name][row])]
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
    for title, rows in published_rows.ROWS[paper].items():
        groups: dict[str, list[str]] = {}
        for row, how in rows.items():
            command = how if isinstance(how, str) else f"`{how.command}`"
            groups.setdefault(command, []).append(row.replace("*", r"\*"))
        lines += [(title, ", ".join(names), command) for command, names in groups.items()]
    return grid(["table", "rows", "measured by, or why not"], lines, words=3)


for _paper in published_rows.ROWS:
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
