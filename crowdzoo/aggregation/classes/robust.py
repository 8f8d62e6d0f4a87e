"""Robust: a small network, trained on simulated and real crowds, that weighs annotators' answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import Aggregator, check_classification
from crowdzoo.aggregation.classes.hierarchical_dawid_skene import start, update
from crowdzoo.aggregation.classes.history import NO_HISTORY, History, Prior, with_prior
from crowdzoo.aggregation.engine.block import Additive, Block, blocks_of, sum_rows
from crowdzoo.aggregation.engine.confusions import TINY, Counts, Params, block_posteriors, vote_shares
from crowdzoo.aggregation.engine.learned_step import Crowd, evidence, facts_of, readout
from crowdzoo.aggregation.engine.loops import compiled, in_threads, num_threads
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import SEED, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

Array = NDArray[np.float64]
WEIGHTS = Path(__file__).with_name("robust.npz")
REFINED = 5  # steps of HierarchicalDawidSkene from the network's counts, for confusion matrices
COMMON = 100.0  # prior of those steps
ONE_SIDED = 0.3  # share of the annotations from annotators who use one class, from which on there is a note
LEAST_ANSWERS = 5  # of an annotator who uses one class
LEAST_SAID = 0.5  # how often an annotator gave a class; less is rounding in the counts of a prior
BY_CHANCE = 0.01  # probability above which an annotator may use one class only by chance
SIDED = (
    "{:.0%} of the annotations are from annotators who use only one class. Their answers reveal little about their "
    "accuracy, and nothing about how frequent that class is: check the share of each class on tasks whose class you "
    "know."
)


@lru_cache(maxsize=8)
def _weights(path: Path) -> Mapping[str, Array]:
    with np.load(path) as file:
        return {name: file[name].astype(np.float64) for name in file.files}


def num_steps() -> int:
    """Number of steps of the network."""
    return sum(name.endswith("/mix/bias") for name in _weights(WEIGHTS))


@dataclass(eq=False)
class Agreement(Additive):
    """Agreement of each annotator with the task's other annotators, by class of the answer; blocks add to it.

    Attributes:
        said: how often an annotator said a class, [R, K].
        agree: for those, the share of the task's other annotators who also said it, summed, [R, K].
        agreed: how many of those had other annotators, [R, K].
        sizes: tasks with annotations, and tasks with one, [2].
    """

    said: Array
    agree: Array
    agreed: Array
    sizes: Array

    @classmethod
    def zero(cls, num_annotators: int, num_classes: int) -> Agreement:
        """Agreement before any block."""
        num_answers, agree, agreed = np.zeros((3, num_annotators, num_classes))
        return cls(num_answers, agree, agreed, np.zeros(2))

    def add(self, block: Block) -> None:
        """Adds the agreement of a block."""
        block.check_codes(*self.said.shape)
        _add_agreement(*block.columns[:3], np.zeros(self.said.shape[1]), self.said, self.agree, self.agreed, self.sizes)


@compiled()
def _add_agreement(starts, annotators, labels, votes, num_answers, agree, agreed, sizes):  # type: ignore[no-untyped-def]  # for Numba
    for i in range(len(starts) - 1):
        num_others = starts[i + 1] - starts[i] - 1
        if num_others < 0:
            continue
        sizes[0] += 1
        sizes[1] += num_others == 0
        for j in range(starts[i], starts[i + 1]):
            votes[labels[j]] += 1
        for j in range(starts[i], starts[i + 1]):
            r, label = annotators[j], labels[j]
            num_answers[r, label] += 1
            if num_others > 0:
                agree[r, label] += (votes[label] - 1) / num_others
                agreed[r, label] += 1
        for j in range(starts[i], starts[i + 1]):
            votes[labels[j]] = 0


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs after a step.

    Attributes:
        params: log evidence as an annotator model's parameters, not normalised; the maximum of a row is 0.
        context: features of the crowd, see `evidence`.
    """

    params: Params
    context: Array


