"""Auto: methods weighed by what they say of annotations that they did not see."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.against_votes import MOST_DIFFERENT, VotesWarning, share_against_votes, warn_of_notes
from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.candidate import Candidate
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes.bwa import BWA
from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.aggregation.classes.glad import GLAD
from crowdzoo.aggregation.classes.hierarchical_dawid_skene import HierarchicalDawidSkene, start, update
from crowdzoo.aggregation.classes.ibcc import IBCC
from crowdzoo.aggregation.classes.initial import first_counts
from crowdzoo.aggregation.classes.mace import MACE
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.aggregation.classes.robust import Robust
from crowdzoo.aggregation.classes.worker_clustering import WorkerClustering
from crowdzoo.aggregation.convergence import ConvergenceWarning
from crowdzoo.aggregation.engine.block import blocks_of, checked_gold
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.stacking import stacking_weights
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.constraints import SEED, Number, setting

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["Auto"]

CANDIDATES: dict[str, Callable[..., Any]] = {
    "robust": Robust,
    "hierarchical-dawid-skene": HierarchicalDawidSkene,
    "dawid-skene": DawidSkene,
    "ibcc": IBCC,
    "mace": MACE,
    "glad": GLAD,
    "bwa": BWA,
    "worker-clustering": WorkerClustering,
}
SAFE = "robust"  # is never left out
EQUAL = 0.25  # of the other weight is shared equally
ANCHOR = 1000.0  # hidden annotations with which half of all weight is left for `SAFE`
MOST_HIDDEN = 20_000  # hidden annotations that are scored
LEAST_HIDDEN = 50  # with fewer only `SAFE` counts, unless classes are known
GOLD_WORTH = 10.0  # hidden annotations that a task of known class counts as
LEAST = 0.01  # probability of a known class
OBSERVED = 15  # steps of the fit of the annotators' matrices to posteriors
DRAWN = 100.0  # annotations of one coin in each row of the common matrix, as in HierarchicalDawidSkene
LEFT_OUT = (
    "{} contradict the votes on more than {:.0%} of the annotated tasks, where one-coin finds no reason to, and are "
    "left out: annotators probably make the same errors. Check the labels on tasks whose class you know, or correct "
    "them with about 200 such tasks (calibrate)."
)
NOT_SCORED = (
    "Only {} annotations could be hidden from a task that has others, and {} are needed: they are not counted, and the "
    "labels are those of robust unless classes are known."
)


@dataclass(frozen=True)
class Auto(Aggregator):
    """Eight methods, averaged by how well they predict annotations that were hidden from them.

    The annotations are cut into `folds` parts at random. Each method is fitted without a part, and asked what the
    annotators of the hidden annotations say: sum over k of q[task, k] * pi[annotator, k, said]. The posteriors q are
    the method's. The matrices pi are the same for all methods, so that their figures can be compared: those that
    follow from each method's posteriors of the annotations that were not hidden (annotators drawn to a common matrix,
    and that to one coin, as in `HierarchicalDawidSkene`), averaged over the methods.

    The weights of the methods are those whose mixture predicts best (stacking of predictive distributions, Yao et al.,
    Bayesian Analysis 2018); a fourth of this weight is shared equally, because hidden annotations say less of the truth
    than of annotators. Few of them say little, so of h hidden annotations the share 1,000 / (1,000 + h) of all weight
    is kept for `Robust`. The result is the weighted mean of the posteriors of all methods, fitted to all annotations.

    If the labels of a method are not among the classes with the most votes on more than a fifth of the annotated
    tasks, while those of `OneCoinDawidSkene` are, it is left out: it predicts annotators who make the same errors
    well, and is wrong with them. `notes` says so. `Robust` is never left out.

    Where classes are known (`gold`), each also counts as ten hidden annotations, by the probability that the
    method, fitted without gold, gave it.

    The methods are robust, hierarchical-dawid-skene, dawid-skene, ibcc, mace, glad, bwa and worker-clustering, with
    their defaults. They and the weights' form were chosen on generated crowds and on three real ones that are in none
    of the tables of results, with the figures of those tables in sight. There are 8 (folds + 1) + 1
    fits, and 8 more with gold.

    Args:
        folds: parts that the annotations are cut into.
        seed: seed of the parts, of the annotations that are scored, and of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Time: it makes several fits of eight methods.

    Source:
        Our own, by cross-validated stacking (D. Wolpert: Stacked Generalization. Neural Networks 5, 1992).
    """

    title: ClassVar[str] = "Auto"
    draws_by_code: ClassVar[bool] = True  # the parts are drawn
    unanimous_probability: ClassVar[float] = 0.95  # of which `Robust` and `BWA` are less sure than matrices

    folds: int = setting(5, Number(2, 100, whole=True))
    seed: int = setting(0, SEED)

    def num_fits(self, gold: ArrayLike | None = None) -> int:
        """How many fits `fit` makes at most, and how often it calls `on_fit` then."""
        return len(CANDIDATES) * (self.folds + (1 if gold is None else 2)) + 1

    def fit(
        self, annotations: Annotations, gold: ArrayLike | None = None, *, on_fit: Callable[[], Any] = lambda: None
    ) -> Aggregation:
        """Fits, weighs and averages the methods.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout.
            on_fit: is called after each fit, for a progress bar.

        Returns:
            Mean posteriors; where there are no annotations, their mean over the other tasks, which is `class_prior`.
            `candidates` says what each method's weight is, and why. `confusions` are those that follow from the
            posteriors. `history` is empty. `converged`: all methods with a weight did. Ties are drawn, as in
            `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` does not fit them.

        Warns:
            VotesWarning: methods were left out, or the labels are far from the votes.
        """
        check_classification(annotations, self.title)
        codes = checked_gold(gold, annotations.num_tasks, annotations.num_classes)
        known = np.zeros(annotations.num_tasks, bool) if codes is None else codes >= 0

        def fitted(method: Callable[..., Any], some: Annotations, given: NDArray[np.int64] | None) -> Aggregation:
            found: Aggregation = method(seed=self.seed).fit(some, given)
            on_fit()
            return found

        def all_fitted(some: Annotations, given: NDArray[np.int64] | None) -> list[Aggregation]:
            return [fitted(method, some, given) for method in CANDIDATES.values()]

        with warnings.catch_warnings():  # what counts is the mean
            warnings.simplefilter("ignore", VotesWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            coin = fitted(OneCoinDawidSkene, annotations, codes)
            whole = all_fitted(annotations, codes)
            against = np.array([share_against_votes(annotations, found.labels, ~known) for found in whole])
            kept = (against <= MOST_DIFFERENT) | (np.array(list(CANDIDATES)) == SAFE)
            kept |= share_against_votes(annotations, coin.labels, ~known) > MOST_DIFFERENT
            part, scored = self._parts(annotations, known)
            hidden = scored[np.argsort(part[scored], kind="stable")]
            posteriors = [np.zeros((len(whole), 0, annotations.num_classes))]
            matrices = list(posteriors)
            for fold in range(self.folds if hidden.size else 0):
                rows, rest = hidden[part[hidden] == fold], annotations.select_rows(part != fold)
                found = [one.posteriors for one in all_fitted(rest, codes)]
                who, said = annotations.annotator_ids[rows], annotations.labels[rows]
                posteriors.append(np.stack([one[annotations.task_ids[rows]] for one in found]))
                matrices.append(np.stack([_observed(rest, one, codes).confusions[who, :, said] for one in found]))
            blind = None
            if codes is not None:
                tasks = np.flatnonzero(known & (annotations.redundancy > 0))
                blind = np.stack([one.posteriors[tasks, codes[tasks]] for one in all_fitted(annotations, None)])
        channel = np.concatenate(matrices, axis=1)[kept].mean(axis=0)
        densities = np.maximum((np.concatenate(posteriors, axis=1) * channel).sum(axis=2), LEAST**2)
        weights = np.zeros(len(whole))
        weights[kept] = _weights(densities[kept], None if blind is None else blind[kept])
        table = _table(weights, densities, blind, against)
        mean = sum(weight * found.posteriors for weight, found in zip(weights, whole, strict=True))
        prior = _finish(mean, annotations.redundancy > 0, codes)
        notes: tuple[str, ...] = ()
        if not kept.all():
            names = ", ".join(name for name, keep in zip(CANDIDATES, kept, strict=True) if not keep)
            notes = (LEFT_OUT.format(names, MOST_DIFFERENT),)
            warn_of_notes("auto", notes, stacklevel=3)
        if hidden.size < LEAST_HIDDEN:
            notes += (NOT_SCORED.format(hidden.size, LEAST_HIDDEN),)
        result = Aggregation.of(
            "auto",
            annotations,
            mean,
            seed=self.seed,
            confusions=_observed(annotations, mean, codes).confusions,
            class_prior=prior,
            candidates=table,
            converged=all(found.converged for found, weight in zip(whole, weights, strict=True) if weight),
        )
        return replace(result, notes=(*notes, *result.notes))

    def _parts(self, annotations: Annotations, known: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The part of each annotation, [A], and the rows that are scored; neither depends on the order of the rows."""
        order = np.lexsort((annotations.annotator_ids, annotations.task_ids))
        part = np.empty(len(annotations), np.int64)
        rng = np.random.default_rng(self.seed)
        part[order] = rng.permutation(len(annotations)) % self.folds
        cells = annotations.task_ids * self.folds + part
        together = np.bincount(cells, minlength=annotations.num_tasks * self.folds)[cells]
        alone = together == annotations.redundancy[annotations.task_ids]
        rows = order[~(alone | known[annotations.task_ids])[order]]
        if len(rows) > MOST_HIDDEN:
            rows = rng.choice(rows, MOST_HIDDEN, replace=False)
        return part, rows


