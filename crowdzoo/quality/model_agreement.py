"""class_agreement: how often models and people agree, by class."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.aggregation.engine.block import sum_rows
from crowdzoo.aggregation.engine.correlated_votes import weighted_votes
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError, unknown
from crowdzoo.quality.figures import name_column


def class_agreement(annotations: Annotations, models: Sequence[object]) -> pa.Table:
    """Agreement of each model with people, by class.

    Every pair of a label of the model and a label of a person for the same task counts once. Among the pairs in
    which the person says a class, `found` is the share in which the model says it as well. Among those in which the
    model says it, `confirmed` is the share in which the person does. A model that overuses a class has a high
    `found` and a low `confirmed`. For comparison, `people` is the share of pairs of two people in which the second
    says the class if the first does.

    Args:
        annotations: kind classification, K classes.
        models: names of the annotators that are models; all others are people.

    Returns:
        One row per model and class: `model`, `class`, `by_people` and `by_model` (pairs in which the person, or the
        model, says the class), `found`, `confirmed`, `people`; null if there are no pairs.

    Raises:
        ConfigError: an unknown name.
        DataError: wrong kind of labels, or several labels by one annotator for a task.
    """
    if not annotations.label_kind.one_class:
        raise DataError(f"class_agreement is for classes, got kind {annotations.kind!r}.")
    annotations.check_no_repeats("class_agreement")
    chosen = codes_of(annotations, models)
    size, tasks = annotations.num_classes, annotations.task_ids
    by_person = ~np.isin(annotations.annotator_ids, chosen)
    votes = weighted_votes(annotations, by_person.astype(np.float64))  # of people
    peers = votes.sum(axis=1, keepdims=True) - 1
    people = _share((votes * (votes - 1)).sum(axis=0), (votes * np.maximum(peers, 0)).sum(axis=0))
    columns: dict[str, list[Any]] = {name: [] for name in ("by_people", "by_model", "found", "confirmed")}
    for code in chosen:
        rows = annotations.annotator_ids == code
        labels = annotations.labels[rows]
        pairs = sum_rows(votes[tasks[rows]], labels, size).T  # [person, model]
        same = pairs.diagonal()
        by_people, by_model = pairs.sum(axis=1), pairs.sum(axis=0)
        columns["by_people"] += by_people.astype(np.int64).tolist()
        columns["by_model"] += by_model.astype(np.int64).tolist()
        columns["found"] += _share(same, by_people)
        columns["confirmed"] += _share(same, by_model)
    return pa.table(
        {
            "model": name_column(annotations.annotators[np.repeat(np.array(chosen, np.int64), size)]),
            "class": name_column(np.tile(np.asarray(annotations.classes), len(chosen))),
            **columns,
            "people": people * len(chosen),
        }
    )


def codes_of(annotations: Annotations, models: Sequence[object], where: str = "") -> list[int]:
    """Returns annotator codes of models.

    Args:
        annotations: annotations of people and models.
        models: names of the models.
        where: start of the message.

    Raises:
        ConfigError: an unknown name.
    """
    codes = {str(name): code for code, name in enumerate(annotations.annotators.tolist())}
    for model in models:
        if str(model) not in codes:
            raise ConfigError(where + unknown("annotator", str(model), list(codes)))
    return [codes[str(model)] for model in models]


def _share(part: np.ndarray, whole: np.ndarray) -> list[float | None]:
    return [float(count / total) if total else None for count, total in zip(part, whole, strict=True)]
