"""What a kind of label has in its folder, one module a part, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from crowdzoo.data.label_kinds import label_kind, require_annotations
from crowdzoo.errors import ConfigError

if TYPE_CHECKING:
    from crowdzoo.kinds.compared import Compared
    from crowdzoo.records.crowd_answers import CrowdAnswers
    from crowdzoo.records.labelled_tasks import LabelledTasks
    from crowdzoo.records.training import Trained
    from crowdzoo.training.checkpoint import Checkpoint


def folder_of(kind: str) -> str:
    """Name of the folder of a kind; see `part_of`."""
    return "several_labels" if kind == "multi-label" else label_kind(kind).title.replace(" ", "_")


def part_of(kind: str, part: str) -> Any:
    """The module of that name in the folder of a kind.

    Args:
        kind: of labels; or "multi-label", a kind of results, whose labels are classes.
        part: name of the module.

    Raises:
        ConfigError: no such kind, or one without this part.
    """
    if not has_part(kind, part):
        what = "comparison" if part == "compared" else "pipeline"
        raise ConfigError(
            f"there is no {what} of {label_kind(kind).title}: crowdzoo aggregate --method NAME --gold FILE says how "
            "far a method is from gold."
        )
    return import_module(f"{__package__}.{folder_of(kind)}.{part}")


def has_part(kind: str, part: str) -> bool:
    """Whether a kind has a module of that name; arguments as for `part_of`."""
    return find_spec(f"{__package__}.{folder_of(kind)}.{part}") is not None


def compared_by(crowd: Any, gold: Any) -> type[Compared]:
    """How methods for labels are compared; see `crowdzoo.kinds.compared`.

    Args:
        crowd: what the aggregators of their kind fit.
        gold: of the tasks; a mapping is that of several labels a task.

    Raises:
        DataError: no annotations.
    """
    annotations = getattr(crowd, "annotations", crowd)
    require_annotations(annotations, "compare")
    kind = "multi-label" if isinstance(gold, Mapping) else annotations.kind
    found: type[Compared] = part_of(kind, "compared").COMPARED
    return found


def read_labelled(kind: str, options: dict[str, Any], rejects: str, folder: str) -> LabelledTasks:
    """The files of a kind as tf.Examples; see `crowdzoo.records.instance_examples.read_labelled_instances`."""
    found: LabelledTasks = part_of(kind, "records").read_labelled(options, rejects, folder)
    return found


def aggregated(
    kind: str, method: Any, crowds: dict[str, Any], fit: Callable[[Any], Any], examples: str
) -> CrowdAnswers:
    """Fits a method, and asks it about the tasks of both splits.

    Args:
        kind: of labels.
        method: of aggregation.
        crowds: annotations by split, and of `BOTH`.
        fit: fits the method, on Beam where it has that form.
        examples: folder of the Examples.
    """
    found: CrowdAnswers = part_of(kind, "aggregated").aggregated(method, crowds, fit, examples)
    return found


def model_scores(
    kind: str, models: Mapping[str, str], files: str, info: Mapping[str, Any], output: str, pipeline: Any
) -> dict[str, dict[str, Any]]:
    """Measures exported models on the tasks of eval.

    Args:
        kind: of labels.
        models: name -> folder of the SavedModel; the one called "baseline" is what the others are compared with.
        files: pattern of the files of eval, as CrowdAggregator writes them.
        info: result of `read_dataset_info`.
        output: folder that receives TensorFlow Model Analysis' own result, where that measures.
        pipeline: runs the analysis.

    Returns:
        For each model `tasks`, what `Kind.scores` gives, and of several models `by_task`, float [N]: of each task
        whose truth is known a score; their mean is the kind's metric.

    Raises:
        FileNotFoundError: no file fits.
        ServingError: a model that does not load, or does not take these instances.
        ValueError: answers that cannot be compared.
    """
    found: dict[str, dict[str, Any]] = part_of(kind, "scores").model_scores(models, files, info, output, pipeline)
    return found


def train_from_files(
    kind: str, settings: Any, files: Sequence[str], info: dict[str, Any], checkpoint: Checkpoint | None, **more: Any
) -> Trained:
    """See `crowdzoo.records.training.train_on_instances`; `more` is `start`, where it is given."""
    found: Trained = part_of(kind, "training").train_from_files(settings, files, info, checkpoint, **more)
    return found
