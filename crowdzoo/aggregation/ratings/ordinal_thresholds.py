"""Ordered labels: a hidden number per task, common thresholds, and a bias and a sharpness for every annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.aggregator import Aggregator, warn_not_converged
from crowdzoo.aggregation.checks import check_classification, check_ratings
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.softmax import softmax
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import END, MAX_ITER, TOL, Number, setting
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

GRID = np.linspace(-4.0, 4.0, 41)  # of the hidden number; its prior is the standard normal distribution
PRIOR = np.exp(-np.square(GRID) / 2) / np.exp(-np.square(GRID) / 2).sum()
SMALLEST = 1e-12
MOST_LEVELS = 100
START_SHARPNESS = 3.0


class _Model(NamedTuple):
    """Thresholds [K - 1] ascending, biases [R], logarithms of sharpness [R]."""

    thresholds: NDArray[np.float64]
    bias: NDArray[np.float64]
    log_sharpness: NDArray[np.float64]

    def edges(self) -> NDArray[np.float64]:
        """Sharpness (threshold - z - bias) for all thresholds, [R, K - 1, G]."""
        inner = self.thresholds[:, None] - GRID
        return np.exp(self.log_sharpness)[:, None, None] * (inner - self.bias[:, None, None])


@dataclass(frozen=True)
class OrdinalThresholds(Aggregator):
    """Labels with an order, such as stars: saying 4 for 5 is a smaller slip than saying 1.

    | what | its distribution |
    |------|------------------|
    | the task's hidden number | `z_i ~ N(0, 1)` |
    | what annotator r says | `P(label <= k) = sigmoid(s_r (c_k - z_i - b_r))`, thresholds `c_1 < ... < c_(K-1)` |
    | bias | `b_r ~ N(0, bias_deviation^2)`: a harsh or a mild annotator |
    | sharpness | `log s_r ~ N(log s, sharpness_deviation^2)`, s the crowd's own |

    Generalised EM: the E-step is a sum over 41 values of z; the M-step is one step of Fisher scoring for each annotator
    and one for the thresholds, halved until the objective does not fall; s is the mean of the annotators'. The true
    label of a task is the one between whose thresholds z lies. So an annotator has two numbers, and not K (K - 1).

    Takes classes in their order (kind classification, gives `Aggregation`), or ratings of which there are at most 100
    different ones (kind regression, gives `RatingAggregation`: the labels' mean under their probabilities).

    Args:
        bias_deviation: how far biases lie from zero, in deviations of the tasks; above 0.
        sharpness_deviation: how far logarithms of sharpness lie from the crowd's; above 0.
        low: lowest rating of the scale, or None for any.
        high: highest rating of the scale, or None for any.
        max_iter: most iterations.
        tol: stop when the objective rises by less, in nats per annotation.

    Raises:
        ConfigError: a setting out of range.

    Source:
        P. McCullagh: Regression Models for Ordinal Data. JRSS B 1980 (cumulative thresholds); annotators with biases
        and precisions on them: V. Raykar et al.: Learning from Crowds. JMLR 2010, section 5 (ordinal labels) has the
        classes in pairs instead.

    Needs:
        At most 100 levels.
    """

    kind: ClassVar[str] = "regression"

    bias_deviation: float = setting(0.5, Number(1e-3, 1e3))
    sharpness_deviation: float = setting(0.5, Number(1e-3, 1e3))
    low: float | None = setting(None, END)
    high: float | None = setting(None, END)
    max_iter: int = setting(500, MAX_ITER)
    tol: float = setting(1e-6, TOL)

    def fit(self, annotations: Annotations) -> Aggregation | RatingAggregation:
        """Runs the EM.

        Args:
            annotations: annotations of kind classification, classes in their order; or ratings. Not changed.

        Returns:
            For classes an `Aggregation`: posteriors and their most probable classes (of two the lower), `confusions` as
            the model has them, `reliability` the sharpness. For ratings a `RatingAggregation`: posterior means and
            deviations of the level; biases (anchored) in the labels' unit, that is times the deviation of the levels
            over that of the hidden numbers; no precisions; reliability `s_r^2 / (s_r^2 + 3.29)`, the share of the truth
            in the variance of what r goes by.

        Raises:
            ConfigError: an impossible scale.
            DataError: sequences, no annotations, over 100 different ratings, or one outside of the scale.
        """
        ratings = not annotations.label_kind.has_classes
        if ratings:
            check_ratings(annotations, "Ordinal thresholds", self.low, self.high)
            levels, labels = np.unique(annotations.labels, return_inverse=True)
            if len(levels) > MOST_LEVELS:
                raise DataError(
                    f"Ordinal thresholds are for at most {MOST_LEVELS} different ratings, got {len(levels):,}: round "
                    "them, or use 'rating-em'."
                )
        else:
            check_classification(annotations, "Ordinal thresholds")
            levels, labels = np.arange(annotations.num_classes, dtype=np.float64), annotations.labels
        model, history, converged = self._run(annotations, labels, len(levels))
        posterior = self._posterior(model, annotations, labels, len(levels))[0]
        between = _shares(model.thresholds)  # [G, K]
        classes = posterior @ between
        done: dict[str, Any] = {"history": tuple(history), "converged": converged, "num_iterations": len(history)}
        if not ratings:
            confusions = _confusions(model, between)
            params = Params.from_probabilities(confusions, PRIOR @ between)
            sharpness = np.exp(model.log_sharpness)
            return Aggregation.of(
                "ordinal", annotations, classes, classes.argmax(axis=1), params, reliability=sharpness, **done
            )
        estimates = classes @ levels
        variance = np.maximum(classes @ np.square(levels) - np.square(estimates), 0)
        level = between @ levels  # of every hidden number, whose deviation is one
        scale = float(np.sqrt(PRIOR @ np.square(level - PRIOR @ level)))
        counts = np.bincount(annotations.annotator_ids, minlength=annotations.num_annotators)
        biases = (model.bias - model.bias @ counts / len(annotations)) * scale
        square = np.exp(2 * model.log_sharpness)
        return RatingAggregation.of(
            "ordinal",
            annotations,
            estimates,
            np.sqrt(variance),
            square / (square + np.pi**2 / 3),
            biases=biases,
            **done,
        )

    def _run(
        self, annotations: Annotations, labels: NDArray[np.int64], num_levels: int
    ) -> tuple[_Model, list[float], bool]:
        shares = np.bincount(labels, minlength=num_levels) + 0.5
        below = np.cumsum(shares)[:-1] / shares.sum()
        spread = np.sqrt(1 + (np.pi**2 / 3) / START_SHARPNESS**2)  # of what an annotator goes by
        model = _Model(
            np.log(below / (1 - below)) * np.sqrt(3) / np.pi * spread,
            np.zeros(annotations.num_annotators),
            np.full(annotations.num_annotators, np.log(START_SHARPNESS)),
        )
        history: list[float] = []
        change = np.inf
        if num_levels < 2 or len(annotations) == 0:
            return model, history, True
        cells = (annotations.annotator_ids * num_levels + labels).astype(np.int64)
        rating = np.bincount(annotations.annotator_ids, minlength=annotations.num_annotators) > 0
        for _ in range(self.max_iter):
            posterior, likelihood = self._posterior(model, annotations, labels, num_levels)
            history.append(likelihood + self._prior(model, model.log_sharpness[rating].mean()).sum())
            change = np.inf if len(history) < 2 else (history[-1] - history[-2]) / len(annotations)
            if change <= self.tol:
                break
            counts = _sums(cells, posterior[annotations.task_ids], annotations.num_annotators * num_levels)
            counts = counts.reshape(-1, num_levels, len(GRID))
            # neither step lowers the expected objective
            model = self._thresholds_improved(self._annotators_improved(model, counts, rating), counts)
        if change > self.tol:
            warn_not_converged("Ordinal thresholds", self.max_iter, self.tol, change, "nats per annotation")
        return model, history, bool(change <= self.tol)

    def _posterior(
        self, model: _Model, annotations: Annotations, labels: NDArray[np.int64], num_levels: int
    ) -> tuple[NDArray[np.float64], float]:
        """Probabilities of the hidden numbers, [N, G], and the log-likelihood of all labels."""
        logs = np.tile(np.log(PRIOR), (annotations.num_tasks, 1))
        if num_levels > 1:
            table = np.log(_probabilities(model.edges()))
            logs += _sums(annotations.task_ids, table[annotations.annotator_ids, labels], len(logs))
        posterior, evidence = softmax(logs)
        return posterior, float(evidence.sum())

    def _prior(self, model: _Model, centre: float) -> NDArray[np.float64]:
        """Log-density of each annotator's numbers up to a constant, [R]; `centre` is log s of the crowd."""
        squares = np.square(model.bias / self.bias_deviation)
        return -(squares + np.square((model.log_sharpness - centre) / self.sharpness_deviation)) / 2

    def _annotators_improved(self, model: _Model, counts: NDArray[np.float64], rating: NDArray[np.bool_]) -> _Model:
        edges = model.edges()
        slopes = _slopes(edges)
        centre = model.log_sharpness[rating].mean()
        by_bias = np.broadcast_to(-np.exp(model.log_sharpness)[:, None, None], edges.shape)
        directions = (by_bias, edges)  # the other is by the logarithm of sharpness
        # d log P(l) of each direction: [2, R, K, G]
        scores = np.stack([_differences(slopes * each) for each in directions]) / _probabilities(edges)
        precisions = np.array([self.bias_deviation, self.sharpness_deviation]) ** -2.0
        gradient = np.einsum("rkg,drkg->rd", counts, scores)
        gradient -= precisions * np.stack([model.bias, model.log_sharpness - centre], axis=1)
        information = np.einsum("rkg,drkg,erkg->rde", counts, scores, scores) + np.diag(precisions)
        step = np.linalg.solve(information, gradient[..., None])[..., 0]
        step = np.clip(step, -1.0, 1.0)

        def stepped(size: NDArray[np.float64]) -> _Model:
            bias, sharpness = model.bias + size * step[:, 0], model.log_sharpness + size * step[:, 1]
            return _Model(model.thresholds, bias, sharpness)

        def objective(model: _Model) -> NDArray[np.float64]:
            """Of each annotator, the centre standing still: a mean that follows can only be better."""
            return np.einsum("rkg,rkg->r", counts, np.log(_probabilities(model.edges()))) + self._prior(model, centre)

        before, size = objective(model), np.ones(len(step))
        for halvings in range(9):
            worse = objective(stepped(size)) < before
            if not worse.any():
                break
            size = np.where(worse, size / 2 if halvings < 8 else 0, size)
        _, bias, sharpness = stepped(size)
        # annotators without labels are like the crowd
        sharpness = np.where(rating, sharpness, sharpness[rating].mean())
        return model._replace(bias=np.where(rating, bias, 0.0), log_sharpness=sharpness)

    def _thresholds_improved(self, model: _Model, counts: NDArray[np.float64]) -> _Model:
        edges = model.edges()
        weight = _slopes(edges) * np.exp(model.log_sharpness)[:, None, None]  # [R, K - 1, G]
        chances = _probabilities(edges)
        ratio, curve = counts / chances, counts / np.square(chances)
        # threshold k parts level k from level k + 1
        gradient = np.einsum("rkg,rkg->k", weight, ratio[:, :-1] - ratio[:, 1:])
        information = np.diag(np.einsum("rkg,rkg->k", np.square(weight), curve[:, :-1] + curve[:, 1:]))
        beside = -np.einsum("rkg,rkg->k", weight[:, :-1] * weight[:, 1:], curve[:, 1:-1])
        information += np.diag(beside, 1) + np.diag(beside, -1) + 1e-9 * np.eye(len(information))
        step = np.linalg.solve(information, gradient)

        def objective(thresholds: NDArray[np.float64]) -> float:
            if (np.diff(thresholds) <= 1e-6).any():
                return -np.inf
            return float((counts * np.log(_probabilities(model._replace(thresholds=thresholds).edges()))).sum())

        before, size = objective(model.thresholds), 1.0
        for _ in range(12):
            if objective(model.thresholds + size * step) >= before:
                return model._replace(thresholds=model.thresholds + size * step)
            size /= 2
        return model


def _sums(rows: NDArray[np.int64], values: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """Sums of values [A, G] that belong to the same row, [number, G]."""
    return np.stack([np.bincount(rows, column, number) for column in values.T], axis=1)


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return (1 + np.tanh(values / 2)) / 2


def _slopes(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    share = _sigmoid(edges)
    return share * (1 - share)


def _differences(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each level what its upper threshold has over its lower one, nothing beyond the outermost: [R, K, G]."""
    return np.diff(values, axis=1, prepend=0.0, append=0.0)


def _probabilities(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(level) of every annotator for every hidden number, [R, K, G]; above 0."""
    shares = np.diff(_sigmoid(edges), axis=1, prepend=0.0, append=1.0)
    shares = np.maximum(shares, SMALLEST)
    return shares / shares.sum(axis=1, keepdims=True)


def _shares(thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Which level each hidden number of the grid belongs to, [G, K]; a cell that a threshold cuts is shared out."""
    half = (GRID[1] - GRID[0]) / 2
    below = np.clip((thresholds - (GRID[:, None] - half)) / (2 * half), 0.0, 1.0)
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def _confusions(model: _Model, between: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(annotator says l | level k), [R, K, K]."""
    said = _probabilities(model.edges()) if len(model.thresholds) else np.ones((len(model.bias), 1, len(GRID)))
    joint = np.einsum("g,gk,rlg->rkl", PRIOR, between, said) + SMALLEST
    return joint / joint.sum(axis=2, keepdims=True)
