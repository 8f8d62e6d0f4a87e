"""Tables of a paper's page: published figures, ours beside them, and verdicts by one rule. See papers.py."""

import dataclasses
import json
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from papers import MARKS, counted, grid, shown, verdict, wrapped
from stack import told

__all__ = ["SAVED", "Cell", "Claim", "Page", "Table", "counts", "paragraph", "per_cent", "saved", "stacks"]

SAVED = Path(__file__).parents[1] / "results"
SEEN = {True: MARKS["reproduced"], False: MARKS["not"], None: MARKS["missing"]}  # of `Claim.holds`
RULE = """Marks: ✓ reproduced (the means differ by at most one standard deviation, the paper's or that of our runs,
whichever is larger), ~ order only (they do not, but the row is on the same side of the table's baseline as in the
paper; the baseline itself: on the same side of the paper's own method), ✗ not reproduced, – not run. Where data or
features are not the paper's, so that equal numbers would be chance, ~ is the best mark.
`benchmarks/reproduce/cells.py` computes the marks from the saved results."""


INTERVALS = """Intervals are 95 % intervals of the mean over paired runs (`benchmarks/reproduce/intervals.py`). All runs
on one set have the same test tasks, so the intervals say how much the seeds matter, and nothing about other test
tasks."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """A published figure.

    Attributes:
        row: the paper's name of the row.
        published: the figure, in the unit of its table.
        spread: its published standard deviation; 0 where there is none.
        found: ours, one a run; several groups where it was run on several sets that may stand for the paper's one.
        source: where ours is in the saved results.
        column: the figure's name, where a table has several.
        against: ours of the row that the order is judged against, by the same training, where that is not the table's.
    """

    row: str
    published: float
    found: tuple[tuple[float, ...], ...] = ()
    source: str = ""
    spread: float = 0.0
    column: str = ""
    against: tuple[tuple[float, ...], ...] = ()


@dataclasses.dataclass(frozen=True)
class Table:
    """Figures of a paper that are judged together.

    Attributes:
        title: heading.
        unit: what the figures are.
        cells: the figures.
        baseline: row against which the order is judged.
        method: row against which the baseline's own order is judged.
        why: why figures differ, or are not run. A table without it must have no figure that is not reproduced.
        same_data: whether data and features are the paper's. If not, "order" is the best verdict.
        uncounted: rows that another table counts, here for the order only.
        theirs: heading of the published figures.
    """

    title: str
    unit: str
    cells: tuple[Cell, ...]
    baseline: str
    method: str
    why: str = ""
    same_data: bool = True
    uncounted: tuple[str, ...] = ()
    theirs: str = "paper"

    def counted(self) -> tuple[Cell, ...]:
        """The figures that count."""
        return tuple(cell for cell in self.cells if cell.row not in self.uncounted)

    def verdicts(self) -> list[str]:
        """One for each figure that counts, in their order."""
        return [self._verdict(cell) for cell in self.counted()]

    def _verdict(self, cell: Cell) -> str:
        if not any(cell.found):
            return "missing"
        order = self._in_order(cell)
        each = {verdict(cell.published, found, order, cell.spread) for found in cell.found}
        if each == {"reproduced"} and self.same_data:
            return "reproduced"
        return "order" if order else "not"

    def _in_order(self, cell: Cell) -> bool:
        """Whether the row is on the paper's side of the baseline, in all groups; equal to it counts as both."""
        name = self.method if cell.row == self.baseline else self.baseline
        others = [each for each in self.cells if (each.row, each.column) == (name, cell.column)]
        theirs = cell.against or (others[0].found if others else ())
        if not any(theirs):
            return False
        published = cell.published - others[0].published
        return all(
            published * (statistics.mean(ours) - statistics.mean(other)) >= 0
            for ours, other in zip(cell.found, theirs, strict=True)
        )

    def within(self) -> int:
        """How many figures are within one standard deviation by number alone, in all groups."""
        return sum(
            any(cell.found)
            and all(verdict(cell.published, each, False, cell.spread) == "reproduced" for each in cell.found)
            for cell in self.counted()
        )

    def markdown(self) -> str:
        """Heading, table, counts and reasons."""
        found = self.verdicts()
        if set(found) != {"reproduced"} and not self.why:
            raise ValueError(f"{self.title}: figures that are not reproduced need a reason")
        header = ["row", "saved as", self.theirs, "ours", "runs"]
        rows = []
        for cell in self.cells:
            mark = "" if cell.row in self.uncounted else MARKS[self._verdict(cell)]
            digits = max(1, len(f"{cell.published:g}".partition(".")[2]))
            ours = "; ".join(shown(group, digits) for group in cell.found)
            published = f"{cell.published:.{digits}f}" + (f" ± {cell.spread:.2f}" if cell.spread else "")
            runs = max(map(len, cell.found), default=0)
            name = f"{cell.row}: {cell.column}" if cell.column else cell.row
            rows.append([name, cell.source, published, f"{ours} {mark}".strip(), runs or ""])
        number = Counter(found)
        line = ", ".join(f"{MARKS[name]} {number[name]}" for name in MARKS)
        if not self.same_data and number["missing"] < len(found):
            line += f". By number alone {self.within()} would be within one standard deviation"
        text = [f"## {self.title}\n", paragraph(f"{self.unit} {line}."), grid(header, rows)]
        return "\n".join([*text, *([paragraph(self.why)] if self.why else [])])


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a paper says in words or pictures, as the saved results let it be asked.

    Attributes:
        words: the claim.
        holds: whether it holds here; None where it was not run.
        figures: by what.
    """

    words: str
    holds: bool | None
    figures: str


def claims(found: Sequence[Claim]) -> str:
    """A table of claims."""
    return grid(["claim", "by what", "here"], [(each.words, each.figures, SEEN[each.holds]) for each in found])


def counts(tables: Sequence[Table], found: Sequence[Claim] = ()) -> str:
    """The line of counts, and the table of counts by table."""
    every = [each for table in tables for each in table.verdicts()]
    line = counted(every, "of the paper or of our runs, whichever is larger")
    if found:
        number = Counter(each.holds for each in found)
        marks = ", ".join(f"{mark} {number[holds]}" for holds, mark in SEEN.items())
        line += "\n\n" + wrapped(f"Claims in words or pictures that can be seen here (✓), or cannot: {marks}.")
    by_table = grid(
        ["figures of", "all", *MARKS.values()],
        [(table.title, len(table.counted()), *(table.verdicts().count(mark) for mark in MARKS)) for table in tables],
    )
    return f"{line}\n\n{by_table}"


@dataclasses.dataclass(frozen=True)
class Page:
    """The page of a paper.

    Attributes:
        head: title, reference and layer.
        name: of the page.
        scripts: what measures the rows.
        overview: where in the paper, what it shows, whether its figures are at hand, where it is here.
        protocol: what, the paper's and the authors' code, here.
        note: below the protocol.
        tables: the judged tables.
        claims: what the paper says in words and pictures.
        more: Markdown after the tables.
        absent: what is not here, one item each.
        stack: a paragraph about the stacks of the rows.
        rows: as of `stacks`.
    """

    head: str
    name: str
    scripts: str
    overview: Sequence[tuple[str, str, str, str]]
    protocol: Sequence[tuple[str, str, str]]
    note: str
    tables: Sequence[Table]
    claims: Sequence[Claim]
    more: str
    absent: Sequence[str]
    stack: str
    rows: dict[str, dict[str, dict[str, Any] | None]]

    def markdown(self) -> str:
        """The whole page."""
        by = (
            f"`benchmarks/reproduce/papers.py {self.name}` (`make reproduce PAPER={self.name}`) writes this page from "
            f"the saved results; {self.scripts}"
        )
        return "\n".join([
            self.head,
            counts(self.tables, self.claims),
            paragraph(by),
            paragraph(RULE),
            "## Every table and figure\n",
            left(grid(["in the paper", "what it shows", "its figures at hand", "here"], self.overview)),
            "## Protocol\n",
            left(grid(["", "paper and authors' code", "here"], self.protocol)),
            paragraph(self.note),
            *(table.markdown() for table in self.tables),
            *([self.more] if self.more else []),
            "## Claims in words and pictures\n",
            claims(self.claims),
            *([paragraph(INTERVALS)] if any(set("±[") & set(each.figures) for each in self.claims) else []),
            "## What is not here\n",
            "\n".join(textwrap.fill(each, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False,
                                    break_on_hyphens=False) for each in self.absent) + "\n",
            "## What the rows were computed on\n",
            paragraph(self.stack),
            stacks(self.rows).rstrip("\n"),
            "",
        ])  # fmt: skip


def paragraph(text: str) -> str:
    """A paragraph in lines of the pages' length, and a blank line."""
    return wrapped(" ".join(text.split())) + "\n"