def first_counts(counts: Counts, block: Block) -> None:
    """Adds the counts of a block under its vote shares."""
    counts.add(block, vote_shares(block, np.ones(counts.num_annotators), counts.num_classes))


def believe(step: int, counts: Counts, agreement: Agreement) -> Beliefs:
    """Runs one step of the network.

    Args:
        step: number of the step, from 0.
        counts: expected truth of the annotators' answers.
        agreement: agreement of all blocks.
    """
    weights, num_classes = _weights(WEIGHTS), counts.num_classes
    table = np.zeros_like(counts.table)
    who, labels = np.nonzero(agreement.said >= LEAST_SAID)
    if not len(who):
        context = np.zeros(len(weights[f"{step}/context/bias"]))
        return Beliefs(Params(table, np.full(num_classes, -np.log(max(num_classes, 1)))), context)
    names, active = np.unique(who, return_inverse=True)
    tasks, single = agreement.sizes
    sizes = (float(num_classes), agreement.said.sum(), tasks, float(len(names)), single)
    crowd = Crowd(
        annotators=active,
        labels=labels,
        crowds=np.zeros(len(who), np.int64),
        said=agreement.said[who, labels],
        agree=agreement.agree[who, labels],
        agreed=agreement.agreed[who, labels],
        facts=facts_of(np, *(np.array([size]) for size in sizes)),
        num_annotators=len(names),
        num_classes=num_classes,
    )
    pairs, classes = counts.table[who, labels], counts.classes[None]
    table[who, labels], log_prior, context = evidence(np, weights, step, pairs, classes, crowd, sum_rows)
    return Beliefs(Params(table.transpose(0, 2, 1), log_prior[0]), context[0])


def posteriors_of(block: Block, beliefs: Beliefs) -> Array:
    """Class probabilities of a block's tasks, [T, K]."""
    evident = np.log(np.maximum(block_posteriors(block, beliefs.params), TINY))
    num_tasks, num_classes = evident.shape
    cells = block.index * num_classes + block.labels
    votes = np.bincount(cells, minlength=evident.size).reshape(num_tasks, num_classes).astype(np.float64)
    context = np.broadcast_to(beliefs.context, (num_tasks, len(beliefs.context)))
    return block.clamped(readout(np, _weights(WEIGHTS), evident, votes, context))


