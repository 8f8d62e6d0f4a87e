"""GLAD: abilities of annotators and difficulties of tasks, whose product gives the probability of a right label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import exp, log
from operator import add
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import check_classification
from crowdzoo.aggregation.classes.iterative import (
    Initial,
    Iterative,
    initial_posteriors,
    same_crowd,
    warn_unless_converged,
)
from crowdzoo.aggregation.engine.block import Additive, Block, blocks_of
from crowdzoo.aggregation.engine.confusions import TINY
from crowdzoo.aggregation.engine.labels import answers_by_block
from crowdzoo.aggregation.engine.loops import compiled, in_threads, num_threads
from crowdzoo.aggregation.engine.right_wrong import share_out
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Choice, Number, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

CLASS_PRIORS = ("uniform", "estimated")
RELAXATION = 1.8  # of the abilities' step; the objective never falls for values in (0, 2), see `update`
NOTHING = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Abilities:
    """Parameters that all blocks share in an iteration.

    Attributes:
        alpha: ability of each annotator, [R].
        class_prior: probability of each class, [K], positive.
    """

    alpha: NDArray[np.float64]
    class_prior: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GladCounts(Additive):
    """What a block adds to the M-step of the abilities; `a + b` is the sum of two blocks.

    Attributes:
        pull: sum over each annotator's annotations of (q - 1/2) beta, [R], where q is the posterior of its label.
        weight: sum of beta**2 tanh(x/2) / (2x), [R], where x is the current alpha beta.
        classes: expected number of tasks of each class, [K], without tasks that carry no information.
        log_likelihood: log-probability (nats) of annotations and known classes; 0 if posteriors were passed.
        log_prior: log density (up to a constant) of the tasks' b, nats.
        num_annotations: number of annotations counted.
    """

    pull: NDArray[np.float64]
    weight: NDArray[np.float64]
    classes: NDArray[np.float64]
    log_likelihood: float
    log_prior: float
    num_annotations: int


# === The functions over blocks ===


def update(counts: GladCounts, params: Abilities, settings: GLAD) -> Abilities:
    """M-step of the abilities: maximises a quadratic lower bound, without overshooting or a line search.

    log(2 cosh(x/2)) is concave in x**2, hence below its tangent there (Jaakkola and Jordan, Statistics and Computing
    10, 2000). So each ability's part of the expected log-likelihood is bounded below by a parabola that touches it at
    the current value and has its maximum at (mean / variance + pull) / (1 / variance + weight). The step goes 1.8 times
    as far as this maximum: up to twice as far, the parabola is higher than at the current value. That saves a third of
    the iterations on slow data sets.

    Args:
        counts: counts of all annotations, computed with `params`.
        params: current parameters.
        settings: priors of abilities and classes.
    """
    variance = settings.alpha_variance
    top = (settings.alpha_mean / variance + counts.pull) / (1 / variance + counts.weight)
    alpha = params.alpha + RELAXATION * (top - params.alpha)
    class_prior = params.class_prior
    if settings.class_prior == "estimated" and counts.classes.sum() > 0:
        class_prior = np.maximum(counts.classes / counts.classes.sum(), TINY)
    return Abilities(alpha, class_prior)


def objective(counts: GladCounts, params: Abilities, settings: GLAD) -> float:
    """Objective that never falls in EM: log-likelihood plus log prior density (up to a constant), in nats.

    Args:
        counts: counts computed with `params`.
        params: parameters at which the objective is evaluated.
        settings: prior of the abilities.
    """
    penalty = float(((params.alpha - settings.alpha_mean) ** 2).sum()) / (2 * settings.alpha_variance)
    return counts.log_likelihood + counts.log_prior - penalty


def expect(
    items: Sequence[tuple[Block, NDArray[np.float64], NDArray[np.float64]]],
    params: Abilities,
    settings: GLAD,
    out: NDArray[np.float64] = NOTHING,
) -> tuple[GladCounts, list[NDArray[np.float64]]]:
    """E-step of some blocks, M-step of their tasks' difficulties, and their part in the M-step of the abilities.

    Args:
        items: blocks of T tasks; log inverse difficulty b of the tasks, [T]; and posteriors [T, K] to use instead of
            the E-step's, or `NOTHING`.
        params: parameters of R annotators and K classes.
        settings: priors of the difficulties.
        out: array for the posteriors of a single block, [T, K]; then nothing else is computed.

    Returns:
        The counts, with the likelihoods at the old b and the rest at the new b; and the new b of each block.
    """
    num_annotators, num_classes = len(params.alpha), len(params.class_prior)
    sums, classes = np.zeros((num_annotators, 2)), np.zeros(num_classes)
    likelihood, log_prior, results = 0.0, 0.0, []
    facts = params.alpha, params.class_prior
    for block, b, fixed in items:
        block.check_codes(num_annotators, num_classes)  # the kernel does not check them
        results.append(np.empty(len(b)))
        prior = settings.b_mean, settings.b_variance
        added = _kernel(*block.columns, *facts, b, *prior, fixed, sums, classes, results[-1], out)
        likelihood += added[0]
        log_prior += added[1]
    num_annotations = sum(len(block) for block, *_ in items)
    return GladCounts(sums[:, 0], sums[:, 1], classes, likelihood, log_prior, num_annotations), results


@compiled()
def _kernel(  # type: ignore[no-untyped-def]  # for Numba
    starts, annotator_ids, labels, gold, alpha, class_prior, b, mean, variance, fixed, sums, classes, new, out
):
    """Adds a block's tasks to `sums` [R, 2] (pull, weight) and `classes` [K], and sets `new` [T]; or only fills `out`.

    With x = alpha beta, s = 1 / (1 + exp(-x)): an annotation is right with log probability x - log(1 + exp(x)), and
    says a given wrong class with log(1 / (K - 1)) - log(1 + exp(x)).

    Returns:
        Log-probability of the annotations and known classes, and of `b`, nats.
    """
    num_classes = np.uint64(len(class_prior))
    u_zero, u_one = np.uint64(0), np.uint64(1)
    log_others = log(max(len(class_prior) - 1.0, 1.0))
    log_class_prior = np.log(class_prior)
    gains = np.zeros(num_classes)
    shares = np.zeros(num_classes)
    is_said = np.zeros(num_classes, np.uint8)
    voted = np.empty(num_classes, np.uint64)
    not_said = np.zeros(num_classes)
    total_rest = 0.0
    longest = u_zero
    for task in range(np.uint64(len(starts) - 1)):
        longest = max(longest, np.uint64(starts[task + u_one] - starts[task]))
    ability = np.empty(longest)  # abilities of the task's annotators
    right = np.empty(longest)  # posterior of each annotator's label
    chance = np.empty(longest)  # probability s that each is right; and at another beta:
    other = np.empty(longest)
    log_likelihood = 0.0
    log_prior = 0.0
    for task in range(np.uint64(len(starts) - 1)):
        first, last = np.uint64(starts[task]), np.uint64(starts[task + u_one])
        size = last - first
        now = b[task]
        new[task] = now
        known = gold[task] if len(gold) else -1
        log_prior -= (now - mean) ** 2 / (2.0 * variance)
        if first == last and known < 0:
            if len(out):
                out[task] = class_prior
            continue
        beta = exp(now)
        num_said = u_zero
        for i in range(size):
            label = np.uint64(labels[first + i])
            ability[i] = alpha[np.uint64(annotator_ids[first + i])]
            if not is_said[label]:
                is_said[label] = 1
                voted[num_said] = label
                num_said += u_one
            gains[label] += ability[i] * beta + log_others
        base = _chances(ability, size, beta, chance)
        rest = 0.0
        if len(fixed):
            for k in range(num_classes):
                classes[k] += fixed[task, k]
                shares[k] = fixed[task, k]
        else:
            evidence, rest = share_out(gains, voted, num_said, is_said, class_prior, log_class_prior, known, shares)
            log_likelihood += evidence - base - size * log_others
            total_rest += rest
            if known >= 0:
                classes[np.uint64(known)] += 1.0
            for i in range(num_said if known < 0 else u_zero):
                classes[voted[i]] += shares[voted[i]]
                not_said[voted[i]] += rest
        if len(out):
            for k in range(num_classes):
                out[task, k] = shares[k] if is_said[k] else rest * class_prior[k]
            if known >= 0:
                out[task, np.uint64(known)] = 1.0
        else:
            for i in range(size):
                right[i] = shares[np.uint64(labels[first + i])]
            # f(b) = sum of (right x - log(1 + exp(x))) + log prior: one Newton step, with only the part of the
            # curvature that is always negative, halved until f rises
            drive, spread, height = 0.0, 0.0, 0.0
            for i in range(size):
                drive += ability[i] * (right[i] - chance[i])
                spread += ability[i] * ability[i] * chance[i] * (1.0 - chance[i])
                height += right[i] * ability[i]
            drive *= beta
            height = height * beta - base - (now - mean) ** 2 / (2.0 * variance)
            slope = drive - (now - mean) / variance
            step = slope / (spread * beta * beta + 1.0 / variance + max(-drive, 0.0))
            step = min(max(step, -2.0), 2.0)
            for _ in range(20):
                trial = min(max(now + step, -30.0), 30.0)
                trial_beta = exp(trial)
                trial_height = -_chances(ability, size, trial_beta, other) - (trial - mean) ** 2 / (2.0 * variance)
                for i in range(size):
                    trial_height += right[i] * ability[i] * trial_beta
                if trial_height >= height:
                    now, beta = trial, trial_beta
                    chance, other = other, chance
                    break
                step *= 0.5
            new[task] = now
            for i in range(size):
                annotator = np.uint64(annotator_ids[first + i])
                x = ability[i] * beta
                weight = 0.25 - x * x / 48.0 if abs(x) < 1e-3 else (chance[i] - 0.5) / x
                sums[annotator, 0] += (right[i] - 0.5) * beta
                sums[annotator, 1] += weight * beta * beta
        for i in range(num_said):
            gains[voted[i]] = 0.0
            shares[voted[i]] = 0.0
            is_said[voted[i]] = 0
        if known >= 0:
            shares[np.uint64(known)] = 0.0
    for k in range(num_classes):
        classes[k] += class_prior[k] * max(total_rest - not_said[k], 0.0)
    return log_likelihood, log_prior


@compiled()
def _chances(ability, size, beta, chance):  # type: ignore[no-untyped-def]  # for Numba
    """Sets chance = 1 / (1 + exp(-x)) for x = ability * beta; returns the sum of log(1 + exp(x))."""
    total, product = 0.0, 1.0
    for i in range(size):
        x = ability[i] * beta
        small = exp(-abs(x))
        chance[i] = (1.0 if x >= 0.0 else small) / (1.0 + small)
        total += max(x, 0.0)
        product *= 1.0 + small
        if product > 1e300:
            total += log(product)
            product = 1.0
    return total + log(product)


@dataclass(frozen=True)
class GLAD(Iterative):
    """Abilities of annotators and difficulties of tasks, fitted by EM.

    Whitehill, Ruvolo, Wu, Bergsma and Movellan, "Whose vote should count more", NIPS 2009. All classes are equally
    probable for the truth of task i; annotator r says it with probability 1 / (1 + exp(-alpha[r] beta[i])), and each
    wrong class with an equal share of the rest. Ability alpha[r] may be negative (wrong more often than right); inverse
    difficulty beta[i] = exp(b[i]) is positive; alpha and b have normal priors.

    - E-step: posteriors of the classes, in log space.
    - M-step: abilities as in `update`, each b by one safeguarded Newton step. Both raise the expected log-likelihood
      without a step size to choose, so the objective never falls, and both need only sums over blocks.

    A single annotation says nothing about a task's difficulty beyond the prior.

    Args:
        max_iter: maximum number of iterations, an E-step and an M-step each.
        tol: converged if an iteration raises the objective by at most this, in nats per annotation.
        alpha_mean: mean of the prior of abilities.
        alpha_variance: variance of the prior of abilities.
        b_mean: mean of the prior of b = log(1 / difficulty).
        b_variance: variance of the prior of b.
        class_prior: "uniform" as in the paper, or "estimated" from the posteriors.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import GLAD
        >>> task, annotator = [1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "cem"] * 3
        >>> labels = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "cat"]
        >>> result = GLAD().fit(Annotations.from_arrays(task, annotator, labels))
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog', 'cat']
        >>> int(result.tasks[result.difficulty.argmax()])  # the hardest task
        1

    Needs:
        Two annotations per task or more, by annotators whose errors do not depend on the class.

    Source:
        J. Whitehill et al.: Whose Vote Should Count More. NIPS 2009.
    """

    title: ClassVar[str] = "GLAD"

    max_iter: int = setting(300, MAX_ITER)
    tol: float = setting(1e-5, TOL)
    alpha_mean: float = setting(1.0, Number(-1e9, 1e9))
    alpha_variance: float = setting(1.0, Number(1e-9, 1e12))
    b_mean: float = setting(1.0, Number(-30, 30))
    b_variance: float = setting(1.0, Number(1e-9, 1e12))
    class_prior: str = setting("uniform", Choice(CLASS_PRIORS))
    seed: int = setting(0, SEED)

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Estimates truths, abilities and difficulties jointly.

        Memory in addition to the annotations: 5 bytes per annotation (8 for more than 256 classes), 64 + 8 K per task
        (b and the result), about 25 per annotator for the parameters and 16 for each thread's sums. The time of an
        iteration is proportional to the annotations, whatever K.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. The posteriors of these tasks are fixed, and the
                likelihood includes them.
            initial: starting point instead of the priors' means: posteriors [N, K]; an earlier result of this class for
                the same annotators and classes, whose abilities are used (and difficulties, if the tasks are also the
                same); or any result for the same tasks and classes, whose posteriors are used.

        Returns:
            Posteriors under the last parameters. `skills` is alpha, `difficulty` is 1 / beta; without data both follow
            from the priors' means. `history` is the penalised log-likelihood (see `objective`) at the start and after
            each iteration. Ties are broken at random, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not match them.

        Warns:
            ConvergenceWarning: `max_iter` was reached.
        """
        check_classification(annotations, self.title)
        blocks = blocks_of(annotations, gold)
        run, b = self._begin(annotations, initial)
        values = [b[block.tasks] for block in blocks]
        first = None if same_crowd(initial, "glad", annotations) else initial_posteriors(initial, annotations)
        if first is not None:
            shares = [block.clamped(first[block.tasks]) for block in blocks]
            counts, values = expect(list(zip(blocks, values, shares, strict=True)), run.params, self)
            run = Run(update(counts, run.params, self))
        while True:
            items = [(block, value, NOTHING) for block, value in zip(blocks, values, strict=True)]
            done = in_threads(partial(expect, params=run.params, settings=self), items, num_threads())
            counts, before = reduce(add, (counts for counts, _ in done)), run.params
            run = self._advance(run, objective(counts, before, self), counts, partial(update, counts, before, self))
            if run.done:  # `values` remain the b at which `run.params` were evaluated
                break
            values = [new for _, results in done for new in results]
        warn_unless_converged(self, run, len(annotations))

        def write(place: int, out: NDArray[np.float64]) -> None:
            expect([items[place]], run.params, self, out)

        return Aggregation.of(
            "glad",
            annotations,
            *answers_by_block(annotations, blocks, write, self.seed),
            class_prior=run.params.class_prior,
            skills=run.params.alpha,
            difficulty=np.exp(-np.concatenate([b[:0], *values])),
            **run.facts,
        )

    def _begin(self, annotations: Annotations, initial: Initial = None) -> tuple[Run[Abilities], NDArray[np.float64]]:
        """The first run and the tasks' first b [N]: the priors' means, or those of an earlier result."""
        num_tasks, num_classes = annotations.num_tasks, annotations.num_classes
        alpha = np.full(annotations.num_annotators, float(self.alpha_mean))
        class_prior = np.full(num_classes, 1 / num_classes)
        b = np.full(num_tasks, float(self.b_mean))
        if same_crowd(initial, "glad", annotations):
            assert initial.skills is not None
            assert initial.difficulty is not None
            alpha = initial.skills
            if self.class_prior == "estimated" and initial.class_prior is not None:
                class_prior = initial.class_prior
            if np.array_equal(initial.tasks, annotations.tasks):
                b = -np.log(initial.difficulty)
        return Run(Abilities(alpha, class_prior)), b
