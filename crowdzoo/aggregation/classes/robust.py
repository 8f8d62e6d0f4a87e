"""Robust: the mean of posteriors of methods that assume much, little and nothing of the annotators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.against_votes import MOST_DIFFERENT, VotesWarning, share_against_votes, warn_of_notes
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.aggregation.classes.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdzoo.aggregation.classes.incremental import Incremental
from crowdzoo.aggregation.classes.initial import Initial, initial_posteriors
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.aggregation.convergence import ConvergenceWarning
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.correlated_votes import correlated_votes, effective_number, weighted_votes
from crowdzoo.aggregation.engine.kernels import vote_shares
from crowdzoo.aggregation.engine.params import TINY
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.constraints import SEED, setting

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["Robust", "vote_weights"]

CONTRADICTION = (
    "Confusion matrices contradict the votes, weighted or not, on {:.0%} of the annotated tasks, so the labels are "
    "weighted votes without them: annotators may make the same errors, or many answer at random. Check the labels on "
    "tasks whose class you know, or correct them with about 200 such tasks (calibrate)."
)
OF_MATRICES = 1.5  # weight of the two methods with confusion matrices together; each other part counts once


def vote_weights(skill: NDArray[np.float64], num_classes: int) -> NDArray[np.float64]:
    """Weights of annotators' votes: the log odds of one coin, none below zero, [R].

    Args:
        skill: how often each annotator is right, [R].
        num_classes: K, 2 or more.
    """
    others = np.maximum((1 - skill) / (num_classes - 1), TINY)
    return np.maximum(np.log(np.maximum(skill, TINY)) - np.log(others), 0.0)


@dataclass(frozen=True)
class Robust(Incremental):
    """A weighted mean of several methods' posteriors, for a crowd of which nothing is known (a linear opinion pool).

    - `DawidSkene` and `HierarchicalDawidSkene`, a confusion matrix for each annotator; the mean of the two counts one
      and a half times. Best where annotators are biased and have many annotations; they may go wrong where annotators
      have few, or make the same errors. Both begin with the posteriors of `OneCoinDawidSkene`, which leads to better
      maxima than vote shares as a rule.
    - Weighted votes that may be correlated: annotators count by the log odds of `OneCoinDawidSkene`, and the shares of
      a task's weighted votes are drawn from a Dirichlet distribution around the truth, so that annotators who agree
      for a wrong reason do not make the answer certain (see `CorrelatedVotes`).
    - Vote shares, as `MajorityVote` gives them.

    Where there is less than one annotation for each annotator and class, the posteriors of `OneCoinDawidSkene` are
    another part: so few annotations say little of matrices.

    A class wins against the votes only if the evidence of the other parts for it is clear, and where the parts disagree
    the probability of the answer says so. The parts have their own defaults, and their weights are fixed: there is
    nothing to set.

    If the label of `HierarchicalDawidSkene` is neither among the classes with the most votes nor the label of
    `OneCoinDawidSkene`, on more than a fifth of the annotated tasks without `gold`, annotators may make the same
    errors, or many answer at random, and no method that multiplies probabilities can be trusted. The posteriors are
    then shares of the weighted votes alone (a linear opinion pool with the same weights): as many votes as those of the
    task are worth, and one more, which the classes share (Perks' prior). `notes` says so.

    Args:
        seed: seed of random ties, and of the draw of the tasks on which the correlation is fitted.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Nothing in particular.

    Source:
        Our own; a linear opinion pool (M. Stone: The Opinion Pool. Annals of Mathematical Statistics 32, 1961).
    """

    title: ClassVar[str] = "Robust"

    seed: int = setting(0, SEED)

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Fits the parts and averages them.

        Memory beside the table of annotations: as `HierarchicalDawidSkene`, and 40 K bytes a task.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout.
            initial: starting point of the methods with confusion matrices instead of one coin: posteriors [N, K], or an
                earlier `Aggregation` of the same tasks and classes, whose posteriors count.

        Returns:
            Mean posteriors; where there are no annotations, the class prior. `confusions`, `class_prior`,
            `log_likelihood` and `num_iterations` are those of `HierarchicalDawidSkene`, and `reliability` is that of
            `OneCoinDawidSkene`. `history` is empty. `converged`: all parts that iterate did. Ties are drawn, as in
            `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not fit them.

        Warns:
            VotesWarning: the confusion matrices were left out.
        """
        return self.fit_by(lambda part, begin: part.fit(annotations, gold, begin), annotations, gold, initial)

    def fit_by(
        self,
        fit_part: Callable[[Any, NDArray[np.float64] | None], Aggregation],
        annotations: Annotations,
        gold: ArrayLike | None = None,
        initial: Initial = None,
    ) -> Aggregation:
        """`fit`, where somebody else fits the parts.

        Args:
            fit_part: fits an aggregator, from posteriors [N, K] or None, to the annotations and `gold`.
            annotations: see `fit`.
            gold: see `fit`.
            initial: see `fit`.
        """
        check_classification(annotations, self.title)
        with warnings.catch_warnings():  # a part may be far from the votes; what counts is the mean
            warnings.simplefilter("ignore", VotesWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            coin = fit_part(OneCoinDawidSkene(), None)
            begin = coin.posteriors if initial is None else initial_posteriors(initial, annotations)
            matrices = fit_part(HierarchicalDawidSkene(), begin)
            free = fit_part(DawidSkene(), begin)
        assert coin.reliability is not None
        informed = annotations.redundancy > 0
        known = np.zeros(annotations.num_tasks, bool)
        if gold is not None:
            known = np.asarray(gold) >= 0
        shares = vote_shares(
            whole_block(annotations, gold), np.ones(annotations.num_annotators), annotations.num_classes
        )
        found = shares.copy()
        notes: tuple[str, ...] = ()
        if annotations.num_classes > 1:
            weights = vote_weights(coin.reliability, annotations.num_classes)[annotations.annotator_ids]
            weights = weights / weights.mean() if weights.any() else np.ones_like(weights)
            votes = weighted_votes(annotations.task_ids, annotations.labels, weights, *found.shape)
            second = correlated_votes(votes, coin.posteriors, known, self.seed)
            contradiction = share_against_votes(annotations, matrices.labels, ~known, matrices.labels != coin.labels)
            if contradiction > MOST_DIFFERENT:
                totals = votes.sum(axis=1, keepdims=True)
                found = np.where(totals > 0, votes / np.maximum(totals, TINY), shares)
                worth = effective_number(annotations.redundancy, second.concentration)[:, None]
                found = worth * found + 1 / annotations.num_classes
                notes = (CONTRADICTION.format(contradiction),)
            else:
                found = OF_MATRICES / 2 * (matrices.posteriors + free.posteriors) + second.posteriors + shares
                if len(annotations) < annotations.num_annotators * annotations.num_classes:
                    found += coin.posteriors
        found /= found.sum(axis=1, keepdims=True)
        found[~informed & ~known] = matrices.class_prior
        found[known] = shares[known]
        result = Aggregation.of(
            "robust",
            annotations,
            found,
            seed=self.seed,
            confusions=matrices.confusions,
            class_prior=matrices.class_prior,
            log_likelihood=matrices.log_likelihood,
            reliability=coin.reliability,
            converged=matrices.converged and free.converged and coin.converged,
            num_iterations=matrices.num_iterations,
        )
        warn_of_notes("robust", notes, stacklevel=4)
        return replace(result, notes=(*notes, *result.notes))
