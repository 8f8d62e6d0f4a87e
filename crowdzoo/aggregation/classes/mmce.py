"""MMCE: annotators and tasks both have tables of confusion (regularised minimax conditional entropy)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.aggregator import Aggregator, warn_not_converged
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes.initial import Initial, initial_posteriors
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.class_frequencies import CLASS_PRIORS, class_prior_of, log_class_density
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.params import TINY, Params
from crowdzoo.aggregation.engine.softmax import softmax
from crowdzoo.aggregation.engine.threads import in_threads, num_threads
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Choice, Number, setting
from crowdzoo.errors import ConfigError, DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

CLASS_COUNT = 0.01  # pseudo-count of each class, where the class prior is "estimated"
MAX_CELLS = 2**29  # of all tables together: 4 GiB
GAMMAS = tuple(2.0**power for power in (-10, -8, -6, -4, -2, 0, 2))
FOLD_TOL = 1e-4  # nats per annotation: choosing among gammas needs no more
MOST_GAMMAS = 1000
GAMMA = Number(1e-6, 1e6)  # without a ridge the tables are not determined
NEWTON_STEPS = 10
NEWTON_TOL = 1e-3  # largest move of a table's cell at which a row counts as solved


@dataclass(frozen=True)
class MMCE(Aggregator):
    """Regularised minimax conditional entropy (Zhou, Liu, Platt, Meek and Shah, arXiv:1503.07240, 2015).

    Annotator r has a table B_r and task i a table A_i, both K x K; where the truth is k the annotator says l with

        Q_ir[k, l] = softmax over l of (A_i[k, l] + B_r[k, l]).

    So Dawid and Skene's confusions, but a task may be hard in its own way. Tables are drawn to zero by

        alpha / 2 * (sum of all B^2) + beta / 2 * (sum of all A^2),    with alpha = gamma * K^2 and
        beta = alpha * (labels per annotator) / (labels per task):

    a task's few labels move its table less than an annotator's many labels move theirs. The dual of the minimax problem
    is fitted by EM from vote shares:

    - E-step: q[i, k] ~ rho[k] * product over the task's annotations of Q_ir[k, said], in log space.
    - M-step: the annotators' tables given the tasks', then the tasks' given the annotators'. Rows are independent and
      concave problems, solved by Newton steps that move no cell by more than 0.34. Probabilities then change by less
      than a factor of exp(0.68) < 2, so curvature less than doubles on the way and no step can worsen the objective.

    As in the paper gamma is chosen by cross-validation. Its authors' values are 1/4 to 4; they are fine for few
    classes, but alpha grows with K^2, and at eight or ten classes even 1/4 leaves next to nothing of what an annotator
    of few labels shows (Music, 67 labels an annotator: accuracy .50, at 1/256 .77, the plain vote .70). So weaker ones
    are tried too. `gamma=0.25` needs no cross-validation and gives the published figures (see the tests).

    `confusions` are softmax of B_r: what the annotator says of a task that is hard in no particular way; `skills`
    is their mean diagonal. `difficulty` is how often an annotator without any skill of their own (B = 0) would be wrong
    on the task, 1 - sum over k of q[i, k] softmax(A_i)[k, k]: 1 - 1 / K where nothing is known.

    Args:
        gamma: strength of the ridge, at least 1e-6. Several: that under which annotations left out of the fit are
            most probable (see `cross_validate`); the fit then takes about 20 times as long.
        folds: number of parts that cross-validation leaves out in turn.
        max_iter: most iterations.
        tol: it has converged when an iteration raises the objective by no more than this, in nats per annotation.
        class_prior: of rho: "estimated" from the posteriors; "smoothed": half way between those shares and equal ones;
            or "uniform", as in the paper.
        seed: seed of the parts, and of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        More than three annotations a task; time.

    Source:
        D. Zhou, Q. Liu, J. Platt, C. Meek, N. Shah: Regularized Minimax Conditional Entropy for Crowdsourcing.
        arXiv:1503.07240, 2015.
    """

    gamma: float | Sequence[float] = GAMMAS
    folds: int = setting(5, Number(2, 1000, whole=True))
    max_iter: int = setting(200, MAX_ITER)
    tol: float = setting(1e-6, TOL)
    class_prior: str = setting("estimated", Choice(CLASS_PRIORS))
    seed: int = setting(0, SEED)

    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    def __post_init__(self) -> None:
        super().__post_init__()
        gammas = tuple(GAMMA.checked("MMCE", "gamma", gamma) for gamma in self._gammas())
        if not 1 <= len(gammas) <= MOST_GAMMAS:
            raise ConfigError(f"MMCE: gamma is a number, or 1 to {MOST_GAMMAS} of them, got {len(gammas)}.")
        if gammas != self.gamma:  # a tuple of such numbers stays the one that was given, as `clone` asks for
            object.__setattr__(self, "gamma", gammas if isinstance(self.gamma, Sequence) else gammas[0])

    @property
    def draws_by_code(self) -> bool:
        """Whether the result depends on numbers drawn for the codes: the parts of cross-validation do."""
        return len(self._gammas()) > 1

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Finds truths and tables together.

        Memory beside the table: 8 K^2 bytes per task and per annotator (a table each, which the method cannot do
        without), 24 K per task, 40 per annotation.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout, and the
                likelihood counts it.
            initial: what the first M-step sees instead of vote shares: posteriors [N, K], or an earlier `Aggregation`
                of the same tasks and classes.

        Returns:
            Posteriors under the last tables; the class prior without annotations. `history` is the log-likelihood plus
            the log density of the class prior minus the ridge (nats) after the first M-step and after each iteration.

        Raises:
            DataError: annotations are not of kind classification; `gold` or `initial` does not fit them; or the tables
                would hold more than 2**29 numbers (4 GiB).

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        rows = _Rows.of(annotations, gold)
        gamma = max(self._gammas())
        if len(self._gammas()) > 1:
            scores = dict(zip(self._gammas(), self._held_out(rows), strict=True))
            gamma = max(scores, key=lambda each: (scores[each], each))
        state = _Tables(rows, gamma, initial_posteriors(initial, annotations), self.class_prior, num_threads())
        history, rise = [state.objective], np.inf
        while rise > self.tol and len(history) <= self.max_iter:
            state.step()
            history.append(state.objective)
            rise = (history[-1] - history[-2]) / max(len(rows.labels), 1)
        if rise > self.tol:
            warn_not_converged("MMCE", self.max_iter, self.tol, rise, "nats per annotation", stacklevel=2)
        num_classes = rows.num_classes
        confusions = softmax(state.annotators)[0]
        easy = np.diagonal(softmax(state.tasks)[0], axis1=1, axis2=2)
        return Aggregation.of(
            "mmce",
            annotations,
            state.posteriors,
            params=Params.from_probabilities(confusions, state.class_prior),
            seed=self.seed,
            log_likelihood=state.log_likelihood,
            history=tuple(history),
            converged=rise <= self.tol,
            num_iterations=len(history) - 1,
            skills=np.trace(confusions, axis1=1, axis2=2) / num_classes,
            difficulty=1 - (state.posteriors * easy).sum(axis=1),
        )

    def cross_validate(self, annotations: Annotations, gold: ArrayLike | None = None) -> dict[float, float]:
        """How probable annotations are under tables that were fitted without them.

        Each annotator's annotations are dealt out to the folds. A fold's score is the sum over the annotations left out
        of log(sum over k of q[i, k] Q_ir[k, said]), where q and Q come from the others.

        Args:
            annotations: as in `fit`.
            gold: as in `fit`.

        Returns:
            Mean log probability (nats per annotation) by gamma, in the order given. `fit` takes the best, of
            equals the strongest.

        Raises:
            DataError: as in `fit`.
        """
        return dict(zip(self._gammas(), self._held_out(_Rows.of(annotations, gold)).tolist(), strict=True))

    def _gammas(self) -> tuple[float, ...]:
        several = isinstance(self.gamma, Sequence) and not isinstance(self.gamma, (str, bytes))
        return tuple(self.gamma) if several else (self.gamma,)  # type: ignore[arg-type, return-value]  # `several` says which type it has

    def _held_out(self, rows: _Rows) -> NDArray[np.float64]:
        """See `cross_validate`; [number of gammas]."""
        fold = rows.folds(self.folds, self.seed)
        scores = np.zeros((self.folds, len(self._gammas())))

        def score(cells: Sequence[int]) -> None:
            for cell in cells:
                part, number = divmod(cell, scores.shape[1])
                rest = rows.only(fold != part)
                least = max(self.tol, FOLD_TOL) * max(len(rest.labels), 1)
                state, rise, count = _Tables(rest, self._gammas()[number], None, self.class_prior), np.inf, 0
                while rise > least and count < self.max_iter:
                    before, count = state.objective, count + 1
                    state.step()
                    rise = state.objective - before
                scores[part, number] = state.log_probability(rows.only(fold == part))

        in_threads(score, range(scores.size), num_threads())
        return scores.sum(axis=0) / max(len(rows.labels), 1)


# === Rows of annotations, and what is fitted to them ===


@dataclass(frozen=True, eq=False)
class _Rows:
    """Annotations as columns of codes sorted by task, int32 [A], with the known classes (int64 [N]) or None."""

    tasks: NDArray[np.int32]
    annotators: NDArray[np.int32]
    labels: NDArray[np.int32]
    gold: NDArray[np.int64] | None
    num_tasks: int
    num_annotators: int
    num_classes: int

    @classmethod
    def of(cls, annotations: Annotations, gold: ArrayLike | None) -> _Rows:
        check_classification(annotations, "MMCE")
        sizes = annotations.num_tasks, annotations.num_annotators, annotations.num_classes
        cells = (sizes[0] + sizes[1]) * sizes[2] ** 2
        if cells > MAX_CELLS:
            raise DataError(
                f"MMCE has a table of {sizes[2]} x {sizes[2]} for each task and annotator: {cells:,} numbers here, and "
                f"at most {MAX_CELLS:,} (4 GiB). DawidSkene has tables for annotators only."
            )
        block = whole_block(annotations, gold)
        order = np.lexsort((block.annotator_ids, block.index))
        codes = [column[order].astype(np.int32) for column in (block.index, block.annotator_ids, block.labels)]
        return cls(codes[0], codes[1], codes[2], block.gold, *sizes)

    def only(self, kept: NDArray[Any]) -> _Rows:
        """Those rows (a mask, or their places in order), of the same tasks and annotators."""
        return replace(self, tasks=self.tasks[kept], annotators=self.annotators[kept], labels=self.labels[kept])

    def folds(self, number: int, seed: int) -> NDArray[np.int64]:
        """A part for each annotation, int64 [A]: each annotator's are dealt out in an order drawn for the tasks."""
        rng = np.random.default_rng(seed)
        first = rng.integers(number, size=self.num_annotators)
        order = np.lexsort((rng.random(self.num_tasks)[self.tasks], self.annotators))
        counts = np.bincount(self.annotators, minlength=self.num_annotators)
        place = np.arange(len(order)) - (np.cumsum(counts) - counts).repeat(counts)
        parts = np.empty(len(order), np.int64)
        parts[order] = (place + first.repeat(counts)) % number
        return parts


