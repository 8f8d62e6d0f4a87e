"""preference_numbers: what the page of a report says of preferences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds.preferences.judged_pairs import JudgedPairs
from crowdzoo.kinds.preferences.judged_sides import JudgedSides
from crowdzoo.kinds.preferences.warnings import LEAST_COMPARED, ONE_SIDE, preference_warnings
from crowdzoo.quality import CircularTriads, circular_triads, order_of_others, redundancy
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.copies import copies
from crowdzoo.quality.krippendorff import Alpha
from crowdzoo.quality.spread import Redundancy
from crowdzoo.report.page_parts import (
    DIGITS,
    NORMAL_975,
    Column,
    Numbers,
    PageTable,
    Warned,
    alpha_sentence,
    alpha_values,
    annotators_first,
    look_first,
    median_seconds,
    notes_of,
    percent,
    plain,
    shares_of_flags,
    wilson,
)

__all__ = ["one_sided", "preference_numbers"]

MOST_VOTES = 20  # of a pair
MOST_OPPONENTS = 20  # of a task
MOST_UNEXPECTED = 10  # of an annotator
SURELY = 3.0  # standard errors from which an annotator's leaning is noted: one of 370 has it by chance
LEANS = 0.1  # and by how much the share has to differ from one half
ONE_ANSWER = 0.9  # share of one answer from which it is noted
LEFT, RIGHT, EQUAL = 0, 1, 2


def preference_numbers(
    annotations: Annotations,
    aggregation: PreferenceAggregation,
    most: int,
    *,
    metric: str | None = None,
    bootstrap: int = 200,
    seed: int = 0,
    on_sample: Callable[[], None] | None = None,
) -> Numbers:
    """Everything that the page shows of a crowd that says which of two tasks is better.

    Args:
        annotations: kind preference.
        aggregation: a result for the same annotations.
        most: annotators, tasks and pairs that the page shows.
        metric: of Krippendorff's alpha: "nominal", the default; by "ordinal" and "interval" left and right are farther
            apart than either is from equal.
        bootstrap: samples for the interval of alpha; whole pairs are drawn.
        seed: of the bootstrap, and of the folds of `order_of_others`.
        on_sample: is called after each sample.

    Raises:
        ConfigError: metric "ratio".
        DataError: an aggregation of other tasks or annotators, or no annotation.
    """
    if metric == "ratio":
        raise ConfigError("metric ratio: answers to a pair are no quantities; give nominal, ordinal or interval.")
    for name in ("tasks", "annotators"):
        if not np.array_equal(getattr(aggregation, name), getattr(annotations, name)):
            raise DataError(f"The aggregation is one of other {name} than the annotations.")
    errors = aggregation.standard_errors(annotations)
    pairs, judged = JudgedPairs.of(annotations), JudgedSides.of(annotations, order_of_others(annotations, seed=seed))
    triads = circular_triads(annotations)
    alpha = pairs.alpha(metric or "nominal", bootstrap, seed, on_sample)
    share = one_sided(annotations, judged, pairs)
    annotators = _annotators(annotations, aggregation, judged, pairs, share)
    tasks = _tasks(annotations, aggregation, errors, triads)
    overall = _overall(annotations, aggregation, annotators, judged, pairs, share, triads, errors)
    compared, places = _compared(annotations, aggregation, pairs)
    first = annotators_first(annotators, most)
    shown = np.lexsort((aggregation.groups, aggregation.ranks, aggregation.annotations_per_task == 0))[:most].tolist()
    warned = preference_warnings(alpha, annotations, aggregation, annotators, overall)
    spread = redundancy(annotations)
    return Numbers(
        kind="preference",
        verdict=_verdict(alpha, annotators, overall, warned),
        warnings=warned,
        values={
            **alpha_values(alpha),
            "annotations": len(annotations),
            "tasks": annotations.num_tasks,
            "annotators": annotations.num_annotators,
            "annotations_per_task": overall["annotations_per_task"],
            "tasks_with_one_share": overall["tasks_with_one"] / max(overall["tasks_compared"], 1),
            "rows_left_out": annotations.num_rejected,
            **shares_of_flags(annotators),
            **{name: overall[name] for name in _MORE_VALUES},
        },
        facts=_facts(alpha, overall, spread),
        tables={
            "annotators": PageTable(
                _annotator_columns(aggregation), annotators, first,
                _annotator_details(annotations, aggregation, judged, first),
            ),
            "tasks": PageTable(
                _task_columns(tasks, overall), tasks, shown, _task_details(annotations, aggregation, pairs, shown)
            ),
            "divided": PageTable(
                _PAIR_COLUMNS, compared, [*range(min(most, len(places)))],
                _pair_details(annotations, aggregation, pairs, places[:most]),
            ),
        },
        summary={**overall, "krippendorff_alpha": None if alpha is None else asdict(alpha)},
    )  # fmt: skip


_MORE_VALUES = (
    "pairs", "pairs_with_several", "agreement", "order_agreement", "fitted_agreement", "left_share", "separation",
    "groups", "circular_share",
)  # fmt: skip
_PAIR_COLUMNS = (
    Column("pair", "first / second", "name", "The first is the one that more annotators prefer."),
    Column("annotations", "judgments", "count", "Of the pair, whichever task stood on the left."),
    Column("first_better", "for the first", "count"),
    Column("equal", "equal", "count"),
    Column("second_better", "for the second", "count"),
    Column("entropy", "entropy", "number", "Of the answers, in nats: 0: all agree; 1.1: a third gives each."),
    Column(
        "probability", "scores say", "share", "Probability that a typical annotator prefers the first, by the scores "
        "of the two. A small one: the majority on this pair contradicts the order that all pairs give.", bar=True,
    ),
)  # fmt: skip


def _annotator_columns(aggregation: PreferenceAggregation) -> tuple[Column, ...]:
    strength = (
        ("slope", "How strongly the answers follow the scores, by the method: 1 is typical, 0 tells nothing, below 0 "
         "is the wrong way round.")
        if aggregation.slopes is not None
        else ("follows scores", "Probability that an answer follows the scores, by the method.")
    )  # fmt: skip
    return (
        Column("annotator", "annotator", "name"),
        Column("annotations", "judgments", "count"),
        Column(
            "reliability", "reliability", "interval",
            "Share of the judgments for one side that agree with the order by the other annotators' judgments; 50 % is "
            "chance. The interval holds with 95 % for the number of judgments.",
        ),
        Column("notes", "notes", "flags"),
        Column(
            "left", "says left", "interval",
            "Share of left among the judgments for one side, where the better task stands as often on the left as on "
            "the right: mean of the shares where the others' order has the left and the right task ahead. 50 %: no "
            "position bias. The interval holds with 95 %.",
        ),
        Column("equal", "says equal", "share", "Share of equal among all judgments."),
        Column("strength", strength[0], "number", strength[1]),
        Column(
            "position_bias", "bias", "number", "Log odds of left against right that the annotator gives two tasks of "
            "equal score, by the method, which draws it towards that of the crowd; above 0: the left.",
        ),
        Column(
            "consistent", "both orders", "interval", "Of the pairs that the annotator judged in both orders, the share "
            "with the same answer. The interval holds with 95 % for the number of pairs.",
        ),
        Column("seconds", "seconds", "number", "Median time that an answer took, or that lay between two of them."),
    )  # fmt: skip


def _task_columns(tasks: dict[str, Any], overall: dict[str, Any]) -> tuple[Column, ...]:
    ends = [abs(end) for name in ("score_low", "score_high") for end in tasks[name] if end is not None]
    most = float(np.quantile(ends, 0.95)) if ends else 0.0
    several = (Column("group", "group", "count", "Scores and ranks compare within a group only."),)
    return (
        Column("task", "task", "name"),
        Column("annotations", "judgments", "count"),
        Column(
            "score", "score", "interval", "Log odds of being preferred to a task of score 0, and the interval of 95 % "
            "of its distance from the mean of its group. The annotators' parameters are taken as known.",
            scale=(-(most or 1.0), most or 1.0),
        ),
        Column("rank", "rank", "count", "Of the group; 1 is the best."),
        *(several if overall["groups"] > 1 else ()),
        Column("won", "preferred", "share", "Share of its judgments that prefer it; equal counts one half.", bar=True),
        Column(
            "circular", "circles", "count", "Circular triads that the task is in: by the majorities it is better than "
            "a second task, that one better than a third, and the third better than it.",
        ),
    )  # fmt: skip


# === Tables ===


def _annotators(
    annotations: Annotations,
    aggregation: PreferenceAggregation,
    judged: JudgedSides,
    pairs: JudgedPairs,
    one_sided: float | None,
) -> dict[str, Any]:
    who, number, said = annotations.annotator_ids, annotations.num_annotators, annotations.labels
    counts = np.bincount(who, minlength=number)
    answers = np.bincount(who * 3 + said, minlength=3 * number).reshape(number, 3)
    shared = np.bincount(who[judged.usable], minlength=number)
    with np.errstate(invalid="ignore"):
        reliability = np.bincount(who, judged.right, number) / shared
        equal = answers[:, EQUAL] / counts
    low, high = wilson(reliability, shared)
    left, left_low, left_high = judged.leaning(who, number)
    consistent, both_orders = pairs.consistent(number)
    consistent_low, consistent_high = wilson(consistent, both_orders)
    biases = aggregation.position_biases()
    found: dict[str, Any] = {
        "annotator": annotations.annotators.tolist(),
        "annotations": counts.tolist(),
        "shared": shared.tolist(),
        "reliability": plain(reliability),
        "reliability_low": plain(low),
        "reliability_high": plain(high),
        "left": plain(left),
        "left_low": plain(left_low),
        "left_high": plain(left_high),
        "left_share": plain(np.where(counts > 0, answers[:, LEFT] / np.maximum(counts, 1), np.nan)),
        "equal": plain(equal),
    }
    if aggregation.reliability is not None:
        found["strength"] = plain(np.where(counts > 0, aggregation.reliability, np.nan))
    if biases is not None:
        found["position_bias"] = plain(np.where(counts > 0, biases, np.nan))
    if both_orders.any():
        found["consistent"] = plain(consistent)
        found["consistent_low"] = plain(consistent_low)
        found["consistent_high"] = plain(consistent_high)
        found["both_orders"] = both_orders.tolist()
    if (seconds := median_seconds(annotations)) is not None:
        found["seconds"] = plain(seconds)
    enough = shared >= FEW
    usual = np.median(reliability[enough]) if enough.any() else 0.5
    _, surely_low, surely_high = judged.leaning(who, number, SURELY)
    linked = np.bincount(who[judged.linked], minlength=number)
    several = np.bincount(who[judged.named], minlength=number) >= FEW
    several &= one_sided is None  # else nobody can be told to answer by the side
    leaning = {
        "left": several & (surely_low > 0.5) & (left >= 0.5 + LEANS),
        "right": several & (surely_high < 0.5) & (left <= 0.5 - LEANS),
    }
    top = answers.max(axis=1) / np.maximum(counts, 1)
    overall = answers.sum(axis=0) / max(len(annotations), 1)
    turned = (said != EQUAL) & (annotations.task_ids > np.asarray(annotations.right_ids))
    first = np.unique(pairs.of_rows * number + who, return_index=True)[1]  # of the judgments in both orders
    first = first[~(leaning["left"] | leaning["right"] | (top >= ONE_ANSWER))[who[first]]]
    preferred = np.where(turned, 1 - said, said)
    found["copies"] = copies(annotations.annotators, pairs.of_rows[first], who[first], preferred[first])
    marks = {
        "against": enough & (high < 0.5),
        "random": enough & (low <= 0.5) & (high >= 0.5) & (high < usual),
        **leaning,
        "same": (counts >= FEW)
        & (top >= ONE_ANSWER)
        & (wilson(top, counts)[0] > overall[answers.argmax(axis=1)])
        & ~leaning["left"]
        & ~leaning["right"],
        "copy": np.array(found["copies"], bool),
        "alone": (linked == 0) & (counts > 0),
        "few": (linked < FEW) & (linked > 0),
    }
    found["notes"] = notes_of(marks, number)
    return found


def one_sided(annotations: Annotations, judged: JudgedSides, pairs: JudgedPairs) -> float | None:
    """Share of left among the judgments for one side, where it is nearly all or nothing, and quality may be the reason.

    That is where annotators did not judge pairs in both orders, and judgments agree with the order by the others: a
    crowd that answers by the side, and a file that names the preferred task first, look the same. None elsewhere.
    """
    said = annotations.labels[annotations.labels != EQUAL]
    share = float((said == LEFT).mean()) if len(said) else 0.5
    if abs(share - 0.5) <= 0.5 - ONE_SIDE:
        return None
    judgments = len(np.unique(pairs.of_rows * max(annotations.num_annotators, 1) + pairs.who))
    twice = int(pairs.consistent(annotations.num_annotators)[1].sum())
    number = int(judged.usable.sum())
    low, _ = wilson([judged.right.sum() / max(number, 1)], [number])
    return share if twice < ONE_SIDE * judgments and (not number or low[0] > 0.5) else None


def _tasks(
    annotations: Annotations,
    aggregation: PreferenceAggregation,
    errors: NDArray[np.float64],
    triads: CircularTriads | None,
) -> dict[str, Any]:
    counts, scores = aggregation.annotations_per_task, aggregation.scores
    some, won = counts > 0, _won(annotations)
    found: dict[str, Any] = {
        "task": annotations.tasks.tolist(),
        "annotations": counts.tolist(),
        "score": plain(np.where(some, scores, np.nan)),
        "score_low": plain(np.where(some, scores - NORMAL_975 * errors, np.nan)),
        "score_high": plain(np.where(some, scores + NORMAL_975 * errors, np.nan)),
        "standard_error": plain(errors),
        "rank": [int(rank) if compared else None for rank, compared in zip(aggregation.ranks, some, strict=True)],
        "group": aggregation.groups.tolist(),
        "won": plain(np.where(some, won / np.maximum(counts, 1), np.nan)),
    }
    if triads is not None and triads.total:
        found["circular"] = triads.of_tasks.tolist()
    return found


def _won(annotations: Annotations) -> NDArray[np.float64]:
    """Judgments that prefer a task, and half of those that call it equal, [N]."""
    left, right, said, number = annotations.task_ids, annotations.right_ids, annotations.labels, annotations.num_tasks
    assert right is not None
    half = np.where(said == EQUAL, 0.5, 0.0)
    mine, other = half + (said == LEFT), half + (said == RIGHT)
    return np.asarray(np.bincount(left, mine, number) + np.bincount(right, other, number), np.float64)


def _compared(
    annotations: Annotations, aggregation: PreferenceAggregation, pairs: JudgedPairs
) -> tuple[dict[str, Any], list[int]]:
    """Pairs whose judgments differ, the most divided first; and which pairs these are."""
    counts, sizes = pairs.counts, pairs.counts.sum(axis=1)
    share = counts / sizes[:, None]
    entropy = -np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0)), 0.0).sum(axis=1)
    places = np.flatnonzero(entropy > 0)
    places = places[np.lexsort((-sizes[places], -np.round(entropy[places], 9)))]
    first, second, front = _sides(pairs, aggregation, places)
    chance = aggregation.probabilities(first, second)[:, 0]
    names = [str(name) for name in annotations.tasks.tolist()]
    rows = np.arange(len(places))
    return {
        "pair": [f"{names[one]} / {names[two]}" for one, two in zip(first, second, strict=True)],
        "first": [names[one] for one in first],
        "second": [names[two] for two in second],
        "annotations": sizes[places].tolist(),
        "first_better": counts[places][rows, front].tolist(),
        "equal": counts[places][:, EQUAL].tolist(),
        "second_better": counts[places][rows, 1 - front].tolist(),
        "entropy": plain(entropy[places]),
        "probability": plain(chance),
    }, places.tolist()


def _sides(
    pairs: JudgedPairs, aggregation: PreferenceAggregation, places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The task that more prefer (of a tie: the higher score), the other one, and 0 where the lower code is first."""
    low, high, counts = pairs.lower[places], pairs.higher[places], pairs.counts[places]
    ahead = counts[:, 0] - counts[:, 1]
    ahead = np.where(ahead == 0, np.sign(aggregation.scores[low] - aggregation.scores[high]), ahead)
    front = (ahead < 0).astype(np.int64)
    return np.where(front == 0, low, high), np.where(front == 0, high, low), front


