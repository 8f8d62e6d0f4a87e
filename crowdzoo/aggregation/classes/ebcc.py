"""EBCC: annotators with correlated errors, because the tasks of a class come in subtypes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import check_classification
from crowdzoo.aggregation.classes.iterative import Initial, Iterative, initial_posteriors, warn_unless_converged
from crowdzoo.aggregation.engine.block import Block, whole_block
from crowdzoo.aggregation.engine.confusions import NOTHING, Params, vote_shares
from crowdzoo.aggregation.engine.dirichlet import expected_logs
from crowdzoo.aggregation.engine.instructions import exp
from crowdzoo.aggregation.engine.labels import split_mix
from crowdzoo.aggregation.engine.loops import compiled, in_threads, num_threads
from crowdzoo.aggregation.engine.run import Run, advance, best_of
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import COUNT, MAX_ITER, PRIOR, SEED, TOL, Number, setting
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

LEAST_PRIOR = 1e-6  # a Dirichlet distribution has positive parameters
MAX_CELLS = 2**27  # of the parameters' table: a gibibyte
MAX_WORK = 2**28  # cells of the tables of all starts, each computed in up to max_iter iterations
U = np.uint64  # signed indices need a wrap-around check each


@dataclass(frozen=True)
class EBCC(Iterative):
    """Enhanced Bayesian classifier combination, by variational Bayes.

    (Li, Rubinstein and Cohn, "Exploiting worker correlation for label aggregation in crowdsourcing", ICML 2019.) While
    iBCC treats annotators as independent given the class, here each class has M subtypes, and annotators are
    independent given the subtype: an ostrich among birds misleads many at once. Task i is of class k with probability
    tau[k] and of its subtype m with probability pi[k, m]; annotator r then says l with probability v[r, k, m, l].

        tau ~ Dirichlet(class_prior),    pi[k] ~ Dirichlet(subtype_prior / M each),
            v[r, k, m] ~ Dirichlet(prior, plus diagonal at k).

    Mean field: each task's (class, subtype), tau, each pi[k] and each v[r, k, m] are treated as independent. The
    defaults are the authors'. Unneeded subtypes stay empty; with `subtypes=1` this is iBCC.

    There are many optima. The first start has one subtype per class; the others draw each task's subtypes from
    Dirichlet(1, ..., 1), and the start with the highest bound is kept. The draws depend on the pattern of the
    annotations (`_colours`), not on codes: renaming tasks, annotators or classes does not change the result. Starts run
    on all cores.

    Args:
        max_iter: maximum number of iterations per start, an E-step and an M-step each. The M-step that computes the
            first parameters from the votes is not counted, as in scikit-learn's mixtures.
        tol: a start has converged if an iteration raises the bound by at most this, in nats per annotation.
        subtypes: M, number of subtypes per class.
        subtype_prior: pseudo-count of all subtypes of a class together, 1e-5 or more.
        prior: pseudo-count of each cell of v, 1e-6 or more.
        diagonal: additional pseudo-count of right answers.
        class_prior: pseudo-count of each class, 1e-6 or more. None: the number of votes of the class (vote shares
            summed over tasks, at least 1), as the authors set it for their figures.
        num_starts: number of starts.
        seed: seed of the starts, and of random ties.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import EBCC
        >>> task, annotator = [1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "cem"] * 3
        >>> labels = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "cat"]
        >>> result = EBCC(subtypes=2, num_starts=4).fit(Annotations.from_arrays(task, annotator, labels))
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog', 'cat']

    Needs:
        Few classes, many annotations and time.

    Source:
        Y. Li, B. Rubinstein, T. Cohn: Exploiting Worker Correlation for Label Aggregation in Crowdsourcing. ICML 2019.
    """

    title: ClassVar[str] = "EBCC"

    max_iter: int = setting(500, MAX_ITER)
    tol: float = setting(1e-8, TOL)
    subtypes: int = setting(10, Number(1, 1000, whole=True))
    subtype_prior: float = setting(0.1, Number(10 * LEAST_PRIOR, 1e9))
    prior: float = setting(1.0, Number(LEAST_PRIOR, 1e9))
    diagonal: float = setting(3.0, PRIOR)
    class_prior: float | None = setting(None, Number(LEAST_PRIOR, 1e9, optional=True))
    num_starts: int = setting(40, COUNT)
    seed: int = setting(0, SEED)

    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Estimates truths, subtypes and annotators jointly.

        Memory in addition to the annotations: 8 bytes per annotation, 24 K per task, and for each thread 8 K M per task
        and 24 M K**2 per annotator.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. The classes of these tasks are fixed (their subtypes are
                not), and the bound includes them.
            initial: starting point of every start instead of vote shares: posteriors [N, K], or an earlier
                `Aggregation` of the same tasks and classes, whose posteriors are used.

        Returns:
            Posteriors under the last beliefs of the best start; the class prior for tasks without annotations.
            `confusions` are posterior means, P(annotator says l | class k) over all its subtypes, and `class_prior` is
            the posterior mean of tau. `log_likelihood` is that of the annotations (and known classes) under the
            posterior means of tau, pi and v. `history` is the variational lower bound at the start and after each
            iteration. Ties are broken at random, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, `gold` or `initial` does not match them, or the table
                of annotators, R M K**2 numbers, exceeds a gibibyte, or 2**28 numbers in all starts together.

        Warns:
            ConvergenceWarning: the best start reached `max_iter`.
        """
        check_classification(annotations, self.title)
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        cells = num_annotators * self.subtypes * num_classes**2
        if cells > MAX_CELLS:
            raise DataError(
                f"EBCC needs {self.subtypes} confusion matrices per annotator, at most {MAX_CELLS:,} numbers in all, "
                f"got {num_annotators:,} annotators and {num_classes} classes: use fewer subtypes, or IBCC."
            )
        if cells * self.num_starts > MAX_WORK:
            raise DataError(
                f"EBCC would take hours: {num_annotators:,} annotators, {num_classes} classes, {self.subtypes} "
                f"subtypes and {self.num_starts} starts. Set num_starts to {MAX_WORK // cells} or less, or use IBCC."
            )
        block = whole_block(annotations, gold)
        votes = vote_shares(block, np.ones(num_annotators), num_classes)
        model = _Model(self, block, num_annotators, votes)
        first_posteriors = initial_posteriors(initial, annotations)
        shares = votes if first_posteriors is None else block.clamped(first_posteriors)
        colours = _colours(block, num_annotators, num_classes) if self.num_starts > 1 else None

        def work(starts: Sequence[int]) -> Run[_Beliefs]:
            return best_of([model.ascend(shares[:, :, None] * self._draws(start, colours)) for start in starts])

        best = best_of(in_threads(work, range(self.num_starts), num_threads()))
        warn_unless_converged(self, best, len(annotations))
        posteriors, means, log_likelihood = model.result(best.params)
        return Aggregation.of(
            "ebcc",
            annotations,
            posteriors,
            params=means,
            seed=self.seed,
            **best.facts | {"log_likelihood": log_likelihood},
        )

    def _draws(self, start: int, colours: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None) -> NDArray[np.float64]:
        """First probabilities of the subtypes [N, K, M]: all in the first subtype, or drawn by `_colours`."""
        if not start or colours is None:
            return np.eye(1, self.subtypes)[None]
        tasks, classes = colours
        place = split_mix(
            np.arange(self.subtypes, dtype=np.uint64) + split_mix(np.array([start, self.seed], np.uint64)).sum()
        )
        mixed = split_mix(split_mix(tasks[:, None] + split_mix(classes))[:, :, None] + place)
        exponential = -np.log(((mixed >> U(11)).astype(np.float64) + 0.5) * 2.0**-53)
        return exponential / exponential.sum(axis=2, keepdims=True)