@dataclass(frozen=True)
class Robust(Aggregator):
    """Expectation maximisation with a small network, trained on simulated and real crowds, as M-step.

    A good default for unknown crowds. In each of four steps, every annotator is described by the expected accuracy per
    class; the agreement with the task's other annotators; the frequency of each answered class, and whether only one
    class is used; the number of annotations; and features of the whole crowd. From these the network mixes seven kinds
    of evidence from an answer: a plain vote; one coin; the crowd's common confusion matrix; the annotator's own matrix,
    shrunk to the common one by one and by eight annotations; how often the annotator gives the answer, among all tasks
    of the class; and the precision of the answer. After the last step, the network tempers the evidence of each task
    and mixes it with the votes.

    Tasks, annotators and classes are exchangeable by construction. The weights were fitted once, to crowds whose truth
    is known; the docs report results on other crowds. They are not fitted to your annotations.

    Args:
        seed: seed of random ties.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import Robust
        >>> task, annotator = [1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "cem"] * 3
        >>> labels = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "cat"]
        >>> result = Robust().fit(Annotations.from_arrays(task, annotator, labels))
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog', 'cat']

    Needs:
        Nothing in particular. Errors that most annotators share mislead it as they mislead the vote.

    Source:
        Our own, an amortised aggregator like CrowdFM (ICLR 2026), with the steps of EM (A. P. Dawid, A. M. Skene,
        1979).
    """

    title: ClassVar[str] = "Robust"

    seed: int = setting(0, SEED)

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, prior: Prior = None) -> Aggregation:
        """Aggregates the annotations.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. The posteriors of these tasks are fixed, and used to
                describe annotators.
            prior: an earlier result for classes. Its annotations, with their posteriors there, count in the estimates
                of annotators and classes. Annotators and classes are matched by name; those that only the prior has are
                last in the result. Its tasks are not aggregated again.

        Returns:
            Posteriors; `class_prior` for tasks without annotations. `confusions` are those of `HierarchicalDawidSkene`
            after five iterations from the network's counts, and `skills` is the accuracy they imply. `history` is
            empty. Ties are broken at random, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `prior` does not match them.
        """
        check_classification(annotations, self.title)
        annotations, history = with_prior(annotations, prior, self.title)
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        blocks = blocks_of(annotations, gold)
        agreement = Agreement.zero(num_annotators, num_classes)
        for block in blocks:
            agreement.add(block)
        if history.counts is not None:  # agreement is known only for the new tasks
            agreement.said += history.counts.table.sum(axis=2)
            agreement.sizes *= 1 + history.counts.classes.sum() / max(agreement.sizes[0], 1)
        counts = history.added(Counts.total(blocks, first_counts, num_annotators, num_classes))
        beliefs = believe(0, counts, agreement)
        for step in range(1, num_steps()):
            counts = history.added(Counts.expected(blocks, beliefs.params))
            beliefs = believe(step, counts, agreement)
        parts = in_threads(lambda some: [posteriors_of(block, beliefs) for block in some], blocks, num_threads())
        posteriors = np.concatenate([part for some in parts for part in some] or [np.zeros((0, num_classes))])
        return self.result(annotations, posteriors, counts, history)

    def result(
        self, annotations: Annotations, posteriors: Array, counts: Counts, history: History = NO_HISTORY
    ) -> Aggregation:
        """Creates the result of `fit`.

        Args:
            annotations: see `fit`.
            posteriors: [N, K], certain if the class is known; those of tasks without annotations are set here.
            counts: counts of the last step, plus those of the history.
            history: counts of a prior.
        """
        certain = posteriors.max(axis=1, initial=0.0) == 1
        blocks = blocks_of(annotations, np.where(certain, posteriors.argmax(axis=1), -1))
        crowd = start(counts)
        for _ in range(REFINED):  # from posteriors of confusion matrices, which are less cautious
            crowd = update(history.added(Counts.expected(blocks, crowd.params)), crowd, COMMON)
        unknown = (annotations.redundancy == 0) & ~certain
        prior = crowd.means.class_prior
        if not unknown.all():
            earlier = np.zeros(len(prior)) if history.counts is None else history.counts.classes
            prior = (posteriors[~unknown].sum(axis=0) + earlier) / ((~unknown).sum() + earlier.sum())
        posteriors[unknown] = prior
        confusions = crowd.means.confusions
        result = Aggregation.of(
            "robust",
            annotations,
            posteriors,
            seed=self.seed,
            confusions=confusions,
            class_prior=prior,
            skills=np.einsum("rkk,k->r", confusions, prior),
            num_iterations=num_steps(),
            **counts.facts,
        )
        return history.noted(replace(result, notes=(*result.notes, *_notes(counts))))


def _notes(counts: Counts) -> Sequence[str]:
    """Notes on the kind of crowd that say what to check."""
    label_counts = counts.table.sum(axis=2)
    number = label_counts.sum(axis=1)
    by_chance = (label_counts.sum(axis=0) / max(label_counts.sum(), 1.0))[
        label_counts.argmax(axis=1)
    ] ** number  # probability of using only one class
    sided = (
        (label_counts.max(axis=1, initial=0.0) >= number - 1e-6) & (number >= LEAST_ANSWERS) & (by_chance < BY_CHANCE)
    )
    share = number[sided].sum() / max(number.sum(), 1.0)
    return [SIDED.format(share)] if share > ONE_SIDED else []
