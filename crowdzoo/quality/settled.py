"""settlement, consensus_of: would labels stay the same if many more annotators of the crowd answered?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, rel_entr

from crowdzoo.aggregation import Robust, VotesWarning
from crowdzoo.aggregation.base import check_classification, ignored
from crowdzoo.aggregation.engine.block import Block, blocks_of, checked_gold, sum_rows, whole_block
from crowdzoo.aggregation.engine.confusions import Counts, Params
from crowdzoo.aggregation.engine.loops import compiled, in_threads, num_threads
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.copies import copy_families, counted_once
from crowdzoo.quality.figures import NORMAL_95

Array = NDArray[np.float64]

PULLED = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.47])  # shares of a task's answers that one other class draws
VAGUE = np.array([0.0, 0.2, 0.4, 0.6, 0.75, 0.9])  # shares that are given without seeing anything
USUAL = np.array([0.7, 0.1, 0.06, 0.05, 0.05, 0.04])  # how frequent each share is, before any answer is seen
USUAL_TASKS = 20.0  # that USUAL counts for
STRENGTH = 8.0  # answers that the common matrix counts for, in a row and for an annotator's accuracy
ITERATIONS = 25
JUDGING = 10  # iterations of `judging_matrices`
DRAWN = 4000  # tasks that the iterations use
PASSES = 6  # over all tasks, where some were drawn
CANDIDATES = 6  # classes of a task that are considered
SMALLEST = 1e-4  # count of each answer
ENDS = (0.005, 0.995)  # of probabilities whose logits are calibrated
CALIBRATION = (-0.015, 0.496, 0.893, -0.349)  # see `settlement`; `python benchmarks/settled.py --fit` fits it
SHARE_ENDS = (-0.221, 0.171)  # see `settled_interval`; `python benchmarks/expected_accuracy.py --fit` fits them
TARGET = 0.95  # settled labels are not asked about
ONE_ANSWER = 0.89  # more is not settled by a single answer, which nobody could contradict
WORTH = 20.0  # answers that a label put right is worth
MOST = 1000  # further answers; more tell nothing
MOST_CELLS = 2**26  # numbers of the largest table: 512 MiB
OVERSHOOT = 1.55  # further answers over those of a test that stops exactly at TARGET
NEEDED = (0.9, 1.8)  # answers that were needed over those estimated, least and most in simulated rounds of questions


@dataclass(frozen=True, eq=False)
class Consensus:
    """What a crowd would agree on if many more of its annotators answered, and how they answer.

    Attributes:
        posteriors: P(most annotators would see class k in the task), [N, K], rows sum to one.
        confusions: P(annotator says l | sees class k), `[annotator, seen, said]`, [R, K, K], rows sum to one.
        seen: P(consensus is k, and an annotator sees class z or, last, nothing), [N, K, K + 1].
    """

    posteriors: Array
    confusions: Array
    seen: Array

    def answers(self, tasks: NDArray[np.int64], annotators: NDArray[np.int64]) -> Array:
        """P(annotator says l | the consensus on the task is k), which depends on the task's difficulty.

        Args:
            tasks: task codes, int64 [B].
            annotators: annotator codes, int64 [B, M].

        Returns:
            [B, M, K, K], `[consensus, said]`, for `next_annotations`.
        """
        number = self.posteriors.shape[1]
        seen = self.seen[tasks] + 1e-9 * np.eye(number, number + 1)  # also for a class that is not a candidate
        seen /= seen.sum(axis=2, keepdims=True)
        shares = np.einsum("bkz,bmzl->bmkl", seen[:, :, :number], self.confusions[annotators])
        return np.asarray(shares + seen[:, None, :, number:] / number)


@dataclass(frozen=True, eq=False)
class _Difficulty:
    """Log-probabilities of the difficulty of tasks.

    Attributes:
        classes: log-probability of each consensus, [K].
        pulled: log-probability of each share of PULLED, [H].
        vague: log-probability of each share of VAGUE, [H].
        other: log-probability of the class that pulls, given the consensus, [K, K].
    """

    classes: Array
    pulled: Array
    vague: Array
    other: Array


def can_be_settled(annotations: Annotations) -> bool:
    """Whether `settlement` accepts annotations.

    It does not if annotators gave a task several labels (`on_duplicate="all"`), or if a table of all tasks or
    annotators by pairs of classes, or of all answers by classes, would not fit into 512 MiB.
    """
    owners = max(annotations.num_tasks, annotations.num_annotators) * (annotations.num_classes + 1)
    return not annotations.repeats and max(owners, len(annotations)) * annotations.num_classes <= MOST_CELLS


def with_settled(annotations: Annotations, result: Aggregation, gold: ArrayLike | None = None) -> Aggregation:
    """Adds `settled` and `answers_to_settle` to a result, see `settlement`.

    The result is unchanged if it has them, or if they cannot be estimated (see `can_be_settled`).

    Args:
        annotations: N tasks, R annotators, K classes.
        result: labels of these tasks, by any method.
        gold: known class codes, see `settlement`.

    Raises:
        DataError: annotations of another kind, or gold that does not match them.
    """
    if result.settled is not None or not can_be_settled(annotations):
        return result
    state = settlement(annotations, result, gold)
    return replace(result, settled=state.settled, answers_to_settle=state.further)


@dataclass(frozen=True, eq=False)
class Settlement:
    """How settled labels are, and how many more answers would settle them.

    Attributes:
        settled: probability that the label stays the same with many more answers of this crowd, float64 [N].
        further: approximate number of further answers that settle the label (probability .95), int64 [N]; 0 if it is
            settled, -1 if answers carry no information.
        consensus: the model of the crowd.
        probability: probability of each label by `Robust`, float64 [N].
    """

    settled: Array
    further: NDArray[np.int64]
    consensus: Consensus
    probability: Array


@checked(worth=Number(0), target=Number(0, 1, optional=True))
def worth_asking(
    settled: ArrayLike, further: ArrayLike, *, worth: float = WORTH, target: float | None = None
) -> NDArray[np.bool_]:
    """Marks tasks that are worth further answers, bool [N].

    Args:
        settled: see `Settlement`, [N].
        further: see `Settlement`, [N].
        worth: number of answers that a corrected label is worth: its value over the cost of an answer. A task is marked
            if settling it is expected to correct more labels than its answers are worth.
        target: sufficient mean of `settled`: of these tasks the most cost-effective ones, until it is reached.

    Raises:
        ConfigError: `worth` is below 0, or `target` is not from 0 to 1.
    """
    stay, number = np.asarray(settled, np.float64), np.asarray(further, np.int64)
    brings = np.maximum(TARGET - stay, 0)
    chosen = (number > 0) & (brings * worth >= number)
    if target is not None:
        order = np.argsort(np.where(chosen, -brings / np.maximum(number, 1), np.inf), kind="stable")
        before = stay.sum() + np.cumsum(brings[order]) - brings[order]
        chosen[order[before >= target * len(stay)]] = False
    return chosen


def with_range(total: float, digits: int = 0) -> str:
    """Formats a number or cost of further answers with its range in simulated rounds: "70 (63 to 126)"."""
    low, high = (f"{factor * total:,.{digits}f}" for factor in NEEDED)
    return f"{total:,.{digits}f} ({low} to {high})"


def settlement(annotations: Annotations, result: Aggregation, gold: ArrayLike | None = None) -> Settlement:
    """Estimates the probability that each label would stay the same with many more answers of this crowd.

    This is not the probability that the label is correct: annotators may agree on a mistake. More answers make labels
    more settled; only tasks of known class tell how many settled labels are correct.

    The logits of the consensus' probability and of `Robust`'s probability of the label are combined with coefficients
    that were fitted to simulated crowds, and to real ones with many answers per task, three to five of which were kept
    (figures on held-out families of crowds: benchmarks/settled.py). Annotators who copy each other count as one.

    Args:
        annotations: N tasks, R annotators, K classes.
        result: labels of these tasks, by any method.
        gold: known class codes, int [N], -1 where unknown, with which the result was fitted or calibrated. These labels
            are settled with probability 1, and need no further answers.

    Returns:
        The probabilities and the number of further answers: the missing log odds of a label, over the expected gain by
        an answer of a usual annotator (A. Wald: Sequential Tests of Statistical Hypotheses, 1945).

    Raises:
        DataError: annotations of another kind, or gold that does not match them.
    """
    check_classification(annotations, "settlement")
    number, rows = annotations.num_annotators, np.arange(len(result.labels))
    base = result if result.method == "robust" else _robust(annotations, gold)
    probability = base.posteriors[rows, result.labels]
    families = copy_families(number, annotations.task_ids, annotations.annotator_ids, annotations.labels)
    once = counted_once(annotations, families)
    if (families != np.arange(number)).any():
        base = _robust(once, gold)
    consensus = consensus_of(once, base.posteriors, gold)
    consensus = replace(consensus, confusions=consensus.confusions[families])
    stays, robust = (logit(np.clip(each.posteriors[rows, result.labels], *ENDS)) for each in (consensus, base))
    constant, slope, other, below = CALIBRATION
    stay = np.asarray(expit(constant + slope * stays + other * robust + below * np.minimum(stays, 0)))
    stay = np.where(once.redundancy > 1, stay, np.minimum(stay, ONE_ANSWER))
    if gold is not None:
        stay = np.where(np.asarray(gold) >= 0, 1.0, stay)
    return Settlement(stay, _further(once, consensus, stay, result.labels), consensus, probability)


def _robust(annotations: Annotations, gold: ArrayLike | None) -> Aggregation:
    with ignored(VotesWarning):
        return Robust().fit(annotations, gold)


def settled_interval(share: float, number: int) -> tuple[float, float]:
    """Ends of the 90 % interval of a mean of `settled`, from its errors on real and simulated crowds.

    Args:
        share: mean of `settled`, such as `Aggregation.settled_share`.
        number: number of tasks.

    Returns:
        Low and high, sqrt(share (1 - share) (end^2 + 1.645^2 / number)) away, with the ends of SHARE_ENDS.
    """
    low, high = np.sqrt(share * (1 - share) * (np.square(SHARE_ENDS) + NORMAL_95**2 / number))
    return max(share - float(low), 0.0), min(share + float(high), 1.0)


def _further(
    annotations: Annotations, consensus: Consensus, stay: Array, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """See `Settlement.further`."""
    rows, number = np.arange(len(labels)), consensus.posteriors.shape[1]
    if number < 2:
        return np.zeros(len(labels), np.int64)
    answers = np.bincount(annotations.annotator_ids, minlength=annotations.num_annotators)
    usual = np.einsum("r,rkl->kl", answers / max(answers.sum(), 1), consensus.confusions)
    rivals = consensus.posteriors.copy()
    rivals[rows, labels] = -1
    rival = rivals.argmax(axis=1)
    seen = consensus.seen.sum(axis=0) + SMALLEST * np.eye(number, number + 1)
    seen /= seen.sum(axis=1, keepdims=True)
    # what a usual annotator says of a usual task
    shares = np.maximum(seen[:, :number] @ usual + seen[:, number:] / number, 1e-6)
    gain = rel_entr(shares[labels], shares[rival]).sum(axis=1)
    lacking = logit(TARGET) - logit(np.clip(stay, 0.01, 0.999))
    needed = np.ceil(OVERSHOOT * lacking / np.maximum(gain, 1e-6))
    needed[annotations.redundancy == 1] = 1  # which says whether there is a conflict
    return np.where(stay >= TARGET, 0, np.where(needed > MOST, -1, np.maximum(needed, 1))).astype(np.int64)


def consensus_of(
    annotations: Annotations, posteriors: ArrayLike, gold: ArrayLike | None = None, *, seed: int = 0
) -> Consensus:
    """Fits a model of the annotators and of the difficulty of tasks.

    The consensus of a task is the class that most annotators see in it. In a plain task all see it; in others a share
    below one half sees another class, or a share sees nothing and answers at random. Annotators report what they see
    through their own confusion matrix, whose rows have as prior the crowd's common matrix, shifted to the annotator's
    accuracy. The model is fitted by expectation maximisation; the answers to a task are left out of the matrices that
    judge it, as tasks would otherwise confirm themselves.

    Args:
        annotations: N tasks, R annotators, K classes.
        posteriors: first class probabilities, [N, K], such as those of `Robust`.
        gold: known class codes, int [N], -1 where unknown: the consensus of these tasks.
        seed: seed of the sample of 4,000 tasks for the iterations, if there are more.

    Raises:
        DataError: annotations of another kind, or gold that does not match them.

    Source:
        Our own: the confusion matrices of Dawid and Skene (1979), with annotators who see a mixture of classes as in
        mixed-membership models (E. A. Erosheva, S. E. Fienberg, J. Lafferty, PNAS 101, 2004).
    """
    check_classification(annotations, "consensus_of")
    block, start = whole_block(annotations), np.asarray(posteriors, np.float64)
    num_tasks, num_classes = start.shape
    votes = np.bincount(block.index * num_classes + block.labels, minlength=start.size).reshape(start.shape)
    common = votes.sum(axis=0) / max(votes.sum(), 1)
    known = checked_gold(gold, num_tasks, num_classes)
    known = np.full(num_tasks, -1) if known is None else known
    votes[known >= 0, known[known >= 0]] += len(annotations)  # to be among the candidates
    most = min(num_classes, CANDIDATES)
    candidates = np.argsort(-(votes + common / 2), axis=1, kind="stable")[:, :most]
    shares = start.sum(axis=0)
    log_classes = np.log((shares + 1) / (shares.sum() + num_classes))
    other = np.full((num_classes, num_classes), -np.log(max(num_classes - 1, 1)))
    difficulty = _Difficulty(log_classes, np.log(USUAL), np.log(USUAL), other)
    seen = start[block.index]
    counts = _counts(block, seen, annotations.num_annotators)
    if num_tasks > DRAWN:
        drawn = np.sort(np.random.default_rng(seed).choice(num_tasks, DRAWN, replace=False))
        rows = np.isin(block.index, drawn)
        places = np.searchsorted(drawn, block.index[rows])
        some = Block(places, block.annotator_ids[rows], block.labels[rows], np.arange(DRAWN))
        part, rest = seen[rows], counts - _counts(some, seen[rows], annotations.num_annotators)
        for _ in range(ITERATIONS):
            part, difficulty, _, _ = _iterate(some, part, candidates[drawn], known[drawn], counts, difficulty)
            counts = rest + _counts(some, part, annotations.num_annotators)
        seen[rows] = part
    for _ in range(PASSES if num_tasks > DRAWN else ITERATIONS):
        seen, difficulty, beliefs, joint = _iterate(block, seen, candidates, known, counts, difficulty)
        counts = _counts(block, seen, annotations.num_annotators)
    confusions = counts + STRENGTH * _expected(counts) + SMALLEST
    return Consensus(beliefs, confusions / confusions.sum(axis=2, keepdims=True), joint)


def _counts(block: Block, seen: Array, num_annotators: int) -> Array:
    """Expected number of times that each annotator sees a class and says another, [R, K, K]."""
    number = seen.shape[1]
    cells = block.annotator_ids.astype(np.int64) * number + block.labels
    counts = sum_rows(seen, cells, num_annotators * number)
    return counts.reshape(num_annotators, number, number).transpose(0, 2, 1)


def _expected(counts: Array) -> Array:
    """The common matrix of a crowd, shifted to the accuracy of each annotator, [R, K, K]; rows sum to one."""
    number = counts.shape[1]
    ones, total = np.eye(number), counts.sum(axis=0)
    common = total + 2 * ones + 0.5 / number
    common /= common.sum(axis=1, keepdims=True)
    usual = (np.trace(total) + 2) / (total.sum() + 4)
    right = np.einsum("rkk->r", counts)
    accuracy = (right + STRENGTH * usual) / (counts.sum(axis=(1, 2)) + STRENGTH)
    ends = (1e-3, 1 - 1e-3)
    shift = logit(np.clip(accuracy, *ends)) - logit(np.clip(usual, *ends))
    diagonal = expit(logit(np.clip(np.diag(common), *ends)) + shift[:, None])[:, :, None]
    wrong = common * (1 - ones)
    wrong /= np.maximum(wrong.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(diagonal * ones + (1 - diagonal) * wrong)


def judging_matrices(
    annotations: Annotations, aggregation: Aggregation, families: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The crowd's common confusion matrix, shifted to each annotator's accuracy, [R, K, K].

    Matrices with K (K - 1) numbers per annotator overfit the annotations that they judge if tasks have two or three, so
    that all annotators seem too accurate: by .05 to .11 with four classes. These matrices have one number. They start
    from those of the aggregation, whose class prior they keep, and are fitted by expectation maximisation, with
    annotators who copy each other as one.

    Args:
        annotations: kind classification.
        aggregation: a result with confusions and class prior.
        families: see `copy_families`, [R].
    """
    assert aggregation.confusions is not None
    assert aggregation.class_prior is not None
    prior = aggregation.class_prior
    once = counted_once(annotations, families)
    blocks, numbers = blocks_of(once), np.bincount(once.annotator_ids, minlength=len(families))
    counts = aggregation.confusions * prior[:, None] * numbers[:, None, None]
    for _ in range(JUDGING):
        counts = Counts.expected(blocks, Params.from_probabilities(_expected(counts), prior)).confusions
    return _expected(counts)[families]


