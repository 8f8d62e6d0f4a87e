"""KOS: messages between tasks and annotators (Karger, Oh and Shah)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.engine.block import Block, whole_block
from crowdzoo.aggregation.engine.connected import connected_groups
from crowdzoo.aggregation.engine.labels import uniform_draws
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Choice, Flag, setting
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

TOLERANCE = 1e-9  # a message this much smaller than the others is what rounding left of nothing
MAX_ODDS = 700.0  # exp of more overflows
UNKNOWN_SLOPE = 0.5  # of a message of 1 where nobody can be compared: the vote of someone right three times in four
LEAST_SLOPE = 0.01

STARTS = ("votes", "random")
MESSAGES = ("mean", "sum")


@dataclass(frozen=True)
class KOS(Aggregator):
    """Message passing between tasks and annotators, two classes only.

    Karger, Oh and Shah, "Iterative learning for reliable crowdsourcing systems", NIPS 2011.

    With answers s[i, r] = +1 (class 0) or -1 (class 1), each annotation carries a message both ways:

    - x[i -> r] = sum over the task's other annotators q of s[i, q] y[q -> i]: what they say about the task.
    - y[r -> i] = sum over the annotator's other tasks j of s[j, r] x[j -> r]: how well the annotator did there.

    The answer is the sign of x[i] = sum over all of the task's annotators of s[i, r] y[r -> i]. Messages are divided by
    their root mean square in each round (they would grow geometrically), in each connected group of annotators by its
    own.

    The sign of a whole group is arbitrary: where fewer than half of the group's answers agree with the result it is
    inverted (`fix_sign`; where classes are known, those decide). That presumes that most annotators do more good
    than harm.

    The paper analyses random regular graphs: as many tasks for each annotator, as many annotators for each task. Two
    settings serve real tables, which are not so:

    - `messages="mean"` divides each sum by its number of terms; on a regular graph that changes nothing. With "sum",
      the paper's letter, annotators of many tasks outweigh the others: on RTE, where annotators have 20 to 800
      tasks, the answers drift round by round to where nearly all tasks have one class (accuracy .897 after the vote,
      .564 after 5 rounds, .4975 after 100). That is no flipped sign, and `fix_sign` does not help.
    - `centre=True` subtracts from each answer the annotator's mean answer. Then who always says the same has no weight,
      and an inclination to one class is not mistaken for skill; it also presumes that classes are about equally
      frequent.

    Posteriors: the model's log odds, linearised, are 2 * sum of s[i, r] (2 p[r] - 1) with p[r] the annotator's
    probability of being right. So x[i] needs a scale only, which is found within each group by regressing on y[r -> i]
    how often the annotator agrees with the sign of the messages x[j -> r] on its other tasks. `skills` is that
    agreement, with what the others say, over all of an annotator's tasks: share of agreeing minus share of disagreeing
    answers, -1 to 1, 0 where nothing is known.

    Args:
        max_iter: rounds. Few are enough, and on tables that are not regular more can be worse.
        tol: the messages stand still if their direction changes by no more than this (1 - cosine).
        messages: "mean" or "sum", see above.
        centre: see above.
        start: messages y before the first round. "votes": all one, so that no round at all is the majority vote.
            "random": drawn from N(1, 1) as in the paper, by a hash of seed, task and annotator.
        fix_sign: see above.
        seed: seed of a random start, and of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Two classes, and annotators with about as many tasks each.

    Source:
        D. Karger, S. Oh, D. Shah: Iterative Learning for Reliable Crowdsourcing Systems. NIPS 2011.
    """

    max_classes: ClassVar[int] = 2

    max_iter: int = setting(10, MAX_ITER)
    tol: float = setting(1e-9, TOL)
    messages: str = setting("mean", Choice(MESSAGES))
    centre: bool = setting(False, Flag())
    start: str = setting("votes", Choice(STARTS))
    fix_sign: bool = setting(True, Flag())
    seed: int = setting(0, SEED)

    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    @property
    def draws_by_code(self) -> bool:
        """Whether the result depends on numbers drawn for the codes (see `crowdzoo.testing.check_aggregator`)."""
        return self.start == "random"

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None) -> Aggregation:
        """Passes messages until they stand still, or for `max_iter` rounds.

        Args:
            annotations: N tasks, R annotators, two classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Such a task is its class, and its messages have the
                class's sign and the size of the group's root mean square.

        Returns:
            Posteriors, labels and `skills`. Where no message says anything (annotators of one task each) the
            votes decide. Tasks without annotations, and ties, have probability one half. `converged`: whether the
            messages stood still; more rounds than the data bear do harm, so it does not warn. `history` is empty.

        Raises:
            DataError: annotations are not of kind classification or have more than two classes, or `gold` does not fit.
        """
        check_classification(annotations, "KOS")
        num_classes = annotations.num_classes
        if num_classes > self.max_classes:
            raise DataError(f"KOS is for two classes, got {num_classes} classes: use dawid-skene or mmsr.")
        block = whole_block(annotations, gold)
        table = _Table(block, annotations.num_annotators)
        plain = 1.0 - 2.0 * block.labels.astype(np.float64)
        answers = plain
        if self.centre:
            answers = plain - _means(plain, table.annotators, annotations.num_annotators)[table.annotators]
        known = np.zeros(len(plain)) if block.gold is None else _signs(block.gold)[table.tasks]

        to_task, to_annotator = table.unit(self._start(table)), np.zeros(len(plain))
        change, rounds = np.inf, 0
        while rounds < self.max_iter and change > self.tol:
            to_annotator = table.from_others(answers * to_task, table.tasks, self.messages)
            size = table.rms(np.where(known, 0.0, to_annotator))
            to_annotator = np.where(known, known * np.where(size > 0, size, 1.0), to_annotator)
            fresh = table.unit(table.from_others(answers * to_annotator, table.annotators, self.messages))
            change = float(1 - table.group_means(fresh * to_task).min(initial=1.0))
            to_task, rounds = fresh, rounds + 1

        score = np.bincount(table.tasks, weights=answers * to_task, minlength=len(block.tasks))
        if self.fix_sign:
            agreement = table.group_means(plain * np.sign(score)[table.tasks])
            known_agreement = table.group_means(known * score[table.tasks])
            turn = np.where(np.where(known_agreement != 0, known_agreement, agreement) < -TOLERANCE, -1.0, 1.0)
            to_task *= turn[table.groups]
            to_annotator = np.where(known, to_annotator, to_annotator * turn[table.groups])
            score = np.bincount(table.tasks, weights=answers * to_task, minlength=len(block.tasks))

        agrees = plain * np.sign(
            np.where(np.abs(to_annotator) > TOLERANCE * table.rms(to_annotator), to_annotator, 0.0)
        )
        scale = _slopes(to_task, table.from_others(agrees, table.annotators, "mean"), table)
        odds = 2.0 * np.bincount(table.tasks, weights=scale * answers * to_task, minlength=len(block.tasks))
        posteriors = np.ones((len(block.tasks), num_classes))
        if num_classes == 2:
            posteriors[:, 0] = 1 / (1 + np.exp(np.clip(-odds, -MAX_ODDS, MAX_ODDS)))
            posteriors[:, 1] = 1 / (1 + np.exp(np.clip(odds, -MAX_ODDS, MAX_ODDS)))
        posteriors = block.clamped(posteriors)
        return Aggregation.of(
            "kos",
            annotations,
            posteriors,
            seed=self.seed,
            converged=bool(change <= self.tol),
            num_iterations=rounds,
            skills=_means(agrees, table.annotators, annotations.num_annotators),
        )

    def _start(self, table: _Table) -> NDArray[np.float64]:
        """Messages to the tasks before the first round, [A]."""
        if self.start == "votes":
            return np.ones(len(table.tasks))
        pair = table.tasks * table.num_annotators + table.annotators
        first, second = uniform_draws(2 * pair, self.seed), uniform_draws(2 * pair + 1, self.seed)
        return 1 + np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)  # Box and Muller


class _Table:
    """The annotations as edges between tasks and annotators, and sums along them.

    Attributes:
        tasks: task of each annotation, [A].
        annotators: annotator of each annotation, [A].
        groups: connected group of each annotation, [A].
        num_annotators: R.
    """

    def __init__(self, block: Block, num_annotators: int):
        self.tasks = block.index.astype(np.int64)
        self.annotators = block.annotator_ids.astype(np.int64)
        self.groups = connected_groups(block, num_annotators)[self.annotators]
        self.num_annotators = num_annotators
        self._sizes = np.maximum(np.bincount(self.groups), 1)

    def from_others(self, values: NDArray[np.float64], ends: NDArray[np.int64], how: str) -> NDArray[np.float64]:
        """Sum or mean of the values on the other annotations at the same end (task or annotator), [A]."""
        others = np.bincount(ends, weights=values)[ends] - values
        return others if how == "sum" else others / np.maximum(np.bincount(ends) - 1, 1)[ends]

    def group_means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean in each connected group."""
        return np.bincount(self.groups, weights=values, minlength=len(self._sizes)) / self._sizes

    def rms(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Root mean square of each annotation's group, [A]."""
        return np.sqrt(self.group_means(values**2))[self.groups]

    def unit(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values with a root mean square of one in each group; ones where all of them are zero."""
        size = self.rms(values)
        return np.divide(values, size, out=np.ones(len(values)), where=size > 0)


def _signs(gold: NDArray[np.int64]) -> NDArray[np.float64]:
    """+1 and -1 for the first and the second class, 0 where unknown."""
    return np.where(gold < 0, 0.0, 1.0 - 2.0 * gold)


def _means(values: NDArray[np.float64], ends: NDArray[np.int64], number: int) -> NDArray[np.float64]:
    """Mean of the values at each end; 0 where there are none."""
    counts = np.maximum(np.bincount(ends, minlength=number), 1)
    return np.bincount(ends, weights=values, minlength=number) / counts


def _slopes(messages: NDArray[np.float64], agreement: NDArray[np.float64], table: _Table) -> NDArray[np.float64]:
    """What a message has to be multiplied with to predict agreement, of each annotation's group, [A]."""
    cross, square = table.group_means(messages * agreement), table.group_means(messages**2)
    slope = np.divide(cross, square, out=np.zeros_like(cross), where=square > 0)
    silent = table.group_means(np.abs(agreement)) == 0
    return np.where(silent, UNKNOWN_SLOPE, np.maximum(slope, LEAST_SLOPE))[table.groups]
