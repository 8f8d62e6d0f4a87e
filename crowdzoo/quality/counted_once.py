"""counted_once: annotations of a crowd in which those who copy each other are one annotator."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations


def counted_once(annotations: Annotations, families: NDArray[np.int64]) -> Annotations:
    """The annotations of each family as those of one annotator, who gives a task one of the family's labels.

    Args:
        annotations: of R annotators.
        families: code of the annotator who represents each one, [R], such as `copy_families` gives them.

    Returns:
        For each task the annotations of the family's member who comes first. Annotators who do not represent any family
        have none.
    """
    annotators = families[annotations.annotator_ids]
    cells = annotations.task_ids * len(families) + annotators
    _, first, place = np.unique(cells, return_index=True, return_inverse=True)
    if len(first) == len(cells):
        return replace(annotations, annotator_ids=annotators)
    rows = annotations.annotator_ids == annotations.annotator_ids[first][place]
    return replace(annotations.select_rows(rows), annotator_ids=annotators[rows])
