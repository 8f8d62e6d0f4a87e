"""KindPage: page of a report on one kind of label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import annotations_of
from crowdzoo.data.label_kinds import LabelKind, require_kind
from crowdzoo.errors import ConfigError, DataError, Setting
from crowdzoo.kinds import page_parts as parts
from crowdzoo.kinds.model_answers import MOST_LISTED, ModelAnswers
from crowdzoo.kinds.page_parts import Columns, Details, Figures, Numbers, PageTable, PageWarning, as_lists, warning
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality import krippendorff_alpha, redundancy
from crowdzoo.quality.annotators import FEW, notes_of
from crowdzoo.quality.figures import interval
from crowdzoo.quality.krippendorff import Alpha
from crowdzoo.quality.tasks import check_same
from crowdzoo.reading.instances.predictions import Predictions

MOST_VOTES = 20  # shown of a task
_COLUMNS = parts.read_columns(__package__)  # of tables shared by all kinds
_OF_ALL = "alpha alpha_low alpha_high annotations tasks annotators annotations_per_task tasks_with_one_share"
_OF_ALL += " rows_left_out noted_annotators noted_share"


@dataclass(frozen=True, eq=False)
class PageSettings:
    """Settings of `report_page`, the maximum number of rows of a table (`most`), and whether names are `hashed`."""

    metric: str | None = None
    bootstrap: int = 200
    seed: int = 0
    on_sample: Callable[[], None] | None = None
    predictions: Any = None  # `Predictions` for classes; for other kinds see `report_page`
    gold: Codes | None = None
    models: Sequence[object] | None = None
    epsilon: float = 0.2
    curve: int = 5
    most: int = 1000
    source: str | None = None
    hashed: bool = False

    @property
    def sampling(self) -> dict[str, Any]:
        """Arguments of a bootstrap."""
        return {"bootstrap": self.bootstrap, "seed": self.seed, "on_sample": self.on_sample}


class KindPage(ABC):
    """Page of a report on one kind of label; subclasses measure, and add the parts of their kind.

    Attributes:
        kind: name of the kind in report.json.
        labels: kind of the annotations.
        own_columns: columns of the kind's tables, and facts, see `read_columns`.
        subject: name of what is aggregated, in messages.
        metrics: metrics of Krippendorff's alpha, the default first.
        not_metric: why other metrics are rejected.
        own_values: keys of `overall` that conditions may compare, besides those of all kinds.
        model_value: name in conditions of the score between a model's answers and the aggregated labels; empty:
            `model_answers` is not used.
        calm: sentence of the verdict if nothing is conspicuous.
        task_column: column of the tasks for comparison with an earlier page.
        annotator_column: column of the annotators, with an interval, for the same purpose.
        by_alpha: whether alpha measures the reliability of answers.
        alpha: Krippendorff's alpha; None where undefined.
        overall: figures of the whole crowd.
        hidden: keys of facts and columns that do not apply to this crowd.
        overrides: key of a column -> attributes that differ from columns.csv.
        remarks: text next to a fact, by its key.
        annotators: values of the table of annotators, see `of_annotators`.
        tasks: values of the table of tasks.
        rows: tasks shown on the page, in order.
        extras: further parts of `Numbers`.

    Args:
        crowd: annotations, or sentences.
        aggregation: a result for them.
        settings: see `PageSettings`.

    Raises:
        ConfigError: a setting that does not apply to this kind.
        DataError: an aggregation of other tasks or annotators.
    """

    kind: ClassVar[str]
    labels: ClassVar[LabelKind]
    own_columns: ClassVar[dict[str, list[parts.Column]]]
    subject: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]] = ("nominal",)
    not_metric: ClassVar[str] = ""
    own_values: ClassVar[tuple[str, ...]] = ()
    model_value: ClassVar[str] = ""
    calm: ClassVar[str] = "No annotator has to be checked."
    task_column: ClassVar[str] = "label"
    annotator_column: ClassVar[str] = "reliability"
    by_alpha: ClassVar[bool] = True
    alpha: Alpha | None
    annotators: Columns
    tasks: Columns
    rows: list[int]

    def __init__(self, crowd: Any, aggregation: Any, settings: PageSettings) -> None:
        self.crowd, self.aggregation, self.settings = crowd, aggregation, settings
        self.table = annotations_of(crowd)
        require_kind(self.table.label_kind, f"A result of {self.subject}", self.labels)
        self.check()
        self.names = [str(name) for name in self.table.annotators.tolist()]
        self.metric = settings.metric or self.metrics[0]
        self.overall: dict[str, Any] = {}
        self.remarks: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.overrides: dict[str, dict[str, Any]] = {}
        self.extras: dict[str, Any] = {}
        self.model_tables: dict[str, PageTable] = {}
        self.measure()
        if self.model_value:
            self.overall[self.model_value] = None
            if settings.predictions is not None:
                self.compare_model(self.model_answers(settings.predictions))

    @classmethod
    def values(cls) -> tuple[str, ...]:
        """Names of the values that conditions may compare."""
        return (*_OF_ALL.split(), *cls.own_values, *filter(None, [cls.model_value]))

    def check(self) -> None:
        """Raise an error for settings that do not apply to this kind."""
        predictions, number = self.settings.predictions, self.table.num_tasks
        for name in ("models", "gold"):
            if getattr(self.settings, name) is not None:
                raise ConfigError(f"{Setting(name)}: a page compares it for classes only, one a task; leave it out.")
        if predictions is not None and not self.model_value:
            raise ConfigError(f"{Setting('predictions')}: a page does not compare {self.subject}; leave it out.")
        if predictions is not None and (isinstance(predictions, Predictions) or len(predictions) != number):
            raise DataError(f"predictions: give one of the {self.subject} for each of the {number:,} tasks, in order.")
        if self.settings.metric not in (None, *self.metrics):
            raise ConfigError(f"metric {self.settings.metric}: {self.not_metric}")
        check_same(self.table, self.aggregation, ("tasks", "annotators"))

    @abstractmethod
    def measure(self) -> None:
        """Set the attributes."""

    def headline(self) -> str:
        """First sentence of the verdict: whether the labels can be used."""
        return parts.alpha_sentence(self.alpha)

    def actions(self) -> list[str]:
        """Sentences of the verdict on what to do, and the cost; none by default."""
        return []

    @abstractmethod
    def background(self) -> str:
        """Last sentence of the verdict, without its full stop; empty for none."""

    def standing_out(self) -> list[str]:
        """Conspicuous facts not about annotators, for the verdict's sentence on what to check first."""
        return []

    def own_warnings(self) -> Iterable[PageWarning]:
        """Warnings specific to this kind."""
        return []

    def annotator_details(self, codes: list[int]) -> Details:
        """Details under the annotators shown; none by default."""
        return ({} for _ in codes)

    @abstractmethod
    def task_details(self) -> Details:
        """Details under the tasks shown."""

    def model_answers(self, predictions: Any) -> ModelAnswers:
        """Comparison of `predictions` with labels and annotators.

        Raises:
            DataError: predictions of another form.
        """
        raise NotImplementedError

    # === Shared by all kinds ===

    def compare_model(self, answers: ModelAnswers) -> None:
        """Add the tables that compare a model's answers with annotators'."""
        differing, listed, people = answers.compare()
        listed = {"task": self.table.tasks[differing].tolist(), **listed}
        also, most = differing[:MOST_LISTED], self.settings.most
        if len(self.tasks["task"]) > most:
            shown = self.rows[: most - len(also)]
            self.rows = shown + [row for row in also if row not in {*shown}]
        self.overall[self.model_value] = people["score"][0]
        labelled = self.table.redundancy > 0
        without = int((labelled & ~answers.known).sum())
        self.extras["model"] = {"metric": answers.metric, "tasks": people["tasks"][0], "without": without}
        if answers.is_error:
            ends = [end for end in people["score_high"] if end is not None]
            self.overrides["score"] = {"title": "difference", "scale": (0.0, max(ends, default=1.0) or 1.0)}
            self.overrides["people"] = {"form": "number"}
        first = [*range(len(also))]
        self.model_tables = {
            "model_people": self.table_of("model_people", people),
            "model_tasks": self.table_of("model_tasks", listed, first),
        }

    def count(self, sizes: Codes, **figures: Any) -> None:
        """Add counts to `overall`; `sizes` are numbers of annotations per task."""
        self.overall |= {
            "annotations": int(sizes.sum()),
            "rows_left_out": self.table.num_rejected - self.table.num_replaced,
            "tasks": len(sizes),
            "annotators": self.table.num_annotators,
            "tasks_without_annotations": int((sizes == 0).sum()),
            "tasks_with_one": int((sizes == 1).sum()),
            "annotations_per_task": float(sizes.mean()) if len(sizes) else None,
            **figures,
        }

    def of_annotators(
        self, counts: Codes, shared: Codes, marks: dict[str, Flags], linked: Codes | None = None, **columns: Any
    ) -> Columns:
        """Build the values of the table of annotators.

        Args:
            counts: number of annotations per annotator, [R].
            shared: number of these that can be judged by others', [R].
            marks: notes of this kind, see `notes_of`; the note on copies comes from the column `copies`.
            linked: number of annotations on tasks that others labelled, [R]; None: `shared`.
            **columns: further columns.
        """
        linked = shared if linked is None else linked
        alone, few = (linked == 0) & (counts > 0), (linked < FEW) & (linked > 0)
        marks = {**marks, "copy": np.array(columns["copies"], bool), "alone": alone, "few": few}
        first = {"annotator": self.table.annotators, "annotations": counts, "shared": shared}
        seconds = parts.median_seconds(self.table)
        columns |= {} if seconds is None else {"seconds": seconds}
        return {**as_lists(**first | columns), "notes": notes_of(marks, len(counts))}

    def voters(self, convert: type[int] | type[float]) -> list[list[list[object]]]:
        """Names and labels of annotators for each task shown."""
        annotators, labels = (part[:, :MOST_VOTES] for part in self.table.padded(self.rows))
        return [
            [[self.names[code], convert(label)] for code, label in zip(codes, row, strict=True) if code >= 0]
            for codes, row in zip(annotators, labels, strict=True)
        ]

    def largest(self, name: str) -> list[int]:
        """Tasks with the largest values of a column, as many as the page shows."""
        values = np.array([value or 0.0 for value in self.tasks[name]])
        return np.argsort(-values, kind="stable")[: self.settings.most].tolist()

    def alpha_of(self, table: Annotations, **options: Any) -> Alpha | None:
        """Krippendorff's alpha of classes or numbers; None where undefined."""
        if len(np.unique(table.labels[(table.redundancy > 1)[table.task_ids]])) < 2:
            return None
        return krippendorff_alpha(table, self.metric, **self.settings.sampling, **options)

    @property
    def labelled(self) -> int:
        """Number of tasks with annotations, at least one."""
        return max(self.overall["tasks"] - self.overall["tasks_without_annotations"], 1)

    def of_agreement(self) -> Iterable[PageWarning]:
        """Warnings about low or unknown agreement."""
        overall = self.overall
        if overall["tasks_with_one"] + overall["tasks_without_annotations"] == overall["tasks"]:
            yield warning("no-second", True)
            return
        if self.by_alpha and (self.alpha is None or not parts.above_chance(self.alpha)):
            yield warning("by-chance" if self.alpha else "all-equal", True)
        if (alone := overall["tasks_with_one"] / self.labelled) > 0.5:
            yield warning("one-annotation", True, share=parts.percent(alone))

    def of_reading(self) -> Iterable[PageWarning]:
        """Warnings about skipped rows, and about a fit that did not converge."""
        overall = self.overall
        if left_out := overall["rows_left_out"]:
            share = left_out / (left_out + overall["annotations"])
            rows = f"{left_out:,} {'row of the file was' if left_out == 1 else 'rows of the file were'}"
            yield warning("rows", share >= parts.MANY, rows=rows, share=parts.percent(share))
        if not self.aggregation.converged:
            yield warning("no-convergence", True, self.aggregation.method)

    def of_notes(self) -> Iterable[PageWarning]:
        """Warnings from the notes of the result."""
        return map(parts.note_warning, self.aggregation.notes)

    def all_warnings(self) -> list[PageWarning]:
        """All warnings, serious ones first."""
        of_flags = parts.flag_warnings(self.annotators, self.overall["annotations"])
        warnings = [*self.of_agreement(), *self.of_reading(), *self.of_notes(), *self.own_warnings(), *of_flags]
        return sorted(warnings, key=lambda item: not item.serious)

    def tables(self) -> dict[str, PageTable]:
        """The tables, in the order of the page."""
        first = parts.annotators_first(self.annotators, self.settings.most)
        annotators = self.table_of("annotators", self.annotators, first, self.annotator_details(first))
        return {"annotators": annotators, "tasks": self.table_of("tasks", self.tasks, self.rows, self.task_details())}

    def table_of(
        self, name: str, values: Columns, rows: list[int] | None = None, details: Details | None = None
    ) -> PageTable:
        """Build a table with its columns from columns.csv.

        Args:
            name: name of the table.
            values: values of its columns.
            rows: rows to show; None: all.
            details: details of these rows.
        """
        return PageTable(tuple(self.columns(name)), values, rows, None if details is None else list(details))

    def columns(self, name: str) -> list[parts.Column]:
        """Columns of a table, or of the facts."""
        shown = (column for column in (_COLUMNS | self.own_columns)[name] if column.key not in self.hidden)
        return [replace(column, **self.overrides.get(column.key, {})) for column in shown]

    def summary(self) -> Figures:
        """Further figures."""
        return {**self.overall, "krippendorff_alpha": None if self.alpha is None else asdict(self.alpha)}

    def numbers(self) -> Numbers:
        """Everything that the page shows."""
        alpha, overall = self.alpha, self.overall
        quantiles = redundancy(self.table).annotators.quantiles
        figures = {
            "median": None if quantiles is None else quantiles[2],
            "tasks_with_one_share": overall["tasks_with_one"] / self.labelled,
            **interval("alpha", *(getattr(alpha, end, None) for end in ("value", "low", "high"))),
            **parts.shares_of_flags(self.annotators),
            **overall,
        }
        if alpha is not None and alpha.low is not None:
            self.remarks["alpha"] = f"{alpha.low:.3f} to {alpha.high:.3f}"
        warnings = self.all_warnings()
        look = parts.look_first(warnings, int(figures["noted_annotators"]), self.standing_out(), self.calm)
        actions = [look, *self.actions()] if any(item.serious for item in warnings) else [*self.actions(), look]
        facts = [[x.title, figures[x.key], x.form, self.remarks.get(x.key, ""), x.help] for x in self.columns("facts")]
        return Numbers(
            kind=self.kind,
            verdict=[self.headline(), *actions, *([f"{background}."] if (background := self.background()) else [])],
            warnings=warnings,
            values={name: figures[name] for name in self.values()},
            facts=facts,
            tables={**self.tables(), **self.model_tables},
            summary=self.summary(),
            task_column=self.task_column,
            annotator_column=self.annotator_column,
            **self.extras,
        )


def below_and_at_chance(
    value: Floats, low: Floats, high: Floats, enough: Flags, chance: float = 0.0
) -> tuple[Flags, Flags]:
    """Annotators who agree with others less than by chance, and those at chance and clearly below the crowd, bool [R].

    Args:
        value: agreement of each annotator, [R]; NaN where unknown.
        low: lower end of its interval, [R].
        high: upper end, [R].
        enough: whether the annotator can be judged, bool [R].
        chance: agreement of uninformative answers.
    """
    known = enough & np.isfinite(low)
    usual = np.median(value[known]) if known.any() else chance
    with np.errstate(invalid="ignore"):
        return known & (high < chance), known & (low <= chance) & (high >= chance) & (high < usual)


def scale_of(values: Columns, name: str) -> tuple[float, float]:
    """Limits for drawing intervals around zero, which cover 95 % of their ends."""
    ends = [abs(end) for part in ("low", "high") for end in values.get(f"{name}_{part}", []) if end is not None]
    most = float(np.quantile(ends, 0.95)) if ends else 0.0
    return -(most or 1.0), most or 1.0
