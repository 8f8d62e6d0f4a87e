"""label_pairs: tasks with several labels each, as one yes-or-no question per task and label."""

import keras
import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError


def label_pairs(
    task: ArrayLike, annotator: ArrayLike, chosen: ArrayLike, *, num_tasks: int | None = None
) -> Annotations:
    """Converts choices of any number of J labels to annotations of N * J tasks with the classes no (0) and yes (1).

    The pair of task i and label j is task code `i * J + j`: posteriors `[N * J, 2]` reshape to `[N, J, 2]`. With
    `pair_instances` and a base that embeds the label, one network learns all labels together:

        instance, label = keras.Input((D,), name="instance"), keras.Input((), dtype="int32", name="label")
        pair = keras.layers.Concatenate(name="pair")([instance, keras.layers.Embedding(J, 8)(label)])
        hidden = keras.layers.Dense(32, activation="relu")(pair)
        base = keras.Model({"instance": instance, "label": label}, keras.layers.Dense(2, activation="softmax")(hidden))
        model = CrowdModel(base, LIA(annotations.num_annotators), features="pair")
        model.fit(pair_instances(x, J), annotations, epochs=100)

    This is LIA-ML with additive logits. There, competence is linear in the embeddings of annotator and label, and the
    difficulty, which depends on the label as well, absorbs the label's part of the sum. The model cannot express that
    an annotator is good at one label and bad at another.

    Args:
        task: [A], task codes 0..N-1.
        annotator: [A], names.
        chosen: `[A, J]`, true (1) where the annotator chose the label, false (0) where not, -1 where they were not
            asked.
        num_tasks: N; None is the highest task code plus one.

    Returns:
        Annotations of kind classification.

    Raises:
        DataError: shapes that do not fit, task codes out of range, or other values in `chosen`.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import label_pairs
        >>> chosen = np.array([[1, 0], [1, 1]])  # which of two labels each annotator gave to the task
        >>> label_pairs([0, 0], ["ann", "bob"], chosen).to_dense().tolist()  # a row for each task and label
        [[1, 1], [0, 1]]

    Source:
        E. A. Platanios et al.: Learning from Imperfect Annotations. arXiv:2004.03473, 2020 (LIA-ML).
    """
    tasks, annotators, choices = np.asarray(task), np.asarray(annotator), np.asarray(chosen).astype("int64")
    if choices.ndim != 2 or tasks.shape != choices.shape[:1] or annotators.shape != choices.shape[:1]:
        raise DataError(
            "label_pairs: task and annotator have the shape [annotations] and chosen [annotations, labels], got "
            f"{tasks.shape}, {annotators.shape} and {choices.shape}"
        )
    if not np.isin(choices, (-1, 0, 1)).all():
        raise DataError("label_pairs: chosen holds 1 for yes, 0 for no and -1 for not asked")
    number = int(tasks.max(initial=-1)) + 1 if num_tasks is None else num_tasks
    if len(tasks) and not 0 <= tasks.min() <= tasks.max() < number:
        raise DataError(f"label_pairs: task codes must be 0 to {number - 1}, got {tasks.min()} to {tasks.max()}")
    rows, labels = np.nonzero(choices >= 0)
    num_labels = choices.shape[1]
    return Annotations.from_arrays(
        tasks[rows] * num_labels + labels,
        annotators[rows],
        choices[rows, labels],
        tasks=np.arange(number * num_labels),
        classes=[0, 1],
    )


def pair_instances(x: ArrayLike, num_labels: int) -> dict[str, np.ndarray]:
    """Instances for pairs of a task and a label, in the order of `label_pairs`.

    Args:
        x: instances, `[N, ...]` or a structure of such arrays. They are repeated in memory.
        num_labels: J.

    Returns:
        "instance": x with every row J times; "label": int32 `[N * J]`, the label's number.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import pair_instances
        >>> pairs = pair_instances(np.array([[0.5], [0.7]]), num_labels=2)
        >>> pairs["instance"].tolist(), pairs["label"].tolist()
        ([[0.5], [0.5], [0.7], [0.7]], [0, 1, 0, 1])
    """
    repeated = keras.tree.map_structure(lambda array: np.repeat(np.asarray(array), num_labels, axis=0), x)
    number = len(keras.tree.flatten(repeated)[0]) // num_labels
    return {"instance": repeated, "label": np.tile(np.arange(num_labels, dtype="int32"), number)}
