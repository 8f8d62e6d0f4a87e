"""Parts of the report's page that are shared by all kinds of labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.files.package_tables import package_table
from crowdzoo.kinds.scoring import Codes, Floats
from crowdzoo.quality.figures import wilson
from crowdzoo.quality.krippendorff import Alpha

Columns = dict[str, list[Any]]  # values of a table, by column
Figures = dict[str, Any]  # of the whole crowd, by name
Details = Iterable[dict[str, object]]  # details under each row of a table

DIGITS = 4  # decimals of written numbers
MOST_NAMED = 5  # annotators in a warning
_OF_FLAGS = ("serious", "out", "keep")
HASTY = 0.25  # share of the median time, below which a note on an annotator mentions the time
MANY = 0.1  # share of all annotations, from which a note on their annotators is serious
# Thresholds for reliable data and for tentative conclusions: Krippendorff, Content Analysis, 2004
RELIABLE, TENTATIVE = 0.8, 2 / 3
# Levels of the verdict, used as its first words
USABLE, WITH_CARE, NOT_YET, UNKNOWN = "Usable", "Usable with care", "Not usable yet", "Not known whether usable"
MOST_PAIRS = 100
UNCLEAR = 0.75  # agreement on a pair of classes below which their definition is called unclear
MUCH = 0.1  # share of all disagreement from which the page warns of a pair of classes


@dataclass(frozen=True)
class Flag:
    """A note on an annotator.

    Attributes:
        title: short title for a table.
        text: finding, to follow a name and a colon.
        fix: what to do.
        words: description of one annotator for a sheet, with columns of the table of annotators in braces.
        serious: whether the annotator should be checked.
        out: whether the annotations may be uninformative, so that leaving them out may help.
        keep: whether the annotations are as good as others' once the note is known: its warnings are not serious, and
            the annotations do not count in `noted_share`.
    """

    title: str
    text: str
    fix: str
    words: str
    serious: bool
    out: bool
    keep: bool

    def describe(self, number: int) -> tuple[str, str]:
        """Finding and fix for this number of annotators."""
        if number > 1:
            return self.text, self.fix
        verb, _, rest = self.text.partition(" ")
        fix = self.fix.replace("these annotators", "this annotator")
        return f"{'has' if verb == 'have' else verb + 's'} {rest}", fix


# By name in report.json
FLAGS = {
    line["name"]: Flag(
        line["title"], line["text"], line["fix"], line["words"], *(line[name] == "yes" for name in _OF_FLAGS)
    )
    for line in package_table(__package__, "flags.csv")
}
SERIOUS = {name for name, flag in FLAGS.items() if flag.serious}
# For each note, the column that gives its detail
WORDS = {"exchange": "exchanges", "copy": "copies", "drift": "drift", "far": "differs", "extent": "differs"}


@dataclass(frozen=True)
class Column:
    """A column of a table of the page.

    Attributes:
        key: name of the values.
        title: heading.
        form: "name", "task" (a name that links to the task), "count", "number", "share", "interval" (with the keys
            KEY_low and KEY_high) or "flags".
        help: explanation.
        scale: limits for drawing an interval; None for shares, 0 to 1.
        bar: whether shares are also drawn.
    """

    key: str
    title: str
    form: str
    help: str = ""
    scale: tuple[float, float] | None = None
    bar: bool = False

    @classmethod
    def of(cls, line: Mapping[str, str]) -> Column:
        """Create a column from a line of columns.csv."""
        low, _, high = line["scale"].partition(" ")
        scale = (float(low), float(high)) if low else None
        return cls(line["key"], line["title"], line["form"], line["help"], scale, line["bar"] == "bar")


def read_columns(package: str | None) -> dict[str, list[Column]]:
    """Read columns by table from columns.csv of a package; "facts" are the figures on the first screen."""
    columns: dict[str, list[Column]] = {}
    for line in package_table(package, "columns.csv"):
        columns.setdefault(line["table"], []).append(Column.of(line))
    return columns


@dataclass(frozen=True)
class PageTable:
    """A table of the page.

    Attributes:
        columns: columns to show; those without values are left out.
        values: name -> list with one value per row; the file of numbers has all of them.
        rows: rows to show, in order; None: all.
        details: details under each row shown.
    """

    columns: tuple[Column, ...]
    values: Columns
    rows: list[int] | None = None
    details: list[dict[str, object]] | None = None


@dataclass(frozen=True)
class PageWarning:
    """A warning.

    Attributes:
        serious: whether it may invalidate the rest of the report.
        about: subject.
        finding: finding.
        fix: what to do.
        link: part of the page that shows more.
        key: type of the warning, if the wording of the finding depends on the data; for notes on annotators, the name
            in `FLAGS`.
    """

    serious: bool
    about: str
    finding: str
    fix: str
    link: str = ""
    key: str = ""


@dataclass(frozen=True)
class Numbers:
    """Contents of a page.

    Attributes:
        kind: kind of label.
        verdict: first whether the labels can be used, then what to do.
        warnings: serious ones first.
        values: values for `--fail-if`; None where undefined.
        facts: figures of the first screen: title, value, form (see `Column`), a remark, and an explanation.
        tables: tables by name; all kinds have "annotators" and "tasks".
        summary: further figures.
        classes: names by code; for sentences the types of spans and "no span"; empty for ratings.
        coincidences: how often two classes occur together in a task, [K, K]; None with too many classes.
        model: aggregated labels against a model's predictions; None without predictions.
        calibration: probabilities against gold; None without gold.
        curve: labels by number of annotations per task, see `learning_curve`; None if it was not computed.
        task_column: column of the tasks for comparison with an earlier page.
        annotator_column: column of the annotators, with an interval, for the same purpose.
        leave_out: `annotators` who may be uninformative, whether leaving them out is `advised`, and the gain (see
            `left_out`): `value`, `low`, `high`; None without such annotators.
    """

    kind: str
    verdict: list[str]
    warnings: list[PageWarning]
    values: dict[str, float | None]
    facts: list[list[Any]]
    tables: dict[str, PageTable]
    summary: dict[str, Any]
    classes: list[str] = field(default_factory=list)
    coincidences: list[list[int]] | None = None
    model: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None
    curve: dict[str, Any] | None = None
    task_column: str = "label"
    annotator_column: str = "reliability"
    leave_out: dict[str, Any] | None = None


WARNINGS = {line["name"]: line for line in package_table(__package__, "page_warnings.csv")}


def warning(name: str, serious: bool = False, about: str = "", **words: Any) -> PageWarning:
    """Create a warning from page_warnings.csv.

    Args:
        name: name of its line.
        serious: see `PageWarning`.
        about: subject, if not given in its line.
        **words: values of the placeholders.
    """
    line = WARNINGS[name]
    finding, fix = (line[part].format(**words) for part in ("finding", "fix"))
    return PageWarning(serious, about or line["about"], finding, fix, line["link"], line["key"])


def alpha_sentence(alpha: Alpha | None, start: str = "") -> str:
    """Sentence on whether the data can be used, judged by Krippendorff's alpha.

    Args:
        alpha: Krippendorff's alpha; None where undefined.
        start: preceding part of the sentence.
    """
    if alpha is None:
        return f"{UNKNOWN}: agreement cannot be measured, because annotators share no tasks or all labels are equal."
    interval = "" if alpha.low is None else f" ({alpha.low:.2f} to {alpha.high:.2f})"
    level = USABLE if alpha.value >= RELIABLE else WITH_CARE if above_chance(alpha) else NOT_YET
    return f"{level}: {start}agreement beyond chance is {alpha.value:.2f} of 1{interval}, {meaning_of(alpha)}."


def meaning_of(alpha: Alpha) -> str:
    """Meaning of a value of Krippendorff's alpha, as the end of a sentence."""
    if alpha.value >= RELIABLE:
        return "which is reliable"
    if alpha.value >= TENTATIVE:
        return "enough for tentative conclusions"
    if above_chance(alpha):
        return "too little to rely on single annotations: use labels aggregated from several"
    return "not clearly more than that of random answers, so aggregated labels may be mere chance"


