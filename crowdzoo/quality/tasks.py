"""task_table: statistics of the votes of each task."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Result
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.quality.figures import defined, name_column
from crowdzoo.quality.ratings import Ratings, ratings_of


def task_table(annotations: Annotations, aggregation: Aggregation | None = None) -> pa.Table:
    """Creates a table with one row per task, in the order of the codes, with statistics of its votes.

    Columns, null if undefined (without annotations; `agreement` and `entropy_normalised` with fewer than two):

    - `task`: name; `annotations`: number of annotations;
    - `labels`: number of distinct classes; `top_share`: share of votes for the most frequent;
    - `tied`: whether several classes share the most votes;
    - `agreement`: share of pairs of its annotations that agree;
    - `entropy`: entropy of the vote shares, nats; `entropy_normalised`: divided by ln min(K, annotations), so that 0 is
      unanimous and 1 is all different (or evenly spread over all classes).

    With an aggregation also `label` (name) and `probability` of its answer, `support` (share of votes for that answer)
    and `posterior_entropy` (nats); and, if the aggregation has them, `settled` (probability that the label stays the
    same with many more answers) and `answers_to_settle` (about how many settle it, even if not worth the cost; null if
    they carry no information).

    Args:
        annotations: kind classification; N tasks.
        aggregation: a result for the same annotations.

    Raises:
        DataError: wrong kind, or an aggregation of other tasks, annotators or classes.
    """
    ratings = ratings_of(annotations, "The table of tasks")
    if aggregation is not None:
        check_same(annotations, aggregation)
    sizes, some, several = ratings.sizes, ratings.sizes > 0, ratings.sizes > 1
    top = ratings.most_votes()
    # of k equally frequent classes, each has `top` rows
    leaders = ratings.task_sums(ratings.same == np.repeat(top, sizes)) / np.maximum(top, 1)
    agreeing = ratings.task_sums(ratings.same - 1.0)
    entropy = entropies(ratings)
    most = np.log(np.maximum(np.minimum(sizes, ratings.num_values), 2))
    columns: dict[str, Any] = {
        "task": name_column(annotations.tasks),
        "annotations": pa.array(sizes),
        "labels": pa.array(np.rint(ratings.task_sums(1 / ratings.same)).astype(np.int64)),
        "top_share": defined(top / np.maximum(sizes, 1), some),
        "tied": defined(leaders > 1.5, some),
        "agreement": defined(agreeing / np.maximum(sizes * (sizes - 1), 1), several),
        "entropy": defined(entropy, some),
        "entropy_normalised": defined(np.minimum(entropy / most, 1.0), several),
    }
    if aggregation is not None:
        answers, tasks = aggregation.labels, np.arange(len(sizes))
        support = ratings.task_sums(ratings.codes == np.repeat(answers, sizes)) / np.maximum(sizes, 1)
        posteriors = aggregation.posteriors
        logs = np.log(posteriors, out=np.zeros_like(posteriors), where=posteriors > 0)
        columns |= {
            "label": name_column(np.asarray(annotations.classes), answers),
            "probability": pa.array(posteriors[tasks, answers]),
            **_of_settled(aggregation),
            "support": defined(support, some),
            "posterior_entropy": pa.array(np.maximum(-np.einsum("nk,nk->n", posteriors, logs), 0.0)),
        }
    return pa.table(columns)


def _of_settled(aggregation: Aggregation) -> dict[str, Any]:
    """Columns on further answers."""
    if aggregation.settled is None or aggregation.answers_to_settle is None:
        return {}
    further = aggregation.answers_to_settle
    return {"settled": pa.array(aggregation.settled), "answers_to_settle": defined(further, further >= 0)}


def entropies(ratings: Ratings) -> NDArray[np.float64]:
    """Entropy of each group's label shares, nats, [N]; 0 without labels."""
    # each of a label's n_c rows adds 1/n ln(n/n_c), together the label's term
    surprise = np.log(np.repeat(ratings.sizes, ratings.sizes) / ratings.same)
    return ratings.task_sums(surprise) / np.maximum(ratings.sizes, 1)


def check_same(
    annotations: Annotations, aggregation: Result, names: tuple[str, ...] = ("tasks", "annotators", "classes")
) -> None:
    """Raises an error for an aggregation of other tasks, annotators or classes.

    Raises:
        DataError: one of them differs.
    """
    for name in names:
        if not np.array_equal(getattr(aggregation, name), np.asarray(getattr(annotations, name))):
            raise DataError(f"The aggregation is one of other {name} than the annotations.")
