"""DawidSkeneWithoutSpammers: Dawid-Skene, once with all annotators and once without spammers."""

from dataclasses import dataclass, replace

from crowdzoo import register
from crowdzoo.aggregation import Aggregator, DawidSkene
from crowdzoo.checks import PRIOR, Number, setting
from crowdzoo.quality import spammer_scores


@register("aggregator", "dawid-skene-without-spammers")
@dataclass(frozen=True)
class DawidSkeneWithoutSpammers(Aggregator):
    """Dawid-Skene on the annotations of those whose spammer score, by a first Dawid-Skene, is above a threshold.

    The score is 0 for an annotator whose labels do not depend on the class, and 1 for one who tells all classes apart.
    Tasks that only spammers annotated get the class prior.

    Args:
        threshold: annotators with a lower score, or the same, are left out; none is, if it would leave out all.
        prior: of both fits of `DawidSkene`.

    Source:
        V. C. Raykar, S. Yu: Eliminating Spammers and Ranking Annotators for Crowdsourced Labeling Tasks. JMLR 13, 2012;
        as a baseline in T. Lefort et al. (WAUM, TMLR 2024).

    Needs:
        Ten labels or more of every annotator and class.
    """

    threshold: float = setting(0.1, Number(0, 1))
    prior: float = setting(0.01, PRIOR)

    def fit(self, annotations):
        """Aggregates twice; the second result has the confusions of those who stay."""
        method = DawidSkene(prior=self.prior)
        first = method.fit(annotations)
        if annotations.num_classes < 2:
            return replace(first, method="dawid-skene-without-spammers")
        rows = spammer_scores(first)[annotations.annotator_ids] > self.threshold
        result = method.fit(annotations.select_rows(rows)) if rows.any() else first
        return replace(result, method="dawid-skene-without-spammers")