def _finish(
    posteriors: NDArray[np.float64], informed: NDArray[np.bool_], codes: NDArray[np.int64] | None
) -> NDArray[np.float64]:
    """Sets in `posteriors` [N, K] the tasks of known class and those without annotations; their prior, [K]."""
    num_classes = posteriors.shape[1]
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    if codes is not None:
        posteriors[codes >= 0] = np.eye(num_classes)[codes[codes >= 0]]
    prior = posteriors[informed].mean(axis=0) if informed.any() else np.full(num_classes, 1 / num_classes)
    prior /= prior.sum()
    posteriors[~informed & (True if codes is None else codes < 0)] = prior
    return prior


def _table(
    weights: NDArray[np.float64],
    densities: NDArray[np.float64],
    blind: NDArray[np.float64] | None,
    against: NDArray[np.float64],
) -> tuple[Candidate, ...]:
    """What the methods' weights are, and why; arguments as in `Auto.fit`."""
    number = densities.shape[1]
    scored = number >= LEAST_HIDDEN
    logs = np.log(densities)
    gaps = logs[logs.mean(axis=1).argmax()] - logs if scored else logs
    return tuple(
        Candidate(
            method=name,
            weight=float(weights[place]),
            score=float(logs[place].mean()) if scored else None,
            behind=float(gaps[place].mean()) if scored else None,
            error=float(gaps[place].std(ddof=1) / np.sqrt(number)) if scored else None,
            gold=None if blind is None or not blind.size else float(np.log(np.maximum(blind[place], LEAST)).mean()),
            against_votes=float(against[place]),
        )
        for place, name in enumerate(CANDIDATES)
    )


