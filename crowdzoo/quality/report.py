"""quality_report: all measures of a crowd's answers, to check before training on them."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import TABLE_FORMATS, Choice, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import require_annotations
from crowdzoo.errors import DataError
from crowdzoo.files.json import FORMAT_VERSION
from crowdzoo.files.writing import atomic_folder, write_table
from crowdzoo.quality.alternative_annotators import AlternativeAnnotator, alternative_annotator_test
from crowdzoo.quality.annotators import annotator_table
from crowdzoo.quality.camps import Camps, camps_of
from crowdzoo.quality.comparable_crowds import expected_accuracy
from crowdzoo.quality.dependence import effective_votes_interval
from crowdzoo.quality.figures import defined, interval, name_column
from crowdzoo.quality.kappa import fleiss_kappa, gwet_ac1, raw_agreement
from crowdzoo.quality.krippendorff import Alpha, coincidence_matrix, krippendorff_alpha
from crowdzoo.quality.model_agreement import class_agreement
from crowdzoo.quality.notes import data_notes
from crowdzoo.quality.ratings import Ratings, ratings_of
from crowdzoo.quality.settled import can_be_settled, settled_interval, settlement, worth_asking
from crowdzoo.quality.spread import Redundancy, redundancy
from crowdzoo.quality.tasks import task_table
from crowdzoo.reading.tables.suspicious import suspicious_classes

if TYPE_CHECKING:
    import pandas as pd

OF_MODELS = ("models", "model_people", "model_classes")  # tables that there are where models are named
MAX_CLASSES = 256  # of a coincidence matrix in a report


@dataclass(frozen=True, eq=False)
class QualityReport:
    """Agreement and quality of a crowd's answers, as single values and tables.

    Attributes:
        overall: single values, None if undefined: counts (`annotations`, `rows_left_out` on reading, `tasks`,
            `annotators`, `classes`, `tasks_without_annotations`, `tasks_with_one`, `tasks_tied`), `agreement` (raw, per
            task), `fleiss_kappa`, `gwet_ac1` (with `_low` and `_high`), `mean_entropy` (nats, over annotated tasks),
            `effective_votes` (see the function with this name; `effective_votes_low` and `effective_votes_high` are the
            ends of its 95 % interval), `aggregation` (name of the method, or None), `settled` (mean over annotated
            tasks) and `expected_accuracy` (see the function with this name); `_low` and `_high` are the ends of the 90
            % intervals of these two. `tasks_to_ask` and `answers_to_ask`: tasks that are worth more answers (see
            `worth_asking`), and about how many answers. For two camps also `camps_statistic` and `camps_p_value`, see
            `Camps`.
        alpha: Krippendorff's alpha, or None if undefined.
        redundancy: how annotations are spread over tasks and annotators.
        tasks: one row per task, see `task_table`.
        annotators: one row per annotator, see `annotator_table`.
        classes: one row per class: `class`, `annotations`, `share`, `agreement` (how often another annotation of the
            same task has the class, given that one has it; null if there are no others); no columns for other labels.
        coincidences: see `coincidence_matrix`, [K, K]; None for more than 256 classes.
        notes: sentences on names of classes that may be mistakes, and those of `data_notes`.
        replacements: whether each model may replace people, see `alternative_annotator_test`; empty if no models are
            named.
        agreements: how far models agree with people, see `class_agreement`; None if no models are named.
        camps: one row per task with different labels of two camps, the most certain first: `task`, `camp_1` and
            `camp_2` (labels), `probability` (of the less certain one); None without camps.
    """

    overall: dict[str, Any]
    alpha: Alpha | None
    redundancy: Redundancy
    tasks: pa.Table
    annotators: pa.Table
    classes: pa.Table
    coincidences: NDArray[np.float64] | None
    notes: tuple[str, ...] = ()
    replacements: tuple[AlternativeAnnotator, ...] = ()
    agreements: pa.Table | None = None
    camps: pa.Table | None = None

    def __repr__(self) -> str:
        alpha = "not defined" if self.alpha is None else str(self.alpha)
        counts = ", ".join(f"{self.overall[name]:,} {name}" for name in ("annotations", "tasks", "annotators"))
        return f"<QualityReport: {counts}, alpha {alpha}>"

    def _repr_html_(self) -> str:
        """HTML for notebooks: the values of `overall`, and the notes."""
        known = {name.replace("_", " "): value for name, value in self.overall.items() if value is not None}
        cells = {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in known.items()}
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(cell)}</td></tr>" for name, cell in cells.items())
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"<p>{html.escape(repr(self))}</p><table>{rows}</table>{f'<ul>{notes}</ul>' if notes else ''}"

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Returns the tables of `write` as pandas frames, with NaN for null. Needs pandas."""
        return {name: table.to_pandas() for name, table in self._tables().items()}

    def summary(self) -> dict[str, Any]:
        """Returns `overall`, `alpha`, `redundancy` and `replacements` as plain values, as in `summary.json`."""
        spreads = {}
        for name in ("tasks", "annotators"):
            spread = getattr(self.redundancy, name)
            spreads[name] = {
                "histogram": np.stack([spread.values, spread.owners], axis=1).tolist(),
                "mean": spread.mean,
                "quantiles": spread.quantiles,
                "gini": spread.gini,
            }
        alpha = None if self.alpha is None else asdict(self.alpha)
        values = {**self.overall, "krippendorff_alpha": alpha, "redundancy": spreads, "notes": list(self.notes)}
        return {**values, "models": _models(self.replacements).to_pylist()} if self.replacements else values

    @checked(file_format=Choice(TABLE_FORMATS))
    def write(self, folder: str | Path, file_format: str = "parquet", *, replace: bool = False) -> Path:
        """Writes a folder that appears complete or not at all.

        It contains `tasks`, `annotators` and `classes`, each as .parquet, .csv (null is an empty cell), .jsonl or
        .xlsx, and `summary.json`; if there are camps also `camps`. If models are named also `models` (one row per model
        with the values of `AlternativeAnnotator`), `model_people` (one row per model and person, from its table
        `people`) and `model_classes` (the table of `class_agreement`).

        Args:
            folder: path of a new or empty folder.
            file_format: "parquet", "csv", "jsonl" or "xlsx".
            replace: whether to replace a folder that is not empty.

        Raises:
            DataError: the folder is not empty, and `replace` is false.
            ConfigError: any other format.
        """
        folder = Path(folder)
        if folder.exists() and (not folder.is_dir() or (not replace and any(folder.iterdir()))):
            raise DataError(f"{folder} is there already and not empty: give a new folder.")
        with atomic_folder(folder, replace=replace) as fresh:
            for name, table in self._tables().items():
                with open(fresh / f"{name}.{file_format}", "wb") as file:  # given a path, Arrow may take it for a URL
                    write_table(table, file, file_format)
            text = json.dumps({**self.summary(), "format_version": FORMAT_VERSION}, indent=2, ensure_ascii=False)
            (fresh / "summary.json").write_text(text + "\n", encoding="utf-8")
        return folder

    def _tables(self) -> dict[str, pa.Table]:
        tables = {"tasks": self.tasks, "annotators": self.annotators, "classes": self.classes}
        tables |= {} if self.camps is None else {"camps": self.camps}
        if self.agreements is None:
            return {name: table for name, table in tables.items() if table.num_columns}
        people = [
            test.people.add_column(0, "model", pa.array([test.model] * test.people.num_rows, pa.string()))
            for test in self.replacements
        ]
        of_models = _models(self.replacements), pa.concat_tables(people), self.agreements
        return tables | dict(zip(OF_MODELS, of_models, strict=True))


