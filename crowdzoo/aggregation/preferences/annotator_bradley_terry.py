"""Bradley-Terry with a slope, a position bias and a taste for "equal" of each annotator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from crowdzoo.aggregation.engine.comparisons import PairParams
from crowdzoo.aggregation.preferences.preference_method import PreferenceMethod, normal
from crowdzoo.checks.constraints import Number, setting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
    from crowdzoo.data.annotations import Annotations

VARIANCE = Number(1e-9, 1e12)


@dataclass(frozen=True)
class AnnotatorBradleyTerry(PreferenceMethod):
    """Annotators who differ in how well they discriminate, in their position bias and in how often they say "equal".

    `BradleyTerry` with the difference `a[r] (s[i] - s[j]) + b + b[r]` instead of `s[i] - s[j]`, and with the parameter
    of ties `t + t[r]`: a two-parameter logistic model of item response theory with the annotators as items. The slope
    a[r] has a normal prior around 1; b[r] and t[r] have normal priors around 0; b and t are shared by all annotators. A
    slope near 0 is an annotator whose answers tell nothing, one below 0 answers the wrong way round.

    Args:
        max_iter: see `BradleyTerry`.
        tol: see `BradleyTerry`.
        ties: see `BradleyTerry`.
        prior: see `BradleyTerry`.
        slope_variance: of the prior of a[r].
        bias_variance: of the prior of b[r].
        tie_variance: of the prior of t[r].

    Raises:
        ConfigError: a setting that is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import AnnotatorBradleyTerry
        >>> left, right, annotator = ["a", "a", "b"] * 3, ["b", "c", "c"] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> answers = ["left"] * 6 + ["right"] * 3
        >>> preferences = Annotations.from_arrays(left, annotator, answers, right=right, kind="preference")
        >>> result = AnnotatorBradleyTerry().fit(preferences)
        >>> str(result.tasks[result.scores.argmax()])  # the best task
        'a'
        >>> str(result.annotators[result.slopes.argmin()])  # whose answers follow the scores least
        'cem'

    Needs:
        Tasks that comparisons connect, and annotators with several comparisons each.

    Source:
        R. Bradley, M. Terry: Biometrika 39, 1952, with the two-parameter logistic model of item response theory for the
        annotators.
    """

    title: ClassVar[str] = "Annotator Bradley-Terry"
    name: ClassVar[str] = "annotator-bradley-terry"
    _fitted: ClassVar[tuple[str, ...]] = ("slopes", "biases", "tie_biases")

    slope_variance: float = setting(0.25, VARIANCE)
    bias_variance: float = setting(0.25, VARIANCE)
    tie_variance: float = setting(1.0, VARIANCE)

    def fit(
        self,
        annotations: Annotations,
        initial: PreferenceAggregation | None = None,
        covariates: Mapping[str, ArrayLike] | None = None,
    ) -> PreferenceAggregation:
        """See `PreferenceMethod.fit`; and measures what sways annotators apart from the tasks.

        A covariate with the values x[i] and x[j] of the two sides adds `e (x[i] - x[j])` to the difference, with one
        effect e for all annotators: how much a longer answer is preferred, or one by the judge's own model.

        Args:
            annotations: see `PreferenceMethod.fit`.
            initial: likewise.
            covariates: name -> numbers of the left and of the right side of each comparison, [A, 2], in the order of
                the annotations. They have to differ between the comparisons of a task.

        Returns:
            As `PreferenceMethod.fit`, with `effects`. Scores are those of sides with equal covariates.

        Raises:
            DataError: as `PreferenceMethod.fit`; or a covariate that does not fit the annotations, or whose effect they
                cannot tell.
        """
        return self._fit(annotations, initial, covariates or {})

    def _annotator_prior(self, params: PairParams, gradient: PairParams) -> float:
        return (
            normal(params.slopes, gradient.slopes, 1.0, self.slope_variance)
            + normal(params.biases, gradient.biases, 0.0, self.bias_variance)
            + normal(params.tie_biases, gradient.tie_biases, 0.0, self.tie_variance)
        )
