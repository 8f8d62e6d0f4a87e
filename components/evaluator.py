"""Evaluator: compares the new model with the last pushed one on the eval split, and decides which is served."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.comparison.intervals import loss_bounds, tasks_needed
from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.annotation_scores import annotation_scores
from crowdzoo.components.artifacts import DriftAnomalies
from crowdzoo.components.code_version import code_version
from crowdzoo.components.drift_validator import ANOMALIES_FILE, KEEP, said
from crowdzoo.components.remote_files import is_remote
from crowdzoo.components.remote_serving import remote_baseline
from crowdzoo.components.serving_folder import baseline_of, fingerprint
from crowdzoo.files.json import read_json
from crowdzoo.files.model_files import name_difference
from crowdzoo.files.served_model import MODEL_CARD_FILE
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.files.writing import write_json
from crowdzoo.kinds import Kind, kind_of
from crowdzoo.records.example_files import read_dataset_info, split_files

CANDIDATE, BASELINE = "candidate", "baseline"
LABELS, ANNOTATIONS = "labels", "annotations"  # criteria by which models are compared
PUSHED, NOT_PUSHED, UNDECIDED = "pushed", "not pushed", "undecided"


# No `from __future__ import annotations` in files of components: TFX reads annotations at run time.
@tfx.component
def Evaluator(  # noqa: N802, the function's name is the component's
    examples: tfx.InputArtifact[tfx.standard_artifacts.Examples],
    model: tfx.InputArtifact[tfx.standard_artifacts.Model],
    evaluation: tfx.OutputArtifact[tfx.standard_artifacts.ModelEvaluation],
    blessing: tfx.OutputArtifact[tfx.standard_artifacts.ModelBlessing],
    settings: tfx.Parameter[str],
    code_version: tfx.Parameter[str],
    drift: tfx.InputArtifact[DriftAnomalies] = None,  # pyright: ignore, it is optional
    baseline: tfx.Parameter[str] = "",
) -> None:
    """Scores both models, and decides whether to bless the new one.

    It is blessed if its metric (accuracy; for a tagger the spans' F1, for a regressor R², for a model of masks the Dice
    coefficient, and for a reward model the share of pairs whose better side has the higher score) reaches `minimum`,
    and it is not worse than the last pushed model. Both are compared on the same tasks of eval: by the metric, or by
    the log-likelihood of the annotations (see `annotation_scores`), which may fall by no more than
    `annotation_tolerance`. By the metric this is a test of non-inferiority: the model is blessed if with 95 %
    confidence its loss (see `loss_bounds`) is at most `tolerance`, not blessed if with 95 % confidence it is more, and
    otherwise undecided. The last pushed model is read from the serving folder. (TFX's Resolver node does not run on
    open-source Kubeflow, and with it unchanged reruns would never use the cache.)

    Args:
        examples: the Examples from CrowdAggregator; the split eval is used.
        model: the new model.
        evaluation: receives `evaluation.json`: `truth` (`gold` or `aggregated`), `candidate` and `baseline` (each with
            `model`, `tasks`, for a classifier `accuracy`, `cross_entropy`, `balanced_accuracy` and `calibration_error`,
            for a tagger `f1`, `precision`, `recall`, `token_accuracy` and `types`, for a regressor `r2`, `mae` and
            `rmse`, for a reward model `pair_accuracy` and `log_likelihood`; when compared by annotations also the
            result of `annotation_scores`; baseline is null if nothing was pushed before), `compared_by` (`labels` or
            `annotations`), `metric`, `outcome` (`pushed`, `not pushed` or `undecided`), `blessed` and `reason`; when
            compared by labels also `loss`, with its `mean`, the bounds `lower` and `upper`, and the `tolerance`; with
            `drift` the anomalies, one sentence each.
        blessing: receives the verdict in the form of TFX's Pusher, and the summary as `evaluated`, JSON.
        settings: JSON of `tolerance`, `minimum` and `serving`, the folder of pushed models (a path or a URI). Optional:
            `undecided`, `keep` (the served model stays, the default) or `push`; `compare`, `labels` or `annotations`
            (for classes only), by default `annotations` for classes if no task of eval has gold, else `labels`;
            `annotation_tolerance`, in nats per annotation, default 0; and `new_signatures`, whether a model whose
            classes, inputs or columns differ from the last pushed one, so that they cannot be compared, is blessed by
            `minimum` alone, default false.
        code_version: hash of the component's code, for TFX's cache; computed by default.
        drift: output of DriftValidator; if its action is `keep`, anomalies prevent the blessing. Its data go with the
            blessing to the Pusher.
        baseline: fingerprint of the last pushed model, for TFX's cache; computed by default.
    """
    del code_version, baseline
    options = json.loads(settings)
    candidate, serving = os.path.join(model.uri, tfx.SERVING_MODEL), options["serving"]
    with tempfile.TemporaryDirectory() as folder:
        if is_remote(serving):
            last_pushed = remote_baseline(candidate, serving, folder)
        else:
            newest = baseline_of(candidate, serving)
            last_pushed = None if newest is None else str(newest)
        differs = _difference(candidate, last_pushed) if last_pushed else ""
        if differs:
            differs = f"of version {Path(last_pushed).name}, the last one pushed: {differs}"
            last_pushed = None
        models = {CANDIDATE: candidate} | ({BASELINE: last_pushed} if last_pushed else {})
        info = read_dataset_info(examples.uri)
        kind = kind_of(info["kind"])
        scores = kind.records.model_scores(models, split_files(examples.uri, "eval"), info)
        by_task = {name: values.pop("by_task", None) for name, values in scores.items()}
        compared_by = options.get("compare")
        if compared_by is None:
            compared_by = ANNOTATIONS if kind.scoring.by_annotations and info["truth"] == "aggregated" else LABELS
        if compared_by == ANNOTATIONS:
            for name, likelihoods in annotation_scores(models, examples.uri, info).items():
                scores[name] |= likelihoods
    if last_pushed and is_remote(serving):  # a copy was evaluated
        models[BASELINE] = f"{serving.rstrip('/')}/{Path(last_pushed).name}"
    summary: dict[str, Any] = {"truth": info["truth"], CANDIDATE: None, BASELINE: None}
    summary |= {name: {"model": models[name], **values} for name, values in scores.items()}
    tolerances = {LABELS: options["tolerance"], ANNOTATIONS: options.get("annotation_tolerance", 0.0)}
    blessed, reason = _verdict(summary, kind, tolerances[compared_by], options["minimum"], compared_by)
    if blessed and summary[BASELINE] is not None and compared_by == LABELS:
        blessed, reason = _not_inferior(summary, kind, options["tolerance"], by_task, options.get("undecided", "keep"))
    if blessed and differs:
        blessed = options.get("new_signatures", False)
        reason = f"its classes or instances are not those {differs}, so that the two are not compared"
        if not blessed:
            reason += ". To push it anyway, set evaluation.new_signatures: true"
    if drift is not None:
        report = read_json(Path(drift.uri, ANOMALIES_FILE))
        summary["drift"] = report["anomalies"]
        if report["anomalies"] and report["action"] == KEEP:
            blessed, reason, summary["outcome"] = False, f"{reason}; but {said(report['anomalies'])}", NOT_PUSHED
        shutil.copytree(drift.uri, os.path.join(blessing.uri, tfx.DRIFT), dirs_exist_ok=True)
    summary.setdefault("outcome", PUSHED if blessed else NOT_PUSHED)
    summary |= {"compared_by": compared_by, "metric": kind.scoring.metric, "blessed": blessed, "reason": reason}
    write_json(Path(evaluation.uri, "evaluation.json"), summary)
    tfx.mark_blessing(blessing, model, blessed, models.get(BASELINE))
    figures = {key: value for key, value in summary.items() if key not in (CANDIDATE, BASELINE)}
    for name in (CANDIDATE, BASELINE):
        figures[name] = {key: value for key, value in (summary[name] or {}).items() if key != "types"} or None
    blessing.set_string_custom_property(tfx.EVALUATED, json.dumps(figures))


def _last_pushed(parameters: Mapping[str, Any]) -> str:
    """Fingerprint of the newest version in the serving folder that the settings name."""
    serving = json.loads(parameters.get("settings", "{}")).get("serving")
    versions = complete_versions(serving) if serving and not is_remote(serving) else []
    return fingerprint(versions[-1]) if versions else ""


Evaluator = tfx.with_computed_defaults(Evaluator, code_version=lambda _: code_version(__name__), baseline=_last_pushed)


def _difference(candidate: str, last_pushed: str) -> str:
    """Difference of a model's classes and instances from those of the last pushed one, by their cards; "" if none."""
    paths = [Path(folder, MODEL_CARD_FILE) for folder in (candidate, last_pushed)]
    if not all(path.exists() for path in paths):
        return ""
    new, old = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    inputs = [card["signatures"]["serving_default"]["inputs"] for card in (new, old)]
    for field, now, before in (
        ("class", new["classes"] or [], old["classes"] or []),
        ("input", sorted(inputs[0]), sorted(inputs[1])),
        ("column", new.get("features") or [], old.get("features") or []),
    ):
        if difference := name_difference(field, now, before):
            return difference
    return "" if inputs[0] == inputs[1] else "inputs have another form"