def quality_report(
    annotations: Annotations,
    aggregation: Aggregation | None = None,
    *,
    metric: str = "nominal",
    bootstrap: int = 200,
    seed: int = 0,
    models: Sequence[object] | None = None,
    epsilon: float = 0.2,
    on_sample: Callable[[], None] | None = None,
) -> QualityReport:
    """Measures agreement, redundancy, tasks, annotators and classes, and compares models with people.

    Time and memory are proportional to the annotations (and K^2 up to 256 classes); annotators are not compared in
    pairs. A bootstrap sample costs about as much as the rest of the agreement.

    Args:
        annotations: kind classification.
        aggregation: a result for the same annotations, for its values on tasks and annotators.
        metric: metric of Krippendorff's alpha, see `krippendorff_alpha`.
        bootstrap: samples for its 95 % interval; 0 for none.
        seed: seed of the bootstrap, and of `camps_of`.
        models: names of the annotators that are models, to compare with all others, who are people; empty if there are
            no models. None if unknown: then a note may ask.
        epsilon: `epsilon` of `alternative_annotator_test`.
        on_sample: function called after each sample, for a progress bar.

    Raises:
        DataError: wrong kind, an aggregation of other tasks, annotators or classes, class names that are not numbers if
            the metric needs them, or models without annotations by people.
        ConfigError: a setting is out of range, or an unknown model.
        ImportError: models are named, and SciPy is missing.
    """
    require_annotations(annotations, "A quality report")
    tests = alternative_annotator_test(annotations, models, epsilon=epsilon) if models else []
    settled: tuple[float | None, ...] = (None, None, None)
    correct: tuple[float | None, ...] = (None, None, None)
    if aggregation is not None and can_be_settled(annotations):
        state = settlement(annotations, aggregation)
        if aggregation.settled is None:
            aggregation = replace(aggregation, settled=state.settled, answers_to_settle=state.further)
        correct = expected_accuracy(annotations, aggregation.labels, state.probability) or correct
    elif aggregation is not None and aggregation.method == "robust":
        correct = expected_accuracy(annotations, aggregation.labels, aggregation.posteriors.max(axis=1)) or correct
    asking: tuple[int | None, int | None] = (None, None)
    if aggregation is not None and aggregation.settled is not None and aggregation.answers_to_settle is not None:
        worth_it = worth_asking(aggregation.settled, aggregation.answers_to_settle)
        asking = int(worth_it.sum()), int(aggregation.answers_to_settle[worth_it].sum())
    if aggregation is not None and (share := aggregation.settled_share) is not None:
        settled = (share, *settled_interval(share, int((annotations.redundancy > 0).sum())))
    # each measure reads the rows task by task: put them in that order once
    annotations = annotations.select_rows(np.argsort(annotations.task_ids, kind="stable"))
    ratings = ratings_of(annotations, "A quality report")
    tasks = task_table(annotations, aggregation)
    pairable = ratings.pairable
    agree = len(pairable.codes) > 0
    vary = agree and bool((pairable.codes != pairable.codes[0]).any())
    alpha = None
    if vary:
        alpha = krippendorff_alpha(annotations, metric, bootstrap=bootstrap, seed=seed, on_sample=on_sample)
    ac1 = gwet_ac1(annotations) if agree and annotations.num_classes > 1 else (None, None, None)
    worths = effective_votes_interval(annotations)
    people = _people(annotations, models)
    camps = camps_of(annotations.select_rows(people[annotations.annotator_ids]), seed=seed)
    overall = {
        "annotations": len(annotations),
        "rows_left_out": annotations.num_rejected - annotations.num_replaced,
        "tasks": annotations.num_tasks,
        "annotators": annotations.num_annotators,
        "classes": annotations.num_classes,
        "tasks_without_annotations": int((ratings.sizes == 0).sum()),
        "tasks_with_one": int((ratings.sizes == 1).sum()),
        "tasks_tied": pc.sum(tasks["tied"]).as_py() or 0,
        "agreement": raw_agreement(annotations) if agree else None,
        "fleiss_kappa": fleiss_kappa(annotations) if vary else None,
        **interval("gwet_ac1", *(None if value != value else value for value in ac1)),
        "mean_entropy": pc.mean(tasks["entropy"]).as_py(),
        **interval("effective_votes", *(worths or (None, None, None))),
        "aggregation": None if aggregation is None else aggregation.method,
        **interval("settled", *settled),
        "tasks_to_ask": asking[0],
        "answers_to_ask": asking[1],
        **interval("expected_accuracy", *correct),
    }
    if camps is not None:
        overall |= {"camps_statistic": camps.statistic, "camps_p_value": camps.p_value}
    return QualityReport(
        overall=overall,
        alpha=alpha,
        redundancy=redundancy(annotations),
        tasks=tasks,
        annotators=annotator_table(annotations, aggregation, people, camps),
        classes=_class_table(annotations, ratings),
        coincidences=coincidence_matrix(annotations) if annotations.num_classes <= MAX_CLASSES else None,
        notes=(
            *suspicious_classes(
                np.asarray(annotations.classes).tolist(), np.bincount(ratings.codes, minlength=annotations.num_classes)
            ),
            *data_notes(annotations, overall["aggregation"], worths, models_named=models is not None),
        ),
        replacements=tuple(tests),
        agreements=class_agreement(annotations, models) if models else None,
        camps=None if camps is None else _camp_table(annotations, camps),
    )