@dataclass(frozen=True, eq=False)
class _Beliefs:
    """Dirichlet distributions, represented by the counts that the data add to the priors.

    Attributes:
        table: counts `[annotator, said, class * M + subtype]`, [R, K, K M].
        states: tasks of each class and subtype, [K, M].
    """

    table: NDArray[np.float64]
    states: NDArray[np.float64]


class _Model:
    """The data and the priors, which all starts share."""

    def __init__(self, settings: EBCC, block: Block, num_annotators: int, votes: NDArray[np.float64]):
        self.settings, self.block, self.num_annotators = settings, block, num_annotators
        self.num_classes = votes.shape[1]
        block.check_codes(num_annotators, self.num_classes)
        cells = settings.prior + settings.diagonal * np.eye(self.num_classes)
        self.cells = np.repeat(cells, settings.subtypes, axis=1)  # [said, class * M + subtype]
        self.subtypes = np.full((settings.subtypes, self.num_classes), settings.subtype_prior / settings.subtypes)
        if settings.class_prior is None:
            self.classes = np.maximum(votes[block.informed].sum(axis=0), 1.0)
        else:
            self.classes = np.full(self.num_classes, settings.class_prior)

    def ascend(self, first: NDArray[np.float64]) -> Run[_Beliefs]:
        """Runs one start from posteriors of class and subtype [N, K, M]."""
        run, settings = Run(self.count(fixed_posteriors=first)[0]), self.settings
        while not run.done:
            table, states, divergence = self.expect(run.params)
            counted, evidence = self.count(table, states)
            bound, after = evidence - divergence, partial(replace, counted)
            run = advance(run, bound, evidence, len(self.block), settings.max_iter, settings.tol, after)
        return run

    def expect(self, beliefs: _Beliefs) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Returns expected logarithms of v and of tau pi, and the divergence from the priors."""
        table, divergence = expected_logs(beliefs.table, self.cells)
        classes, of_classes = expected_logs(beliefs.states.sum(axis=1).reshape(1, -1, 1), self.classes[:, None])
        subtypes, of_subtypes = expected_logs(beliefs.states.T[None], self.subtypes)
        return table, (classes[0] + subtypes[0].T).ravel(), divergence + of_classes + of_subtypes

    def count(
        self,
        table: NDArray[np.float64] = NOTHING,
        states: NDArray[np.float64] | None = None,
        fixed_posteriors: NDArray[np.float64] = NOTHING,
        posteriors: NDArray[np.float64] = NOTHING,
    ) -> tuple[_Beliefs, float]:
        """E-step; returns the next counts, and the log-probability of the annotations.

        With `fixed_posteriors`, returns the counts under them.
        """
        shape = self.num_annotators, *self.cells.shape
        width = self.cells.shape[1]
        beliefs = _Beliefs(np.zeros(shape), np.zeros((self.num_classes, self.settings.subtypes)))
        evidence = _sweep(
            *self.block.columns,
            table.reshape(-1),
            np.zeros(width) if states is None else states,
            np.ascontiguousarray(fixed_posteriors).reshape(-1),
            posteriors.reshape(-1),
            beliefs.table.reshape(-1),
            beliefs.states.reshape(-1),
            self.num_classes,
        )
        return beliefs, evidence

    def result(self, beliefs: _Beliefs) -> tuple[NDArray[np.float64], Params, float]:
        """Posteriors [N, K]; mean confusions and class prior; log-probability of the annotations under the means."""
        num_classes, width = self.num_classes, self.cells.shape[1]
        joint = np.zeros((len(self.block.tasks), width))
        self.count(*self.expect(beliefs)[:2], posteriors=joint)
        posteriors = self.block.clamped(joint.reshape(len(joint), num_classes, width // num_classes).sum(axis=2))
        table = beliefs.table + self.cells
        table /= table.sum(axis=1, keepdims=True)
        subtypes = beliefs.states + self.subtypes.T
        subtypes /= subtypes.sum(axis=1, keepdims=True)
        classes = beliefs.states.sum(axis=1) + self.classes
        classes /= classes.sum()
        log_likelihood = self.count(np.log(table), np.log(classes[:, None] * subtypes).ravel())[1]
        confusions = np.einsum("rlkm,km->rkl", table.reshape(*table.shape[:2], *subtypes.shape), subtypes)
        posteriors[~self.block.informed] = classes
        return posteriors, Params.from_probabilities(confusions, classes), log_likelihood


@compiled()
def _sweep(  # type: ignore[no-untyped-def]  # for Numba
    starts, annotators, labels, gold, log_table, log_states, fixed_posteriors, posteriors, table, states, num_classes
):
    """E-step of all informative tasks, which adds to `table` and `states`; returns the log evidence.

    Matrices are flat. `fixed_posteriors` and `posteriors` may be empty.
    """
    width, k_all = U(len(log_states)), U(num_classes)
    joint = np.empty(len(log_states))
    evidence = 0.0
    expects, keeps, has_gold = len(fixed_posteriors) == 0, len(posteriors) > 0, len(gold) > 0
    for i in range(len(starts) - 1):
        known = has_gold and gold[i] >= 0
        if starts[i] == starts[i + 1] and not known:
            continue
        if expects:
            for s in range(width):
                joint[s] = log_states[s]
            for j in range(starts[i], starts[i + 1]):
                row = (U(annotators[j]) * k_all + U(labels[j])) * width
                for s in range(width):
                    joint[s] += log_table[row + s]
            begin, end = U(0), width
            if known:
                begin, end = width // k_all * U(gold[i]), width // k_all * U(gold[i] + 1)
            peak = joint[begin]
            for s in range(begin, end):
                peak = max(peak, joint[s])
            for s in range(width):
                joint[s] = exp(min(joint[s] - peak, 0.0))
            for s in range(begin):
                joint[s] = 0.0
            for s in range(end, width):
                joint[s] = 0.0
            total = 0.0
            for s in range(begin, end):
                total += joint[s]
            evidence += peak + math.log(total)
            for s in range(begin, end):
                joint[s] /= total
        else:
            for s in range(width):
                joint[s] = fixed_posteriors[U(i) * width + s]
        if keeps:
            for s in range(width):
                posteriors[U(i) * width + s] = joint[s]
        for s in range(width):
            states[s] += joint[s]
        for j in range(starts[i], starts[i + 1]):
            row = (U(annotators[j]) * k_all + U(labels[j])) * width
            for s in range(width):
                table[row + s] += joint[s]
    return evidence


def _colours(block: Block, num_annotators: int, num_classes: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Numbers for tasks and classes that differ wherever the annotations distinguish them.

    Weisfeiler and Lehman's refinement: tasks, annotators and classes start equal, and are repeatedly replaced by a hash
    of the sum of their neighbours. Sums of integers modulo 2**64 depend on no order, so renumbering permutes the
    colours.
    """
    who, where, what = block.annotator_ids.astype(np.int64), block.index, block.labels.astype(np.int64)
    tasks, annotators, classes = (np.ones(size, np.uint64) for size in (len(block.tasks), num_annotators, num_classes))
    for _ in range(4):
        around = split_mix(
            split_mix(tasks)[where] + U(3) * split_mix(annotators)[who] + U(5) * split_mix(classes)[what]
        )
        for colours, index in ((tasks, where), (annotators, who), (classes, what)):
            colours[:] = split_mix(colours)
            np.add.at(colours, index, around)
    return tasks, classes