class _Tables:
    """Tables and posteriors, between two iterations of EM.

    Attributes:
        tasks: A, [N, K, K].
        annotators: B, [R, K, K].
        posteriors: q under these tables, [N, K].
        log_likelihood: under these tables, nats.
        objective: that minus the ridge.
    """

    def __init__(
        self, rows: _Rows, gamma: float, start: NDArray[np.float64] | None, class_prior: str, threads: int = 1
    ):
        size, cells = (rows.num_tasks, rows.num_classes), rows.num_classes**2
        tasks = np.bincount(rows.tasks, minlength=rows.num_tasks)
        annotators = np.bincount(rows.annotators, minlength=rows.num_annotators)
        self.alpha = gamma * cells
        self.beta = self.alpha * max((tasks > 0).sum(), 1) / max((annotators > 0).sum(), 1)
        self.rows, self.threads, self.kind = rows, threads, class_prior
        self.informed = tasks > 0 if rows.gold is None else (tasks > 0) | (rows.gold >= 0)
        self.by_annotator = rows.only(np.argsort(rows.annotators, kind="stable"))
        self.task_starts = np.concatenate(([0], np.cumsum(tasks)))
        self.annotator_starts = np.concatenate(([0], np.cumsum(annotators)))
        if start is None:
            votes = np.bincount(rows.tasks * np.int64(size[1]) + rows.labels, minlength=size[0] * size[1]).reshape(size)
            start = np.divide(votes, tasks[:, None], out=np.full(size, 1 / size[1]), where=tasks[:, None] > 0)
        self.posteriors = start.copy()
        if rows.gold is not None:
            known = np.flatnonzero(rows.gold >= 0)
            self.posteriors[known] = np.eye(size[1])[rows.gold[known]]
        self.tasks = np.zeros((*size, size[1]))
        self.annotators = np.zeros((rows.num_annotators, size[1], size[1]))
        self.step()

    def step(self) -> None:
        """One M-step and one E-step."""
        rows, mine = self.rows, self.by_annotator

        def climb_annotators(part: Sequence[int]) -> None:
            _climb(
                self.annotator_starts[part[0] : part[-1] + 2], mine.tasks, mine.tasks, mine.labels, self.posteriors,
                self.annotators[part[0] : part[-1] + 1], self.tasks, self.alpha, NEWTON_STEPS,
            )  # fmt: skip

        def climb_tasks(part: Sequence[int]) -> None:
            _climb(
                self.task_starts[part[0] : part[-1] + 2], rows.annotators, rows.tasks, rows.labels, self.posteriors,
                self.tasks[part[0] : part[-1] + 1], self.annotators, self.beta, NEWTON_STEPS,
            )  # fmt: skip
            own = slice(self.task_starts[part[0]], self.task_starts[part[-1] + 1])
            _add_log_said(
                rows.tasks[own], rows.tasks[own], rows.annotators[own], rows.labels[own],
                self.tasks, self.annotators, joint,
            )  # fmt: skip

        counts = self.posteriors[self.informed].sum(axis=0)
        self.class_prior = np.maximum(class_prior_of(counts, self.kind, CLASS_COUNT), TINY)
        log_prior = np.log(self.class_prior)
        joint = np.tile(log_prior, (rows.num_tasks, 1))
        for climb, number in ((climb_annotators, rows.num_annotators), (climb_tasks, rows.num_tasks)):
            if number:
                in_threads(climb, range(number), self.threads)
        if rows.gold is not None:
            known = np.flatnonzero(rows.gold >= 0)
            kept = joint[known, rows.gold[known]]
            joint[known] = -np.inf
            joint[known, rows.gold[known]] = kept
        self.posteriors, evidence = softmax(joint)
        self.log_likelihood = float(evidence[self.informed].sum())
        ridge = self.alpha * np.square(self.annotators).sum() + self.beta * np.square(self.tasks).sum()
        classes = log_class_density(counts, log_prior, self.kind, CLASS_COUNT)
        self.objective = self.log_likelihood - float(ridge) / 2 + classes

    def log_probability(self, rows: _Rows) -> float:
        """Of annotations that were not fitted, nats."""
        joint = np.zeros((len(rows.labels), rows.num_classes))
        places = np.arange(len(joint), dtype=np.int32)
        _add_log_said(places, rows.tasks, rows.annotators, rows.labels, self.tasks, self.annotators, joint)
        return float(np.log((np.exp(joint) * self.posteriors[rows.tasks]).sum(axis=1)).sum())