def _observed(annotations: Annotations, posteriors: NDArray[np.float64], gold: NDArray[np.int64] | None) -> Params:
    """The annotators' matrices that follow from posteriors [N, K], drawn to a common one and that to one coin."""
    blocks = blocks_of(annotations, gold)
    counts = first_counts(blocks, annotations.num_annotators, annotations.num_classes, posteriors)
    crowd = start(counts)
    for _ in range(OBSERVED):
        crowd = update(counts, crowd, DRAWN)
    return crowd.means


def _weights(densities: NDArray[np.float64], blind: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Weights of M methods, [M].

    Args:
        densities: what they say of the hidden annotations, [M, H]; the first method is `SAFE`.
        blind: their probabilities of the known classes, [M, n], or None.
    """
    every = densities if densities.shape[1] >= LEAST_HIDDEN else densities[:, :0]
    rows = np.ones(every.shape[1])
    if blind is not None:
        every = np.concatenate([every, np.maximum(blind, LEAST)], axis=1)
        rows = np.concatenate([rows, np.full(blind.shape[1], GOLD_WORTH)])
    weights = (1 - EQUAL) * stacking_weights(every, rows) + EQUAL / len(every)
    anchored = ANCHOR / (ANCHOR + rows.sum())
    weights *= 1 - anchored
    weights[0] += anchored
    return weights