def _verdict(
    summary: dict[str, Any], kind: Kind, tolerance: float, minimum: float, compared_by: str = LABELS
) -> tuple[bool, str]:
    """Verdict by the minimum, and by annotations."""
    candidate, last = summary[CANDIDATE], summary[BASELINE]
    value = candidate[kind.scoring.metric]
    if value < minimum:
        return False, f"its {kind.scoring.metric_title} {value:.4f} is below the minimum {minimum:g}"
    if last is None:
        return True, "no model was pushed before it"
    if compared_by == LABELS:
        return True, ""
    name, key = "log-likelihood of held-out annotations", "annotation_log_likelihood"
    value, before = candidate[key], last[key]
    version = f"version {Path(last['model']).name}"
    if value < before - tolerance:
        allowed = f" by more than the tolerance {tolerance:g}" if tolerance else ""
        return False, f"its {name} {value:.4f} is below the {before:.4f} of {version}{allowed}"
    near = f"is within the tolerance {tolerance:g} of" if value < before else "is at least"
    return True, f"its {name} {value:.4f} {near} the {before:.4f} of {version}"


def _not_inferior(
    summary: dict[str, Any], kind: Kind, tolerance: float, by_task: Mapping[str, np.ndarray], undecided: str
) -> tuple[bool, str]:
    """Verdict by labels: pushed if a one-sided 95 % bound of the loss is within the tolerance; see `loss_bounds`."""
    new, old = by_task[CANDIDATE], by_task[BASELINE]
    loss, lower, upper = loss_bounds(new, old)
    outcome = PUSHED if upper <= tolerance else NOT_PUSHED if lower > tolerance else UNDECIDED
    summary |= {"loss": {"mean": loss, "lower": lower, "upper": upper, "tolerance": tolerance}, "outcome": outcome}
    value, before = (summary[name][kind.scoring.metric] for name in (CANDIDATE, BASELINE))
    reason = (
        f"its {kind.scoring.metric_title} {value:.4f} against the {before:.4f} of version "
        f"{Path(summary[BASELINE]['model']).name} on {len(new):,} tasks: a loss of {loss:.4f}, with 95 % confidence "
    )
    if outcome == PUSHED:
        return True, f"{reason}at most {upper:.4f}, within the tolerance {tolerance:g}"
    if outcome == NOT_PUSHED:
        return False, f"{reason}at least {lower:.4f}, above the tolerance {tolerance:g}"
    enough = f"; about {tasks_needed(new, old, tolerance):,} tasks are needed" if tolerance else ""
    reason += f"{lower:.4f} to {upper:.4f}, undecided at the tolerance {tolerance:g}{enough}"
    if undecided == "push":
        return True, f"{reason}. Pushed by evaluation.undecided"
    return False, f"{reason}. A higher evaluation.tolerance decides sooner; evaluation.undecided: push pushes it"
