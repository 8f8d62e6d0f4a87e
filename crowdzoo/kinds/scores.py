"""How good exported models of a kind of label are: `model_scores` in `scores.py` of its folder."""

from collections.abc import Mapping
from typing import Any

from crowdzoo.kinds.parts import part_of


def model_scores(
    kind: str, models: Mapping[str, str], files: str, info: Mapping[str, Any], output: str, pipeline: Any
) -> dict[str, dict[str, Any]]:
    """Measures models on the tasks of eval.

    Args:
        kind: of labels.
        models: name -> folder of the SavedModel; the one called "baseline" is what the others are compared with.
        files: pattern of the files of eval, as CrowdAggregator writes them.
        info: result of `read_dataset_info`.
        output: folder that receives TensorFlow Model Analysis' own result, where that measures.
        pipeline: runs the analysis.

    Returns:
        For each model `tasks`, and what `Kind.scores` gives.

    Raises:
        FileNotFoundError: no file fits.
        ServingError: a model that does not load, or does not take these instances.
        ValueError: answers that cannot be compared.
    """
    found: dict[str, dict[str, Any]] = part_of(kind, "scores").model_scores(models, files, info, output, pipeline)
    return found
