"""data_notes: properties of a crowd for which the results of a method should not be trusted."""

from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.dependence import effective_votes, effective_votes_interval

MATRICES = ("dawid-skene", "ibcc", "ebcc")  # K (K - 1) numbers an annotator, little shrunk
LEAST_PER_CLASS = 10.0  # annotations of an annotator, on average
LEAST_WORTH = 0.5  # of a task's annotations, in independent ones
LEAST_ANNOTATIONS = 3.0  # of a task, on average
UNTOLD = 0.8  # of a task's annotations: where the interval of their worth reaches it, they may be independent
CALIBRATION = 50  # tasks that are labelled for a correction


def data_notes(
    annotations: Annotations,
    method: str | None = None,
    worth: tuple[float, float, float] | None = None,
    *,
    models_named: bool = False,
) -> tuple[str, ...]:
    """Notes on properties of a crowd for which a method should not be trusted; usually empty. Needs no gold.

    - The method learns a confusion matrix per annotator, and annotators have fewer than ten annotations per class on
      average.
    - The annotations of a task are worth less than half as many independent ones (see `effective_votes`), tasks have at
      least three on average, and the method did not take this into account.

    Args:
        annotations: kind classification.
        method: name of the aggregation method; None for the notes that apply to all.
        worth: result of `effective_votes_interval` if known; None computes it if needed.
        models_named: whether the models among the annotators were named; then no note asks for them.
    """
    notes = matrix_notes(method, len(annotations), annotations.num_annotators, annotations.num_classes)
    sizes = annotations.redundancy[annotations.redundancy > 0]
    if sizes.size and sizes.mean() >= LEAST_ANNOTATIONS and method != "people-and-models":
        value = effective_votes(annotations) if worth is None else worth[0]
        if value is not None and value < LEAST_WORTH * sizes.mean():
            interval = worth or effective_votes_interval(annotations)
            notes += (_worth_note(sizes.mean(), len(sizes), interval, models_named),)
    return notes


def _worth_note(number: float, num_tasks: int, worth: tuple[float, float, float] | None, models_named: bool) -> str:
    """Note that annotations per task are worth fewer independent ones."""
    value, low, high = worth or (1.0, 1.0, number)
    text = f"The {number:.3g} annotations of a task are worth {value:.2g} independent ones ({low:.2g} to {high:.2g})"
    if high < UNTOLD * number:
        text += ": annotators err on the same tasks, so probabilities are probably too high. "
    else:
        text += (
            f", and {num_tasks:,} tasks are too few to tell whether annotators err on the same ones. If they do, "
            "probabilities are too high. "
        )
    if num_tasks > CALIBRATION:
        text += (
            f"Label {CALIBRATION} tasks yourself, drawn at random (crowdzoo next ANSWERS --gold-sample "
            f"{CALIBRATION} --out gold.csv), and correct the result with them (crowdzoo aggregate ANSWERS "
            "--gold gold.csv --calibrate --out labels)."
        )
    else:
        text += (
            f"Label the {num_tasks:,} tasks yourself, or as many of them as you can, and give your labels as known "
            "ones (crowdzoo aggregate ANSWERS --gold gold.csv --use-gold --out labels)."
        )
    if models_named:
        return text
    return f"{text} If people and models labelled them, say who is a model (--annotator-table)."


def matrix_notes(method: str | None, num_annotations: int, num_annotators: int, num_classes: int) -> tuple[str, ...]:
    """The first note of `data_notes`, from sizes alone."""
    per_class = num_annotations / max(num_annotators * num_classes, 1)
    if method not in MATRICES or not 0 < per_class < LEAST_PER_CLASS:
        return ()
    return (
        f"An annotator has {per_class:.1f} annotations of each class on average, which is little for the confusion "
        f"matrices of {method}. Compare with one-coin or robust on tasks whose class you know.",
    )
