"""camps_of: whether two groups of annotators contradict each other, and who is in which."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from scipy.stats import norm

from crowdzoo.aggregation import OneCoinDawidSkene
from crowdzoo.aggregation.engine.connected import linked_groups
from crowdzoo.checks.constraints import SEED, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import CLASSIFICATION, require_kind
from crowdzoo.quality.copies import COPIED, LEAST_SHARED
from crowdzoo.quality.wilson import wilson

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FOLDS = 4
MEMBERS, QUARTER = 3, 0.25  # clear members that each camp has at least, and its share of all clear members
DEVIATIONS = float(norm.isf(0.05))  # standard errors
OWN = 0.55  # share of decisive comparisons that members of a camp win, at least; .5 without camps
BETWEEN = 0.1  # share of annotators that may lie between the camps
WIDEST = 0.25  # standard error of the position of annotators who count for that, if it were 0
TOLD = 0.6  # probability of a camp's label from which it counts
MOST_ANSWERS, MOST_ANNOTATORS = 50_000, 1000  # that are compared
VECTORS, SWEEPS, ROUNDS = 3, 3, 4


@dataclass(frozen=True, eq=False)
class Camps:
    """Two groups of annotators who contradict each other. N tasks, R annotators.

    Attributes:
        statistic: by how many standard errors members agree more with their own camp than with the other one; that of
            the camp for which it is smaller.
        p_value: how probable as large a statistic is without camps.
        camp: camp of each annotator, int64 [R]: 1 the larger, 2 the other, 0 neither, or not known.
        labels: code of each camp's label, int64 [N, 2]; -1 where no member annotated the task.
        probabilities: of these labels, by the camp's answers alone, [N, 2]; NaN likewise.
        copies: who agrees with another of the same camp far more than members of the other camp do, bool [R].
    """

    statistic: float
    p_value: float
    camp: Ints
    labels: Ints
    probabilities: Array
    copies: NDArray[np.bool_]

    @property
    def sizes(self) -> tuple[int, int]:
        """Members of each camp."""
        return int((self.camp == 1).sum()), int((self.camp == 2).sum())

    @property
    def disputed(self) -> Ints:
        """Tasks on which the labels of the camps differ, each with a probability of .6, the surest first, int64 [D]."""
        surely = self.probabilities.min(axis=1)
        differ = np.flatnonzero((self.labels[:, 0] != self.labels[:, 1]) & (surely >= TOLD))
        return differ[np.argsort(-surely[differ], kind="stable")]


@dataclass(frozen=True, eq=False)
class _Answers:
    """A answers of R annotators to N tasks.

    Attributes:
        tasks: codes, [A].
        who: codes of annotators, [A].
        cells: which task and label an answer has, [A].
        shape: N, R, number of cells.
    """

    tasks: Ints
    who: Ints
    cells: Ints
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, annotations: Annotations) -> _Answers:
        tasks, who = annotations.task_ids.astype(np.int64), annotations.annotator_ids.astype(np.int64)
        names, cells = np.unique(tasks * annotations.num_classes + annotations.labels, return_inverse=True)
        return cls(tasks, who, cells, (annotations.num_tasks, annotations.num_annotators, len(names)))

    def part(self, rows: NDArray[np.bool_]) -> _Answers:
        return _Answers(self.tasks[rows], self.who[rows], self.cells[rows], self.shape)

    def said_by(self, camp: Ints) -> tuple[Array, Array]:
        """How far each answer is what camp 1 says and camp 2 does not, and the other way round, [A] each.

        The probability that of one other answer of each camp to the task, only that of the named camp is the same.
        """
        shares, known = [], np.ones(len(self.tasks), bool)
        for side in (1, 2):
            own = camp[self.who] == side
            total = np.bincount(self.tasks, own, self.shape[0])[self.tasks] - own
            shares.append((np.bincount(self.cells, own, self.shape[2])[self.cells] - own) / np.maximum(total, 1))
            known &= total > 0
        return known * shares[0] * (1 - shares[1]), known * shares[1] * (1 - shares[0])

    def shared(self) -> tuple[Array, Array, Array, Array]:
        """Of each pair of annotators: shared tasks, equal answers, how many others let expect, and the variance."""
        ones, (tasks, number, cells) = np.ones(len(self.tasks)), self.shape
        answered = csr_array((ones, (self.tasks, self.who)), (tasks, number))
        labelled = csr_array((ones, (self.cells, self.who)), (cells, number))
        votes = np.bincount(self.cells, minlength=cells)
        sizes = np.bincount(self.tasks, minlength=tasks).astype(np.float64)
        same = np.bincount(self.tasks, votes[self.cells] - 1.0, tasks) / np.maximum(sizes * (sizes - 1), 1)
        of_pairs = [
            (answered.T @ (answered * weights[:, None])).toarray()
            for weights in (np.ones(tasks), same, same * (1 - same))
        ]
        return of_pairs[0], (labelled.T @ labelled).toarray(), of_pairs[1], of_pairs[2]


@checked(seed=SEED)
def camps_of(annotations: Annotations, *, seed: int = 0) -> Camps | None:
    """Finds two camps of annotators who contradict each other on the same tasks, each with answers of its own.

    Labels cannot tell which of two camps is right. Annotators who err by themselves, on difficult tasks or not, are no
    camp, nor are a few who exchange classes or copy each other.

    1. Sides: the leading eigenvectors of the agreement of pairs of annotators, less what the other answers to the same
       tasks and the two annotators' agreement with all let expect, in standard errors. Then each annotator goes to the
       side with which his answers agree more. Of three eigenvectors the one whose sides are told apart best.
    2. Test, on tasks that took no part in 1 (four folds). An answer is compared with one of each camp to the same task;
       the comparison is decisive where just one of them is the same. If annotators may be exchanged for each other,
       given the task, each camp wins as often, however difficult tasks are. Better annotators win against others, so
       both camps have to win those of their own members, at 5 % and in .55 of cases.
    3. Each camp has three members or more for whom the same holds, and a quarter of them. Who agrees with another far
       more than the other camp does within itself copies him, and does not count.
    4. At most a tenth of the annotators lies between the camps: the share of decisive comparisons won by one
       camp, less that won by the other, is below half of what is usual. Where annotators differ by degrees, as strict
       and lenient ones do, more of them lie there.

    Of more than 50,000 answers tasks are drawn, and of more than 1,000 annotators the most active ones are compared.
    Then all who can be told belong to a camp.

    Args:
        annotations: kind classification; N tasks, R annotators.
        seed: of the folds, and of the tasks that are drawn.

    Returns:
        The camps; None where there are none, or too few answers to tell.

    Raises:
        DataError: annotations of another kind, or several labels by one annotator for one task.
        ConfigError: a seed out of range.

    Source:
        Our own. Eigenvectors for groups: M. E. J. Newman, Finding community structure in networks using the
        eigenvectors of matrices. Physical Review E 74, 2006. Labels of each camp: `OneCoinDawidSkene`.
    """
    require_kind(annotations.label_kind, "camps_of", CLASSIFICATION)
    annotations.check_no_repeats("camps_of")
    every, rng = _Answers.of(annotations), np.random.default_rng(seed)
    number = every.shape[1]
    # who says one thing only has no opinion on tasks
    labels = np.zeros((number, 2), np.int64)
    np.maximum.at(labels[:, 0], every.who, annotations.labels)
    np.maximum.at(labels[:, 1], every.who, annotations.num_classes - annotations.labels)
    kept = labels.sum(axis=1) > annotations.num_classes
    folds = rng.permutation(every.shape[0])
    drawn = folds < every.shape[0] * MOST_ANSWERS / max(len(annotations), 1)
    some = every.part(drawn[every.tasks] & kept[every.who])
    counts = np.bincount(some.who, minlength=number)
    kept &= (counts > 0) & (np.argsort(np.argsort(-counts, kind="stable")) < MOST_ANNOTATORS)
    copies = np.zeros(number, bool)
    for _ in range(ROUNDS):
        some = some.part(kept[some.who])
        found = _tested(some, folds % FOLDS)
        if found is None:
            return None
        statistic, camp = found
        family = _families(some, camp)
        first = np.unique(family, return_index=True)[1]
        if len(first) == number:
            break
        copies |= np.bincount(family, minlength=number)[family] > 1
        kept &= np.isin(np.arange(number), first)
    one, other = every.said_by(np.where(kept, camp, 0))
    position = _z(every.who, one - other, number)
    camp = np.where(labels.sum(axis=1) > annotations.num_classes, (position > 1) + 2 * (position < -1), 0)
    if (camp == 2).sum() > (camp == 1).sum():
        camp = np.array([0, 2, 1])[camp]
    said, sure = zip(*(_consensus(annotations, camp == side) for side in (1, 2)), strict=True)
    return Camps(statistic, float(norm.sf(statistic)), camp, np.stack(said, axis=1), np.stack(sure, axis=1), copies)


def _tested(answers: _Answers, folds: Ints) -> tuple[float, Ints] | None:
    """The statistic, and the camp of each annotator, [R]; None where there are no camps."""
    number = answers.shape[1]
    if len(np.unique(answers.who)) < 2 * MEMBERS:
        return None
    first, sides = None, np.zeros(len(answers.tasks), np.int64)
    one, other = np.zeros(len(sides)), np.zeros(len(sides))
    for fold in range(FOLDS):
        rows = folds[answers.tasks] == fold
        camp = _sides(answers.part(~rows))
        first = camp if first is None else first
        if _sign(first) @ _sign(camp) < 0:
            camp = np.array([0, 2, 1])[camp]
        held = answers.part(rows)
        one[rows], other[rows] = held.said_by(camp)
        sides[rows] = camp[held.who]
    statistic, own = _told_apart(answers.tasks, one, other, sides, answers.shape[0])
    wins, decisive = one - other, one + other
    z = _z(answers.who, wins, number)
    camp = (z > 0) + 2 * (z < 0)
    clear = np.bincount(camp[np.abs(z) > DEVIATIONS], minlength=3)[1:]
    if statistic < DEVIATIONS or own < OWN or clear.min() < max(MEMBERS, QUARTER * clear.sum()):
        return None
    weight = np.bincount(answers.who, decisive, number)
    position = np.bincount(answers.who, wins, number) / np.maximum(weight, 1e-12)
    told = np.sqrt(np.bincount(answers.who, decisive**2, number)) < WIDEST * weight
    if told.sum() < 2 * MEMBERS:
        return None
    far = np.abs(position[told])
    between = (far < np.sqrt((far**2).mean()) / 2).sum()
    return None if between > BETWEEN * told.sum() else (statistic, camp)


def _sides(answers: _Answers) -> Ints:
    """Camp of each annotator, [R]: 0, 1 or 2."""
    number = answers.shape[1]
    places, who = np.unique(answers.who, return_inverse=True)
    few = _Answers(answers.tasks, who, answers.cells, (answers.shape[0], len(places), answers.shape[2]))
    shared, same, expected, variance = few.shared()
    beyond = same - expected
    for matrix in (shared, beyond):
        np.fill_diagonal(matrix, 0)
    effect = np.zeros(len(places))
    for _ in range(10):
        effect = 0.5 * effect + 0.5 * (beyond.sum(axis=1) - shared @ effect) / np.maximum(shared.sum(axis=1), 1)
    beyond -= shared * (effect[:, None] + effect)
    scaled = np.clip(beyond / np.sqrt(variance + 1), -3, 3)
    start = np.random.default_rng(0).normal(size=len(places))
    best, most = np.zeros(number, np.int64), -np.inf
    for vector in eigsh(scaled, k=min(VECTORS, len(places) - 1), which="LA", v0=start)[1].T:
        camp = np.where(vector > 0, 1, 2)
        for _ in range(SWEEPS):
            one, other = few.said_by(camp)
            z = _z(few.who, one - other, len(places))
            camp = (z > 1) + 2 * (z < -1)
        one, other = few.said_by(camp)
        statistic, _ = _told_apart(few.tasks, one, other, camp[few.who], few.shape[0])
        if statistic > most:
            most, best[places] = statistic, camp
    return best


def _told_apart(tasks: Ints, one: Array, other: Array, sides: Ints, number: int) -> tuple[float, float]:
    """By how many standard errors, and in what share of decisive comparisons, members agree with their own camp.

    The smaller of the two camps' figures.
    """
    found = []
    for side, wins in ((1, one - other), (2, other - one)):
        own = sides == side
        sums, decisive = np.bincount(tasks[own], wins[own], number), (one + other)[own].sum()
        found.append((sums.sum() / max(np.sqrt((sums**2).sum()), 1e-12), 0.5 + 0.5 * sums.sum() / max(decisive, 1e-12)))
    (z, share), (z_2, share_2) = found
    return float(min(z, z_2)), float(min(share, share_2))


def _families(answers: _Answers, camp: Ints) -> Ints:
    """Families of those in a camp who agree with each other far more than members of the other camp do, [R]."""
    number = answers.shape[1]
    places, who = np.unique(answers.who, return_inverse=True)
    few = _Answers(answers.tasks, who, answers.cells, (answers.shape[0], len(places), answers.shape[2]))
    shared, same, _, _ = few.shared()
    own, inside = camp[places], np.zeros(3)
    pairs = np.triu(own[:, None] == own, 1)
    for side in (1, 2):
        theirs = pairs & (own == side)
        inside[3 - side] = same[theirs].sum() / max(shared[theirs].sum(), 1)
    left, right = np.nonzero(pairs & (own > 0) & (shared >= LEAST_SHARED))
    surely, usual = wilson(same[left, right] / shared[left, right], shared[left, right])[0], inside[own[left]]
    linked = surely >= usual + COPIED * (1 - usual)
    return linked_groups(places[left[linked]], places[right[linked]], number)


def _consensus(annotations: Annotations, members: NDArray[np.bool_]) -> tuple[Ints, Array]:
    """Labels by some annotators alone, and their probabilities; -1 and NaN where they annotated nothing."""
    own = annotations.select_rows(members[annotations.annotator_ids])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what may be wrong with a part of the annotations is no news
        result = OneCoinDawidSkene().fit(own)
    known = own.redundancy > 0
    return np.where(known, result.labels, -1), np.where(known, result.posteriors.max(axis=1), np.nan)


def _z(who: Ints, values: Array, number: int) -> Array:
    """Sums of the values of each annotator, in standard errors, [R]."""
    return np.bincount(who, values, number) / np.sqrt(np.maximum(np.bincount(who, values**2, number), 1e-12))


def _sign(camp: Ints) -> Ints:
    """1, -1 or 0 for camp 1, 2 or 0."""
    return (camp == 1).astype(np.int64) - (camp == 2)
