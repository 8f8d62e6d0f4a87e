"""PreferenceMethod: the fit that all methods for preferences share."""

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
VAGUE = 100.0  # variance of the prior of what all annotators share


@dataclass(frozen=True)
class PreferenceMethod(Aggregator):
    """Base of the methods for preferences: the highest posterior density, found by L-BFGS.

    Subclasses say which parameters of `crowdzoo.aggregation.engine.comparisons` they fit, and give those of the
    annotators a prior.

    Attributes:
        title: the method's name in messages.
        name: the method's name in `PREFERENCE_METHODS`.
        _fitted: names of the parameters of annotators that are fitted.
        _alternative: what an annotator answers who does not follow the scores; see `comparisons.ALTERNATIVES`.
        _first_odds: odds that an annotator follows the scores, where the search begins.
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
        """Finds scores and what the method knows of the annotators.

        An iteration takes time and memory in proportion to the annotations.

        Args:
            annotations: preferences of R annotators about N tasks; not changed.
            initial: where the search begins instead of the tasks' wins: an earlier result, for the tasks and annotators
                that it has by name.

        Returns:
            Scores, ranks, and the annotators' parameters. `history` is the log-likelihood plus the log density of the
            priors, nats, up to a constant.

        Raises:
            DataError: annotations are missing or not of kind preference, or `initial` is not a result of a method
                for preferences.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        return self._fit(annotations, initial, {})

    def _fit(
        self, annotations: Annotations, initial: PreferenceAggregation | None, covariates: Mapping[str, ArrayLike]
    ) -> PreferenceAggregation:
        """See `fit`; `covariates` have the values of both sides, [A, 2], by name."""
        check_annotations(annotations, self.title, PREFERENCE, "comparison")
        if initial is not None and not isinstance(initial, PreferenceAggregation):
            raise DataError(f"{self.title}: the earlier result is a {type(initial).__name__}, not one of preferences.")
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
            warn_not_converged(self.title, self.max_iter, self.tol, optimum.slope, "nats per unit of a parameter")
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
        """Fits all annotations, old and new, beginning where an earlier fit ended.

        At convergence the result is that of `fit` to all annotations, in fewer iterations, if both reach the same
        maximum: `BradleyTerry` has one only, and the other methods may have several.

        An aggregator keeps nothing between calls, unlike an estimator of scikit-learn: the state is `earlier`.

        Args:
            annotations: all preferences so far; tasks and annotators may be others than those of `earlier`.
            earlier: result of this or another method for preferences; None, for the first time: `fit`.

        Returns:
            As `fit`.

        Raises:
            DataError: as `fit`.
        """
        return self.fit(annotations, initial=earlier)

    def fit_predict(self, data: Any, **known: Any) -> Any:
        """As `Aggregator.fit_predict`; a pandas series of scores has an index without a name, as crowd-kit's."""
        answers = super().fit_predict(data, **known)
        return answers if is_polars(data) else answers.rename_axis(None)

    def _readable(self, frame: Any) -> Any:
        return _with_sides(frame)

    @property
    def _has_bias(self) -> bool:
        """Whether all annotators share a position bias that is fitted."""
        return "biases" in self._fitted

    def _pairs(self, annotations: Annotations) -> tuple[Pairs, str]:
        """The comparisons as the kernel takes them, and the form of their answers."""
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
        """Where the search begins; scores are the log odds of a task's wins, each count plus one."""
        number = len(params.scores)
        won, lost = np.ones(number), np.ones(number)
        for mine, answer in ((pairs.left, 0), (pairs.right, 1)):
            for total, share in ((won, pairs.answers == answer), (lost, pairs.answers == 1 - answer)):
                total += np.bincount(mine, pairs.weights * share, number)
        shares = np.full(len(params.shares), np.log(self._first_odds))
        return replace(params, scores=np.log(won / lost), shares=shares)

    def _scale(self, params: PairParams, pairs: Pairs) -> PairParams:
        """A rough inverse of the curvature along each axis; a comparison adds a quarter at most."""
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
        """As `_prior`, of the annotators' parameters."""
        return 0.0


def _with_sides(data: Any) -> Any:
    """Preferences that name the better task, as crowd-kit has them, with "left" and "right" as labels."""
    if not {"left", "right", "label"} <= {*map(str, getattr(data, "columns", ()))}:
        return data  # `from_frame` takes or refuses it
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
    """The parameters of an earlier result in the place of first ones, for the tasks and annotators that it has.

    Args:
        start: first parameters; those that are not fitted stay.
        earlier: result of a method for preferences.
        annotations: what is fitted.
        fitted: names of the annotators' parameters that are fitted.
        shared: 1 for those of `common` that are fitted, else 0, [2].
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
    """Log-likelihood of `prior` wins and losses of each task against one of score 0; slopes go to the gradient."""
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
        logits: log odds [R].
        gradient: [R].
        counts: a and b.
    """
    yes, no = counts
    gradient += yes - (yes + no) / (1 + np.exp(-np.clip(logits, -700, 700)))
    return -float((yes * np.logaddexp(0, -logits) + no * np.logaddexp(0, logits)).sum())
