"""LabelModel: weak supervision, labelling functions' accuracies from how they agree; what LIA's paper calls MeTaL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes import majority_vote
from crowdzoo.aggregation.classes.initial import Initial, first_counts, initial_posteriors
from crowdzoo.aggregation.classes.iterative import Iterative
from crowdzoo.aggregation.engine.block import Block, whole_block
from crowdzoo.aggregation.engine.class_frequencies import shares_of
from crowdzoo.aggregation.engine.dependence import pairs_of_annotations
from crowdzoo.aggregation.engine.params import TINY, Params
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, PRIOR, SEED, TOL, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

CELLS = 2**20  # of the work arrays


@dataclass(frozen=True)
class LabelModel(Iterative):
    """Label model for weak supervision, in the way of Snorkel and its successors: annotators are labelling functions.

    A labelling function says a class or abstains (it has no annotation of that task). Given the truth, functions are
    taken as independent, and abstaining as independent of the truth: an absent annotation says nothing. (Snorkel's own
    model lets a function vote more often on some classes; its posterior too leaves out functions that abstain.)

    The confusions pi and the class balance rho are learnt from second moments alone, how often two functions gave a
    task the labels a and b, as in MeTaL, the label model of Snorkel 0.9:
    O[i, j, a, b] = sum over k of rho[k] pi[i, k, a] pi[j, k, b]. The paper fits O by gradient descent on squared
    differences; here the Kullback-Leibler divergence between both sides is minimised by expectation maximisation, in
    other words the likelihood of all pairs: no learning rate, and `history` never falls. The moments are the same, so
    where the model is right both find the same parameters.

    Posteriors: naive Bayes with these parameters. Difference to Dawid-Skene: that looks at all answers of a task
    together, which uses more of the data and trusts the assumption of independence more.

    Memory and time follow the pairs of annotations of a task, sum of m (m - 1) / 2; there is no [R, R] matrix.
    `skills` is the probability of being right under the class balance.

    Args:
        prior: pseudo-count of every cell of a confusion matrix, and of every class.
        max_iter: most iterations.
        tol: it has converged when an iteration raises the objective by no more than this, in nats per pair of
            annotations. As with `DawidSkene` the long tail fits noise.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Annotators (rules, models) that share tasks.

    Source:
        A. Ratner et al.: Snorkel. VLDB 2018; A. Ratner et al.: Training complex models with multi-task weak
        supervision (MeTaL). AAAI 2019.
    """

    title: ClassVar[str] = "The label model"
    unit: ClassVar[str] = "nats per pair"

    prior: float = setting(0.01, PRIOR)
    max_iter: int = setting(200, MAX_ITER)
    tol: float = setting(1e-5, TOL)
    seed: int = setting(0, SEED)

    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Learns the labelling functions, and then the answers.

        Args:
            annotations: N tasks, R labelling functions, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class, and the truth takes part
                in the moments as a function that is never wrong.
            initial: what confusions are first taken from, instead of vote shares: posteriors [N, K], or an earlier
                `Aggregation` of the same tasks and classes.

        Returns:
            Posteriors, labels, `confusions`, `class_prior` and `skills`. A function that shares no task with
            another has the mean of the others (if there are none, what the votes say). `history` is the log-likelihood
            of the pairs plus the log prior density, at the start and after each iteration. `log_likelihood` is that of
            the annotations and known classes under naive Bayes.

        Raises:
            DataError: annotations are not of kind classification; `gold` or `initial` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        check_classification(annotations, self.title)
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        block = whole_block(annotations, gold)
        given = initial_posteriors(initial, annotations)
        run = self._by_pairs(block, num_annotators, num_classes, given)
        params = run.params
        log_joint = _log_joint(block, params)
        posteriors, evidence = softmax(log_joint, axis=-1), logsumexp(log_joint, axis=-1)
        posteriors, evidence = block.clamped(posteriors), evidence.ravel()
        if block.gold is not None:
            known = np.flatnonzero(block.gold >= 0)
            evidence[known] = log_joint[known, block.gold[known]]
        return Aggregation.of(
            "label-model",
            annotations,
            posteriors,
            params=params,
            seed=self.seed,
            **run.facts | {"log_likelihood": float(evidence[block.informed].sum())},
            skills=np.einsum("rkk,k->r", params.confusions, params.class_prior),
        )

    def _by_pairs(
        self, block: Block, num_annotators: int, num_classes: int, given: NDArray[np.float64] | None
    ) -> Run[Params]:
        """Expectation maximisation on the pairs; the parameters of the R functions at its end."""
        first = majority_vote.update(first_counts([block], num_annotators, num_classes, given))
        moments = _Moments(LabelPairs.of(block, num_annotators, num_classes), num_annotators, num_classes)
        m_step = partial(self._m_step, moments=moments)
        run = Run(Params.from_probabilities(moments.with_truth(first.confusions), first.class_prior))
        while not run.done:
            log_likelihood, counts, classes = moments.expected(run.params)
            objective = log_likelihood + self._log_prior(run.params, num_annotators)
            run = advance(
                run, objective, log_likelihood, moments.total, self.max_iter, self.tol, partial(m_step, counts, classes)
            )
        self.warn_unless_converged(run, moments.total, stacklevel=4)
        confusions = run.params.confusions[:num_annotators]
        alone = ~counts[:num_annotators].any(axis=(1, 2))
        if alone.all():
            confusions = first.confusions
        else:
            confusions[alone] = self._normalised(counts[:num_annotators].sum(axis=0, keepdims=True))[0]
        params = Params.from_probabilities(confusions, run.params.class_prior)
        return Run(params, run.history, run.log_likelihood, run.converged, run.done)

    def _m_step(self, counts: NDArray[np.float64], classes: NDArray[np.float64], moments: _Moments) -> Params:
        """The most probable parameters, given the expected counts [R, K, K] and [K]."""
        confusions = moments.with_truth(self._normalised(counts)[: moments.num_annotators])
        return Params.from_probabilities(confusions, shares_of(classes + self.prior))

    def _normalised(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Confusion matrices from counts [R, K, K], with the prior."""
        num_classes = counts.shape[2]
        cells = counts + self.prior
        total = cells.sum(axis=2, keepdims=True)
        return np.divide(cells, total, out=np.full_like(cells, 1 / num_classes), where=total > 0)

    def _log_prior(self, params: Params, num_annotators: int) -> float:
        """Log density of the prior up to a constant, nats."""
        if not self.prior:
            return 0.0
        return self.prior * float(params.log_confusions[:num_annotators].sum() + params.log_class_prior.sum())


