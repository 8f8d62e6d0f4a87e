"""Warnings of a page on preferences: of their order, of the graph of pairs, and of the sides on which tasks stood."""

from __future__ import annotations

from typing import Any

from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.kinds.page_parts import Warned, above_chance, percent
from crowdzoo.kinds.preferences.judged_sides import ONE_SIDE
from crowdzoo.quality.krippendorff import Alpha

LEAST_COMPARED = 5  # judgments of a task; with fewer, the warning counts it
LEAST_TRIADS = 20
CIRCLES, MANY_CIRCLES = 0.15, 0.2  # share of circular triads from which the page warns; 0.25 is chance
LEANS, CROWD_LEANS = 0.1, 0.05  # distance of the crowd's share of left from one half: serious, and to check
MIXED = 0.1  # distance of that share from one half, up to which the sides are mixed
CONSISTENT = 0.8  # share of pairs with the same answer in both orders, below which the page warns
SEPARATE, HALF = 0.7, 0.5  # share of the variance of the scores that is no error, below which the page warns


def of_order(alpha: Alpha | None, overall: dict[str, Any], aggregation: PreferenceAggregation) -> list[Warned]:
    """Agreement on pairs, with the order by the others, and what error is in the scores."""
    found, low = [], overall["order_agreement_low"]
    columns = "check that left, right and label are the right columns (--columns), then the instructions"
    if alpha is None and overall["agreement"] is not None:
        fix = "ask which of the two is better even where they are close, or compare tasks that differ more"
        found.append(Warned(True, "agreement", "cannot be measured, because all call the tasks of a pair equal", fix))
    elif alpha is None and low is None:
        fix = "have a part of the pairs judged by a second annotator"
        found.append(Warned(True, "agreement", "cannot be measured: nobody judged what others judged", fix))
    elif alpha is not None and not above_chance(alpha):
        found.append(Warned(True, "agreement", "is not clearly above that of random judgments", columns))
    if low is not None and overall["order_agreement_high"] < 0.5:
        finding = "judgments contradict the order by the others' judgments, so two groups may contradict each other"
        fix = "sort the annotators by the method's slope: ask those below 0, and those above it, what they go by"
        if aggregation.slopes is None:
            fix = "take --method annotator-bradley-terry, which says by its slopes who contradicts whom"
        found.append(Warned(True, "order", finding, fix, "annotators"))
    elif low is not None and low <= 0.5:
        finding = "judgments do not agree with the order by the others' judgments clearly more often than by chance"
        found.append(Warned(True, "order", finding, columns))
    separation = overall["separation"]
    one_sided = overall["one_sided"] is not None and aggregation.position_biases() is not None
    if separation is not None and separation < SEPARATE and not one_sided:  # that warning says why
        finding = f"{percent(1 - separation)} of their variance is error, so the order is largely chance"
        fix = "collect more judgments of each task, of pairs with close scores first"
        found.append(Warned(separation < HALF, "scores", finding, fix, "tasks"))
    share, triads = overall["circular_share"], overall["triads"]
    if share is not None and triads >= LEAST_TRIADS and share >= CIRCLES:
        finding = (
            f"by majorities {percent(share)} of the {triads:,} triads of tasks go round in a circle, where chance has "
            "25 %"
        )
        fix = "have pairs judged by more annotators; where circles stay, ask about one quality at a time"
        found.append(Warned(share >= MANY_CIRCLES, "circles", finding, fix, "tasks"))
    return found