# === Compiled loops ===


@compiled()
def _climb(starts, others, tasks, labels, posteriors, own, other, ridge, steps):  # type: ignore[no-untyped-def]  # for Numba
    """Improves the tables `own` [O, K, K] given `other`: of annotators given tasks', or the other way round.

    Maximises, for each owner o and row k, the sum over its annotations of q[task, k] log softmax(own[o, k] +
    other[others, k])[label], minus ridge / 2 * (sum of own[o, k]^2).

    Args:
        starts: where each owner's annotations begin, [O + 1].
        others: whose table is added, [A].
        tasks: task of each annotation, [A].
        labels: labels of the annotations, [A].
        posteriors: q, [N, K].
        own: changed in place.
        other: the added tables.
        ridge: more than 0.
        steps: most Newton steps a row.
    """
    size = np.uint64(posteriors.shape[1])
    one = np.uint64(1)
    p, move, hessian = np.empty(size), np.empty(size), np.empty((size, size))
    for owner in range(np.uint64(len(starts) - 1)):
        first, last = np.uint64(starts[owner]), np.uint64(starts[owner + one])
        for k in range(size):
            for _ in range(steps):
                for said in range(size):
                    move[said] = -ridge * own[owner, k, said]
                    for also in range(said):
                        hessian[said, also] = 0.0
                    hessian[said, said] = ridge
                for a in range(first, last):
                    weight = posteriors[np.uint64(tasks[a]), k]
                    if weight < 1e-14:
                        continue
                    row = np.uint64(others[a])
                    peak = -np.inf
                    for said in range(size):
                        p[said] = own[owner, k, said] + other[row, k, said]
                        peak = max(peak, p[said])
                    total = 0.0
                    for said in range(size):
                        p[said] = np.exp(p[said] - peak)
                        total += p[said]
                    move[np.uint64(labels[a])] += weight
                    for said in range(size):
                        p[said] /= total
                        share = weight * p[said]
                        move[said] -= share
                        hessian[said, said] += share
                        for also in range(said + one):
                            hessian[said, also] -= share * p[also]
                _solve(hessian, move)
                largest = 0.0
                for said in range(size):
                    largest = max(largest, abs(move[said]))
                factor = min(1.0, 0.34 / largest) if largest > 0 else 1.0
                for said in range(size):
                    own[owner, k, said] += factor * move[said]
                if largest < NEWTON_TOL:
                    break


