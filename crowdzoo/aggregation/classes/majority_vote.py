"""Majority vote: the class with the most votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import Aggregator, check_classification, short_of_memory
from crowdzoo.aggregation.engine.block import Block, blocks_of, checked_gold
from crowdzoo.aggregation.engine.confusions import Counts, Params, first_counts, vote_shares
from crowdzoo.aggregation.engine.labels import TIES, answers_by_block, choose_labels, tied_classes
from crowdzoo.aggregation.engine.soft_votes import SoftVotes
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import FLAG, SEED, Choice, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

VOTING = ("soft", "hard")
SMOOTHING = 0.01


def update(counts: Counts) -> Params:
    """Annotators' confusion matrices against the vote, and the mean vote share of each class.

    An annotator's own votes are part of the vote, so these matrices are too favourable. 0.01 is added to each cell, so
    that an annotator without annotations has uniform rows.
    """
    confusions = counts.confusions + SMOOTHING
    classes = counts.classes + SMOOTHING
    return Params.from_probabilities(confusions / confusions.sum(axis=2, keepdims=True), classes / classes.sum())


def posteriors(
    block: Block, params: Params, voting: str, ties: str, seed: int, shares: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Class probabilities of a block's tasks by the vote, [T, K].

    Args:
        block: T tasks, A annotations.
        params: class prior, for tasks without annotations.
        voting: see `MajorityVote`.
        ties: see `MajorityVote`.
        seed: see `MajorityVote`.
        shares: vote shares of all tasks, [N, K]; None counts the block's votes.
    """
    num_classes = params.num_classes
    shares = vote_shares(block, np.ones(params.num_annotators), num_classes) if shares is None else shares[block.tasks]
    if voting == "hard":
        if ties == "uniform":
            winners = tied_classes(shares)
            shares = winners / winners.sum(axis=1, keepdims=True)
        else:
            shares = np.eye(num_classes)[choose_labels(shares, block.tasks, ties, seed)]
    shares[~block.informed] = params.class_prior
    return block.clamped(shares)


def _without_matrices(annotations: Annotations, gold: NDArray[np.int64] | None) -> Params:
    """The class prior of `update`, with uninformative matrices that take no memory."""
    known = np.zeros(annotations.num_tasks, bool) if gold is None else gold >= 0
    weights = (~known / np.maximum(annotations.redundancy, 1))[annotations.task_ids]
    num_classes = annotations.num_classes
    classes = np.bincount(annotations.labels, weights, num_classes) + SMOOTHING
    if gold is not None:
        classes += np.bincount(gold[known], minlength=num_classes)
    even = np.broadcast_to(-np.log(num_classes), (annotations.num_annotators, num_classes, num_classes))
    return Params(even, np.log(classes / classes.sum()))


@dataclass(frozen=True)
class MajorityVote(Aggregator):
    """The class with the most votes, the baseline that every other method has to beat.

    Breaking ties differently changes accuracy by up to five points (13 % of LabelMe's tasks are tied), so the rule is
    an argument. To compare methods use `Aggregation.accuracy`, which does not depend on it.

    Args:
        voting: "soft": posteriors are vote shares. "hard": the winner has probability 1.
        ties: "uniform": tied classes have equal posteriors, and the label is drawn from them; "random": the drawn
            class has a hard posterior of 1; "lowest": the lowest class code wins. Labels of soft votes follow the
            same rule. Draws depend only on `seed` and the task's code, not on row order or blocks.
        seed: seed of the draws, 0 to 2**63 - 1.
        confidence: whether to weight votes by the column `confidence` of the annotations, the probability of the label;
            the rest is spread evenly over the other classes, so that posteriors are the annotators' mean probabilities.
            A vote without confidence (NaN) counts fully. Does not run on Beam.

    Raises:
        ConfigError: an unknown setting or value.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MajorityVote
        >>> task, annotator = [1, 1, 1, 2, 2, 2], ["ann", "bob", "cem"] * 2
        >>> annotations = Annotations.from_arrays(task, annotator, ["cat", "cat", "dog", "dog", "dog", "dog"])
        >>> result = MajorityVote().fit(annotations)
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog']
        >>> result.posteriors.round(2).tolist()  # shares of the votes for cat and dog
        [[0.67, 0.33], [0.0, 1.0]]

    Needs:
        Several annotations per task.

    Source:
        N. de Condorcet: Essai sur l'application de l'analyse. 1785: the vote of the majority.
    """

    title: ClassVar[str] = "Majority vote"

    voting: str = setting("soft", Choice(VOTING))
    ties: str = setting("uniform", Choice(TIES))
    seed: int = setting(0, SEED)
    confidence: bool = setting(False, FLAG)

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None) -> Aggregation:
        """Counts the votes.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. These tasks are labelled with their class.

        Returns:
            Posteriors and labels. Tasks without annotations get the mean vote share of each class. `confusions` compare
            each annotator with the vote (its own included), None if there is not enough memory for them. `history` is
            empty and `log_likelihood` None.

        Raises:
            DataError: annotations are not of kind classification, `gold` does not match them, or a confidence that is
                used is missing or outside 0 to 1.
        """
        check_classification(annotations, self.title, matrices=False)
        blocks = blocks_of(annotations, gold)
        shares = None
        sizes = annotations.num_annotators, annotations.num_classes
        matrices = self.confidence or not short_of_memory(sizes[1], annotations.num_tasks, sizes[0])
        if self.confidence:
            soft = SoftVotes(annotations, blocks, self.title)
            counts = soft.first_counts(None, np.ones(annotations.num_annotators))
            shares = soft.said.mean(annotations.num_tasks)
            params = update(counts)
        elif matrices:
            params = update(first_counts(blocks, *sizes, None))
        else:
            params = _without_matrices(annotations, checked_gold(gold, annotations.num_tasks, sizes[1]))

        def write(place: int, out: NDArray[np.float64]) -> None:
            out[:] = posteriors(blocks[place], params, self.voting, self.ties, self.seed, shares)

        out, labels = answers_by_block(annotations, blocks, write, self.seed, self.ties)
        learnt = {"params": params} if matrices else {"class_prior": params.class_prior}
        return Aggregation.of("majority-vote", annotations, out, labels, confidence=self.confidence, **learnt)

    def partial_fit(
        self, annotations: Annotations, earlier: Aggregation | None = None, gold: ArrayLike | None = None
    ) -> Aggregation:
        """Fits all annotations, old and new, in one pass; see `DawidSkene.partial_fit`.

        Args:
            annotations: all annotations so far.
            earlier: ignored; for the same signature as other methods.
            gold: as in `fit`.
        """
        return self.fit(annotations, gold)
