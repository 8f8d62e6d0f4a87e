"""Prediction: what an exported model for one kind of label answers, and how that is written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdzoo.files.writing import csv_cell, write_numbers
from crowdzoo.reading.instances.instances import Instances


@dataclass(frozen=True)
class Prediction:
    """What an exported model answers, and how it is written.

    Args:
        answer: output of the signature by which the kind of a model is known.
        header: columns of a file of predictions.
        signature: of an exported model, asked for predictions.
    """

    answer: str
    header: tuple[str, ...]
    signature: str = "serving_default"

    def lines(self, tasks: Iterable[object], outputs: Mapping[str, np.ndarray]) -> list[str]:
        """Lines of a CSV file of predictions, without the header; of numbers in their own unit.

        Args:
            tasks: names.
            outputs: of the kind's signature.
        """
        pairs = zip(tasks, outputs[self.answer].tolist(), strict=True)
        return [f"{csv_cell(task)},{number:.6g}" for task, number in pairs]

    def write(self, path: Path | None, instances: Instances, outputs: Mapping[str, np.ndarray]) -> None:
        """Writes a file of predictions; None prints it.

        Args:
            path: of the file.
            instances: that the model was asked about.
            outputs: of the kind's signature, as the model gives them.
        """
        text = "\n".join([",".join(self.header), *self.lines(instances.tasks, outputs)]) + "\n"
        if path is None:
            sys.stdout.write(text)
        else:
            write_numbers(path, text)
