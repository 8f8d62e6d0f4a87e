"""CrowdReport: a page about the crowd and its model, and conditions under which the model is not pushed."""

import json
import os
import shutil
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.annotation_example_gen import ANNOTATIONS_FILE, TASKS_FILE
from crowdzoo.components.artifacts import AnnotationsArtifact, CrowdPage
from crowdzoo.components.code_version import code_version
from crowdzoo.components.serving_folder import fingerprint
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConditionError, DataError
from crowdzoo.export.predict import load_predictor
from crowdzoo.files.arrow import read_parquet
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.page_parts import PageWarning
from crowdzoo.reading.instances.predictions import Predictions
from crowdzoo.records.example_dataset import read_batches
from crowdzoo.records.example_files import read_dataset_info, split_files
from crowdzoo.records.instance_features import parsed_instances
from crowdzoo.report.page import report_page
from crowdzoo.report.page_changes import read_numbers
from crowdzoo.report.training_history import read_history

PAGE_FILE, NUMBERS_FILE, HISTORY_FILE = "report.html", "report.json", "history.json"
_DRIFT_FIX = (
    "look at this column and at how it is made; if the change is intended, the next run compares with these data"
)
BATCH = 256  # largest number of instances in memory at a time


# No `from __future__ import annotations` in files of components: TFX reads annotations at run time.
@tfx.component
def CrowdReport(  # noqa: N802, the function's name is the component's
    examples: tfx.InputArtifact[tfx.standard_artifacts.Examples],
    annotations: tfx.InputArtifact[AnnotationsArtifact],
    page: tfx.OutputArtifact[CrowdPage],
    blessing: tfx.OutputArtifact[tfx.standard_artifacts.ModelBlessing],
    settings: tfx.Parameter[str],
    code_version: tfx.Parameter[str],
    model: tfx.InputArtifact[tfx.standard_artifacts.Model] = None,  # pyright: ignore, it is optional
    model_run: tfx.InputArtifact[tfx.standard_artifacts.ModelRun] = None,  # pyright: ignore, likewise
    evaluated: tfx.InputArtifact[tfx.standard_artifacts.ModelBlessing] = None,  # pyright: ignore, likewise
    before: tfx.Parameter[str] = "",
) -> None:
    """Writes the page of `crowdzoo report` for the annotations of both splits, and decides whether to allow the push.

    The aggregation method is fitted to the annotations of both splits, so that every task has a label; the model itself
    is trained on the labels of CrowdAggregator. For classes the page also has the predictions of the model for the
    tasks of eval, next to the aggregated labels, and gold if known.

    Args:
        examples: output of CrowdAggregator or AnnotationExampleGen.
        annotations: output of AnnotationExampleGen.
        page: receives `report.html` and `report.json`.
        blessing: receives the verdict of `evaluated`, or a negative one if a condition of `fail_if` holds (named by the
            custom property `reason`). Pass it to the Pusher in place of the Evaluator's.
        settings: JSON of `title`, `method`, `arguments`, `seed`, and `fail_if`, a list such as ["alpha<0.6"] (see
            `Condition`).
        code_version: hash of the component's code, for TFX's cache; computed by default.
        model: the trained model; without it the page is about the annotations only.
        model_run: output of the Trainer; its `history.json` is plotted, if there is one.
        evaluated: output of the Evaluator; without it only the conditions decide.
        before: path of the `report.json` of an earlier page, to show changes. If it cannot be compared, it is ignored
            and the reason is logged.

    Raises:
        ConfigError: an invalid condition.
    """
    del code_version
    options, info = json.loads(settings), read_dataset_info(examples.uri)
    crowd = Annotations.from_parquet(os.path.join(annotations.uri, ANNOTATIONS_FILE))
    arguments: dict[str, Any] = {"title": options["title"], "seed": options["seed"]}
    if model_run is not None and os.path.exists(place := os.path.join(model_run.uri, HISTORY_FILE)):
        arguments["history"] = read_history(place)
    kind = kind_of(info["kind"])
    labelled = kind.records.labelled(crowd, examples.uri, info)
    if kind.labels.one_class:
        arguments["gold"] = _gold(crowd, annotations.uri)
        if model is not None:
            exported = os.path.join(model.uri, tfx.SERVING_MODEL)
            arguments["predictions"] = _predictions(exported, examples.uri, info, crowd)
    method: Any = kind.aggregation.create(options["method"], seed=options["seed"], **options["arguments"])
    fitted = method.fit(labelled)
    report = None
    if before:
        try:
            report = report_page(labelled, fitted, before=read_numbers(before), **arguments)
        except DataError as error:
            logging.warning("The page does not show changes since %s: %s", before, error)
    report = report or report_page(labelled, fitted, **arguments)
    figures = json.loads(evaluated.get_string_custom_property(tfx.EVALUATED) or "{}") if evaluated is not None else {}
    report.numbers.warnings.extend(
        PageWarning(True, "data", f"differ from those of the served model: {anomaly}", _DRIFT_FIX, key="drift")
        for anomaly in figures.get("drift", [])
    )
    report.write(os.path.join(page.uri, PAGE_FILE))
    if model is not None:
        page.set_string_custom_property("model", fingerprint(os.path.join(model.uri, tfx.SERVING_MODEL)))
    blessed = evaluated is None or evaluated.get_int_custom_property("blessed") == 1
    try:
        report.check(options["fail_if"])
    except ConditionError as error:
        blessed = False
        blessing.set_string_custom_property("reason", str(error))
    baseline = None if evaluated is None else evaluated.get_string_custom_property("baseline_model")
    tfx.mark_blessing(blessing, model, blessed, baseline)
    if evaluated is not None:
        if os.path.isdir(statistics := os.path.join(evaluated.uri, tfx.DRIFT)):
            shutil.copytree(statistics, os.path.join(blessing.uri, tfx.DRIFT), dirs_exist_ok=True)
        blessing.set_string_custom_property(tfx.EVALUATED, evaluated.get_string_custom_property(tfx.EVALUATED))


