"""PreferencePage: page of a report on preferences between two tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import PREFERENCE
from crowdzoo.kinds import page_parts as parts
from crowdzoo.kinds.page import MOST_VOTES, KindPage, below_and_at_chance, scale_of
from crowdzoo.kinds.page_parts import DIGITS, UNKNOWN, Details, PageTable, PageWarning, as_lists, percent, rows_of
from crowdzoo.kinds.preferences.judged import JudgedPairs, JudgedSides, one_sided
from crowdzoo.kinds.preferences.warnings import LEAST_COMPARED, of_graph, of_order, of_sides
from crowdzoo.kinds.scoring import Codes, Floats
from crowdzoo.quality import circular_triads, order_of_others
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.copies import copies
from crowdzoo.quality.figures import NORMAL_975, interval, ratio, wilson

MOST_UNEXPECTED = 10  # shown per annotator
SURELY = 3.0  # standard errors from which a preference for a side is noted; 1 in 370 exceeds this by chance
LEANS = 0.1  # least difference of the share from one half, in addition
ONE_ANSWER = 0.9  # share of a single answer from which it is noted
MORE_EQUAL = 0.25  # excess of the share of equal over the others', from which it is noted
LEFT, RIGHT, EQUAL = 0, 1, 2
_SLOPE = (
    "How strongly the answers follow the scores, by the method: 1 is typical, 0 tells nothing, below 0 is the wrong "
    "way round."
)


class PreferencePage(KindPage):
    """Page of a report on preferences between two tasks.

    With the metrics "ordinal" and "interval", left and right are farther apart than either is from equal.
    """

    kind, labels, subject = "preference", PREFERENCE, "preferences"
    own_columns = parts.read_columns(__package__)
    metrics = ("nominal", "ordinal", "interval")
    not_metric = "answers to a pair are not quantities; give nominal, ordinal or interval."
    own_values = (
        "pairs", "pairs_with_several", "agreement", "order_agreement", "fitted_agreement", "left_share", "separation",
        "groups", "circular_share",
    )  # fmt: skip
    task_column = "score"

    def measure(self) -> None:
        """See `KindPage.measure`."""
        table, result, settings = self.table, self.aggregation, self.settings
        self.errors = result.standard_errors(table)
        self.pairs = JudgedPairs.of(table)
        self.by_others = JudgedSides.of(table, order_of_others(table, seed=settings.seed))
        self.triads = circular_triads(table)
        self.alpha = self.pairs.alpha(self.metric, **settings.sampling)
        self.one_sided = one_sided(table, self.by_others, self.pairs)
        self.task_names = [str(name) for name in table.tasks.tolist()]
        self.measure_annotators()
        self.measure_tasks()
        self.measure_crowd()
        self.overrides = {"score": {"scale": scale_of(self.tasks, "score")}}
        if result.slopes is not None:
            self.overrides["strength"] = {"title": "slope", "help": _SLOPE}
        order = np.lexsort((result.groups, result.ranks, result.annotations_per_task == 0))
        self.rows = order[: settings.most].tolist()

    # === Tables ===

    def measure_annotators(self) -> None:
        """Set the table of annotators."""
        table, result, judged, pairs = self.table, self.aggregation, self.by_others, self.pairs
        annotators, number, labels = table.annotator_ids, table.num_annotators, table.labels
        counts = np.bincount(annotators, minlength=number)
        some, any_of = counts > 0, np.maximum(counts, 1)
        answers = np.bincount(annotators * 3 + labels, minlength=3 * number).reshape(number, 3)
        shared = np.bincount(annotators[judged.usable], minlength=number)
        reliability = ratio(np.bincount(annotators, judged.right, number), shared)
        low, high = wilson(reliability, shared)
        left = judged.leaning(annotators, number)
        columns: dict[str, Any] = {
            **interval("reliability", reliability, low, high),
            **interval("left", *left),
            "left_share": ratio(answers[:, LEFT], counts),
            "equal": ratio(answers[:, EQUAL], counts),
        }
        if result.skills is not None:
            columns["strength"] = np.where(some, result.skills, np.nan)
        if (biases := result.position_biases()) is not None:
            columns["position_bias"] = np.where(some, biases, np.nan)
        consistent, both_orders = pairs.consistent(number)
        if both_orders.any():
            columns |= interval("consistent", consistent, *wilson(consistent, both_orders))
            columns["both_orders"] = both_orders
        against, random = below_and_at_chance(reliability, low, high, shared >= FEW, 0.5)
        _, surely_low, surely_high = judged.leaning(annotators, number, SURELY)
        linked = np.bincount(annotators[judged.linked], minlength=number)
        several = np.bincount(annotators[judged.named], minlength=number) >= FEW
        several &= self.one_sided is None  # else nobody can be said to answer by side
        to_left = several & (surely_low > 0.5) & (left[0] >= 0.5 + LEANS)
        to_right = several & (surely_high < 0.5) & (left[0] <= 0.5 - LEANS)
        top, overall = answers.max(axis=1) / any_of, answers.sum(axis=0) / max(len(table), 1)
        surely_more = wilson(top, counts)[0] > overall[answers.argmax(axis=1)]
        same = (counts >= FEW) & (top >= ONE_ANSWER) & surely_more & ~to_left & ~to_right
        equal = answers[:, EQUAL]
        of_others = (equal.sum() - equal) / np.maximum(len(table) - counts, 1)
        surely_equal = wilson(equal / any_of, counts, SURELY)[0] > of_others + MORE_EQUAL
        first = np.unique(pairs.of_rows * number + annotators, return_index=True)[1]  # per pair and annotator
        first = first[~(to_left | to_right | (top >= ONE_ANSWER))[annotators[first]]]
        copied = copies(table.annotators, pairs.of_rows[first], annotators[first], pairs.answers[first])
        marks = {
            "against": against,
            "random": random,
            "left": to_left,
            "right": to_right,
            "same": same,
            "equal": (counts >= FEW) & surely_equal & ~same,
        }
        self.annotators = self.of_annotators(counts, shared, marks, linked, copies=copied, **columns)

    def measure_tasks(self) -> None:
        """Set the table of tasks."""
        result, counts, scores = self.aggregation, self.aggregation.annotations_per_task, self.aggregation.scores
        some, width = counts > 0, NORMAL_975 * self.errors
        self.won = _won(self.table)
        ends = (np.where(some, values, np.nan) for values in (scores, scores - width, scores + width))
        columns: dict[str, Any] = {
            "task": self.table.tasks,
            "annotations": counts,
            **interval("score", *ends),
            "standard_error": self.errors,
            "rank": [int(rank) if compared else None for rank, compared in zip(result.ranks, some, strict=True)],
            "group": result.groups,
            "won": ratio(self.won, counts),
        }
        if self.triads is not None and self.triads.total:
            columns["circular"] = self.triads.of_tasks
        self.tasks = as_lists(**columns)

    def sides(self, places: Codes) -> tuple[Codes, Codes, Codes]:
        """Preferred task (in a tie, that with the higher score), the other one, and 0 if the lower code is first."""
        low, high, counts = self.pairs.lower[places], self.pairs.higher[places], self.pairs.counts[places]
        ahead = counts[:, 0] - counts[:, 1]
        ahead = np.where(ahead == 0, np.sign(self.aggregation.scores[low] - self.aggregation.scores[high]), ahead)
        front = (ahead < 0).astype(np.int64)
        return np.where(front == 0, low, high), np.where(front == 0, high, low), front

    def tables(self) -> dict[str, PageTable]:
        """See `KindPage.tables`; also the pairs whose judgments differ, most divided first."""
        counts, sizes, names = self.pairs.counts, self.pairs.counts.sum(axis=1), self.task_names
        share = counts / sizes[:, None]
        entropy = -np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0)), 0.0).sum(axis=1)
        places = np.flatnonzero(entropy > 0)
        places = places[np.lexsort((-sizes[places], -np.round(entropy[places], 9)))]
        first, second, front = self.sides(places)
        rows = np.arange(len(places))
        values = as_lists(
            pair=[f"{names[left]} / {names[right]}" for left, right in zip(first, second, strict=True)],
            first=[names[left] for left in first],
            second=[names[right] for right in second],
            annotations=sizes[places],
            first_better=counts[places][rows, front],
            equal=counts[places][:, EQUAL],
            second_better=counts[places][rows, 1 - front],
            entropy=entropy[places],
            probability=self.aggregation.probabilities(first, second)[:, 0],
        )
        most = [*range(min(self.settings.most, len(places)))]
        divided = self.table_of("divided", values, most, self.pair_details(places[: len(most)]))
        return {**super().tables(), "divided": divided}

    # === Details under a row ===

    def annotator_details(self, codes: list[int]) -> Details:
        """Answers by the side that the others rank ahead, and the least expected judgments."""
        table, judged, names = self.table, self.by_others, self.task_names
        annotators, labels, right = table.annotator_ids, table.labels, np.asarray(table.right_ids)
        cells = ((annotators * 2 + ~judged.left_ahead) * 3 + labels)[judged.linked]
        answers = np.bincount(cells, minlength=6 * table.num_annotators).reshape(-1, 2, 3).tolist()
        chances = self.aggregation.answer_probabilities(table)
        chances = np.pad(chances, [(0, 0), (0, 3 - chances.shape[1])], constant_values=np.nan)
        chance = chances[np.arange(len(labels)), labels]
        order = np.argsort(chance, kind="stable")
        unlikely = rows_of(annotators, order[chance[order] < 0.5], codes, MOST_UNEXPECTED)
        likely = np.round(chance, DIGITS).tolist()
        left = table.task_ids
        for code, rows in zip(codes, unlikely, strict=True):
            unexpected = [[names[left[row]], names[right[row]], int(labels[row]), likely[row]] for row in rows]
            yield {"answers": answers[code], "unexpected": unexpected}

    def task_details(self) -> Details:
        """The tasks that each was compared with most often, with the results."""
        pairs, names, scores = self.pairs, self.task_names, np.round(self.aggregation.scores, DIGITS).tolist()
        sides = np.stack([pairs.lower, pairs.higher], axis=1)  # each pair once per task
        order, counts = np.argsort(-pairs.counts.sum(axis=1).repeat(2), kind="stable"), pairs.counts.tolist()
        for rows in rows_of(sides.ravel(), order, self.rows, MOST_VOTES):
            opponents = []
            for pair, mine in (divmod(row, 2) for row in rows):
                other, votes = int(sides[pair, 1 - mine]), counts[pair]
                opponents.append([names[other], votes[mine], votes[EQUAL], votes[1 - mine], scores[other]])
            yield {"opponents": opponents}

    def pair_details(self, places: Codes) -> Details:
        """The two tasks, and annotators' answers (0 first, 1 second, 2 equal) with whether the first was left."""
        table, pairs = self.table, self.pairs
        judges = rows_of(pairs.of_rows, np.arange(len(table)), places.tolist(), MOST_VOTES)
        for left, right, front, rows in zip(*(side.tolist() for side in self.sides(places)), judges, strict=True):
            answers = pairs.answers[rows]
            if front:
                answers = np.where(answers == EQUAL, EQUAL, 1 - answers)
            sides = (table.task_ids[rows] == left).tolist()
            votes = zip(pairs.annotators[rows], answers.tolist(), sides, strict=True)
            judges = [[self.names[code], answer, first_left] for code, answer, first_left in votes]
            yield {"tasks": [self.task_names[left], self.task_names[right]], "judges": judges}

    # === Figures and verdict ===

    def measure_crowd(self) -> None:
        """Set the figures of the whole crowd."""
        table, result, pairs, judged, triads = self.table, self.aggregation, self.pairs, self.by_others, self.triads
        counts, sizes, labels = result.annotations_per_task, pairs.counts.sum(axis=1), table.labels
        some, usable = counts > 0, int(judged.usable.sum())
        agreement = judged.right.sum() / usable if usable else np.nan
        left = [float(end[0]) for end in judged.leaning(np.zeros(len(labels), np.int64), 1)]
        by_side = np.array([bool({"left", "right"} & {*notes}) for notes in self.annotators["notes"]], bool)
        rest = [float(end[0]) for end in judged.leaning(by_side[table.annotator_ids].astype(np.int64), 2)]
        gap = result.scores[table.task_ids] - result.scores[np.asarray(table.right_ids)]
        named = (labels != EQUAL) & (gap != 0)
        consistent, both_orders = pairs.consistent(table.num_annotators)
        twice = int(both_orders.sum())
        same = float((np.nan_to_num(consistent) * both_orders).sum()) / twice if twice else np.nan
        figures = {
            "tasks_compared": int(some.sum()),
            "tasks_with_few": int((some & (counts < LEAST_COMPARED)).sum()),
            "tasks_all_one_way": int((some & ((self.won == 0) | (self.won == counts))).sum()),
            "pairs": len(sizes),
            "pairs_with_several": int((sizes > 1).sum()),
            "annotations_per_pair": float(sizes.mean()) if len(sizes) else None,
            "agreement": pairs.agreement,
            "one_sided": self.one_sided,
            "linked_by_others": int(judged.linked.sum()),
            "judged_by_others": usable,
            **interval("order_agreement", float(agreement), *_ends(agreement, usable)),
            "fitted_agreement": float(((gap > 0) == (labels == LEFT))[named].mean()) if named.any() else None,
            "left_ahead": float(judged.left_ahead[judged.usable].mean()) if usable else None,
            **interval("left_share", *left),
            "answer_by_side": int(by_side.sum()),
            **interval("left_share_of_others", *rest),
            "both_orders": twice,
            **interval("consistent_share", same, *_ends(same, twice)),
            "separation": _separation(result, self.errors),
            "groups": len(np.unique(result.groups[some])),
            "circular_triads": None if triads is None else triads.circular,
            "triads": None if triads is None else triads.total,
            "circular_share": None if triads is None else triads.share,
        }
        self.count(counts, **{name: None if value != value else value for name, value in figures.items()})
        self.overall["annotations"] = len(table)
        self.add_facts()

    def add_facts(self) -> None:
        """Choose the facts that apply here, and add remarks."""
        overall = self.overall
        counts = {"circular_share": overall["triads"], "consistent_share": overall["both_orders"]}
        counts |= dict.fromkeys(("groups", "group"), overall["groups"] > 1)
        self.hidden = {name for name, says in counts.items() if not says}
        self.remarks |= {
            "agreement": "two annotators",
            "fitted_agreement": "their own judgments in it",
            "separation": "of their variance is not error",
            "pairs": f"{overall['annotations_per_pair'] or 0:.3g} judgments each",
            "circular_share": "25 % by chance",
            "consistent_share": f"{overall['both_orders']:,} times an annotator judged both",
            **{name: self.ends(name) for name in ("order_agreement", "left_share")},
        }

    def ends(self, name: str) -> str:
        """Format the interval of a share."""
        low, high = self.overall[f"{name}_low"], self.overall[f"{name}_high"]
        return "" if low is None else f"{100 * low:.1f} to {100 * high:.1f} %"

    def headline(self) -> str:
        """See `KindPage.headline`."""
        agreement = self.overall["agreement"]
        if self.alpha is not None:
            start = f"two annotators of a pair agree in {percent(agreement)} of cases; "
            return parts.alpha_sentence(self.alpha, start)
        if agreement is not None:
            return f"{UNKNOWN}: agreement beyond chance cannot be measured, because all call the tasks of a pair equal."
        return f"{UNKNOWN}: agreement on a pair cannot be measured, because no two annotators judged the same pair."

    def background(self) -> str:
        """See `KindPage.background`."""
        overall = self.overall
        if (share := overall["order_agreement"]) is None:
            why = "these did not compare the same tasks" if overall["annotators"] > 1 else "there is only one annotator"
            if overall["linked_by_others"]:
                why = "their judgments put no task ahead of another, or all answers are equal"
            text = f"Annotators cannot be judged by the others, because {why}"
        else:
            text = (
                f"Of the judgments that prefer one side, {100 * share:.1f} % ({self.ends('order_agreement')}) agree "
                "with the order by the other annotators' judgments (50 % by chance)"
            )
        if overall["separation"] is not None and overall["one_sided"] is None:
            text += f"; {percent(1 - overall['separation'])} of the variance of the scores is error"
        return text

    @property
    def labelled(self) -> int:
        """Number of tasks that were compared, at least one."""
        return max(int(self.overall["tasks_compared"]), 1)

    def of_agreement(self) -> Iterable[PageWarning]:
        """See `KindPage.of_agreement`; also warnings about the order, the graph of pairs, and the sides."""
        overall, result = self.overall, self.aggregation
        return [*of_order(self.alpha, overall, result), *of_graph(overall), *of_sides(overall, result)]

    def of_notes(self) -> Iterable[PageWarning]:
        """See `KindPage.of_notes`; none for several groups, since a warning is more specific."""
        return super().of_notes() if self.overall["groups"] < 2 else []


def _ends(share: float, number: int) -> list[float]:
    """Wilson's interval of one share."""
    return [float(end[0]) for end in wilson([share], [number])]


def _won(annotations: Annotations) -> Floats:
    """Number of judgments that prefer each task, plus half of those that call it equal, [N]."""
    left, right, labels, number = annotations.task_ids, annotations.right_ids, annotations.labels, annotations.num_tasks
    assert right is not None
    half = np.where(labels == EQUAL, 0.5, 0.0)
    mine, other = half + (labels == LEFT), half + (labels == RIGHT)
    return np.asarray(np.bincount(left, mine, number) + np.bincount(right, other, number), np.float64)


def _separation(aggregation: PreferenceAggregation, errors: Floats) -> float | None:
    """Share of the variance of scores within groups that is not error; None where unknown.

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
