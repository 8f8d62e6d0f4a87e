"""intraclass_correlations: the six ICCs of ratings, with intervals."""

import numpy as np
from numpy.typing import NDArray

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import REGRESSION, require_kind
from crowdzoo.errors import DataError
from crowdzoo.quality.figures import Estimate
from crowdzoo.quality.ratings import pairable_ratings


@checked(confidence=Number(0, 1, above=True, below=True))
def intraclass_correlations(annotations: Annotations, *, confidence: float = 0.95) -> dict[str, Estimate]:
    """Computes intraclass correlations: the share of the variance of ratings that is due to the tasks.

    `ICC(1,1)` treats the annotators of a task as a random sample of the crowd, so that strictness is an error. It is
    computed from all tasks with at least two ratings by a one-way analysis of variance. If their numbers of ratings
    differ, the design is unbalanced: k is then `(A - sum of k_t^2 / A) / (N - 1)`, for N tasks with k_t of A ratings,
    and the interval is approximate.

    `ICC(2,1)` (absolute agreement) and `ICC(3,1)` (consistency, which ignores how strict annotators are) need tasks
    that every annotator rated. They are computed from those if there are at least two, and otherwise left out.

    `ICC(1,k)`, `ICC(2,k)` and `ICC(3,k)` are for the mean of a task's k ratings.

    Args:
        annotations: kind regression. Read grades that are classes as ratings.
        confidence: confidence of the intervals, between 0 and 1.

    Returns:
        Name -> value and interval, at most 1, in the order above. Undefined ones are left out: if all ratings are
        equal, or if means of ratings distinguish tasks less than by chance.

    Raises:
        DataError: wrong kind, fewer than two tasks with two ratings, or ratings that are all equal.

    Source:
        P. E. Shrout, J. L. Fleiss: Intraclass correlations: uses in assessing rater reliability. Psychological
        Bulletin 86, 1979. K. O. McGraw, S. P. Wong: Forming inferences about some intraclass correlation coefficients.
        Psychological Methods 1, 1996.

    Example:
        >>> import crowdzoo
        >>> from crowdzoo.quality import intraclass_correlations
        >>> ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
        >>> annotations = crowdzoo.Annotations.from_dense(ratings, kind="regression")
        >>> str(intraclass_correlations(annotations)["ICC(2,1)"])
        '0.290 (0.019 to 0.761)'
    """
    require_kind(annotations.label_kind, "The intraclass correlation", REGRESSION)
    ratings = pairable_ratings(annotations, "The intraclass correlation", regression=True)
    tasks, labels = ratings.tasks, ratings.values[ratings.codes]
    if len(ratings.sizes) < 2 or np.ptp(labels) == 0:
        reason = "all ratings are equal" if len(ratings.sizes) > 1 else "only one task has two ratings"
        raise DataError(f"The intraclass correlation is not defined: {reason}.")
    single, number = one_way(tasks, labels, (1 + confidence) / 2)
    forms = {1: (single, number)}
    whole = ratings.sizes == annotations.num_annotators
    rows = whole[tasks]
    if whole.sum() > 1 and np.ptp(labels[rows]) > 0:
        order = np.lexsort((ratings.annotator_ids[rows], tasks[rows]))
        forms |= two_way(labels[rows][order].reshape(whole.sum(), -1), (1 + confidence) / 2)
    means = {form: [_of_mean(value, number) for value in single] for form, (single, number) in forms.items()}
    named = {f"ICC({form},1)": single for form, (single, _) in forms.items()}
    named |= {f"ICC({form},k)": values for form, values in means.items()}
    return {name: Estimate(*map(float, values)) for name, values in named.items() if np.isfinite(values).all()}


def one_way(tasks: NDArray[np.int64], labels: NDArray[np.float64], upper: float) -> tuple[list[float], float]:
    """ICC(1,1) with its interval, and the number of ratings per task for `ICC(1,k)`.

    Args:
        tasks: task of each rating, codes from 0 that all occur, [A].
        labels: ratings, [A].
        upper: probability below the upper end.
    """
    from scipy.special import fdtri

    sizes, total = np.bincount(tasks), len(labels)
    means = np.bincount(tasks, labels) / sizes
    number = (total - (sizes**2).sum() / total) / (len(sizes) - 1)
    between = (sizes * (means - labels.mean()) ** 2).sum() / (len(sizes) - 1)
    within = ((labels - means[tasks]) ** 2).sum() / (total - len(sizes))
    ends = 1.0, 1 / fdtri(len(sizes) - 1, total - len(sizes), upper), fdtri(total - len(sizes), len(sizes) - 1, upper)
    return [_share(between * end, within, number) for end in ends], float(number)


def two_way(table: NDArray[np.float64], upper: float) -> dict[int, tuple[list[float], float]]:
    """ICC(2,1), unless undefined, and ICC(3,1), with intervals and the number of annotators, by form.

    Args:
        table: ratings, [N, k].
        upper: probability below the upper end.
    """
    from scipy.special import fdtri

    n, k = table.shape
    rows, columns = table.mean(axis=1), table.mean(axis=0)
    tasks, judges = k * rows.var(ddof=1), n * columns.var(ddof=1)  # mean squares
    error = ((table - rows[:, None] - columns + table.mean()) ** 2).sum() / ((n - 1) * (k - 1))
    degrees = (n - 1) * (k - 1)
    ends = 1.0, 1 / fdtri(n - 1, degrees, upper), fdtri(degrees, n - 1, upper)
    consistency = [_share(tasks * end, error, k) for end in ends]
    rest = k * judges + (k * n - k - n) * error
    total = tasks + (k - 1) * error + k * (judges - error) / n
    if total <= 1e-12 * error:  # two annotators contradict each other on two tasks
        return {3: (consistency, float(k))}
    value = (tasks - error) / total
    # degrees of freedom by Satterthwaite, of a sum of the mean squares of annotators and of errors
    weights = np.array([k * value * judges, (n * (1 + (k - 1) * value) - k * value) * error])
    squares = (weights**2 / [k - 1, degrees]).sum()
    freedom = weights.sum() ** 2 / squares if squares > 0 else degrees
    low, high = fdtri(n - 1, freedom, upper), fdtri(freedom, n - 1, upper)
    agreement = [
        value,
        n * (tasks - low * error) / (low * rest + n * tasks),
        n * (high * tasks - error) / (rest + n * high * tasks),
    ]
    return {2: (agreement, float(k)), 3: (consistency, float(k))}


def _share(between: float, within: float, number: float) -> float:
    """ICC from the mean squares between and within tasks; NaN if both are 0."""
    total = between + (number - 1) * within
    return float((between - within) / total) if total > 0 else np.nan


def _of_mean(single: float, number: float) -> float:
    """Reliability of the mean of this number of ratings (Spearman and Brown); infinite if undefined."""
    below = 1 + (number - 1) * single
    return float(number * single / below) if below > 1e-12 else np.inf
