"""Columns of the tables of a page on preferences."""

from crowdzoo.kinds.kind_page import SECONDS
from crowdzoo.kinds.page_parts import Column

PAIR_COLUMNS = (
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


def annotator_columns(slopes: bool) -> tuple[Column, ...]:
    """Those of the table of annotators; `slopes`: whether the method learns how strongly answers follow scores."""
    strength = ("follows scores", "Probability that an answer follows the scores, by the method.")
    if slopes:
        strength = ("slope", "How strongly the answers follow the scores, by the method: 1 is typical, 0 tells "
                    "nothing, below 0 is the wrong way round.")  # fmt: skip
    return (
        Column("annotator", "annotator", "name"),
        Column("annotations", "judgments", "count"),
        Column("reliability", "reliability", "interval", "Share of the judgments for one side that agree with the "
               "order by the other annotators' judgments; 50 % is chance. The interval holds with 95 % for the "
               "number of judgments."),
        Column("notes", "notes", "flags"),
        Column("left", "says left", "interval", "Share of left among the judgments for one side, where the better "
               "task stands as often on the left as on the right: mean of the shares where the others' order has "
               "the left and the right task ahead. 50 %: no position bias. The interval holds with 95 %."),
        Column("equal", "says equal", "share", "Share of equal among all judgments."),
        Column("strength", strength[0], "number", strength[1]),
        Column("position_bias", "bias", "number", "Log odds of left against right that the annotator gives two "
               "tasks of equal score, by the method, which draws it towards that of the crowd; above 0: the left."),
        Column("consistent", "both orders", "interval", "Of the pairs that the annotator judged in both orders, "
               "the share with the same answer. The interval holds with 95 % for the number of pairs."),
        SECONDS,
    )  # fmt: skip


def task_columns(scale: tuple[float, float], groups: bool) -> tuple[Column, ...]:
    """Those of the table of tasks: ends of the picture of a score, and whether there are several groups."""
    several = (Column("group", "group", "count", "Scores and ranks compare within a group only."),)
    return (
        Column("task", "task", "name"),
        Column("annotations", "judgments", "count"),
        Column("score", "score", "interval", "Log odds of being preferred to a task of score 0, and the interval "
               "of 95 % of its distance from the mean of its group. The annotators' parameters are taken as known.",
               scale=scale),
        Column("rank", "rank", "count", "Of the group; 1 is the best."),
        *(several if groups else ()),
        Column("won", "preferred", "share", "Share of its judgments that prefer it; equal counts one half.",
               bar=True),
        Column("circular", "circles", "count", "Circular triads that the task is in: by the majorities it is "
               "better than a second task, that one better than a third, and the third better than it."),
    )  # fmt: skip