# === What opens under a row ===


def _annotator_details(
    annotations: Annotations, aggregation: PreferenceAggregation, judged: JudgedSides, shown: list[int]
) -> list[dict[str, Any]]:
    """Of the annotators shown: answers by the side that the others have ahead, and the least expected judgments."""
    number, who, said = annotations.num_annotators, annotations.annotator_ids, annotations.labels
    assert annotations.right_ids is not None
    rows = np.flatnonzero(judged.linked)
    cells = (who[rows] * 2 + ~judged.left_ahead[rows]) * 3 + said[rows]
    answers = np.bincount(cells, minlength=6 * number).reshape(number, 2, 3)
    chances = aggregation.answer_probabilities(annotations)
    chances = np.pad(chances, [(0, 0), (0, 3 - chances.shape[1])], constant_values=np.nan)
    of_said = chances[np.arange(len(said)), said]
    place = np.full(number, -1)
    place[shown] = np.arange(len(shown))
    details: list[dict[str, Any]] = [{"answers": answers[each].tolist(), "unexpected": []} for each in shown]
    for row in np.argsort(of_said, kind="stable").tolist():  # NaN stand at the end
        if place[who[row]] < 0 or not of_said[row] < 0.5:
            continue
        if len(found := details[place[who[row]]]["unexpected"]) < MOST_UNEXPECTED:
            sides = annotations.tasks[annotations.task_ids[row]], annotations.tasks[annotations.right_ids[row]]
            found.append([*map(str, sides), int(said[row]), round(float(of_said[row]), DIGITS)])
    return details