def above_chance(alpha: Alpha) -> bool:
    """Whether alpha, or the lower end of its interval, is above zero when rounded to two decimals."""
    return round(alpha.value if alpha.low is None else alpha.low, 2) > 0


def look_first(warnings: Sequence[PageWarning], noted: int, extras: Sequence[str] = (), otherwise: str = "") -> str:
    """Sentence of the verdict on what to check first.

    Args:
        warnings: all warnings of the page.
        noted: number of annotators to check.
        extras: other conspicuous facts.
        otherwise: sentence if nothing is conspicuous.
    """
    notes = f"{noted:,} annotators with serious notes" if noted > 1 else "annotator with a serious note"
    parts = [f"the {notes}"] if noted else []
    places, serious = " and at ".join((*parts, *extras)), sum(item.serious for item in warnings)
    if not serious:
        return f"Look first at {places}." if places else otherwise
    which = "warning" if serious == 1 else f"{serious} warnings"
    then = f", then look at {places}" if places else ""
    return f"Read the {which} marked serious before you use the labels{then}."


def annotators_first(annotators: Columns, most: int) -> list[int]:
    """Annotators to show: first those with a serious note, then by number of annotations."""
    by_number = np.argsort(-np.array(annotators["annotations"], np.int64), kind="stable")
    noted = by_number[np.array(serious_notes(annotators), bool)[by_number]]
    return list(dict.fromkeys(np.concatenate([noted, by_number]).tolist()))[:most]