def _iterate(
    block: Block,
    seen: Array,
    candidates: NDArray[np.int64],
    known: NDArray[np.int64],
    counts: Array,
    difficulty: _Difficulty,
) -> tuple[Array, _Difficulty, Array, Array]:
    """Runs one iteration.

    Args:
        block: T tasks, A answers.
        seen: P(the annotator saw class k) for each answer, [A, K]; with the remaining probability, nothing.
        candidates: classes of each task that are considered, [T, C].
        known: consensus of each task, -1 where unknown, [T].
        counts: counts of the annotators, [R, K, K].
        difficulty: difficulty of tasks.

    Returns:
        The new `seen` and `difficulty`, and posteriors and seen shares of the tasks as in `Consensus`.
    """
    num_tasks, number = len(block.tasks), counts.shape[1]
    prior, totals = STRENGTH * _expected(counts), counts.sum(axis=2)
    new, posteriors = np.zeros_like(seen), np.zeros((num_tasks, number))
    joint = np.zeros((num_tasks, number, number + 1))
    answers = block.starts, block.annotator_ids, block.labels, candidates, known, counts, totals, prior, seen
    odds = difficulty.classes, difficulty.pulled, difficulty.vague, difficulty.other

    def work(tasks: Sequence[int]) -> tuple[Array, Array, Array]:
        sums = np.zeros(len(USUAL)), np.zeros(len(USUAL)), np.zeros((number, number))
        if len(tasks):
            constants = PULLED, VAGUE, STRENGTH, SMALLEST
            _pass(tasks[0], tasks[-1] + 1, *answers, *odds, *constants, new, posteriors, joint, *sums)
        return sums

    pulled, vague, other = (sum(sums) for sums in zip(*in_threads(work, range(num_tasks), num_threads()), strict=True))
    classes = posteriors.sum(axis=0)
    weights = np.concatenate([pulled, vague[1:]])
    usual = USUAL_TASKS * np.concatenate([USUAL, USUAL[1:]])
    weights = np.log((weights + usual) / (weights.sum() + usual.sum()))
    pulled, vague = weights[: len(USUAL)], np.concatenate([weights[:1], weights[len(USUAL) :]])
    other = (other + 2 / number) * (1 - np.eye(number)) + 1e-12
    log_classes = np.log((classes + 1) / (classes.sum() + number))
    difficulty = _Difficulty(log_classes, pulled, vague, np.log(other / other.sum(axis=1, keepdims=True)))
    return new, difficulty, posteriors, joint