def _task_details(
    annotations: Annotations, aggregation: PreferenceAggregation, pairs: JudgedPairs, shown: list[int]
) -> list[dict[str, Any]]:
    """Of the tasks shown: the tasks that they were compared with most often, and how that went."""
    place = np.full(annotations.num_tasks, -1)
    place[shown] = np.arange(len(shown))
    details: list[dict[str, Any]] = [{"opponents": []} for _ in shown]
    names = [str(name) for name in annotations.tasks.tolist()]
    scores = np.round(aggregation.scores, DIGITS).tolist()
    sizes, counts = pairs.counts.sum(axis=1), pairs.counts.tolist()
    for pair in np.argsort(-sizes, kind="stable").tolist():
        sides = int(pairs.lower[pair]), int(pairs.higher[pair])
        lower, higher, equal = counts[pair]
        for mine, other, won, lost in ((*sides, lower, higher), (*sides[::-1], higher, lower)):
            if place[mine] >= 0 and len(found := details[place[mine]]["opponents"]) < MOST_OPPONENTS:
                found.append([names[other], won, equal, lost, scores[other]])
    return details


def _pair_details(
    annotations: Annotations, aggregation: PreferenceAggregation, pairs: JudgedPairs, places: list[int]
) -> list[dict[str, Any]]:
    """Of the pairs shown: the two tasks, and who said what: 0 for the first, 1 for the second, 2 equal."""
    chosen = np.array(places, np.int64)
    first, second, front = _sides(pairs, aggregation, chosen)
    names = annotations.annotators.tolist()
    at = np.full(len(pairs.lower), -1)
    at[chosen] = np.arange(len(chosen))
    tasks = [str(name) for name in annotations.tasks.tolist()]
    details: list[dict[str, Any]] = [
        {"tasks": [tasks[one], tasks[two]], "judges": []} for one, two in zip(first, second, strict=True)
    ]
    for row in np.flatnonzero(at[pairs.of_rows] >= 0).tolist():
        place = at[pairs.of_rows[row]]
        if len(found := details[place]["judges"]) < MOST_VOTES:
            answer = int(pairs.answers[row])
            said = answer if answer == EQUAL or not front[place] else 1 - answer
            on_left = bool(annotations.task_ids[row] == first[place])
            found.append([str(names[annotations.annotator_ids[row]]), said, on_left])
    return details