def shares_of_flags(annotators: Columns) -> dict[str, float | None]:
    """Number of annotators with a serious note, and share of all annotations that such notes put in doubt."""
    doubted = {name for name, flag in FLAGS.items() if flag.serious and not flag.keep}
    counts = annotators["annotations"]
    pairs = zip(counts, annotators["notes"], strict=True)
    theirs, total = sum(count for count, notes in pairs if not doubted.isdisjoint(notes)), sum(counts)
    noted = float(sum(serious_notes(annotators)))
    return {"noted_annotators": noted, "noted_share": theirs / total if total else None}


def serious_notes(annotators: Columns) -> list[bool]:
    """Whether each annotator has a serious note."""
    return [not SERIOUS.isdisjoint(notes) for notes in annotators["notes"]]


def note_warning(note: str) -> PageWarning:
    """Convert a note to a warning; the text after its first sentence, or its colon, is the fix.

    A note of one sentence is about a result that may be wrong; its fix is to compare with another method.
    """
    finding, _, fix = note.partition(". " if ". " in note else ": ")
    fix = fix or "compare with another --method, or with tasks whose label is known"
    return PageWarning(True, "data", finding.rstrip("."), fix.rstrip("."))


def flag_warnings(annotators: Columns, total: int) -> Iterator[PageWarning]:
    """Yield a warning per serious note on annotators, with the names of the most active ones.

    Args:
        annotators: values of the table of annotators.
        total: number of all annotations.
    """
    haste = hasty(annotators.get("seconds"))
    for name, flag in FLAGS.items():
        places = [place for place, names in enumerate(annotators["notes"]) if name in names]
        if not flag.serious or not places:
            continue
        places.sort(key=lambda place: -annotators["annotations"][place])
        share = sum(annotators["annotations"][place] for place in places) / max(total, 1)
        named = [str(annotators["annotator"][place]) for place in places]
        text, fix = flag.describe(len(places))
        details = annotators.get(WORDS.get(name, ""))
        words = [details[place] for place in places[:MOST_NAMED]] if details else []
        if name == "copy":
            words = list(dict.fromkeys(words))  # families
            what = "; ".join(words) if len(words) > 1 else ""
        else:
            what = "; ".join(words if len(places) == 1 else map(": ".join, zip(named, words, strict=False)))
        finding = f"{text}{what and f' ({what})'}; {percent(share)} of all annotations"
        quick = [f"{annotators['annotator'][place]}: {haste[place]}" for place in places[:MOST_NAMED] if place in haste]
        finding += f"; {', '.join(quick)}" if quick else ""
        serious = share >= MANY and not flag.keep
        yield PageWarning(serious, first_names(named), finding, fix, f"annotator-{named[0]}", name)


def hasty(seconds: Sequence[float | None] | None) -> dict[int, str]:
    """Annotators who answer much faster than usual, with both times; by itself no reason to distrust them.

    Args:
        seconds: median per annotator, None where unknown; None: no times are known.
    """
    known = np.array([np.nan if value is None else value for value in seconds or ()], np.float64)
    usual = float(np.nanmedian(known)) if np.isfinite(known).any() else 0.0
    places = np.flatnonzero(known < HASTY * usual).tolist()
    return {place: f"{known[place]:.2g} s per answer, usually {usual:.2g} s" for place in places}


def first_names(names: Sequence[object], most: int = MOST_NAMED) -> str:
    """First names of a list, and the number of further ones."""
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + rest


