"""opposed_groups: two groups of annotators who each agree among themselves, and not with each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.correlated_votes import weighted_votes
from crowdzoo.aggregation.engine.dependence import SharedTasks
from crowdzoo.checks.constraints import SEED, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError

LEAST_VOTES = 4  # of a task that is looked at: two of each group
MOST_TASKS, LEAST_TASKS = 5000, 20
MOST_CLASSES = 50
FOLDS = 5
SAMPLES = 100  # of the bootstrap
LEVEL = 0.975  # of its quantile
OPPOSED = 0.85  # correlation, below which groups are opposed
LEAST_AGREEMENT = 0.25  # of a group in itself, beyond chance
SMOOTHING = 10.0  # annotations of all that are added to the label shares of each
RIDGE = 0.5  # shared tasks that say that an annotator agrees with nobody
STEPS, ROUNDS, DRAWS = 4, 10, 2  # of the fit with given groups; of groups; groups drawn at random to begin with
TINY = 1e-12
LEAST_SPREAD = 0.1  # of the largest variance of a group's view, for a direction that is compared


@dataclass(frozen=True, eq=False)
class OpposedGroups:
    """What `opposed_groups` found. R annotators.

    Attributes:
        outvoted: who is in the group that has fewer votes on more tasks, bool [R].
        outvoting: who is in the other, bool [R]; annotators without tasks to compare on are in neither.
        correlation: of the groups' views of a task, 1 if one follows from the other; and the end of its interval.
        high: see there (97.5 % quantile of a bootstrap over tasks).
        agreement: of two annotators of a group, beyond chance: outvoted, outvoting.
        outvoted_share: share of the tasks with annotations on which the outvoted have fewer votes, or none.
    """

    outvoted: NDArray[np.bool_]
    outvoting: NDArray[np.bool_]
    correlation: float
    high: float
    agreement: tuple[float, float]
    outvoted_share: float

    def __repr__(self) -> str:
        return (
            f"OpposedGroups({int(self.outvoted.sum()):,} and {int(self.outvoting.sum()):,} annotators, correlation "
            f"{self.correlation:.2f})"
        )


@checked(seed=SEED)
def opposed_groups(annotations: Annotations, *, seed: int = 0) -> OpposedGroups | None:
    """Two groups of annotators with views of their own, found without gold: people and models, or a ring.

    Where annotators err independently, all that they have in common is the true class, and what one half of a crowd
    says of a task follows, but for chance, from what the other half says, however good they are and whatever their
    confusion matrices. Where it does not, a group agrees for a reason that is not the truth. Both cannot be right, and
    a method that takes annotators as independent believes the group with more votes and is sure of it.

    1. The groups: how often two annotators agree beyond chance is x[i] x[j] in a group, and c x[i] x[j] between the
       two (weighted least squares, from four beginnings).
    2. The correlation of the groups' views, on tasks with two votes of each or more and with groups that were found on
       other tasks (five-fold): the largest canonical correlation of the votes, corrected for the votes' own chance
       (Spearman's correction for attenuation, as products of two different votes have no error in common).
    3. Groups are opposed where the interval of this correlation is below .85, and two annotators of the same group
       agree by .25 of what is beyond chance or more. So spammers, who agree with nobody, are no group.

    Of more than 5,000 tasks with four annotations or more so many are drawn.

    Source: our own, of known parts. C. Spearman: The Proof and Measurement of Association between Two Things. American
    Journal of Psychology 15, 1904; H. Hotelling: Relations Between Two Sets of Variates. Biometrika 28, 1936.

    Args:
        annotations: kind classification, K classes.
        seed: of tasks that are drawn, folds, and beginnings.

    Returns:
        None where there are no such groups, and where it cannot be known: fewer than 20 tasks with two votes of each
        group, more than 50 classes, or annotators who gave a task several labels.

    Raises:
        DataError: another kind of labels.
    """
    if not annotations.label_kind.one_class:
        raise DataError(f"opposed_groups is for classes, got kind {annotations.kind}.")
    rng = np.random.default_rng(seed)
    tasks = np.flatnonzero(annotations.redundancy >= LEAST_VOTES)
    if tasks.size < LEAST_TASKS or not 1 < annotations.num_classes <= MOST_CLASSES or annotations.repeats:
        return None
    if tasks.size > MOST_TASKS:
        tasks = rng.choice(tasks, MOST_TASKS, replace=False)
    some = annotations.select_rows(np.isin(annotations.task_ids, tasks))
    numbers = np.bincount(some.annotator_ids, minlength=annotations.num_annotators)
    group = _groups(some, seed)
    views = _Views.of(some, group[some.annotator_ids])
    if views is None or not _opposed(views.compared()):
        return None  # on the tasks that the groups were chosen by they look more opposed than they are
    part = rng.permutation(annotations.num_tasks) % FOLDS
    sides = np.empty(len(some), np.int64)
    for fold in range(FOLDS):
        inside = part[some.task_ids] == fold
        found = _groups(some.select_rows(~inside), seed)
        if numbers @ (found == group) < numbers.sum() / 2:
            found = 1 - found
        sides[inside] = found[some.annotator_ids[inside]]
    views = _Views.of(some, sides)
    if views is None or not _opposed(compared := views.compared()):
        return None
    number = len(views.one)
    samples = [
        views.compared(np.bincount(rng.integers(0, number, number), minlength=number))[0] for _ in range(SAMPLES)
    ]
    high = float(np.quantile(samples, LEVEL))
    if high >= OPPOSED:
        return None
    known = numbers > 0
    by_group = np.where(known, group, -1)[annotations.annotator_ids]
    votes = [np.bincount(annotations.task_ids[by_group == side], minlength=annotations.num_tasks) for side in (0, 1)]
    less = int(np.count_nonzero(votes[1] < votes[0]) >= np.count_nonzero(votes[0] < votes[1]))
    asked = annotations.redundancy > 0
    correlation, *agreement = compared
    return OpposedGroups(
        outvoted=known & (group == less),
        outvoting=known & (group != less),
        correlation=correlation,
        high=high,
        agreement=(agreement[less], agreement[1 - less]),
        outvoted_share=float((votes[less] < votes[1 - less])[asked].mean()),
    )


def _groups(annotations: Annotations, seed: int) -> NDArray[np.int64]:
    """The two groups that explain best how often pairs of annotators agree, 0 and 1, [R]."""
    number, num_classes = annotations.num_annotators, annotations.num_classes
    shared = SharedTasks.of(whole_block(annotations), number, seed)
    cells = annotations.annotator_ids * num_classes + annotations.labels
    counts = np.bincount(cells, minlength=number * num_classes).reshape(number, num_classes)
    total = counts.sum(axis=1)
    shares = counts + SMOOTHING * counts.sum(axis=0) / max(total.sum(), 1)
    shares /= shares.sum(axis=1, keepdims=True)
    beyond = shared.agreement - (shares[shared.left] * shares[shared.right]).sum(axis=1)
    one, other = np.concatenate([shared.left, shared.right]), np.concatenate([shared.right, shared.left])
    beyond, weight = np.tile(beyond, 2), np.tile(shared.shared, 2)
    rng = np.random.default_rng(seed)
    begins = [
        (total >= np.quantile(total[total > 0], share)).astype(np.int64) for share in (0.5, 0.8)
    ]  # models label the most
    begins += [rng.integers(0, 2, number) for _ in range(DRAWS)]
    least, best = np.inf, begins[0]
    for group in begins:
        x, between = np.full(number, 0.5), 0.5
        for step in range(STEPS * ROUNDS):
            fits = np.empty((2, number)), np.empty((2, number))
            for side in (0, 1):
                slope = x[other] * np.where(group[other] == side, 1.0, between)
                product = np.maximum(np.bincount(one, weight * beyond * slope, number), 0)
                square = np.bincount(one, weight * slope**2, number) + RIDGE
                fits[0][side], fits[1][side] = product / square, product**2 / square
            before = group
            if step % STEPS == STEPS - 1:
                group = (fits[1][1] > fits[1][0]).astype(np.int64)
            x = np.minimum((x + fits[0][group, np.arange(number)]) / 2, 1.0)  # half a step: whole ones go to and fro
            across, product = group[one] != group[other], x[one] * x[other]
            size = float((weight * product**2)[across].sum())
            between = float(np.clip((weight * beyond * product)[across].sum() / size, -1, 1)) if size > 0 else 1.0
            if step % STEPS == STEPS - 1 and np.array_equal(group, before):
                break
        error = float((weight * (beyond - product * np.where(across, between, 1.0)) ** 2).sum())
        if error < least:
            least, best = error, group
    return best


def _opposed(compared: tuple[float, float, float]) -> bool:
    correlation, *agreement = compared
    return correlation < OPPOSED and min(agreement) >= LEAST_AGREEMENT


@dataclass(frozen=True, eq=False)
class _Views:
    """Votes of two groups on the n tasks that have two of each or more; see `of`.

    Attributes:
        one: votes of the first group, [n, K].
        other: those of the second.
    """

    one: NDArray[np.float64]
    other: NDArray[np.float64]

    @classmethod
    def of(cls, annotations: Annotations, sides: NDArray[np.int64]) -> _Views | None:
        """None where there are too few such tasks; `sides` is the group, 0 or 1, of each annotation."""
        shape = annotations.num_tasks, annotations.num_classes
        votes = [weighted_votes(annotations.task_ids, annotations.labels, sides == side, *shape) for side in (0, 1)]
        both = (votes[0].sum(axis=1) >= 2) & (votes[1].sum(axis=1) >= 2)
        return cls(votes[0][both], votes[1][both]) if both.sum() >= LEAST_TASKS else None

    def compared(self, times: NDArray[np.int64] | None = None) -> tuple[float, float, float]:
        """Correlation of the views, and agreement beyond chance in each group; `times` is how often a task counts."""
        weight = np.full(len(self.one), 1 / len(self.one)) if times is None else times / times.sum()
        sizes = [votes.sum(axis=1) for votes in (self.one, self.other)]
        scaled = [votes / size[:, None] for votes, size in zip((self.one, self.other), sizes, strict=True)]
        means = [weight @ votes for votes in scaled]
        roots, agreement = [], []
        for votes, size, mean in zip((self.one, self.other), sizes, means, strict=True):
            pairs = weight / (size * (size - 1))
            own = (pairs[:, None] * votes).T @ votes - np.diag(pairs @ votes) - np.outer(mean, mean)
            agreement.append(float(np.trace(own) / max(1 - mean @ mean, TINY)))
            values, vectors = np.linalg.eigh(own)
            kept = values > max(LEAST_SPREAD * values.max(), TINY)
            roots.append((vectors[:, kept] / np.sqrt(values[kept])).T)
        between = (weight[:, None] * scaled[0]).T @ scaled[1] - np.outer(means[0], means[1])
        found = np.linalg.svd(roots[0] @ between @ roots[1].T, compute_uv=False)
        return float(found.max(initial=0.0)), agreement[0], agreement[1]
