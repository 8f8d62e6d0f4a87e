"""CrowdDataset: annotations, instances and truth of a data set."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.data.annotations import Annotations


@dataclass(frozen=True, eq=False, repr=False)
class CrowdDataset:
    """Annotations, the annotated instances, and the truth. Row i of every array is task code i.

    Attributes:
        name: name for `crowdzoo.datasets.load`.
        annotations: annotations of all N tasks.
        instances: features, float32 [N, D]; for images the bytes of their files, objects [N].
        gold: true class codes, int64 [N]; for ratings true ratings, float64 [N].
        split: "train" or "eval", str [N].
        licence: licence of the data.
        citation: the work to cite.
        description: a paragraph about the data.
    """

    name: str
    annotations: Annotations
    instances: np.ndarray
    gold: np.ndarray
    split: np.ndarray
    licence: str
    citation: str
    description: str

    def majority_accuracy(self) -> float:
        """Accuracy of the majority vote, in expectation over random ties.

        Raises:
            DataError: ratings, which have no majority.
        """
        return MajorityVote().fit(self.annotations).accuracy(self.gold)

    def __repr__(self) -> str:
        instances = "images" if self.instances.dtype == object else f"{self.instances.shape[1]} features"
        return f"<CrowdDataset {self.name}: {self.annotations!r}, {instances}>"


def data_folder() -> Path:
    """Folder of the raw data sets that do not ship with crowdzoo; only tests and benchmarks read it.

    Returns:
        The folder named by the environment variable CROWDZOO_DATA, else `crowdzoo-data` in the working folder. It need
        not exist.
    """
    return Path(os.environ.get("CROWDZOO_DATA") or "crowdzoo-data")
