"""PreferenceMethod: the fit of all methods for preferences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import Aggregator, check_annotations, is_polars, warn_not_converged
from crowdzoo.aggregation.engine.comparisons import EQUAL, PairParams, Pairs, likelihood
from crowdzoo.aggregation.engine.lbfgs import maximize
from crowdzoo.aggregation.preferences.covariates import differences_of, standard_errors
from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.checks.constraints import MAX_ITER, PRIOR, TOL, Choice, setting
from crowdzoo.data.label_kinds import PREFERENCE
from crowdzoo.errors import BadRow, DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

TIES = ("davidson", "rao-kupper", "half")
VAGUE = 100.0  # variance of the prior of parameters that all annotators share


@dataclass(frozen=True)
class PreferenceMethod(Aggregator):
    """Base class of the methods for preferences, which maximise the posterior density by L-BFGS.

    Subclasses declare which parameters of `crowdzoo.aggregation.engine.comparisons` they fit, and add a prior for those
    of the annotators.

    Attributes:
        title: name of the method in messages.
        name: name of the method in `PREFERENCE_METHODS`.
        _fitted: names of the annotators' parameters that are fitted.
        _alternative: answer of an annotator who does not follow the scores; see `comparisons.ALTERNATIVES`.
        _first_odds: odds that an annotator follows the scores, at the start.
    """

    kind: ClassVar[str] = "preference"
    title: ClassVar[str]
    name: ClassVar[str]
    _fitted: ClassVar[tuple[str, ...]] = ()
    _alternative: ClassVar[str] = "none"
    _first_odds: ClassVar[float] = 1.0

    max_iter: int = setting(1000, MAX_ITER)
    tol: float = setting(1e-4, TOL)
    ties: str = setting("davidson", Choice(TIES))
    prior: float = setting(0.5, PRIOR)

    def fit(self, annotations: Annotations, initial: PreferenceAggregation | None = None) -> PreferenceAggregation:
        """Estimates scores and the parameters of the annotators.

        Time and memory of an iteration are proportional to the annotations.

        Args:
            annotations: preferences of R annotators for N tasks; not changed.
            initial: starting point instead of the tasks' wins: an earlier result, for tasks and annotators with the
                same names.

        Returns:
            Scores, ranks, and the annotators' parameters. `history` is the log-likelihood plus the log density of the
            priors, nats, up to a constant.

        Raises:
            DataError: there are no annotations, or not of kind preference, or `initial` is not a result for
                preferences.

        Warns:
            ConvergenceWarning: `max_iter` was reached.
        """
        return self._fit(annotations, initial, {})

    def _fit(
        self, annotations: Annotations, initial: PreferenceAggregation | None, covariates: Mapping[str, ArrayLike]
    ) -> PreferenceAggregation:
        """Fits; `covariates` have the values for both sides, [A, 2], by name."""
        check_annotations(annotations, self.title, PREFERENCE, "comparison")
        if initial is not None and not isinstance(initial, PreferenceAggregation):
            raise DataError(f"{self.title}: the earlier result is a {type(initial).__name__}, not one for preferences.")
        pairs, form = self._pairs(annotations)
        num_answers = 2 if form == "none" else 3
        differences = differences_of(annotations, covariates)
        units = np.sqrt((differences**2).mean(axis=0))
        if covariates:
            rows = np.arange(len(differences))
            if len(pairs.left) > len(rows):  # "equal" is half a win for each
                rows = np.append(rows, np.flatnonzero(annotations.labels == EQUAL))
            pairs = replace(pairs, differences=(differences / units)[rows])
        sizes = annotations.num_tasks, annotations.num_annotators, num_answers, len(units)
        start = self._start(PairParams.neutral(*sizes), pairs)
        shared = np.array([self._has_bias, form != "none"], float)
        if initial is not None:
            start = _continued(start, initial, annotations, self._fitted, shared)
        free = ("scores", *self._fitted, "common", "effects")

        def unpacked(point: NDArray[np.float64]) -> PairParams:
            sizes = [getattr(start, name).size for name in free]
            parts = np.split(point, np.cumsum(sizes)[:-1])
            return replace(
                start,
                **{name: part.reshape(getattr(start, name).shape) for name, part in zip(free, parts, strict=True)},
            )

        def packed(params: PairParams) -> NDArray[np.float64]:
            return np.concatenate([getattr(params, name).ravel() for name in free])

        def objective(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            params = unpacked(point)
            value, gradient = likelihood(pairs, params, form, self._alternative)
            value += self._prior(params, gradient)
            gradient.common[:] *= shared
            return value, packed(gradient)

        scale = packed(self._scale(start, pairs))
        optimum = maximize(objective, packed(start), scale, max_iter=self.max_iter, tol=self.tol)
        if not optimum.converged:
            warn_not_converged(self.title, self.max_iter, self.tol, optimum.slope, "slope of the log-likelihood")
        params = unpacked(optimum.point)
        log_likelihood, _ = likelihood(pairs, params, form, self._alternative)
        errors = standard_errors(lambda point: objective(point)[1], optimum.point, scale, len(units))
        ends = zip(covariates, params.effects / units, errors / units, strict=True)
        return PreferenceAggregation.of(
            self.name,
            annotations,
            params,
            form,
            (*self._fitted, *(["common"] if self._has_bias else [])),
            log_likelihood=log_likelihood,
            effects={name: (float(effect), float(error)) for name, effect, error in ends},
            **optimum.facts,
        )

    def partial_fit(
        self, annotations: Annotations, earlier: PreferenceAggregation | None = None
    ) -> PreferenceAggregation:
        """Fits all annotations, old and new, starting where an earlier fit ended.

        At convergence the result is that of `fit` to all annotations, in fewer iterations, if both reach the same
        maximum: `BradleyTerry` has only one, other methods may have several.

        Unlike a scikit-learn estimator, an aggregator has no state between calls: the state is `earlier`.

        Args:
            annotations: all preferences so far; tasks and annotators may differ from those of `earlier`.
            earlier: result of any method for preferences; None for the first call, which is `fit`.

        Returns:
            As `fit`.

        Raises:
            DataError: as `fit`.
        """
        return self.fit(annotations, initial=earlier)

    def fit_predict(self, data: Any, **known: Any) -> Any:
        """As `Aggregator.fit_predict`; the index of a pandas series of scores has no name, as in crowd-kit."""
        answers = super().fit_predict(data, **known)
        return answers if is_polars(data) else answers.rename_axis(None)

    def _readable(self, frame: Any) -> Any:
        return _with_sides(frame)

    @property
    def _has_bias(self) -> bool:
        """Whether a position bias shared by all annotators is fitted."""
        return "biases" in self._fitted

    def _pairs(self, annotations: Annotations) -> tuple[Pairs, str]:
        """Converts annotations to comparisons for the kernel, and returns the form of their answers."""
        assert annotations.right_ids is not None
        columns = (annotations.task_ids, annotations.right_ids, annotations.annotator_ids, annotations.labels)
        equal = columns[-1] == EQUAL
        if not equal.any() or self.ties != "half":
            return Pairs(*columns, np.ones(len(equal))), self.ties if equal.any() else "none"
        rows = np.concatenate([np.arange(len(equal)), np.flatnonzero(equal)])
        twice = np.concatenate([equal, np.ones(equal.sum(), bool)])
        left, right, annotators, answers = (column[rows] for column in columns)
        answers[: len(equal)][equal], answers[len(equal) :] = 0, 1
        return Pairs(left, right, annotators, answers, np.where(twice, 0.5, 1.0)), "none"

    def _start(self, params: PairParams, pairs: Pairs) -> PairParams:
        """First parameters; scores are the log odds of a task's wins, with one added to each count."""
        number = len(params.scores)
        won, lost = np.ones(number), np.ones(number)
        for mine, answer in ((pairs.left, 0), (pairs.right, 1)):
            for total, share in ((won, pairs.answers == answer), (lost, pairs.answers == 1 - answer)):
                total += np.bincount(mine, pairs.weights * share, number)
        shares = np.full(len(params.shares), np.log(self._first_odds))
        return replace(params, scores=np.log(won / lost), shares=shares)

    def _scale(self, params: PairParams, pairs: Pairs) -> PairParams:
        """A rough inverse of the curvature along each axis; a comparison adds at most a quarter."""
        tasks = np.bincount(np.concatenate([pairs.left, pairs.right]), minlength=len(params.scores))
        annotators = 1 / (1 + np.bincount(pairs.annotators, minlength=len(params.slopes)) / 4)
        return PairParams(
            1 / (0.1 + self.prior / 2 + tasks / 4),
            *(annotators,) * 4,
            np.repeat(annotators[:, None], params.guesses.shape[1], axis=1),
            np.full(2, 1 / (1 + len(pairs.left) / 4)),
            np.full(len(params.effects), 1 / (1 + len(pairs.left) / 4)),
        )

    def _prior(self, params: PairParams, gradient: PairParams) -> float:
        """Log density of the priors, up to a constant; its slopes are added to the gradient."""
        value = virtual_task(params.scores, gradient.scores, self.prior)
        value += normal(params.common, gradient.common, 0.0, VAGUE)
        value += normal(params.effects, gradient.effects, 0.0, VAGUE)
        return value + self._annotator_prior(params, gradient)

    def _annotator_prior(self, params: PairParams, gradient: PairParams) -> float:
        """As `_prior`, for the annotators' parameters."""
        return 0.0