def confused_pairs(counts: Floats, names: list[str], nothing: bool = False) -> Columns:
    """Pairs of confused classes, largest share of the disagreement first.

    Args:
        counts: how often two classes occur together in a task, [K, K].
        names: names of the classes, [K].
        nothing: whether the last class means that nothing was said; agreement on it is not counted.

    Returns:
        Columns `first`, `second`, `agreement` (on the two), `disagreement` (share of all disagreement), and `pairs`.
    """
    total, size = counts.sum() - np.trace(counts), len(counts)
    first, second = np.triu_indices(size, 1)
    between = 2 * counts[first, second]
    order = np.argsort(-between, kind="stable")[:MOST_PAIRS]
    order = order[between[order] > 0]
    first, second, between = first[order], second[order], between[order]
    both = counts[first, first] + counts[second, second]
    if nothing:
        both = np.where(second == size - 1, counts[first, : size - 1].sum(axis=1), both)
    figures = {"agreement": both / (both + between), "disagreement": between / total, "pairs": between}
    columns = {name: np.round(values, DIGITS).tolist() for name, values in figures.items()}
    return {"first": [names[code] for code in first], "second": [names[code] for code in second], **columns}


def rows_confused(pairs: Columns) -> list[tuple[str, str, float, float]]:
    """Pairs whose definition may be unclear: first, second, agreement, and share of all disagreement."""
    rows = zip(*(pairs[key] for key in ("first", "second", "agreement", "disagreement")), strict=True)
    return [row for row in rows if row[2] < UNCLEAR and row[3] >= MUCH]


def percent(share: float) -> str:
    """Format a share as on the page."""
    if 0 < share < 0.0005:
        return "less than 0.1 %"
    return f"{100 * share:.{1 if 0 < share < 0.0995 else 0}f} %"


def plain(values: Floats) -> list[float | None]:
    """Python numbers with four decimals, None for NaN."""
    return [None if value != value else value for value in np.round(values, DIGITS).tolist()]


def share_and_ends(number: float, of: int) -> tuple[float | None, ...]:
    """A share and the ends of its Wilson interval; None if `of` is 0."""
    share = np.array([number / of if of else np.nan])
    return tuple(plain(end)[0] for end in (share, *wilson(share, [of])))


def as_lists(**columns: NDArray[Any] | list[Any]) -> Columns:
    """Columns as lists: numbers with four decimals, None for NaN."""
    return {
        name: values if isinstance(values, list) else plain(values) if values.dtype.kind == "f" else values.tolist()
        for name, values in columns.items()
    }


def rows_of(owners: Codes, order: Codes, selected: list[int], most: int) -> list[list[int]]:
    """The first rows of each selected owner, at most `most`, in a given order.

    Args:
        owners: owner of each row.
        order: rows, first ones first.
        selected: selected owners.
        most: maximum number of rows per owner.
    """
    rows: dict[int, list[int]] = {owner: [] for owner in selected}
    order = order[np.isin(owners[order], selected)]
    for row, owner in zip(order.tolist(), owners[order].tolist(), strict=True):
        if len(rows[owner]) < most:
            rows[owner].append(row)
    return list(rows.values())


def plain_columns(table: pa.Table) -> Columns:
    """Columns of a table as lists: numbers with four decimals, None for null."""
    columns = zip(table.column_names, table.columns, strict=True)  # to_numpy gives NaN for null
    return as_lists(**{name: x.to_numpy() if pa.types.is_floating(x.type) else x.to_pylist() for name, x in columns})


def median_seconds(annotations: Annotations) -> Floats | None:
    """Median time per answer of each annotator, seconds, [R]: their duration, or else the time between them.

    NaN with fewer than two known times; None without any.
    """
    times, annotators = annotations.timestamp, annotations.annotator_ids
    if annotations.seconds is not None:
        known = np.isfinite(annotations.seconds)
        gaps, annotators = annotations.seconds[known], annotators[known]
    elif times is not None:
        order = np.lexsort((times, annotators))
        order = order[np.isfinite(times[order])]
        gaps, same = np.diff(times[order]), np.diff(annotators[order]) == 0
        gaps, annotators = gaps[same], annotators[order][1:][same]
    else:
        return None
    gaps = gaps[np.argsort(annotators, kind="stable")]
    ends = np.cumsum(np.bincount(annotators, minlength=annotations.num_annotators))
    return np.array([np.median(part) if len(part) > 1 else np.nan for part in np.split(gaps, ends)[:-1]])
