"""counted_once: annotations of a crowd in which those who copy each other are one annotator."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations


def counted_once(annotations: Annotations, families: NDArray[np.int64]) -> Annotations:
    """The annotations of each family as those of one annotator, who gives a task one of the family's labels.

    Args:
        annotations: of R annotators, one label by an annotator for a task.
        families: code of the annotator who stands for each one, [R], such as `copy_families` gives them.

    Returns:
        The first annotation of each family for each task. Annotators who are not the one have none.
    """
    who = families[annotations.annotator_ids]
    rows = np.sort(np.unique(annotations.task_ids * len(families) + who, return_index=True)[1])
    return replace(annotations.select_rows(rows), annotator_ids=who[rows])