# === Figures, verdict and warnings ===


def _overall(
    annotations: Annotations,
    aggregation: PreferenceAggregation,
    annotators: dict[str, Any],
    judged: JudgedSides,
    pairs: JudgedPairs,
    one_sided: float | None,
    triads: CircularTriads | None,
    errors: NDArray[np.float64],
) -> dict[str, Any]:
    counts, sizes, said = aggregation.annotations_per_task, pairs.counts.sum(axis=1), annotations.labels
    assert annotations.right_ids is not None
    some = counts > 0
    usable = int(judged.usable.sum())
    agreement = judged.right.sum() / usable if usable else np.nan
    low, high = wilson([agreement], [usable])
    left, left_low, left_high = (float(each[0]) for each in judged.leaning(np.zeros(len(said), np.int64), 1))
    by_side = np.array([bool({"left", "right"} & {*notes}) for notes in annotators["notes"]], bool)
    rest = [float(each[0]) for each in judged.leaning(by_side[annotations.annotator_ids].astype(np.int64), 2)]
    gap = aggregation.scores[annotations.task_ids] - aggregation.scores[annotations.right_ids]
    named = (said != EQUAL) & (gap != 0)
    won = _won(annotations)
    consistent, both_orders = pairs.consistent(annotations.num_annotators)
    twice = int(both_orders.sum())
    same = float((np.nan_to_num(consistent) * both_orders).sum()) / twice if twice else np.nan
    same_low, same_high = wilson([same], [twice])
    found = {
        "annotations": len(annotations),
        "rows_left_out": annotations.num_rejected,
        "tasks": annotations.num_tasks,
        "tasks_compared": int(some.sum()),
        "tasks_with_one": int((counts == 1).sum()),
        "tasks_with_few": int((some & (counts < LEAST_COMPARED)).sum()),
        "tasks_all_one_way": int((some & ((won == 0) | (won == counts))).sum()),
        "annotators": annotations.num_annotators,
        "annotations_per_task": float(counts.mean()) if len(counts) else None,
        "pairs": len(sizes),
        "pairs_with_several": int((sizes > 1).sum()),
        "annotations_per_pair": float(sizes.mean()) if len(sizes) else None,
        "agreement": pairs.agreement,
        "one_sided": one_sided,
        "linked_by_others": int(judged.linked.sum()),
        "judged_by_others": usable,
        "order_agreement": float(agreement),
        "order_agreement_low": float(low[0]),
        "order_agreement_high": float(high[0]),
        "fitted_agreement": float(((gap > 0) == (said == LEFT))[named].mean()) if named.any() else None,
        "left_ahead": float(judged.left_ahead[judged.usable].mean()) if usable else None,
        "left_share": left,
        "left_share_low": left_low,
        "left_share_high": left_high,
        "answer_by_side": int(by_side.sum()),
        "left_share_of_others": rest[0],
        "left_share_of_others_low": rest[1],
        "left_share_of_others_high": rest[2],
        "both_orders": twice,
        "consistent_share": same,
        "consistent_share_low": float(same_low[0]),
        "consistent_share_high": float(same_high[0]),
        "separation": _separation(aggregation, errors),
        "groups": len(np.unique(aggregation.groups[some])),
        "circular_triads": None if triads is None else triads.circular,
        "triads": None if triads is None else triads.total,
        "circular_share": None if triads is None else triads.share,
    }
    return {name: None if value is not None and value != value else value for name, value in found.items()}


