"""Evaluator: measures the new model and the last pushed one on the eval split, and says which is to be served."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam

from crowdzoo.components.annotation_scores import annotation_scores
from crowdzoo.components.code_version import code_version
from crowdzoo.components.remote_files import is_remote
from crowdzoo.components.remote_serving import remote_baseline
from crowdzoo.components.serving_folder import baseline_of, fingerprint
from crowdzoo.components.tfx_internals import (
    SERVING_MODEL,
    BeamComponentParameter,
    InputArtifact,
    OutputArtifact,
    Parameter,
    component,
    computed,
    mark_blessing,
    standard_artifacts,
)
from crowdzoo.files.model_files import name_difference
from crowdzoo.files.served_model import MODEL_CARD_FILE
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.kinds.base import Kind
from crowdzoo.kinds.kind import kind_of
from crowdzoo.kinds.parts import model_scores
from crowdzoo.records.example_files import read_dataset_info, split_files

CANDIDATE, BASELINE = "candidate", "baseline"
LABELS, ANNOTATIONS = "labels", "annotations"  # what models are compared by


# No `from __future__ import annotations` in files of components: TFX reads the annotations as they stand.
@component(use_beam=True)
def Evaluator(  # noqa: N802, the function's name is the component's
    examples: InputArtifact[standard_artifacts.Examples],
    model: InputArtifact[standard_artifacts.Model],
    evaluation: OutputArtifact[standard_artifacts.ModelEvaluation],
    blessing: OutputArtifact[standard_artifacts.ModelBlessing],
    settings: Parameter[str],
    code_version: Parameter[str],
    baseline: Parameter[str] = "",
    beam_pipeline: BeamComponentParameter[beam.Pipeline] = None,
) -> None:
    """Runs TensorFlow Model Analysis on both models, and blesses the new one or not.

    It is blessed if its metric (accuracy; of a tagger the spans' F1, of a regressor R² and of a reward model the share
    of pairs whose better side has the higher score, which TensorFlow Model Analysis does not know, so that this
    component asks the exported models itself) reaches `minimum`, and it is not worse than the last pushed model. Both
    are compared on the same tasks of eval: by the metric, which may fall by no more than `tolerance`, or by the
    log-likelihood of the annotations (see `annotation_scores`), which may fall by no more than `annotation_tolerance`.
    The last pushed model is found in the serving folder. (TFX would take a Resolver node for that; open-source Kubeflow
    cannot run one, and with it a plain rerun would never come from the cache.)

    Args:
        examples: the Examples from CrowdAggregator; the split eval is used.
        model: the new model.
        evaluation: receives TFMA's result, and `evaluation.json`: `truth` (`gold` or `aggregated`), `candidate` and
            `baseline` (each with `model`, `tasks`, `accuracy`, `cross_entropy`, of a tagger `f1`, `precision`,
            `recall`, `token_accuracy` and `types`, of a regressor `r2`, `mae` and `rmse`, of a reward model
            `pair_accuracy` and `log_likelihood`; compared by annotations also what `annotation_scores` gives; baseline
            null where nothing was pushed before), `compared_by` (`labels` or `annotations`), `metric`, `blessed` and
            `reason`.
        blessing: receives the verdict in TFX's form, as TFX's Pusher reads it.
        settings: JSON of `tolerance`, `minimum` and `serving`, the folder of pushed models (a path or a URI). It may
            have `compare`, `labels` or `annotations` (for classes only); where it is missing, classes are compared by
            `annotations` if no task of eval has gold, everything else by `labels`. `annotation_tolerance`, nats for
            each annotation, 0 where it is missing. And `new_signatures`: whether a model of other classes, inputs or
            columns than the last pushed one, which it cannot be compared with, is blessed by `minimum` alone; false
            where it is missing.
        code_version: hash of the code that runs here, for TFX's cache; computed where it is not given.
        baseline: fingerprint of the last pushed model, for TFX's cache; computed where it is not given.
        beam_pipeline: runs the analysis.
    """
    del code_version, baseline
    options = json.loads(settings)
    candidate, serving = os.path.join(model.uri, SERVING_MODEL), options["serving"]
    with tempfile.TemporaryDirectory() as folder:
        if is_remote(serving):
            last_pushed = remote_baseline(candidate, serving, folder)
        else:
            found = baseline_of(candidate, serving)
            last_pushed = None if found is None else str(found)
        differs = _difference(candidate, last_pushed) if last_pushed else ""
        if differs:
            differs = f"of version {Path(last_pushed).name}, the last one pushed: {differs}"
            last_pushed = None
        models = {CANDIDATE: candidate} | ({BASELINE: last_pushed} if last_pushed else {})
        info = read_dataset_info(examples.uri)
        kind = kind_of(info["kind"])
        scores = model_scores(kind.name, models, split_files(examples.uri, "eval"), info, evaluation.uri, beam_pipeline)
        compared_by = options.get("compare")
        if compared_by is None:
            compared_by = ANNOTATIONS if kind.labels.one_class and info["truth"] == "aggregated" else LABELS
        if compared_by == ANNOTATIONS:
            for name, found in annotation_scores(models, examples.uri, info).items():
                scores[name] |= found
    if last_pushed and is_remote(serving):  # what was measured was a copy
        models[BASELINE] = f"{serving.rstrip('/')}/{Path(last_pushed).name}"
    summary: dict[str, Any] = {"truth": info["truth"], CANDIDATE: None, BASELINE: None}
    summary |= {name: {"model": models[name], **found} for name, found in scores.items()}
    tolerances = {LABELS: options["tolerance"], ANNOTATIONS: options.get("annotation_tolerance", 0.0)}
    blessed, reason = _verdict(summary, kind, tolerances[compared_by], options["minimum"], compared_by)
    if blessed and differs:
        blessed = options.get("new_signatures", False)
        reason = f"its classes or instances are not those {differs}, so that the two are not compared"
        if not blessed:
            reason += ". evaluation.new_signatures: true pushes it all the same"
    summary |= {"compared_by": compared_by, "metric": kind.metric, "blessed": blessed, "reason": reason}
    Path(evaluation.uri, "evaluation.json").write_text(json.dumps(summary, indent=2) + "\n")
    mark_blessing(blessing, model, blessed, models.get(BASELINE))


def _last_pushed(given: Mapping[str, Any]) -> str:
    """Fingerprint of the newest version in the serving folder that the settings name."""
    serving = json.loads(given.get("settings", "{}")).get("serving")
    versions = complete_versions(serving) if serving and not is_remote(serving) else []
    return fingerprint(versions[-1]) if versions else ""


Evaluator = computed(Evaluator, code_version=lambda _: code_version(__name__), baseline=_last_pushed)


def _difference(candidate: str, last_pushed: str) -> str:
    """In what classes and instances of a model are not those of the last one pushed, by their cards; "" in nothing."""
    paths = [Path(folder, MODEL_CARD_FILE) for folder in (candidate, last_pushed)]
    if not all(path.exists() for path in paths):
        return ""
    new, old = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    inputs = [card["signatures"]["serving_default"]["inputs"] for card in (new, old)]
    for what, now, before in (
        ("class", new["classes"] or [], old["classes"] or []),
        ("input", sorted(inputs[0]), sorted(inputs[1])),
        ("column", new.get("features") or [], old.get("features") or []),
    ):
        if found := name_difference(what, now, before):
            return found
    return "" if inputs[0] == inputs[1] else "inputs have another form"


def _verdict(
    summary: dict[str, Any], kind: Kind, tolerance: float, minimum: float, compared_by: str = LABELS
) -> tuple[bool, str]:
    candidate, last = summary[CANDIDATE], summary[BASELINE]
    value = candidate[kind.metric]
    if value < minimum:
        return False, f"its {kind.metric_title} {value:.4f} is below the minimum {minimum:g}"
    if last is None:
        return True, "no model was pushed before it"
    metric, name = kind.metric, kind.metric_title
    if compared_by == ANNOTATIONS:
        metric, name = "annotation_log_likelihood", "log-likelihood of held-out annotations"
    value, before = candidate[metric], last[metric]
    version = f"version {Path(last['model']).name}"
    if value < before - tolerance:
        allowed = f" by more than the tolerance {tolerance:g}" if tolerance else ""
        return False, f"its {name} {value:.4f} is below the {before:.4f} of {version}{allowed}"
    near = f"is within the tolerance {tolerance:g} of" if value < before else "is at least"
    return True, f"its {name} {value:.4f} {near} the {before:.4f} of {version}"
