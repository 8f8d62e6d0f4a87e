"""What a kind of label has in its folder, one module a part, loaded when it is asked for.

The pipeline's parts:

- `records`: the files of a kind as tf.Examples. `read_labelled(options, rejects, folder)` gives `LabelledTasks`; see
  `crowdzoo.records.instance_examples.read_labelled_instances`. `model_scores(models, files, info)` asks exported models
  about the tasks of eval: `models` are the folders of SavedModels by name, `files` is the pattern of the files of eval,
  as CrowdAggregator writes them, and `info` the result of `read_dataset_info`. It gives what
  `crowdzoo.kinds.scoring.scored_models` gives, and raises FileNotFoundError where no file fits, ServingError of a model
  that does not load or does not take these instances, and ValueError of answers that cannot be scored.
  `aggregate(method, crowds, fit, examples)` fits a method of aggregation, and asks it about the tasks of both splits
  (`CrowdAnswers`). `crowds` are the annotations by split, and of `BOTH`; `fit` fits the method, on Beam where it has
  that form; `examples` is the folder of the Examples.
- `training`: `train_from_files(settings, files, info, checkpoint, start=...)`, which gives `Trained`; see
  `crowdzoo.records.training.train_on_instances`. `start` is given where the training begins with another's weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from crowdzoo.data.label_kinds import label_kind, require_annotations
from crowdzoo.errors import ConfigError

if TYPE_CHECKING:
    from crowdzoo.kinds.compared import Compared


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
        gold: of the tasks; a mapping for several labels per task.

    Raises:
        DataError: no annotations.
    """
    annotations = getattr(crowd, "annotations", crowd)
    require_annotations(annotations, "compare")
    kind = "multi-label" if isinstance(gold, Mapping) else annotations.kind
    comparison: type[Compared] = part_of(kind, "compared").COMPARED
    return comparison