def _with_sides(data: Any) -> Any:
    """Converts preferences that name the better task, as in crowd-kit, to labels "left" and "right"."""
    if not {"left", "right", "label"} <= {*map(str, getattr(data, "columns", ()))}:
        return data  # `from_frame` checks it
    left, right, label = (list(data[name]) for name in ("left", "right", "label"))
    if {*label} <= {"left", "right", "equal"}:
        return data
    sides = {True: "left", False: "right"}
    bad = []
    for row, (left_task, right_task, answer) in enumerate(zip(left, right, label, strict=True)):
        if answer not in (left_task, right_task):
            reason = f"is neither the task on the left, {left_task!r}, nor on the right, {right_task!r}."
            bad.append(BadRow("frame", row, "label", answer, reason))
    if bad:
        raise DataError(f"frame: {len(bad):,} bad row{'s' * (len(bad) > 1)}.", bad)
    named = [sides[answer == left_task] for left_task, answer in zip(left, label, strict=True)]
    return {**{str(name): list(data[name]) for name in data.columns}, "label": named}


def _continued(
    start: PairParams,
    earlier: PreferenceAggregation,
    annotations: Annotations,
    fitted: Sequence[str],
    shared: NDArray[np.float64],
) -> PairParams:
    """First parameters with those of an earlier result, for the tasks and annotators it has.

    Args:
        start: first parameters; those that are not fitted are unchanged.
        earlier: result of a method for preferences.
        annotations: annotations to fit.
        fitted: names of the annotators' parameters that are fitted.
        shared: 1 for elements of `common` that are fitted, else 0, [2].
    """

    def taken(values: NDArray[np.float64], found: NDArray[np.float64] | None, names: str) -> NDArray[np.float64]:
        if found is None or found.shape[1:] != values.shape[1:]:
            return values
        place = {name: code for code, name in enumerate(getattr(earlier, names).tolist())}
        old = np.array([place.get(name, -1) for name in getattr(annotations, names).tolist()], np.int64)
        values = values.copy()
        values[old >= 0] = found[old[old >= 0]]
        return values

    shares = None if earlier.shares is None else np.clip(earlier.shares, 1e-12, 1 - 1e-12)
    known = {
        "slopes": earlier.slopes,
        "biases": earlier.biases,
        "tie_biases": earlier.tie_biases,
        "shares": None if shares is None else np.log(shares / (1 - shares)),
        "guesses": None if earlier.guesses is None else np.log(np.maximum(earlier.guesses, 1e-12)),
    }
    return replace(
        start,
        scores=taken(start.scores, earlier.scores, "tasks"),
        common=np.array([earlier.bias, earlier.tie]) * shared,
        **{name: taken(getattr(start, name), known[name], "annotators") for name in fitted},
    )


def virtual_task(scores: NDArray[np.float64], gradient: NDArray[np.float64], prior: float) -> float:
    """Log-likelihood of `prior` wins and losses of each task against one of score 0; adds slopes to the gradient."""
    size = np.abs(scores)
    gradient -= prior * np.tanh(scores / 2)
    return -prior * float((size + 2 * np.log1p(np.exp(-size))).sum())


def normal(values: NDArray[np.float64], gradient: NDArray[np.float64], mean: float, variance: float) -> float:
    """Log density of a normal prior, up to a constant; its slopes are added to the gradient."""
    gradient -= (values - mean) / variance
    return -float(np.square(values - mean).sum()) / (2 * variance)


def beta(logits: NDArray[np.float64], gradient: NDArray[np.float64], counts: Sequence[float]) -> float:
    """Log of p^a (1 - p)^b for probabilities with these log odds; its slopes are added to the gradient.

    Args:
        logits: log odds, [R].
        gradient: the gradient, [R].
        counts: a and b.
    """
    yes, no = counts
    gradient += yes - (yes + no) / (1 + np.exp(-np.clip(logits, -700, 700)))
    return -float((yes * np.logaddexp(0, -logits) + no * np.logaddexp(0, logits)).sum())
