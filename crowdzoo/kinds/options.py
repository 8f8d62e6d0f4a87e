"""KindOptions: the options of one kind of label, as data."""

from collections.abc import Mapping
from dataclasses import dataclass

# Options that are for classes alone, and why the other kinds refuse them
FOR_CLASSES = {
    "calibrate": "calibration is for classes; leave it out.",
    "predictions": "a report compares with predictions of classes only; leave it out.",
}
EXPORT_OPTIONS = ("platform", "field")  # which platform's export the annotations are, and which of its questions


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