def of_graph(overall: dict[str, Any]) -> list[Warned]:
    """Groups that nothing links, and tasks with few comparisons."""
    found, compared = [], max(overall["tasks_compared"], 1)
    if overall["groups"] > 1:
        finding = (
            f"fall into {overall['groups']:,} groups that no comparison links, so that scores of different groups do "
            "not compare"
        )
        fix = "compare some tasks of one group with some of another, or read each group by itself (column group)"
        found.append(Warned(True, "tasks", finding, fix, "tasks"))
    if few := overall["tasks_with_few"]:
        finding = f"{few:,} ({percent(few / compared)}) have fewer than {LEAST_COMPARED} judgments"
        fix = "compare them with tasks of a similar score, or leave them out of the order"
        found.append(Warned(few / compared > 0.5, "tasks", finding, fix, "tasks"))
    if one_way := overall["tasks_all_one_way"]:
        finding = f"{one_way:,} won all comparisons, or lost all, so that only the prior keeps their scores finite"
        fix = "compare them with the best and the worst of the others" if compared > one_way else "compare more tasks"
        found.append(Warned(False, "tasks", finding, fix, "tasks"))
    return found


def of_sides(overall: dict[str, Any], aggregation: PreferenceAggregation) -> list[Warned]:
    """A crowd that prefers a side, and annotators who answer by it."""
    found, ahead = [], overall["left_ahead"]
    fix = "show each pair in both orders, or put the sides of half of the pairs the other way round at random"
    if (share := overall["one_sided"]) is not None:
        side, part = ("left", share) if share > 0.5 else ("right", 1 - share)
        finding = (
            f"{percent(part)} of the judgments prefer the {side}, and annotators did not judge pairs in both orders, "
            "so that quality and a preference for the side cannot be told apart"
        )
        then = (
            "show each pair in both orders; where the file has the preferred task always there, say so by "
            f"--columns winner={side},loser={'right' if side == 'left' else 'left'}, or take --method bradley-terry"
        )
        return [Warned(True, "sides", finding, then)]
    if ahead is not None and not ONE_SIDE <= ahead <= 1 - ONE_SIDE:
        side, share = ("left", ahead) if ahead > 0.5 else ("right", 1 - ahead)
        finding = (
            f"the better task stands on the {side} in {percent(share)} of the judgments, so that a position bias can "
            "hardly be told from quality"
        )
        found.append(Warned(True, "sides", finding, f"{fix}; aggregate with --method bradley-terry until then"))
    # Annotators who answer by the side have a warning of their own: where there are others, these decide
    deciding = "left_share" if overall["left_share_of_others"] is None else "left_share_of_others"
    if _leans(overall, "left_share") and _leans(overall, deciding):
        left, others = overall["left_share"], overall[deciding]
        side = "left" if others > 0.5 else "right"
        part, of_others = (left, others) if others > 0.5 else (1 - left, 1 - others)
        finding = f"the crowd prefers the {side} in {percent(part)} of the judgments where the sides are balanced"
        if overall["answer_by_side"] and deciding != "left_share":
            finding += f", and in {percent(of_others)} without the {overall['answer_by_side']:,} who answer by the side"
        if ahead is None or abs(ahead - 0.5) <= MIXED:
            fix = "ask annotators to read both before they answer; scores are corrected for it"
            if aggregation.position_biases() is None:
                fix = "ask annotators to read both before they answer, and take --method annotator-bradley-terry"
        found.append(Warned(abs(others - 0.5) >= LEANS, "sides", finding, fix, "annotators"))
    same = overall["consistent_share"]
    if same is not None and overall["consistent_share_high"] < CONSISTENT:
        then = "sort the annotators by this share, and ask those with a low one what they go by"
        finding = (
            f"an annotator judged a pair in both orders {overall['both_orders']:,} times, and gave another answer in "
            f"{percent(1 - same)} of them"
        )
        found.append(Warned(same < 0.5, "sides", finding, then, "annotators"))
    return found


def _leans(overall: dict[str, Any], name: str) -> bool:
    """Whether a share of left differs from one half clearly, and by enough to matter."""
    share, low, high = overall[name], overall[f"{name}_low"], overall[f"{name}_high"]
    return share is not None and not low <= 0.5 <= high and abs(share - 0.5) >= CROWD_LEANS