def _separation(aggregation: PreferenceAggregation, errors: NDArray[np.float64]) -> float | None:
    """Share of the variance of the scores within groups that is not error; None where it is not known.

    One minus the mean squared standard error over the variance: the scale separation reliability of comparative
    judgement (T. Bramley, Paired comparison methods, in: Techniques for monitoring the comparability of examination
    standards, QCA 2007).
    """
    known = np.isfinite(errors)
    groups, scores = aggregation.groups[known], aggregation.scores[known]
    sizes = np.bincount(groups) if len(groups) else np.zeros(0)
    if (freedom := len(groups) - int((sizes > 0).sum())) < 1:
        return None
    about = scores - (np.bincount(groups, scores) / np.maximum(sizes, 1))[groups]
    variance = float((about**2).sum()) / freedom
    return max(0.0, 1 - float((errors[known] ** 2).mean()) / variance) if variance > 0 else None


def _facts(alpha: Alpha | None, overall: dict[str, Any], spread: Redundancy) -> list[list[Any]]:
    median = None if spread.annotators.quantiles is None else spread.annotators.quantiles[2]

    def ends(name: str) -> str:
        if overall[f"{name}_low"] is None:
            return ""
        return f"{100 * overall[f'{name}_low']:.1f} to {100 * overall[f'{name}_high']:.1f} %"

    beside = "" if alpha is None or alpha.low is None else f"{alpha.low:.3f} to {alpha.high:.3f}"
    found = [
        ["judgments", overall["annotations"], "count", ""],
        ["tasks", overall["tasks"], "count", ""],
        ["annotators", overall["annotators"], "count", ""],
        ["Krippendorff's alpha", None if alpha is None else alpha.value, "number", beside],
        ["agreement on a pair", overall["agreement"], "share", "two annotators"],
        ["agree with the others' order", overall["order_agreement"], "share", ends("order_agreement")],
        ["agree with the fitted order", overall["fitted_agreement"], "share", "their own judgments in it"],
        ["say left, sides balanced", overall["left_share"], "share", ends("left_share")],
        ["reliability of the scores", overall["separation"], "share", "of their variance is no error"],
        ["judgments a task", overall["annotations_per_task"], "number", ""],
        ["pairs", overall["pairs"], "count", f"{overall['annotations_per_pair'] or 0:.3g} judgments each"],
        ["judgments an annotator, median", median, "count", ""],
    ]
    if overall["triads"]:
        found.append(["circular triads", overall["circular_share"], "share", "25 % by chance"])
    if overall["groups"] > 1:
        found.append(["groups of linked tasks", overall["groups"], "count", ""])
    if overall["both_orders"]:
        beside = f"{overall['both_orders']:,} times an annotator judged both"
        found.append(["same answer in both orders", overall["consistent_share"], "share", beside])
    return found


