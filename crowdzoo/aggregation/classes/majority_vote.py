"""Majority vote: the class that most annotators said."""

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

    An annotator's own votes count in what it is compared with, so these matrices flatter. 0.01 is added to each cell:
    an annotator without annotations has uniform rows.
    """
    confusions = counts.confusions + SMOOTHING
    classes = counts.classes + SMOOTHING
    return Params.from_probabilities(confusions / confusions.sum(axis=2, keepdims=True), classes / classes.sum())


def posteriors(
    block: Block, params: Params, voting: str, ties: str, seed: int, shares: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Class probabilities of a block's tasks as the vote gives them, [T, K].

    Args:
        block: T tasks, A annotations.
        params: class prior, for tasks without annotations.
        voting: see `MajorityVote`.
        ties: see `MajorityVote`.
        seed: see `MajorityVote`.
        shares: of each class by task, [N, K], of all tasks; None counts the block's votes.
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
    """The class prior of `update`; matrices that say nothing and take no memory."""
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
    """The class that most annotators said; the baseline that every other method has to beat.

    A tie is a choice, and it moves accuracies by up to five points (13 % of LabelMe's tasks are tied), so its rule is
    an argument. To compare methods use `Aggregation.accuracy`, which does not depend on it.

    Args:
        voting: "soft": posteriors are vote shares. "hard": the winner has all of it.
        ties: "uniform": tied classes have equal posteriors and the label is drawn among them; "random": the drawn
            class has all of a hard posterior; "lowest": the lowest class code wins. Labels of soft votes follow the
            same rule. Draws depend on `seed` and the task's code only: row order and blocks do not change them.
        seed: seed of the draws, 0 to 2**63 - 1.
        confidence: whether votes count by the column `confidence` of the annotations, a probability of the label whose
            rest goes evenly to the other classes: posteriors are then the annotators' mean probabilities. Where it is
            missing (NaN), a vote counts whole. Does not run on Beam.

    Raises:
        ConfigError: a setting that is not one of those above.

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
            gold: known class codes, int [N], -1 where unknown. Those tasks get their known class.

        Returns:
            Posteriors and labels. Tasks without annotations get the mean vote share of each class. `confusions` are
            those of each annotator against the vote (its own included), None where there are more classes than memory
            for them. `history` is empty and `log_likelihood` None.

        Raises:
            DataError: annotations are not of kind classification, `gold` does not fit them, or with `confidence` one
                is missing or outside of 0 to 1.
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
        """As `fit`: one pass over all annotations, old and new; see `DawidSkene.partial_fit`.

        Args:
            annotations: all annotations so far.
            earlier: is not needed; for the same call as that of other methods.
            gold: as in `fit`.
        """
        return self.fit(annotations, gold)
