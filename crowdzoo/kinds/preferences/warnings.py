"""Warnings of a page on preferences, about the order, the graph of pairs, and the sides."""

from __future__ import annotations

from collections.abc import Iterator

from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.kinds.page_parts import Figures, PageWarning, above_chance, percent, warning
from crowdzoo.kinds.preferences.judged import ONE_SIDE
from crowdzoo.quality.krippendorff import Alpha

LEAST_COMPARED = 5  # judgments per task; tasks with fewer are counted in a warning
LEAST_TRIADS = 20
CIRCLES, MANY_CIRCLES = 0.15, 0.2  # share of circular triads from which the page warns; 0.25 is chance
LEANS, CROWD_LEANS = 0.1, 0.05  # distance of the crowd's share of left from one half: serious, and notable
MIXED = 0.1  # distance of that share from one half, up to which sides are mixed
CONSISTENT = 0.8  # share of pairs with the same answer in both orders, below which the page warns
SEPARATE, HALF = 0.7, 0.5  # share of the variance of the scores that is not error, below which the page warns


def of_order(alpha: Alpha | None, overall: Figures, aggregation: PreferenceAggregation) -> Iterator[PageWarning]:
    """Warnings about agreement on pairs, agreement with the order of the others, and error of the scores."""
    low = overall["order_agreement_low"]
    if alpha is None and overall["agreement"] is not None:
        yield warning("pairs-equal", True)
    elif alpha is None and low is None:
        yield warning("pairs-once", True)
    elif alpha is not None and not above_chance(alpha):
        yield warning("pairs-by-chance", True)
    if low is not None and overall["order_agreement_high"] < 0.5:
        fix = "sort the annotators by the method's slope: ask those below 0, and those above it, what they go by"
        if aggregation.slopes is None:
            fix = "use --method annotator-bradley-terry, which says by its slopes who contradicts whom"
        yield warning("order-contradicted", True, fix=fix)
    elif low is not None and low <= 0.5:
        yield warning("order-by-chance", True)
    separation = overall["separation"]
    one_sided = overall["one_sided"] is not None and aggregation.position_biases() is not None
    if separation is not None and separation < SEPARATE and not one_sided:  # the one-sided warning explains it
        yield warning("scores", separation < HALF, share=percent(1 - separation))
    share, triads = overall["circular_share"], overall["triads"]
    if share is not None and triads >= LEAST_TRIADS and share >= CIRCLES:
        yield warning("circles", share >= MANY_CIRCLES, share=percent(share), triads=triads)


def of_graph(overall: Figures) -> Iterator[PageWarning]:
    """Warnings about unlinked groups, and tasks with few comparisons."""
    compared = max(overall["tasks_compared"], 1)
    if overall["groups"] > 1:
        yield warning("groups", True, groups=overall["groups"])
    if few := overall["tasks_with_few"]:
        share = few / compared
        yield warning("few-compared", share > 0.5, few=few, share=percent(share), least=LEAST_COMPARED)
    if one_way := overall["tasks_all_one_way"]:
        fix = "compare them with the best and the worst of the others" if compared > one_way else "compare more tasks"
        yield warning("one-way", number=one_way, fix=fix)


def of_sides(overall: Figures, aggregation: PreferenceAggregation) -> Iterator[PageWarning]:
    """Warnings about a crowd that prefers a side, and annotators who answer by side."""
    ahead = overall["left_ahead"]
    fix = "show each pair in both orders, or put the sides of half of the pairs the other way round at random"
    if (share := overall["one_sided"]) is not None:
        side, other, part = ("left", "right", share) if share > 0.5 else ("right", "left", 1 - share)
        yield warning("one-side", True, side=side, other=other, share=percent(part))
        return
    if ahead is not None and not ONE_SIDE <= ahead <= 1 - ONE_SIDE:
        side, share = ("left", ahead) if ahead > 0.5 else ("right", 1 - ahead)
        yield warning("better-on-a-side", True, side=side, share=percent(share), fix=fix)
    # Annotators who answer by side have their own warning; if there are others, those decide here
    deciding = "left_share" if overall["left_share_of_others"] is None else "left_share_of_others"
    if _leans(overall, "left_share") and _leans(overall, deciding):
        left, rest = overall["left_share"], overall[deciding]
        side = "left" if rest > 0.5 else "right"
        part, of_others = (left, rest) if rest > 0.5 else (1 - left, 1 - rest)
        remark = ""
        if overall["answer_by_side"] and deciding != "left_share":
            remark = f", and in {percent(of_others)} without the {overall['answer_by_side']:,} who answer by the side"
        if ahead is None or abs(ahead - 0.5) <= MIXED:
            fix = "ask annotators to read both before they answer; scores are corrected for it"
            if aggregation.position_biases() is None:
                fix = "ask annotators to read both before they answer, and use --method annotator-bradley-terry"
        serious = abs(rest - 0.5) >= LEANS
        yield warning("leaning", serious, side=side, share=percent(part), others=remark, fix=fix)
    same = overall["consistent_share"]
    if same is not None and overall["consistent_share_high"] < CONSISTENT:
        yield warning("inconsistent", same < 0.5, number=overall["both_orders"], share=percent(1 - same))


def _leans(overall: Figures, name: str) -> bool:
    """Whether a share of left differs from one half significantly and by enough to matter."""
    share, low, high = overall[name], overall[f"{name}_low"], overall[f"{name}_high"]
    return share is not None and not low <= 0.5 <= high and abs(share - 0.5) >= CROWD_LEANS