@dataclass(frozen=True, eq=False)
class LabelPairs:
    """How often two annotators gave a task two labels: the second moments of the answers, where they are not zero.

    Attributes:
        left: code of the lower annotator, int64 [E].
        right: code of the higher annotator, int64 [E].
        left_label: what the lower one said, int64 [E].
        right_label: what the higher one said, int64 [E].
        count: on how many tasks, float64 [E].
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    left_label: NDArray[np.int64]
    right_label: NDArray[np.int64]
    count: NDArray[np.float64]

    @classmethod
    def of(cls, block: Block, num_annotators: int, num_classes: int) -> LabelPairs:
        """Counts the pairs; known classes are labels by one more annotator, of code R.

        Args:
            block: T tasks, A annotations.
            num_annotators: R.
            num_classes: K.
        """
        if block.gold is not None:
            known = np.flatnonzero(block.gold >= 0)
            block = Block(
                np.concatenate([block.index, known]),
                np.concatenate([block.annotator_ids, np.full(known.size, num_annotators)]),
                np.concatenate([block.labels, block.gold[known]]),
                np.arange(len(block.tasks)),
            )
        shape = num_annotators + 1, num_annotators + 1, num_classes, num_classes
        cells = [np.empty(0, np.int64)]
        cells += [np.ravel_multi_index(columns, shape) for _, *columns in pairs_of_annotations(block)]
        cell, count = np.unique(np.concatenate(cells), return_counts=True)
        left, right, left_label, right_label = (column.astype(np.int64) for column in np.unravel_index(cell, shape))
        return cls(left, right, left_label, right_label, count.astype(np.float64))


class _Moments:
    """The pairs of labels, as EM needs them; with the truth as annotator R.

    Attributes:
        num_annotators: R.
        total: number of pairs of annotations.
    """

    def __init__(self, pairs: LabelPairs, num_annotators: int, num_classes: int):
        self.num_annotators = num_annotators
        self._left = pairs.left * num_classes + pairs.left_label
        self._right = pairs.right * num_classes + pairs.right_label
        self._count = pairs.count
        self.total = int(self._count.sum())

    def with_truth(self, confusions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Confusions [R, K, K] and those of the truth, which is never wrong."""
        return np.concatenate([confusions, np.eye(confusions.shape[1])[None]])

    def expected(self, params: Params) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Log-likelihood of the pairs, and expected counts: [R + 1, K, K] `[annotator, true, said]`, [K]."""
        num_classes = params.num_classes
        table = params.confusions.transpose(1, 0, 2).reshape(num_classes, -1)  # [true, annotator * K + said]
        counts, classes = np.zeros_like(table), np.zeros(num_classes)
        log_likelihood = 0.0
        step = max(CELLS // num_classes, 2 * table.shape[1])
        for begin in range(0, len(self._count), step):
            part = slice(begin, begin + step)
            left, right, count = self._left[part], self._right[part], self._count[part]
            joint = table.take(left, axis=1)
            joint *= table.take(right, axis=1)
            joint *= params.class_prior[:, None]
            evidence = np.maximum(joint.sum(axis=0), TINY)
            joint *= count / evidence
            for true, weights in enumerate(joint):
                counts[true] += np.bincount(left, weights=weights, minlength=table.shape[1])
                counts[true] += np.bincount(right, weights=weights, minlength=table.shape[1])
            classes += joint.sum(axis=1)
            log_likelihood += float(count @ np.log(evidence))
        return log_likelihood, counts.reshape(num_classes, -1, num_classes).transpose(1, 0, 2), classes


def _log_joint(block: Block, params: Params) -> NDArray[np.float64]:
    """Log probability of each task's answers and class, [T, K]."""
    num_tasks, num_classes = len(block.tasks), params.num_classes
    said = block.said(params.num_annotators, num_classes)
    table = params.log_confusions.transpose(1, 0, 2).reshape(num_classes, -1)
    found = np.empty((num_tasks, num_classes))
    for true in range(num_classes):
        found[:, true] = np.bincount(block.index, weights=table[true].take(said), minlength=num_tasks)
    return found + params.log_class_prior