@compiled(inline="always")
def _solve(matrix, vector):  # type: ignore[no-untyped-def]  # for Numba
    """Solves a positive definite system in place by Cholesky's factors; reads the lower triangle only."""
    size = len(vector)
    for i in range(size):
        for j in range(i + 1):
            rest = matrix[i, j]
            for k in range(j):
                rest -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = np.sqrt(rest) if i == j else rest / matrix[j, j]
    for i in range(size):
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
    for back in range(size):
        i = size - 1 - back
        for k in range(i + 1, size):
            vector[i] -= matrix[k, i] * vector[k]
        vector[i] /= matrix[i, i]


@compiled()
def _add_log_said(places, tasks, annotators, labels, task_tables, annotator_tables, out):  # type: ignore[no-untyped-def]  # for Numba
    """Adds log Q_ir[k, said] of each annotation to the row of `out` that `places` names, for each k."""
    size = np.uint64(out.shape[1])
    for a in range(np.uint64(len(tasks))):
        task, annotator, label = np.uint64(tasks[a]), np.uint64(annotators[a]), np.uint64(labels[a])
        for k in range(size):
            peak = -np.inf
            for other in range(size):
                peak = max(peak, task_tables[task, k, other] + annotator_tables[annotator, k, other])
            total = 0.0
            for other in range(size):
                total += np.exp(task_tables[task, k, other] + annotator_tables[annotator, k, other] - peak)
            said = task_tables[task, k, label] + annotator_tables[annotator, k, label]
            out[np.uint64(places[a]), k] += said - peak - np.log(total)