def left(table: str) -> str:
    """A table of words: all columns to the left."""
    return table.replace("---:", "---")


def saved(name: str) -> dict[str, Any]:
    """One file of benchmarks/results."""
    table: dict[str, Any] = json.loads((SAVED / name).read_text(encoding="utf-8"))
    return table


def per_cent(runs: Iterable[dict[str, Any]], figure: str) -> tuple[float, ...]:
    """A figure of several runs, times 100."""
    return tuple(100 * run[figure] for run in runs)


MANY_ROWS = 5  # of one set, that are named in the table of stacks


def _summed(rows: list[str]) -> str:
    """Names of rows; many rows of one set, which are called "set: row", are counted."""
    sets: dict[str, list[str]] = {}
    for row in rows:
        sets.setdefault(row.rpartition(": ")[0], []).append(row)
    many = {name: len(own) > MANY_ROWS for name, own in sets.items()}
    return "; ".join(
        f"{name}: {len(own)} rows" if many[name] and name else "; ".join(own) for name, own in sets.items()
    )


def stacks(files: dict[str, dict[str, dict[str, Any] | None]]) -> str:
    """A table of what rows were computed on.

    Args:
        files: file of the saved results -> row -> its stack, None where none is stored with it.
    """
    lines = []
    for name, rows in files.items():
        named: dict[str, list[str]] = {}
        for row, found in rows.items():
            named.setdefault("not stored with the row" if found is None else told(found), []).append(row)
        for words, found_rows in named.items():
            several = f"all {len(rows)} of this page" if len(rows) > 1 else "all"
            lines.append((name, several if len(named) == 1 else _summed(found_rows), words))
    return left(grid(["file in benchmarks/results", "rows", "computed on"], lines))
