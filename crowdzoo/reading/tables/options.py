"""Options shared by all readers of annotations, and the rules built from them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from crowdzoo.checks.constraints import Choice, check_ends
from crowdzoo.data.annotations import VOCABULARIES
from crowdzoo.data.label_kinds import LabelKind
from crowdzoo.data.vocabulary import is_among, names_array
from crowdzoo.errors import SHOWN, ConfigError, Setting, bad_setting, did_you_mean, short_repr

if TYPE_CHECKING:
    from typing_extensions import Unpack

ROW_OPTIONS = ("on_bad_rows", "on_duplicate", "exclude", "rejects")  # selection of rows


class ReadingOptions(TypedDict, total=False):
    """Optional keyword arguments of `Annotations.read`, `from_csv`, `from_frame` and all other readers.

    Attributes:
        tasks: names in code order, or None (default) for the sorted names that occur. Given names are matched as text,
            and rows with other names are bad.
        annotators: the same for annotators.
        classes: the same for classes; not for regression, free texts and regions. For pairs, the names of the answers
            left, right and equal in this order, such as ("A", "B", "tie"), without the last if ties are not allowed.
        low: lowest valid rating, in the labels' unit; rows with lower ones are bad. None (default): no limit.
        high: highest valid rating.
        on_duplicate: handling of a second label by the same annotator for a task (for sequences: and position): "error"
            (default) makes it a bad row, "first" and "last" keep that label. "all" keeps each as a separate annotation,
            which only majority vote and Dawid-Skene accept, as they count labels. Not for sequences.
        on_bad_rows: "error" (default) raises an error, "reject" skips bad rows. Rows skipped for this or for
            `on_duplicate` are counted in `num_rejected` and, unless written to `rejects`, in a warning.
        exclude: names of annotators whose rows are ignored. None (default): nobody.
        rejects: CSV file for skipped rows, with the columns file, row, column, value, reason, original; only the header
            if none was skipped.
    """

    tasks: Any
    annotators: Any
    classes: Any
    low: float | None
    high: float | None
    on_duplicate: str
    on_bad_rows: str
    exclude: Sequence[Any] | None
    rejects: str | os.PathLike[str] | None


class FrameOptions(ReadingOptions, total=False):
    """Options of `Annotations.from_frame`: those of `ReadingOptions`, names of columns, and contents of cells.

    Attributes:
        columns: our name of a column (task, annotator, label, position, confidence, timestamp, seconds; for pairs left
            and right, or winner and loser, or ranking, for rankings such as a>b=c) -> the table's name, or text such as
            "task=HITId,annotator=WorkerId"; "" leaves out an optional column. Other columns are found by our name, else
            by a usual name (`worker_id`, `item`, `answer`, ...) if only one column has one, with a `DataWarning`. In a
            file, "task=" names tasks after their row numbers, and "task=topic,document" after two columns. With
            "label=joy,anger" or "label=is_*" (where * is the label), each label has a column, with 1 where it is given.
        missing: marks of cells without a label, as "-1,NA" or a list; in a long table, such rows and those with an
            empty label are left out.
        label_separator: separator of several labels in a cell; each becomes an annotation, subject to `on_duplicate`.
            Lists in JSON or Python notation are also split.
        annotator_separator: separator of several annotators in a cell, and of their labels in another, as in "ann,bob"
            and "0,1"; lists of JSON or Parquet are also split.
        rename: labels to replace by others, as "tie (bothbad)=tie" or a mapping.
        no_label: the label that an empty cell of a long table represents, such as "(none)" if cells are sets of labels;
            None (default): an empty cell is a bad row.
        decimal: decimal mark of ratings and confidences in text: "." (default) or ",".
    """

    columns: Mapping[str, str | int] | str | None
    missing: str | Sequence[Any]
    label_separator: str | None
    annotator_separator: str | None
    rename: Mapping[str, str] | str
    no_label: str | None
    decimal: str


class FileOptions(FrameOptions, total=False):
    """Options of readers of files: those of `FrameOptions`, and the layout of the file.

    Attributes:
        separator: character that separates the values of a CSV file. None (default): the one of `,`, `;`, tab and `|`
            that fits the header.
        sheet: name of the sheet of an Excel workbook. None (default): the first one.
        encoding: encoding of a text file, by its name in Python. None (default): UTF-8, or that of a byte order mark.
        header: whether the first line of a CSV file contains names (default). If not, `columns` are numbers from 1.
        wide: whether a CSV or Parquet file has one row per task and one column per annotator: all columns but `task`,
            or those in `columns`, as "task=id,annotator=ann,bob" or "annotator=worker_*". An empty cell is not a label.
            If a single column is named as annotator, as in "annotator=rater", rows are annotators and columns are
            tasks: all others, or those named, as "annotator=rater,task=q*".
    """

    separator: str | None
    sheet: str | None
    encoding: str | None
    header: bool
    wide: bool


@dataclass(frozen=True)
class Rules:
    """Validated reading options.

    Attributes:
        names: column (task, annotator, label) -> names in code order, or None.
        on_duplicate: "error", "first", "last" or "all".
        on_bad_rows: "error" or "reject".
        rejects: file for skipped rows, or None.
        scale: lowest and highest rating, or None for either.
        exclude: annotators whose rows are ignored.
    """

    names: Mapping[str, np.ndarray | None]
    on_duplicate: str
    on_bad_rows: str
    rejects: Path | None
    scale: tuple[float | None, float | None]
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, label_kind: LabelKind, own_names: Mapping[str, np.ndarray], **options: Unpack[ReadingOptions]) -> Rules:
        """Create rules from options.

        Args:
            label_kind: kind of the labels.
            own_names: column -> names in the source; given ones take precedence.
            **options: see `ReadingOptions`.

        Raises:
            ConfigError: an invalid value of an option, or an option of another kind.
            ValueError: names that are not a list, or contain an empty or duplicate one.
        """
        on_duplicate, on_bad_rows = options.get("on_duplicate", "error"), options.get("on_bad_rows", "error")
        Choice(("error", "first", "last", "all")).checked("", "on_duplicate", on_duplicate)
        Choice(("error", "reject")).checked("", "on_bad_rows", on_bad_rows)
        low, high, classes = options.get("low"), options.get("high"), options.get("classes")
        check_ends(low, high)
        if not label_kind.has_numbers and (low, high) != (None, None):
            raise bad_setting("low" if high is None else "high", "belongs to kind 'regression'", label_kind.name)
        if on_duplicate == "all" and (label_kind.has_numbers or label_kind.has_positions):
            kinds = "kinds 'classification' and 'preference'"
            raise ConfigError(f"{Setting('on_duplicate', 'all')} belongs to {kinds}, got kind '{label_kind.name}'")
        if not label_kind.has_classes and classes is not None:
            raise ConfigError(f"{Setting('classes')} do not belong to kind '{label_kind.name}'")
        if label_kind.answers:
            classes = own_names.get("label", label_kind.answers) if classes is None else classes
            _check_answers(classes, label_kind)
        tasks = dict.fromkeys(label_kind.sides, options.get("tasks"))
        names = {
            column: own_names.get(column) if values is None else names_array(values, VOCABULARIES[column])
            for column, values in {**tasks, "annotator": options.get("annotators"), "label": classes}.items()
        }
        gone = tuple(dict.fromkeys(map(str, names_array(options.get("exclude") or (), "exclude").tolist())))
        if (given_names := names["annotator"]) is not None and gone:
            names["annotator"] = given_names[~is_among(given_names, list(gone))]
        rejects = options.get("rejects")
        return cls(names, on_duplicate, on_bad_rows, None if rejects is None else Path(rejects), (low, high), gone)


def not_excluded(name: str, where: str | Path, known: Sequence[object], option: str = "exclude") -> ConfigError:
    """Error for an option with an unknown annotator; `known` are the names of the annotators."""
    whole = next((text for text in map(str, known) if text.startswith(f"{name},")), None)
    near = f" If {whole!r} is meant, give {Setting(option, [whole])}." if whole else did_you_mean(name, known)
    nobody = f"no annotation of {where} is by {short_repr(name)}.{near}"
    listed = ", ".join(map(short_repr, known[:SHOWN])) + (f", ... {len(known) - SHOWN:,} more" * (len(known) > SHOWN))
    return ConfigError(f"{Setting(option)}: {nobody} The annotators are {listed}.", setting=option, value=name)


def _check_answers(classes: Any, label_kind: LabelKind) -> None:
    number, answers = len(classes), label_kind.answers
    if isinstance(classes, str) or number not in (len(answers) - 1, len(answers)):
        raise ConfigError(
            f"classes of kind '{label_kind.name}' are the names of {', '.join(answers)} in this order (the last may be "
            f"missing), such as ['A', 'B', 'tie'], got {short_repr(classes)}."
        )