CrowdReport = tfx.with_computed_defaults(CrowdReport, code_version=lambda _: code_version(__name__))


def _gold(crowd: Annotations, folder: str) -> np.ndarray | None:
    """Known classes of the tasks, codes [N], -1 where unknown; None if none is known."""
    table = read_parquet(os.path.join(folder, TASKS_FILE))
    code = {str(name): number for number, name in enumerate(np.asarray(crowd.classes).tolist())}
    known = {
        task: code[gold]
        for task, gold in zip(table["task"].to_pylist(), table["gold"].to_pylist(), strict=True)
        if gold is not None
    }
    return np.array([known.get(str(task), -1) for task in crowd.tasks.tolist()], np.int64) if known else None


def _predictions(model: str, examples: str, info: dict[str, Any], crowd: Annotations) -> Predictions:
    """Predictions of an exported model for the tasks of eval."""
    predict = load_predictor(model)
    row = {str(task): place for place, task in enumerate(crowd.tasks.tolist())}
    labels, probabilities = np.full(crowd.num_tasks, -1, np.int64), np.full(crowd.num_tasks, np.nan)
    unlabelled = 0  # number of tasks of eval without labels
    names = {"task": tf.io.FixedLenFeature([], tf.string)}
    for batch in read_batches([split_files(examples, "eval")], info, "eval", BATCH, others=names):
        estimates = predict(parsed_instances(batch), BATCH)["probabilities"]
        rows = np.array([row.get(task.decode(), -1) for task in batch["task"]], np.int64)
        ours = rows >= 0
        labels[rows[ours]] = estimates[ours].argmax(axis=1)
        probabilities[rows[ours]] = estimates[ours].max(axis=1)
        unlabelled += int(np.sum(~ours))
    return Predictions(labels, probabilities, unlabelled)
