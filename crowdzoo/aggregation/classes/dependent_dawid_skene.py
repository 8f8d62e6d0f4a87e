"""Dependent Dawid-Skene: annotators who make the same errors are found, and count for fewer votes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.against_votes import MOST_DIFFERENT, warn_of_notes
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes import hierarchical_dawid_skene as hierarchical
from crowdzoo.aggregation.classes.iterative import Iterative
from crowdzoo.aggregation.engine.block import Block, whole_block
from crowdzoo.aggregation.engine.class_frequencies import guarded_prior
from crowdzoo.aggregation.engine.correlated_votes import correlated_votes, effective_number, weighted_votes
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.dependence import (
    Groups,
    SharedTasks,
    agreement_likelihood,
    any_dependence,
    dependent_groups,
    dependent_pairs,
)
from crowdzoo.aggregation.engine.ordinal_rows import ordinal_rows
from crowdzoo.aggregation.engine.pairs import one_coin_params
from crowdzoo.aggregation.engine.params import TINY, Params
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.engine.softmax import softmax
from crowdzoo.aggregation.engine.weighted_counts import weighted_counts
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import FLAG, MAX_ITER, SEED, TOL, setting
from crowdzoo.errors import SHOWN

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

LEAST = 0.3  # correlation of the pairs that are linked
COPIES = 0.6  # the same, of groups that are reason to doubt what most annotators say
EVIDENCE = 0.02  # correlation of all pairs together that is reason to look for groups
MOST_COPIES = 2 / 3  # of the annotators: more copies are the crowd itself
ROUNDS = 5
DRAWN = 100.0  # annotations of one coin in each row of the common matrix, as in `HierarchicalDawidSkene`
COIN_ITERATIONS, COIN_TOL, COIN_RIGHT, COIN_WRONG = 100, 1e-5, 2.0, 1.0  # as in `OneCoinDawidSkene`
HALVINGS = 40
CONTRADICTION = (
    "Confusion matrices contradict the votes, weighted or not, on {:.0%} of the annotated tasks, so the labels are "
    "those of one-coin, and as sure as weighted votes: annotators may make the same errors, or many answer at random. "
    "Check the labels on tasks whose class you know, or correct them with about 200 such tasks (calibrate)."
)
DEPENDENT = (
    "{} annotators answer alike, in {} group{} (the largest: {}): they make the same errors, or are right where the "
    "others err together. This method counts the {:.3g} annotations of a task as {:.1f} independent ones."
)


@dataclass(frozen=True, eq=False)
class Ordinal:
    """What is believed of annotators with ordinal matrices; in the place of `hierarchical_dawid_skene.Crowd`.

    Attributes:
        prior: pseudo-counts, one in each row: the ordinal matrix of all annotators without an inclination,
            `[said, true]`, [K, K].
        params: the most probable matrices and class probabilities.
    """

    prior: NDArray[np.float64]
    params: Params

    @property
    def means(self) -> Params:
        """As `params`: these are no expectations."""
        return self.params

    @classmethod
    def start(cls, counts: Counts) -> Ordinal:
        """What is believed at first."""
        total = counts.table.sum(axis=0) + hierarchical.start(counts).coin
        return cls(np.exp(ordinal_rows((total + total.T)[None] / 2)[0]), Params(*_nothing(counts))).updated(counts)

    def updated(self, counts: Counts) -> Ordinal:
        """M-step."""
        logs = ordinal_rows(counts.table + self.prior)
        return Ordinal(self.prior, Params(logs.transpose(0, 2, 1), _log_class_prior(counts)))

    def bound(self, counts: Counts) -> float:
        """What no iteration lets fall: (weighted) log-likelihood and log prior density, nats."""
        return counts.log_likelihood + float((self.prior * self.params.log_table).sum())


@dataclass(frozen=True, eq=False)
class Found:
    """A fit with given groups.

    Attributes:
        run: of the fit.
        posteriors: class probabilities, [T, K].
        groups: whose weights the annotations had.
        weights: of the annotations, [A].
        expected: how often each pair would agree if errors were independent, [P].
    """

    run: Run[Any]
    posteriors: NDArray[np.float64]
    groups: Groups
    weights: NDArray[np.float64]
    expected: NDArray[np.float64]

    @property
    def copies(self) -> float:
        """Share of the annotators who are in groups whose correlation is that of copies."""
        return float((self.groups.correlation >= COPIES)[self.groups.members].mean())

    def score(self, shared: SharedTasks) -> float:
        """Log-likelihood of all agreements of pairs, given matrices and groups, nats (a composite likelihood)."""
        return agreement_likelihood(shared, self.expected, self.groups)


def vote_weights(skill: NDArray[np.float64], num_classes: int) -> NDArray[np.float64]:
    """Weights of annotators' votes: the log odds of one coin, none below zero, [R].

    Args:
        skill: how often each annotator is right, [R].
        num_classes: K, 2 or more.
    """
    others = np.maximum((1 - skill) / (num_classes - 1), TINY)
    return np.maximum(np.log(np.maximum(skill, TINY)) - np.log(others), 0.0)


@dataclass(frozen=True)
class DependentDawidSkene(Iterative):
    """Annotators with confusion matrices, of whom some make the same errors: copies, rings, models of one family.

    Given the true class, two annotators who err independently agree as often as their matrices say. Pairs that agree
    more often, by more than chance leaves open, are linked, and the connected annotators are a group. Its m
    annotations of a task count for 1 / (1 + (m - 1) c) each, with c the group's mean correlation (Kish's effective
    number of votes), in the posteriors and in the matrices.

    1. `HierarchicalDawidSkene`. If no pair agrees more often than expected and all pairs together do not (correlation
       below 0.02), that is the result.
    2. Pairs that agree more often than the last fit expects (correlation of 0.3 or more) are linked: groups, weights,
       weighted hierarchical Dawid-Skene from weighted votes, until the groups stay, at most five times.
    3. The same from another start: pairs that agree far more often than pairs do on average (0.6) are linked before
       anything is known of annotators, so a ring that agrees with itself on everything has no majority. This result is
       taken if groups of such a correlation are left in it, with two thirds of the annotators at most, and it explains
       better how often pairs agree (composite log-likelihood given matrices and groups). Good annotators are explained
       by their matrices, a ring is not.
    4. What is left of dependence between groups, such as tasks that are hard for everybody, makes the posteriors
       flatter and changes no label: they are raised to the power w / n, where the n (weighted) votes of a task are
       worth w, by a Dirichlet-multinomial distribution of the votes given the posteriors (see `CorrelatedVotes`).

    The test of a pair holds for any number of shared tasks (Chernoff's bound), and the share of false pairs is limited
    to 5 % (Benjamini and Hochberg), so sparse crowds give no groups by chance.

    If the labels contradict the weighted votes on more than a fifth of the tasks, and one coin with the same weights
    does not, neither matrices nor groups are trusted: the labels are those of one coin, and its posteriors are made so
    flat that they are as sure on average as the shares of weighted votes in `Robust`. `notes` says so. Errors that all
    annotators share cannot be seen without known classes, in whatever way votes are weighted.

    `clusters` has the groups, largest first (an annotator alone is one), `effective_votes` what the annotations of a
    task are worth.

    Args:
        ordinal: whether the classes have an order. An annotator then has three numbers (precision, inclination to high
            classes, inclination to the ends of the scale) in place of K (K - 1).
        max_iter: most iterations of each fit.
        tol: a fit has converged when an iteration raises the bound by no more than this, in nats per annotation.
        seed: seed of random ties, and of the tasks that are compared where there are more than five million pairs of
            annotations.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Annotators who share ten tasks or more with others; four of them or more to find copies.

    Source:
        Our own, of known parts: L. Kish: Survey Sampling. 1965 (effective number); Y. Benjamini, Y. Hochberg:
        Controlling the False Discovery Rate. JRSS B 57, 1995. That dependent sources are found by their residual
        agreement is of X. L. Dong, L. Berti-Equille, D. Srivastava: Integrating Conflicting Data. VLDB 2009.
    """

    title: ClassVar[str] = "Dependent Dawid-Skene"
    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    ordinal: bool = setting(False, FLAG)
    max_iter: int = setting(500, MAX_ITER)
    tol: float = setting(1e-4, TOL)
    seed: int = setting(0, SEED)

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None) -> Aggregation:
        """Finds truths, annotators and groups together.

        Memory beside the table of annotations: 24 bytes an annotation, 40 a pair of annotations of a task (five million
        at most), and as `HierarchicalDawidSkene`.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout.

        Returns:
            Posteriors; where there are no annotations, the class prior. `confusions` are posterior means. `history` is
            the bound of the last fit, in which annotations count by their weights; `log_likelihood` is None where there
            are groups. Ties are drawn, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
            VotesWarning: the confusion matrices were left out, or the labels are far from the votes.
        """
        check_classification(annotations, self.title)
        if self.ordinal:
            annotations.check_order(f"{self.title} with ordinal")
        block = whole_block(annotations, gold)
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        shared = SharedTasks.of(block, num_annotators, self.seed)
        plain = self._fitted(block, shared, Groups.alone(num_annotators), num_classes)
        dependent = num_classes > 1 and any_dependence(shared, plain.expected, EVIDENCE)
        found = plain
        if dependent:
            found = self._settled(block, shared, plain, num_classes)
            mean = float(np.average(shared.agreement, weights=shared.shared))
            same = np.full(len(shared.left), min(mean, 1 - 1e-6))
            alike = dependent_groups(shared, same, dependent_pairs(shared, same, COPIES), num_annotators)
            if (alike.sizes > 1).any():
                other = self._fitted(block, shared, alike, num_classes)
                other = self._settled(block, shared, other, num_classes)
                copied = other.copies
                if 0 < copied <= MOST_COPIES and other.score(shared) > found.score(shared):
                    found = other
        run, posteriors, groups, weights = found.run, found.posteriors, found.groups, found.weights
        self.warn_unless_converged(run, len(annotations))
        worth = np.bincount(block.index, weights, len(block.tasks)).astype(np.float64)
        notes: tuple[str, ...] = ()
        if dependent:
            posteriors, worth, notes = self._tempered(block, weights, posteriors, num_annotators)
            posteriors = block.clamped(posteriors)
        posteriors[~block.informed] = run.params.means.class_prior
        result = Aggregation.of(
            "dependent-dawid-skene",
            annotations,
            posteriors,
            params=run.params.means,
            seed=self.seed,
            **run.facts | {"log_likelihood": self._log_likelihood(block, groups, run.params.means)},
            clusters=groups.largest_first,
            effective_votes=worth,
        )
        warn_of_notes("dependent-dawid-skene", notes, stacklevel=3)
        return replace(result, notes=(*notes, *_note(groups, annotations, worth), *result.notes))

    def _settled(self, block: Block, shared: SharedTasks, found: Found, num_classes: int) -> Found:
        """Groups by what the last fit expects, and a fit with their weights, in turns, until the groups stay."""
        seen = [found.groups.members]
        while len(seen) < ROUNDS:
            linked = dependent_pairs(shared, found.expected, LEAST)
            groups = dependent_groups(shared, found.expected, linked, len(found.groups.members))
            found = self._fitted(block, shared, groups, num_classes)
            if any(np.array_equal(groups.members, earlier) for earlier in seen):
                break
            seen.append(groups.members)
        return found

    def _fitted(self, block: Block, shared: SharedTasks, groups: Groups, num_classes: int) -> Found:
        """Hierarchical (or ordinal) Dawid-Skene of the annotations with the groups' weights, from their vote shares."""
        num_annotators = len(groups.members)
        weights = groups.weights(block)
        flat = Params(np.zeros((num_annotators, num_classes, num_classes)), np.zeros(num_classes))
        counts, posteriors = weighted_counts(block, weights, flat, _shares(block, weights, num_classes))
        run: Run[Any]
        run = Run(Ordinal.start(counts)) if self.ordinal else Run(hierarchical.start(counts))
        while not run.done:
            counts, posteriors = weighted_counts(block, weights, run.params.params)
            run = self._advanced(run, counts)
        return Found(run, posteriors, groups, weights, shared.expected(run.params.means, posteriors))

    def _advanced(self, run: Run[Any], counts: Counts) -> Run[Any]:
        """One iteration, given the counts under `run.params`."""
        before = run.params
        if isinstance(before, Ordinal):
            return self.advance(run, before.bound(counts), counts, lambda: before.updated(counts))
        bound = hierarchical.bound(counts, before, DRAWN)
        return self.advance(run, bound, counts, lambda: hierarchical.update(counts, before, DRAWN))

    def _tempered(
        self, block: Block, weights: NDArray[np.float64], posteriors: NDArray[np.float64], num_annotators: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[str, ...]]:
        """Posteriors as flat as what is left of dependence asks for, what votes are worth then, and notes.

        Args:
            block: T tasks, A annotations.
            weights: of the annotations, [A].
            posteriors: [T, K].
            num_annotators: R.
        """
        num_classes = posteriors.shape[1]
        votes = _votes(block, weights, num_classes)
        labels = posteriors.argmax(axis=1)
        outvoted = votes[np.arange(len(labels)), labels] < votes.max(axis=1) * (1 - 1e-9)
        coin, skill = _one_coin(block, weights, num_annotators, num_classes)
        asked = block.informed if block.gold is None else block.informed & (block.gold < 0)
        against = np.count_nonzero((outvoted & (labels != coin.argmax(axis=1)))[asked])
        share = against / max(np.count_nonzero(asked), 1)
        if share <= MOST_DIFFERENT:
            worth = np.bincount(block.index, weights, len(block.tasks))
            fixed = np.ones(len(labels), bool)
            concentration = correlated_votes(votes / weights.mean(), posteriors, fixed, self.seed).concentration
            left = np.minimum(effective_number(worth, concentration), worth)  # a single vote is worth one
            power = np.divide(left, worth, out=np.ones_like(worth), where=worth > 0)
            return _flattened(posteriors, power), left, ()
        coin, skill = _one_coin(block, np.ones(len(block)), num_annotators, num_classes)
        odds = vote_weights(skill, num_classes)[block.annotator_ids]
        odds = odds / odds.mean() if odds.any() else np.ones_like(odds)
        votes, number = _votes(block, odds, num_classes), np.diff(block.starts).astype(np.float64)
        concentration = correlated_votes(votes, coin, ~asked, self.seed).concentration
        left = np.minimum(effective_number(number, concentration), number)
        shares = _shares(block, odds, num_classes)
        sure = ((left[:, None] * shares + 1 / num_classes) / (left[:, None] + 1)).max(axis=1)[asked].mean()
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            flat = _flattened(coin, np.full(len(coin), middle))
            low, high = (low, middle) if flat[asked].max(axis=1).mean() > sure else (middle, high)
        return _flattened(coin, np.full(len(coin), low)), left, (CONTRADICTION.format(share),)

    def _log_likelihood(self, block: Block, groups: Groups, means: Params) -> float | None:
        if (groups.sizes > 1).any():
            return None
        return weighted_counts(block, np.ones(len(block)), means)[0].log_likelihood


def _nothing(counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.zeros_like(counts.table), np.zeros(counts.num_classes)


def _log_class_prior(counts: Counts) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.log(_class_prior(counts))
    return found


def _class_prior(counts: Counts) -> NDArray[np.float64]:
    return guarded_prior(counts.classes, counts.table.sum(axis=(0, 2)))


def _votes(block: Block, weights: NDArray[np.float64], num_classes: int) -> NDArray[np.float64]:
    return weighted_votes(block.index, block.labels.astype(np.int64), weights, len(block.tasks), num_classes)


def _shares(block: Block, weights: NDArray[np.float64], num_classes: int) -> NDArray[np.float64]:
    """Shares of the weighted votes, [T, K]; equal ones without annotations."""
    votes = _votes(block, weights, num_classes)
    total = votes.sum(axis=1, keepdims=True)
    return np.divide(votes, total, out=np.full_like(votes, 1 / num_classes), where=total > 0)


def _flattened(posteriors: NDArray[np.float64], power: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row to its power, as probabilities, [T, K]."""
    return softmax(power[:, None] * np.log(np.maximum(posteriors, TINY)))[0]


def _one_coin(
    block: Block, weights: NDArray[np.float64], num_annotators: int, num_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`OneCoinDawidSkene` of weighted annotations: posteriors [T, K], and skills [R]."""
    flat = Params(np.zeros((num_annotators, num_classes, num_classes)), np.zeros(num_classes))
    counts, posteriors = weighted_counts(block, weights, flat, _shares(block, weights, num_classes))
    before = -np.inf
    for _ in range(COIN_ITERATIONS):
        right, total = np.einsum("rkk->r", counts.table), counts.table.sum(axis=(1, 2))
        skill = (right + COIN_RIGHT) / (total + COIN_RIGHT + COIN_WRONG)
        params = one_coin_params(skill, _class_prior(counts))
        counts, posteriors = weighted_counts(block, weights, params)
        if counts.log_likelihood - before <= COIN_TOL * len(block):
            break
        before = counts.log_likelihood
    return posteriors, skill


def _note(groups: Groups, annotations: Annotations, worth: NDArray[np.float64]) -> tuple[str, ...]:
    """The sentence on the groups that were found, if any."""
    several = groups.sizes[groups.sizes > 1]
    if not several.size:
        return ()
    largest = np.flatnonzero(groups.largest_first == 0)
    names = ", ".join(map(str, annotations.annotators[largest[:SHOWN]].tolist()))
    more = f" and {largest.size - SHOWN:,} more" if largest.size > SHOWN else ""
    some = annotations.redundancy > 0
    return (
        DEPENDENT.format(
            f"{several.sum():,}",
            f"{several.size:,}",
            "s" * (several.size > 1),
            names + more,
            annotations.redundancy[some].mean(),
            worth[some].mean(),
        ),
    )
