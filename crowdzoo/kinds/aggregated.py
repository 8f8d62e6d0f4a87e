"""What a method says of the tasks of both splits: `aggregated` in `aggregated.py` of a kind's folder."""

from collections.abc import Callable
from typing import Any

from crowdzoo.kinds.parts import part_of
from crowdzoo.records.crowd_answers import CrowdAnswers


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
