"""Kind: everything that belongs to one kind of label, in one value."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.data.label_kinds import LabelKind
from crowdzoo.errors import ConfigError
from crowdzoo.files.writing import csv_cell, write_numbers
from crowdzoo.kinds.aggregating import Aggregating
from crowdzoo.kinds.reading import Reading
from crowdzoo.kinds.scoring import Scoring
from crowdzoo.kinds.training import Training
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS
from crowdzoo.reading.tables.options import ROW_OPTIONS

if TYPE_CHECKING:
    from crowdzoo.kinds.measure import Measure
    from crowdzoo.kinds.page import KindPage
    from crowdzoo.kinds.questions import Questions
    from crowdzoo.kinds.records import Records


# Options only for classes, and the reasons why other kinds reject them
FOR_CLASSES = {
    "calibrate": "calibration is for classes; leave it out.",
}
EXPORT_OPTIONS = ("platform", "field")  # the platform of an export, and the question in it
# Options for annotations in tables, and in those whose tasks may be images
OF_TABLES = (*ROW_OPTIONS, *EXPORT_OPTIONS, *LAYOUT_OPTIONS)
OF_IMAGES = (*ROW_OPTIONS, *EXPORT_OPTIONS, "image", *LAYOUT_OPTIONS)


@dataclass(frozen=True)
class Option:
    """An option that one kind of label adds to the commands that have `--kind`.

    Attributes:
        name: name, such as "on_bad_tags".
        help: help text on the command line.
        choices: allowed values; empty: any text or number.
        default: default value.
        metavar: placeholder of the value in the help; empty: its choices, or its name.
        is_number: whether the value is a number.
        refusal: why other kinds reject it; empty: they accept it.
    """

    name: str
    help: str
    choices: tuple[str, ...] = ()
    default: str | None = None
    metavar: str = ""
    is_number: bool = False
    refusal: str = ""


@dataclass(frozen=True)
class KindOptions:
    """The options of one kind of label.

    Attributes:
        reading: names of options of `Reading.read`.
        refused: names of other kinds' options, and why this kind rejects them.
        own: options that this kind adds.
        scale: options of `own` that are also settings of aggregators and trainings.
        gold: options of `Reading.gold_of`, besides the layout.
        training: options of `Training.read`, besides `reading`.
        inputs: keys of its input files, in the order in which `crowdzoo.datasets.write_files` writes those of a bundled
            data set.
        needed: required inputs.
    """

    reading: tuple[str, ...]
    refused: Mapping[str, str]
    own: tuple[Option, ...] = ()
    scale: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    training: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ("annotations", "instances")
    needed: tuple[str, ...] = ("annotations", "instances")


@dataclass(frozen=True)
class Prediction:
    """Answers of an exported model, and how to write them.

    Args:
        answer: output of the signature that identifies the kind of a model.
        header: columns of a file of predictions.
        signature: signature of an exported model for predictions.
    """

    answer: str
    header: tuple[str, ...]
    signature: str = "serving_default"

    def lines(self, tasks: Iterable[object], outputs: Mapping[str, np.ndarray]) -> list[str]:
        """Lines of a CSV file of predictions, without the header.

        Args:
            tasks: names of the tasks.
            outputs: outputs of the kind's signature.
        """
        pairs = zip(tasks, outputs[self.answer].tolist(), strict=True)
        return [f"{csv_cell(task)},{number:.6g}" for task, number in pairs]

    def write(self, path: Path | None, instances: Instances, outputs: Mapping[str, np.ndarray]) -> None:
        """Write a file of predictions, or print it.

        Args:
            path: path of the file; None prints to standard output.
            instances: instances of the predictions.
            outputs: outputs of the kind's signature.
        """
        text = "\n".join([",".join(self.header), *self.lines(instances.tasks, outputs)]) + "\n"
        if path is None:
            sys.stdout.write(text)
        else:
            write_numbers(path, text)


def loaded(path: str) -> Callable[[], Any]:
    """Return a function that imports a class; `path` is `module:class`."""
    return partial(resolve_name, path)


def made(path: str) -> Callable[[], Any]:
    """Return a function that imports a class and returns an instance; see `loaded`."""
    return lambda: resolve_name(path)()


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of label, with one part per purpose for commands and components.

    The last four parts are imported on first use, since they need Keras, TensorFlow or Numba.

    Attributes:
        labels: name, title in messages, and form of arrays of such labels.
        options: names and values of its options and input files, as data.
        reading: reads annotations and gold from files.
        aggregation: aggregation methods, and tables of their results.
        scoring: compares answers with gold.
        training: base models, deep methods and their training data.
        prediction: answers of an exported model, and how to write them.
        load_page: imports the class of the report's page.
        load_measure: imports the class with which `compare` compares methods.
        load_questions: imports the questions of `crowdzoo next`; None: not supported.
        load_records: imports the steps of the pipeline; None: not supported.
    """

    labels: LabelKind
    options: KindOptions
    reading: Reading
    aggregation: Aggregating
    scoring: Scoring
    training: Training
    prediction: Prediction
    load_page: Callable[[], type[KindPage]]
    load_measure: Callable[[], type[Measure]]
    load_questions: Callable[[], Questions] | None = None
    load_records: Callable[[], Records] | None = None

    @property
    def name(self) -> str:
        """Name in files, in configurations and after `--kind`."""
        return self.labels.name

    @property
    def title(self) -> str:
        """Name of the labels in messages, such as "classes" or "ratings"."""
        return self.labels.title

    @cached_property
    def page(self) -> type[KindPage]:
        """Class of the report's page."""
        return self.load_page()

    @cached_property
    def measure(self) -> type[Measure]:
        """Class that compares methods."""
        return self.load_measure()

    @cached_property
    def questions(self) -> Questions | None:
        """Questions of `crowdzoo next`; None if not supported."""
        return None if self.load_questions is None else self.load_questions()

    @cached_property
    def records(self) -> Records:
        """Steps of the pipeline.

        Raises:
            ConfigError: the pipeline does not support this kind.
        """
        if self.load_records is None:
            fix = "To compare a method with gold, use crowdzoo aggregate --method NAME --gold FILE."
            raise ConfigError(f"the pipeline does not support {self.title}. {fix}")
        return self.load_records()

    def __repr__(self) -> str:
        return f"<kind {self.name}>"