def _verdict(
    alpha: Alpha | None, annotators: dict[str, Any], overall: dict[str, Any], warned: list[Warned]
) -> list[str]:
    if alpha is None:
        first = "Agreement on a pair cannot be measured, because no two annotators judged the same pair."
        if overall["agreement"] is not None:
            first = "Agreement beyond chance cannot be measured, because all call the tasks of a pair equal."
    else:
        first = alpha_sentence(alpha, f"Two annotators of a pair agree in {percent(overall['agreement'])} of cases; ")
    share = overall["order_agreement"]
    if share is None:
        why = "these did not compare the same tasks" if overall["annotators"] > 1 else "there are none"
        if overall["linked_by_others"]:
            why = "the judgments of these put no task ahead of another, or all answers are equal"
        second = f"Annotators cannot be judged by the others, because {why}"
    else:
        ends = f"{100 * overall['order_agreement_low']:.1f} to {100 * overall['order_agreement_high']:.1f} %"
        second = (
            f"Of the judgments that prefer one side, {100 * share:.1f} % ({ends}) agree with the order that the other "
            "annotators' judgments give, where chance has 50 %"
        )
    if overall["separation"] is not None and overall["one_sided"] is None:
        second += f"; {percent(1 - overall['separation'])} of the variance of the scores is error"
    noticed = int(shares_of_flags(annotators)["noted_annotators"] or 0)
    return [first, f"{second}.", look_first(warned, noticed, otherwise="No annotator has to be checked.")]
