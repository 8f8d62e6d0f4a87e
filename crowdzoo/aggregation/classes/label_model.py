"""LabelModel: weak supervision, labelling functions' accuracies from how they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes import majority_vote
from crowdzoo.aggregation.classes.initial import Initial, first_counts, initial_posteriors
from crowdzoo.aggregation.classes.iterative import Iterative
from crowdzoo.aggregation.engine.block import Block, whole_block
from crowdzoo.aggregation.engine.class_frequencies import shares_of
from crowdzoo.aggregation.engine.connected import connected_groups
from crowdzoo.aggregation.engine.pairs import LabelPairs, Pairs, one_coin_params, skill_margin, with_signs
from crowdzoo.aggregation.engine.params import TINY, Params
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.engine.softmax import softmax
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, PRIOR, SEED, TOL, Choice, setting
from crowdzoo.errors import ConfigError, DataError, short_repr, unknown

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

LEARNS = ("confusions", "accuracies", "triplets")
CELLS = 2**20  # of the work arrays
MAX_TRIPLETS = 50_000_000
LEAST_CORRELATION = 1e-3  # what a triplet divides by, at least
UNKNOWN_SKILL = 0.5  # where there is no triplet at all


@dataclass(frozen=True)
class LabelModel(Iterative):
    """Label model for weak supervision, in the way of Snorkel and its successors: annotators are labelling functions.

    A labelling function says a class or abstains (it has no annotation of that task). Given the truth, functions are
    taken as independent, and abstaining as independent of the truth: an absent annotation says nothing. (Snorkel's own
    model lets a function vote more often on some classes; its posterior too leaves out functions that abstain.)

    What is learnt comes from second moments alone, how often two functions gave a task the labels a and b, as in
    Ratner, Hancock, Dunnmon, Sala, Pandey and Ré, "Training complex models with multi-task weak supervision", AAAI 2019
    (MeTaL, the label model of Snorkel 0.9): with confusions pi and class balance rho,
    O[i, j, a, b] = sum over k of rho[k] pi[i, k, a] pi[j, k, b].

    - `learns="confusions"`: all of pi. The papers fit O by gradient descent on squared differences; here the
      Kullback-Leibler divergence between both sides is minimised by expectation maximisation, in other words the
      likelihood of all pairs: no learning rate, and `history` never falls. The moments are the same, so where the
      model is right both find the same parameters.
    - `learns="accuracies"`: the same with one accuracy a function (every wrong class equally probable); for functions
      with few labels.
    - `learns="triplets"`: closed form, one accuracy a function (Fu, Chen, Sala, Hooper, Fatahalian and Ré, "Fast and
      three-rious", ICML 2020; FlyingSquid). With C[i, j] = (K agreement - 1) / (K - 1), whose expectation is
      s[i] s[j], each triplet that shares tasks in pairs gives |s[i]| = sqrt(|C[i, j] C[i, k] / C[j, k]|), and the
      median over the triplets is taken. Signs, and functions without any triplet, as in `MMSR`.

    Posteriors: naive Bayes with these parameters. Difference to Dawid-Skene: that looks at all answers of a task
    together, which uses more of the data and trusts the assumption of independence more.

    Declared dependencies (functions that share a source, for example) are left out of the moments; and functions that
    declarations connect share one vote: each one's log probabilities are divided by how many of them labelled the task.

    Memory and time follow the pairs of annotations of a task, sum of m (m - 1) / 2; there is no [R, R] matrix.
    `reliability` is the probability of being right under the class balance.

    Args:
        learns: see above.
        class_balance: probability of each class, in the order of the annotations' classes, or "uniform" (Snorkel's
            default). Give it where it is known: second moments alone do not determine it. None: uniform where
            accuracies are learnt, which bears it (estimated all the same, RTE's balance of .5 comes out as .94 and
            accuracy falls from .926 to .511). Where confusions are learnt None estimates it from the vote shares on,
            and it stays near them (.79 for a true .9 in a simulation); there a wrong uniform balance does harm
            (.58 instead of .95).
        dependencies: pairs of names of annotators that are not independent of each other.
        prior: pseudo-count of every cell of a confusion matrix (and of every class).
        diagonal: further pseudo-count of the diagonal.
        max_iter: most iterations (not of the closed form).
        tol: it has converged when an iteration raises the objective by no more than this, in nats per pair of
            annotations. As with `DawidSkene` the long tail fits noise.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Annotators (rules, models) that share tasks; the class balance where it is known.

    Source:
        A. Ratner et al.: Snorkel. VLDB 2018; A. Ratner et al.: MeTaL. AAAI 2019; D. Fu et al.: FlyingSquid. ICML 2020.
    """

    title: ClassVar[str] = "The label model"
    unit: ClassVar[str] = "nats per pair"

    learns: str = setting("confusions", Choice(LEARNS))
    class_balance: Sequence[float] | str | None = None
    dependencies: Sequence[tuple[Any, Any]] = ()
    prior: float = setting(0.01, PRIOR)
    diagonal: float = setting(0.0, PRIOR)
    max_iter: int = setting(200, MAX_ITER)
    tol: float = setting(1e-5, TOL)
    seed: int = setting(0, SEED)

    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_class_balance()
        self._check_dependencies()

    def _check_class_balance(self) -> None:
        """Refuses what is neither probabilities, nor "uniform", nor None."""
        balance: Any = self.class_balance
        if balance is None or (isinstance(balance, str) and balance == "uniform"):
            return
        try:
            shares = np.asarray(balance, np.float64)
        except (TypeError, ValueError, OverflowError):
            shares = np.empty(0)
        if isinstance(balance, str) or shares.ndim != 1 or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
            raise ConfigError(
                "LabelModel: class_balance must be 'uniform', probabilities above 0 that sum to one, or None, "
                f"got {short_repr(balance)}."
            )
        if tuple(shares.tolist()) != balance:  # `clone` asks for the given tuple
            object.__setattr__(self, "class_balance", tuple(shares.tolist()))

    def _check_dependencies(self) -> None:
        """Refuses anything but pairs of different names."""
        pairs: Any = self.dependencies
        if isinstance(pairs, (list, tuple)) and all(
            isinstance(pair, (list, tuple)) and len(pair) == 2 and pair[0] != pair[1] for pair in pairs
        ):
            return
        raise ConfigError(
            f"LabelModel: dependencies must be pairs of two annotators' names, got {short_repr(self.dependencies)}."
        )

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Learns the labelling functions, and then the answers.

        Args:
            annotations: N tasks, R labelling functions, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class, and the truth takes part
                in the moments as a function that is never wrong.
            initial: what confusions and accuracies are first taken from, instead of vote shares: posteriors [N, K], or
                an earlier `Aggregation` of the same tasks and classes. The closed form needs none.

        Returns:
            Posteriors, labels, `confusions`, `class_prior` and `reliability`. A function that shares no task with
            another has the mean of the others (if there are none, what the votes say). `history` is the log-likelihood
            of the pairs plus the log prior density, at the start and after each iteration; empty for the closed form.
            `log_likelihood` is that of the annotations and known classes under naive Bayes; None with dependencies.

        Raises:
            DataError: annotations are not of kind classification; `gold`, `initial`, `class_balance` or `dependencies`
                does not fit them; or there are more than 100 million pairs or 50 million triplets.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        check_classification(annotations, self.title)
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        balance = self._balance(num_classes)
        dependent = self._codes(annotations)
        block = whole_block(annotations, gold)
        given = initial_posteriors(initial, annotations)
        found: dict[str, Any] = {}
        if self.learns == "triplets" and balance is not None:
            params = _by_triplets(block, num_annotators, num_classes, balance, dependent)
        else:
            run = self._by_pairs(block, num_annotators, num_classes, balance, dependent, given)
            params, found = run.params, run.facts
        log_joint = _log_joint(block, params, _sharing(dependent, num_annotators))
        posteriors, evidence = softmax(log_joint)
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
            **found | {"log_likelihood": None if dependent.size else float(evidence[block.informed].sum())},
            reliability=np.einsum("rkk,k->r", params.confusions, params.class_prior),
        )

    def _balance(self, num_classes: int) -> NDArray[np.float64] | None:
        """The class balance, [K]; None if it is to be estimated."""
        if self.class_balance is None and self.learns == "confusions":
            return None
        if self.class_balance is None or isinstance(self.class_balance, str):
            return np.full(num_classes, 1 / num_classes)
        if len(self.class_balance) != num_classes:
            raise DataError(f"class_balance has {len(self.class_balance)} probabilities for {num_classes} classes.")
        return np.asarray(self.class_balance, np.float64)

    def _codes(self, annotations: Annotations) -> NDArray[np.int64]:
        """Codes of the declared pairs, the lower one first, int64 [D, 2]."""
        code = {name: code for code, name in enumerate(annotations.annotators.tolist())} if self.dependencies else {}
        for name in (name for pair in self.dependencies for name in pair):
            if name not in code:
                raise DataError(f"dependencies: {unknown('annotator', name, code)}")
        pairs = [sorted((code[one], code[other])) for one, other in self.dependencies]
        return np.asarray(pairs, np.int64).reshape(-1, 2)

    def _by_pairs(
        self,
        block: Block,
        num_annotators: int,
        num_classes: int,
        balance: NDArray[np.float64] | None,
        dependent: NDArray[np.int64],
        given: NDArray[np.float64] | None,
    ) -> Run[Params]:
        """Expectation maximisation on the pairs; the parameters of the R functions at its end."""
        first = majority_vote.update(first_counts([block], num_annotators, num_classes, given))
        moments = _Moments(LabelPairs.of(block, num_annotators, num_classes), num_annotators, num_classes, dependent)
        m_step = partial(self._m_step, balance=balance, moments=moments)
        start = Params.from_probabilities(
            moments.with_truth(self._alike(first.confusions)), first.class_prior if balance is None else balance
        )
        run = Run(start)
        while not run.done:
            log_likelihood, counts, classes = moments.expected(run.params)
            objective = log_likelihood + self._log_prior(run.params, num_annotators, balance)
            run = advance(
                run, objective, log_likelihood, moments.total, self.max_iter, self.tol, partial(m_step, counts, classes)
            )
        self.warn_unless_converged(run, moments.total, stacklevel=4)
        confusions = run.params.confusions[:num_annotators]
        alone = ~counts[:num_annotators].any(axis=(1, 2))
        if alone.all():
            confusions = self._alike(first.confusions)
        else:
            confusions[alone] = self._normalised(counts[:num_annotators].sum(axis=0, keepdims=True))[0]
        params = Params.from_probabilities(confusions, run.params.class_prior)
        return Run(params, run.history, run.log_likelihood, run.converged, run.done)

    def _m_step(
        self,
        counts: NDArray[np.float64],
        classes: NDArray[np.float64],
        balance: NDArray[np.float64] | None,
        moments: _Moments,
    ) -> Params:
        """The most probable parameters, given the expected counts [R, K, K] and [K]."""
        if balance is None:
            balance = shares_of(classes + self.prior)
        return Params.from_probabilities(
            moments.with_truth(self._normalised(counts)[: moments.num_annotators]), balance
        )

    def _normalised(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Confusion matrices from counts [R, K, K], with the prior."""
        num_classes = counts.shape[2]
        cells = self._alike(counts + self.prior + self.diagonal * np.eye(num_classes))
        total = cells.sum(axis=2, keepdims=True)
        return np.divide(cells, total, out=np.full_like(cells, 1 / num_classes), where=total > 0)

    def _alike(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where accuracies are learnt: all diagonal cells of an annotator alike, and all others, [R, K, K]."""
        if self.learns != "accuracies":
            return cells
        num_classes = cells.shape[2]
        right = np.trace(cells, axis1=1, axis2=2)[:, None, None]
        wrong = (cells.sum(axis=(1, 2))[:, None, None] - right) / max(num_classes - 1, 1)
        return np.where(np.eye(num_classes, dtype=bool), right, wrong) / num_classes

    def _log_prior(self, params: Params, num_annotators: int, balance: NDArray[np.float64] | None) -> float:
        """Log density of the prior up to a constant, nats."""
        total = float(params.log_confusions[:num_annotators].sum())
        if balance is None:
            total += float(params.log_class_prior.sum())
        right = float(np.trace(params.log_confusions[:num_annotators], axis1=1, axis2=2).sum())
        return (self.prior * total if self.prior else 0.0) + (self.diagonal * right if self.diagonal else 0.0)


class _Moments:
    """The pairs of labels, as EM needs them; with the truth as annotator R.

    Attributes:
        num_annotators: R.
        total: number of pairs of annotations.
    """

    def __init__(self, pairs: LabelPairs, num_annotators: int, num_classes: int, dependent: NDArray[np.int64]):
        self.num_annotators = num_annotators
        kept = ~np.isin(pairs.left * (num_annotators + 1) + pairs.right, dependent @ [num_annotators + 1, 1])
        self._left = (pairs.left * num_classes + pairs.left_label)[kept]
        self._right = (pairs.right * num_classes + pairs.right_label)[kept]
        self._count = pairs.count[kept]
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


def _by_triplets(
    block: Block,
    num_annotators: int,
    num_classes: int,
    balance: NDArray[np.float64],
    dependent: NDArray[np.int64],
) -> Params:
    """One accuracy a function, in closed form."""
    pairs = Pairs.of(block, num_annotators)
    chance = 1 / max(num_classes, 2)
    correlation = (pairs.agreement - chance) / (1 - chance)
    number = len(pairs.starts) - 1
    keys = pairs.owners * number + pairs.partners
    both_ways = np.concatenate([dependent, dependent[:, ::-1]])
    usable = ~np.isin(keys, both_ways @ [number, 1])
    size = _triplet_sizes(pairs, np.abs(correlation), keys, usable)
    alone = np.isnan(size)
    size[alone] = size[~alone].mean() if not alone.all() else UNKNOWN_SKILL
    skill = with_signs(pairs, np.where(usable, correlation, 0.0), size, connected_groups(block, num_annotators))
    skill[alone[:num_annotators]] = np.abs(skill[alone[:num_annotators]])
    margin = skill_margin(block)
    skill = np.clip(skill, margin - chance / (1 - chance), 1 - margin)
    return one_coin_params(chance + (1 - chance) * skill, balance)


def _triplet_sizes(
    pairs: Pairs, sizes: NDArray[np.float64], keys: NDArray[np.int64], usable: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Median over triplets of the absolute skill they give, of each annotator (and the truth); NaN without any.

    Raises:
        DataError: more than 50 million triplets.
    """
    number = len(pairs.starts) - 1
    rows = np.flatnonzero(usable)
    bounds = np.searchsorted(rows, pairs.starts)
    degrees = np.diff(bounds)
    total = int((degrees * (degrees - 1) // 2).sum())
    if total > MAX_TRIPLETS:
        raise DataError(
            f"The annotators form {total:,} triplets; the limit is {MAX_TRIPLETS:,}. Use learns='accuracies', which "
            f"needs pairs only."
        )
    order = np.argsort(keys)  # partners of an annotator are in no particular order
    sorted_keys = keys[order]
    result = np.full(number, np.nan)
    for annotator in np.flatnonzero(degrees > 1):
        own = rows[bounds[annotator] : bounds[annotator + 1]]
        one, other = (own[column] for column in np.triu_indices(len(own), 1))
        key = pairs.partners[one] * number + pairs.partners[other]
        place = order[np.minimum(np.searchsorted(sorted_keys, key), len(keys) - 1)]
        linked = (keys[place] == key) & usable[place]
        if linked.any():
            third = np.maximum(sizes[place[linked]], LEAST_CORRELATION)
            found = np.sqrt(sizes[one[linked]] * sizes[other[linked]] / third)
            result[annotator] = min(float(np.median(found)), 1.0)
    return result


def _sharing(dependent: NDArray[np.int64], num_annotators: int) -> NDArray[np.int64]:
    """Group of each annotator that declarations connect, int64 [R]; its own where there are none."""
    group = np.arange(num_annotators)
    for one, other in dependent:
        group[group == group[other]] = group[one]
    return group


def _log_joint(block: Block, params: Params, sharing: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log probability of each task's answers and class, [T, K]; a group's functions share one vote."""
    num_tasks, num_annotators, num_classes = len(block.tasks), params.num_annotators, params.num_classes
    index, said = block.index, block.said(num_annotators, num_classes)
    weights = np.ones(len(block))
    if not np.array_equal(sharing, np.arange(num_annotators)):
        voters = index * num_annotators + sharing[block.annotator_ids]
        _, voter, number = np.unique(voters, return_inverse=True, return_counts=True)
        weights = 1 / number[voter]
    table = params.log_confusions.transpose(1, 0, 2).reshape(num_classes, -1)
    found = np.empty((num_tasks, num_classes))
    for true in range(num_classes):
        found[:, true] = np.bincount(index, weights=weights * table[true].take(said), minlength=num_tasks)
    return found + params.log_class_prior