def _people(annotations: Annotations, models: Sequence[object] | None) -> NDArray[np.bool_]:
    """Marks annotators who are not models, bool [R]."""
    named = {str(name) for name in models or ()}
    return np.array([str(name) not in named for name in annotations.annotators.tolist()], bool)


def _models(tests: Sequence[AlternativeAnnotator]) -> pa.Table:
    """One row per model; null if nobody is compared."""
    columns: dict[str, pa.Array] = {
        "model": pa.array([test.model for test in tests], pa.string()),
        "people": pa.array([test.people.num_rows for test in tests], pa.int64()),
    }
    for name in ("shared", "epsilon", "winning_rate", "advantage", "passes", "decided", "tasks_needed"):
        values = [getattr(test, name) for test in tests]
        columns[name] = pa.array([None if value != value or value == math.inf else value for value in values])
    return pa.table(columns)


def _camp_table(annotations: Annotations, camps: Camps) -> pa.Table:
    """See `QualityReport.camps`."""
    tasks, names = camps.disputed, np.asarray(annotations.classes)
    return pa.table(
        {
            "task": name_column(annotations.tasks, tasks),
            "camp_1": name_column(names, camps.labels[tasks, 0]),
            "camp_2": name_column(names, camps.labels[tasks, 1]),
            "probability": pa.array(camps.probabilities[tasks].min(axis=1)),
        }
    )


def _class_table(annotations: Annotations, ratings: Ratings) -> pa.Table:
    number = annotations.num_classes
    counts = np.bincount(ratings.codes, minlength=number)
    paired, agreement = ratings.others_agree(ratings.codes, number)
    return pa.table(
        {
            "class": name_column(np.asarray(annotations.classes)),
            "annotations": pa.array(counts),
            "share": defined(counts / max(len(annotations), 1), np.full(number, len(annotations) > 0)),
            "agreement": defined(agreement, paired > 0),
        }
    )
