"""camps_of: finds two groups of annotators who contradict each other, and their members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.stats import chi2_contingency, norm
from scipy.stats.contingency import crosstab

from crowdzoo.aggregation import OneCoinDawidSkene
from crowdzoo.aggregation.base import ignored
from crowdzoo.aggregation.engine.clusters import linked_groups
from crowdzoo.checks.constraints import SEED, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import CLASSIFICATION, require_kind
from crowdzoo.quality.copies import COPIED, LEAST_SHARED
from crowdzoo.quality.figures import wilson

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FOLDS = 4
MEMBERS, QUARTER = 3, 0.25  # clear members that each camp has at least, and its share of all clear members
DEVIATIONS = float(norm.isf(0.05))  # standard errors
BETWEEN = 0.1  # share of annotators that may lie between the camps
WIDEST = 0.25  # standard error of the position of annotators who count for that, if it were 0
UNRELATED = 1e-3  # probability of a chi-squared value from which labels of two camps do not depend on each other
TOLD = 0.6  # probability of a camp's label from which it counts
MOST_ANSWERS, MOST_ANNOTATORS = 50_000, 1000  # that are compared
SWEEPS, ROUNDS = 3, 4
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Camps:
    """Two groups of annotators who contradict each other. N tasks, R annotators.

    Attributes:
        statistic: number of standard errors by which members agree more with their own camp than with the other one,
            for the camp in which it is smaller.
        p_value: probability of a statistic at least as large without camps.
        camp: camp of each annotator, int64 [R]: 1 the larger, 2 the other, 0 neither, or unknown.
        labels: code of each camp's label, int64 [N, 2]; -1 for tasks without annotations by members.
        probabilities: probabilities of these labels by only the camp's answers, [N, 2]; NaN for tasks without them.
        copies: annotators who agree with another of the same camp far more than members of the other camp do, bool [R].
    """

    statistic: float
    p_value: float
    camp: Ints
    labels: Ints
    probabilities: Array
    copies: NDArray[np.bool_]

    @property
    def disputed(self) -> Ints:
        """Tasks with different labels of the camps, both with probability .6 or more, most certain first, int64 [D]."""
        surely = self.probabilities.min(axis=1)
        differ = np.flatnonzero((self.labels[:, 0] != self.labels[:, 1]) & (surely >= TOLD))
        return differ[np.argsort(-surely[differ], kind="stable")]


@dataclass(frozen=True, eq=False)
class _Answers:
    """A answers of R annotators to N tasks.

    Attributes:
        tasks: task codes, [A].
        annotators: annotator codes, [A].
        cells: task and label of each answer as a code, [A].
        shape: N, R, number of cells.
    """

    tasks: Ints
    annotators: Ints
    cells: Ints
    shape: tuple[int, int, int]

    def part(self, rows: NDArray[np.bool_]) -> _Answers:
        return _Answers(self.tasks[rows], self.annotators[rows], self.cells[rows], self.shape)

    def compare(self, side: Ints) -> tuple[Array, Array]:
        """Compares each answer with one other answer of each side (1 and -1; 0 for neither) to the same task, [A] each.

        Returns:
            How often only the answer of side 1 is equal, minus how often only that of side -1 is; and the sum of both.
        """
        shares, known = [], np.ones(len(self.tasks), bool)
        for which in (1, -1):
            members = side[self.annotators] == which
            total = np.bincount(self.tasks, members, self.shape[0])[self.tasks] - members
            same = np.bincount(self.cells, members, self.shape[2])[self.cells] - members
            shares.append(same / np.maximum(total, 1))
            known &= total > 0
        first, second = shares
        return known * (first - second), known * (first + second - 2 * first * second)

    def deviations(self, values: Array) -> Array:
        """Sums of values, [A], per annotator, in standard errors, [R]."""
        number = self.shape[1]
        errors = np.sqrt(np.maximum(np.bincount(self.annotators, values**2, number), TINY))
        return np.asarray(np.bincount(self.annotators, values, number) / errors)

    def pairs(self) -> tuple[Array, Array, Array]:
        """Shared tasks, equal answers and their expected number given the tasks, for pairs of annotators, [R, R]."""
        ones, (tasks, number, cells) = np.ones(len(self.tasks)), self.shape
        answered = csr_array((ones, (self.tasks, self.annotators)), (tasks, number))
        labelled = csr_array((ones, (self.cells, self.annotators)), (cells, number))
        sizes = np.bincount(self.tasks, minlength=tasks).astype(np.float64)
        equal = np.bincount(self.tasks, np.bincount(self.cells)[self.cells] - 1.0, tasks)
        usual = (equal / np.maximum(sizes * (sizes - 1), 1))[:, None]
        products = (answered, answered), (labelled, labelled), (answered, answered * usual)
        shared, same, expected = ((left.T @ right).toarray() for left, right in products)
        return shared, same, expected


@checked(seed=SEED)
def camps_of(annotations: Annotations, *, seed: int = 0) -> Camps | None:
    """Finds two camps of annotators who contradict each other on the same tasks.

    Labels cannot tell which of two camps is right. Annotators with independent errors, on difficult tasks or not, are
    not a camp, nor are a few who swap classes or copy each other.

    1. Sides: signs of the leading eigenvector of the agreement of pairs of annotators, minus that of all on the same
       tasks, in standard errors and centred. Then each annotator moves to the side that agrees more with the answers.
    2. Test, on tasks not used in step 1 (four folds). An answer is compared with one of each camp to the same task; the
       comparison is decisive if only one of them is equal. If annotators are exchangeable given the task, each camp
       wins equally often, however difficult the tasks. Better annotators win against others, so both camps must win the
       comparisons of their own members, at 5 %.
    3. Each camp has at least three members for whom the same holds, and a quarter of all such members. An annotator who
       agrees with another far more than the other camp does internally is a copy, and does not count.
    4. At most a tenth of the annotators is between the camps: their share of decisive comparisons won by one camp minus
       that won by the other is less than half of the usual value. If annotators differ by degrees, as strict and
       lenient ones do, more of them are between.
    5. The labels of the two camps depend on each other (chi-squared test): annotators who share a source that is
       unrelated to the tasks are not a camp.

    If there are more than 50,000 answers, tasks are sampled; with more than 1,000 annotators, the most active are
    compared. Then all annotators whose camp is clear are assigned to it.

    Args:
        annotations: kind classification; N tasks, R annotators.
        seed: seed of the folds, and of the sample of tasks.

    Returns:
        The camps; None if there are none, or too few answers.

    Raises:
        DataError: wrong kind of annotations, or several labels by one annotator for a task.
        ConfigError: a seed out of range.

    Source:
        Our own. Eigenvectors for groups: M. E. J. Newman, Finding community structure in networks using the
        eigenvectors of matrices. Physical Review E 74, 2006. Labels of each camp: `OneCoinDawidSkene`.
    """
    require_kind(annotations.label_kind, "camps_of", CLASSIFICATION)
    annotations.check_no_repeats("camps_of")
    number = annotations.num_annotators
    annotators, tasks = annotations.annotator_ids.astype(np.int64), annotations.task_ids.astype(np.int64)
    names, cells = np.unique(tasks * annotations.num_classes + annotations.labels, return_inverse=True)
    every = _Answers(tasks, annotators, cells, (annotations.num_tasks, number, len(names)))
    order = np.random.default_rng(seed).permutation(annotations.num_tasks)
    drawn = order[tasks] < annotations.num_tasks * MOST_ANSWERS / max(len(annotators), 1)
    counts = np.bincount(annotators[drawn], minlength=number)
    kept = np.argsort(-counts, kind="stable")[: min(MOST_ANNOTATORS, np.count_nonzero(counts))]
    place, sides, copies = np.full(number, -1), np.zeros(number, np.int64), np.zeros(number, bool)
    place[kept] = np.arange(len(kept))
    rows = drawn & (place[annotators] >= 0)
    some = _Answers(tasks[rows], place[annotators[rows]], cells[rows], (annotations.num_tasks, len(kept), len(names)))
    for _ in range(ROUNDS):
        if (result := _test(some, order % FOLDS)) is None:
            return None
        statistic, side = result
        family = _families(some, side)
        first = np.unique(family, return_index=True)[1]
        if len(first) == len(family):
            break
        copies[kept] |= np.bincount(family)[family] > 1
        some = some.part(np.isin(some.annotators, first))
    compared = np.unique(some.annotators)
    sides[kept[compared]] = side[compared]
    position = every.deviations(every.compare(sides)[0])
    sides = (position > 1).astype(np.int64) - (position < -1)
    sides = -sides if sides.sum() < 0 else sides
    labels, sure = zip(*(_consensus(annotations, sides == which) for which in (1, -1)), strict=True)
    both = np.minimum(*labels) >= 0
    if not both.any() or chi2_contingency(crosstab(labels[0][both], labels[1][both])[1])[1] > UNRELATED:
        return None
    camp = np.select([sides == 1, sides == -1], [1, 2], 0)
    return Camps(statistic, float(norm.sf(statistic)), camp, np.stack(labels, 1), np.stack(sure, 1), copies)


def _test(answers: _Answers, folds: Ints) -> tuple[float, Ints] | None:
    """Returns the statistic, and the side of each annotator, [R]; None without camps."""
    if len(np.unique(answers.annotators)) < 2 * MEMBERS:
        return None
    first, sides = np.zeros(answers.shape[1], np.int64), np.zeros(len(answers.tasks))
    wins, decisive = sides.copy(), sides.copy()
    for fold in range(FOLDS):
        rows = folds[answers.tasks] == fold
        side = _sides(answers.part(~rows))
        side = -side if first @ side < 0 else side
        first = first if first.any() else side
        held = answers.part(rows)
        wins[rows], decisive[rows] = held.compare(side)
        sides[rows] = side[held.annotators]
    statistics = []
    for which in (1, -1):
        sums = which * np.bincount(answers.tasks, wins * (sides == which))
        statistics.append(float(sums.sum() / max(np.sqrt((sums**2).sum()), TINY)))
    z, annotators = answers.deviations(wins), answers.annotators
    clear = [(which * z > DEVIATIONS).sum() for which in (1, -1)]
    if min(statistics) < DEVIATIONS or min(clear) < max(MEMBERS, QUARTER * sum(clear)):
        return None
    weight = np.bincount(annotators, decisive)
    known = np.sqrt(np.bincount(annotators, decisive**2)) < WIDEST * weight
    far = np.abs(np.bincount(annotators, wins)[known] / weight[known])
    between = (far < np.sqrt((far**2).mean()) / 2).mean() if known.sum() >= 2 * MEMBERS else 1.0
    return None if between > BETWEEN else (min(statistics), np.sign(z).astype(np.int64))


def _sides(answers: _Answers) -> Ints:
    """Side of each annotator, [R]: 1, -1, or 0."""
    shared, same, expected = answers.pairs()
    beyond = (same - expected) / np.sqrt(shared + 1)
    np.fill_diagonal(beyond, 0)
    mean = beyond.mean(axis=0)
    beyond += mean.mean() - mean - mean[:, None]
    side = np.sign(eigh(beyond, subset_by_index=[len(beyond) - 1] * 2)[1][:, 0]).astype(np.int64)
    for _ in range(SWEEPS):
        z = answers.deviations(answers.compare(side)[0])
        side = (z > 1).astype(np.int64) - (z < -1)
    return side


def _families(answers: _Answers, side: Ints) -> Ints:
    """Families on one side who agree with each other far more than annotators on the other side do, [R]."""
    shared, same, _ = answers.pairs()
    pairs = np.triu(side[:, None] == side, 1)
    inside = [(same * pairs)[side == which].sum() / max((shared * pairs)[side == which].sum(), 1) for which in (1, -1)]
    left, right = np.nonzero(pairs & (shared >= LEAST_SHARED))
    usual = np.where(side[left] == 1, inside[1], inside[0])
    surely = wilson(same[left, right] / shared[left, right], shared[left, right])[0]
    linked = surely >= usual + COPIED * (1 - usual)
    return linked_groups(left[linked], right[linked], len(side))


def _consensus(annotations: Annotations, members: NDArray[np.bool_]) -> tuple[Ints, Array]:
    """Labels by some of the annotators only, and their probabilities; -1 and NaN for tasks they did not annotate."""
    part = annotations.select_rows(members[annotations.annotator_ids])
    with ignored(Warning):  # warnings about a part of the annotations tell nothing new
        result = OneCoinDawidSkene().fit(part)
    known = part.redundancy > 0
    return np.where(known, result.labels, -1), np.where(known, result.posteriors.max(axis=1), np.nan)
