"""CrowdBT: annotators who answer the wrong way round at times."""

from dataclasses import dataclass
from typing import ClassVar

from crowdzoo.aggregation.engine.comparisons import PairParams
from crowdzoo.aggregation.preferences.preference_method import PreferenceMethod, beta
from crowdzoo.checks.constraints import PRIOR, setting


@dataclass(frozen=True)
class CrowdBT(PreferenceMethod):
    """Annotators who follow the scores with a probability of their own, and otherwise answer the wrong way round.

    Chen, Bennett, Collins-Thompson and Horvitz, "Pairwise ranking aggregation in a crowdsourced setting", WSDM 2013,
    eq. 5: annotator r prefers i to j with probability `eta[r] p + (1 - eta[r]) (1 - p)`, p that of `BradleyTerry`; an
    eta below one half is an annotator who answers the wrong way round more often than not. `prior` is the paper's
    virtual node. Not active: it does not choose which pair to ask about.

    Args:
        max_iter: see `BradleyTerry`.
        tol: see `BradleyTerry`.
        ties: see `BradleyTerry`.
        prior: see `BradleyTerry`.
        right: pseudo-count of answers of each annotator that follow the scores.
        wrong: pseudo-count of answers of each annotator that are the wrong way round.

    Raises:
        ConfigError: a setting that is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import CrowdBT
        >>> left, right, annotator = ["a", "a", "b"] * 3, ["b", "c", "c"] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> answers = ["left"] * 6 + ["right"] * 3
        >>> result = CrowdBT().fit(Annotations.from_arrays(left, annotator, answers, right=right, kind="preference"))
        >>> str(result.tasks[result.scores.argmax()])  # the best task
        'a'
        >>> str(result.annotators[result.shares.argmin()])  # who follows the scores least often
        'cem'

    Needs:
        Tasks that comparisons connect, and annotators with several comparisons each.

    Source:
        X. Chen, P. Bennett, K. Collins-Thompson, E. Horvitz: Pairwise Ranking Aggregation in a Crowdsourced Setting.
        WSDM 2013, equation 5.
    """

    title: ClassVar[str] = "CrowdBT"
    name: ClassVar[str] = "crowd-bt"
    _fitted: ClassVar[tuple[str, ...]] = ("shares",)
    _alternative: ClassVar[str] = "reversed"
    _first_odds: ClassVar[float] = 4.0

    right: float = setting(4.0, PRIOR)
    wrong: float = setting(1.0, PRIOR)

    def _annotator_prior(self, params: PairParams, gradient: PairParams) -> float:
        return beta(params.shares, gradient.shares, (self.right, self.wrong))