@compiled()
def _pass(  # type: ignore[no-untyped-def]  # for Numba
    first, end, starts, annotators, labels, candidates, known, counts, totals, prior, before, classes, pulled, vague,
    other, pulls, voids, strength, smallest, seen, posteriors, joint, of_pulled, of_vague, of_other,
):  # fmt: skip
    number, most, shares = counts.shape[1], candidates.shape[1], len(pulls)
    largest = 0
    for task in range(first, end):
        largest = max(largest, starts[task + 1] - starts[task])
    says = np.empty((largest, number + 1))  # P(answer | the annotator sees class k, or nothing)
    # what a task may be: its consensus, the other class (last: nothing), the place of the share, and how probable it is
    size = most * (shares + (most - 1) * (shares - 1))
    states, odds = np.empty((size, 3), np.int64), np.empty(size)
    for task in range(first, end):
        begin = starts[task]
        answers = starts[task + 1] - begin
        for i in range(answers):
            annotator, label = annotators[begin + i], labels[begin + i]
            for k in range(number):
                weight = before[begin + i, k]
                count = counts[annotator, k, label] - weight + prior[annotator, k, label] + smallest
                says[i, k] = count / (totals[annotator, k] - weight + strength + smallest * number)
            says[i, number] = 1 / number
        state = 0
        for x in range(most):
            for y in range(most + 1):
                if y == x:
                    continue
                k, j = candidates[task, x], candidates[task, y] if y < most else number
                for h in range(0 if y == most else 1, shares):
                    share = pulls[h] if y < most else voids[h]
                    value = classes[k] + (pulled[h] + other[k, j] if y < most else vague[h])
                    product = 1.0
                    for i in range(answers):
                        product *= (1 - share) * says[i, k] + share * says[i, j]
                        if product < 1e-200:
                            value += np.log(product)
                            product = 1.0
                    value += np.log(product)
                    odds[state] = value if known[task] < 0 or known[task] == k else -np.inf
                    states[state, 0], states[state, 1], states[state, 2] = k, j, h
                    state += 1
        odds[:] = np.exp(odds - odds.max())
        total = odds.sum()
        for state in range(size):
            p = odds[state] / total
            if p < 1e-9:
                continue
            k, j, h = states[state]
            share = pulls[h] if j < number else voids[h]
            posteriors[task, k] += p
            joint[task, k, k] += p * (1 - share)
            joint[task, k, j] += p * share
            if h == 0 or j < number:
                of_pulled[h] += p
            else:
                of_vague[h] += p
            if j < number:
                of_other[k, j] += p
            for i in range(answers):
                right = (1 - share) * says[i, k]
                part = p * right / (right + share * says[i, j])
                seen[begin + i, k] += part
                if j < number:
                    seen[begin + i, j] += p - part
        posteriors[task] /= posteriors[task].sum()
