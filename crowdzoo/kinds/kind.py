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


# Options that are for classes alone, and why the other kinds refuse them
FOR_CLASSES = {
    "calibrate": "calibration is for classes; leave it out.",
}
EXPORT_OPTIONS = ("platform", "field")  # which platform's export the annotations are, and which of its questions
# Options of annotations in tables, and of those whose tasks may be images
OF_TABLES = (*ROW_OPTIONS, *EXPORT_OPTIONS, *LAYOUT_OPTIONS)
OF_IMAGES = (*ROW_OPTIONS, *EXPORT_OPTIONS, "image", *LAYOUT_OPTIONS)


@dataclass(frozen=True)
class Option:
    """An option that one kind of label adds to the commands that have `--kind`.

    Attributes:
        name: such as "on_bad_tags".
        help: of the command line.
        choices: values; empty: it is a text, or a number.
        default: the value where it is not given.
        metavar: of the value in the help; empty: its choices, or its name.
        is_number: whether the value is a number.
        refusal: why other kinds refuse it; empty: they do not.
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
        reading: names of those of `Reading.read`.
        refused: names of options of other kinds, and why they are not for this one.
        own: those that it adds.
        scale: those of `own` that aggregators and settings of a training take as well.
        gold: those of `Reading.gold_of`, beyond the layout.
        training: those of `Training.read`, beyond `reading`.
        inputs: keys of its input files, in the order in which `crowdzoo.datasets.write_files` writes those of a
            shipped data set.
        needed: those of the inputs that have to be there.
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
        """Lines of a CSV file of predictions, without the header; for numbers in their own unit.

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


def loaded(path: str) -> Callable[[], Any]:
    """A function that imports a class when it is called; `path` is `module:class`."""
    return partial(resolve_name, path)


def made(path: str) -> Callable[[], Any]:
    """As `loaded`, but the function gives an instance of the class."""
    return lambda: resolve_name(path)()


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of label: each part is a value of a class with a few methods, which commands and components call.

    The last four parts are loaded when they are first used, as they import more: Keras, TensorFlow or Numba.

    Attributes:
        labels: name, title in messages, and what arrays of such labels look like.
        options: names and values of its options and input files, as data.
        reading: from files to what the aggregators fit, and gold.
        aggregation: methods, and rows of a table on their results.
        scoring: how answers are compared with gold.
        training: base models, deep methods and what they learn from.
        prediction: what an exported model answers, and how it is written.
        load_page: imports the class of the report's page.
        load_measure: imports the class by which `compare` compares methods.
        load_questions: imports what `crowdzoo next` asks; None: it is not for this kind.
        load_records: imports what the pipeline does; None: there is no pipeline.
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
        """As in files, in configurations and after `--kind`."""
        return self.labels.name

    @property
    def title(self) -> str:
        """What is labelled or given, in messages: "classes", "ratings"."""
        return self.labels.title

    @cached_property
    def page(self) -> type[KindPage]:
        """What the page of a report says."""
        return self.load_page()

    @cached_property
    def measure(self) -> type[Measure]:
        """How methods are compared."""
        return self.load_measure()

    @cached_property
    def questions(self) -> Questions | None:
        """What `crowdzoo next` asks; None: nothing."""
        return None if self.load_questions is None else self.load_questions()

    @cached_property
    def records(self) -> Records:
        """What the pipeline does with such labels.

        Raises:
            ConfigError: there is no pipeline for them.
        """
        if self.load_records is None:
            way_out = "crowdzoo aggregate --method NAME --gold FILE says how far a method is from gold."
            raise ConfigError(f"there is no pipeline of {self.title}: {way_out}")
        return self.load_records()

    def __repr__(self) -> str:
        return f"<kind {self.name}>"
