"""marked_spans: differences of annotators' spans from each other, and from the aggregated ones."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import sum_rows
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.drawn_spans import DrawnSpan, num_matched
from crowdzoo.data.tags import SpanTable
from crowdzoo.errors import DataError
from crowdzoo.quality.figures import ratio
from crowdzoo.quality.tasks import check_same

MOST_ROWS = 4_000_000  # of the pairs of spans that are held at a time


@dataclass(frozen=True, eq=False)
class MarkedSpans:
    """Spans of annotators and their differences: N sentences, R annotators, K types, S spans of annotators.

    Two spans are the same if type, first and last token are equal. Each span is compared with the spans of another
    annotator of the sentence that overlap it: with the same one, otherwise with one of its type, otherwise with the one
    of longest overlap. It has *wrong edges* if the types are equal, a *wrong type* if they differ, and is *missed* if
    nothing overlaps.

    In sentences with `drawn`, agreement of annotators (`same`, `near`, `compared` and what follows from them) uses the
    spans as they were drawn, and everything else the outermost ones.

    Attributes:
        types: names of the types, [K].
        annotators: annotator of each span, int64 [S].
        spans: the spans, with tokens counted through all sentences.
        sentences: sentence of each span, int64 [S].
        aggregated: the aggregated spans.
        aggregated_sentences: sentence of each aggregated span, int64.
        heads: number of annotators per sentence, int64 [N].
        tasks_of: number of sentences per annotator, int64 [R].
        shared: number of these that somebody else also tagged, int64 [R].
        marks: number of spans by annotator and type, int64 [R, K].
        expected: number of aggregated spans in the annotator's sentences, by type, int64 [R, K].
        right: number of expected spans that the annotator marked, int64 [R, K].
        wrong_edges: number of expected spans with wrong edges, int64 [R, K].
        wrong_type: number of expected spans with a wrong type, int64 [R, K].
        invented: number of the annotator's spans that overlap no aggregated span, by their own type, int64 [R, K].
        confusion: for expected spans that the annotator marked in some way: annotator, aggregated type, the annotator's
            type, and number of spans, int64 [C, 4].
        same: number of ordered pairs of an annotator's span and the same span of another annotator, int64 [R].
        compared: number of spans compared: the annotator's own, once for each other annotator of the sentence, and
            those of the others, int64 [R]. Agreement is 2 same / compared, the F1 of two annotators.
        same_positions: as `same`, for spans of any type with the same first and last token, int64 [R].
        near: for drawn spans, number of ordered pairs that match, see `num_matched`, int64 [R]; otherwise 0.
        same_of_tasks: number of ordered pairs of the same span by two annotators, int64 [N].
        spans_of_tasks: number of spans of all annotators, int64 [N].
        coincidences: how often two types, or a type and no span (last), meet if two annotators tagged a sentence; each
            ordered pair of n annotators has weight 1 / (n - 1); float64 [K + 1, K + 1], symmetric.
        same_of_types: weighted share of each type's spans that another annotator also marked, float64 [K]; NaN if
            nobody else could.
        edges_of_types: weighted share of each type's spans that the other marked with other edges, float64 [K].
    """

    types: list[str]
    annotators: NDArray[np.int64]
    spans: SpanTable
    sentences: NDArray[np.int64]
    aggregated: SpanTable
    aggregated_sentences: NDArray[np.int64]
    heads: NDArray[np.int64]
    tasks_of: NDArray[np.int64]
    shared: NDArray[np.int64]
    marks: NDArray[np.int64]
    expected: NDArray[np.int64]
    right: NDArray[np.int64]
    wrong_edges: NDArray[np.int64]
    wrong_type: NDArray[np.int64]
    invented: NDArray[np.int64]
    confusion: NDArray[np.int64]
    same: NDArray[np.int64]
    compared: NDArray[np.int64]
    same_of_tasks: NDArray[np.int64]
    spans_of_tasks: NDArray[np.int64]
    coincidences: NDArray[np.float64]
    same_of_types: NDArray[np.float64]
    edges_of_types: NDArray[np.float64]
    near: NDArray[np.int64]
    same_positions: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<MarkedSpans: {len(self.annotators):,} spans of {len(self.types)} types>"

    @property
    def missed(self) -> NDArray[np.int64]:
        """Number of aggregated spans that overlap none of the annotator's, by type, int64 [R, K]."""
        return self.expected - self.right - self.wrong_edges - self.wrong_type

    @property
    def agreement(self) -> NDArray[np.float64]:
        """F1 of each annotator's spans with those of the others, [R]; NaN without spans to compare."""
        return ratio(2 * self.same, self.compared)

    @property
    def overall(self) -> float | None:
        """F1 of the spans of two annotators of a sentence; None without spans to compare."""
        return float(2 * self.same.sum() / number) if (number := self.compared.sum()) else None

    @property
    def position_agreement(self) -> float | None:
        """F1 of the positions of two annotators' spans, whatever their types; None without spans to compare."""
        return float(2 * self.same_positions.sum() / total) if (total := self.compared.sum()) else None

    @property
    def agreement_of_tasks(self) -> NDArray[np.float64]:
        """F1 of two annotators within each sentence, [N]; NaN without spans to compare."""
        return ratio(self.same_of_tasks, self.spans_of_tasks * (self.heads - 1))

    @property
    def differing_of_tasks(self) -> NDArray[np.float64]:
        """Number of spans that only one of two annotators of a sentence marks, averaged over pairs, [N]."""
        return ratio(2 * (self.spans_of_tasks * (self.heads - 1) - self.same_of_tasks), self.heads * (self.heads - 1))


def marked_spans(sequences: CrowdSequences, aggregation: SequenceAggregation) -> MarkedSpans:
    """Compares the spans of each annotator with those of the others and with the aggregated ones.

    Args:
        sequences: N sentences of R annotators.
        aggregation: a result for the same sentences.

    Raises:
        DataError: an aggregation of other sentences, annotators or tags.
    """
    table = SequenceTable.of(sequences, "A comparison of spans")
    crowd, tag_set, number = table.annotations, table.tag_set, table.annotations.num_annotators
    check_same(crowd, aggregation, ("tasks", "annotators"))
    if not np.array_equal(aggregation.starts, table.starts):
        raise DataError("The aggregation is one of sentences of another length than the annotations.")
    if [str(name) for name in aggregation.classes.tolist()] != tag_set.classes:
        raise DataError("The aggregation is one of other tags than the annotations.")
    size, count = len(tag_set.types), crowd.num_tasks
    owners, spans = table.said_spans()
    aggregated = tag_set.span_table(aggregation.labels, table.firsts)
    sentences, aggregated_sentences = (
        np.searchsorted(table.starts, side.starts, side="right") - 1 for side in (spans, aggregated)
    )
    begins = np.asarray(crowd.positions) == 0  # one row a (sentence, annotator)
    tasks, annotators = crowd.task_ids[begins], crowd.annotator_ids[begins]
    heads = np.bincount(tasks, minlength=count)

    # Own spans and the others', by sentence and annotator
    cells = tasks * number + annotators
    order = np.argsort(cells)
    counts = np.bincount(np.searchsorted(cells[order], sentences * number + owners), minlength=len(cells))
    tasks, annotators = tasks[order], annotators[order]
    of_tasks = np.bincount(sentences, minlength=count)
    compared = np.bincount(annotators, counts * (heads[tasks] - 1) + of_tasks[tasks] - counts, number).astype(np.int64)
    of_aggregated = np.bincount(aggregated_sentences * size + aggregated.types, minlength=count * size)
    expected = sum_rows(of_aggregated.reshape(count, size)[tasks], annotators, number).astype(np.int64)

    parts = ([getattr(side, name) for side in (spans, aggregated)] for name in ("types", "starts", "ends"))
    every = SpanTable(*map(np.concatenate, parts))
    marker = np.concatenate([owners, np.full(len(aggregated.types), number)])
    place = np.concatenate([sentences, aggregated_sentences])
    sums = _count(every, marker, place, heads, number, size)

    # What is not compared with any span
    lonely = np.maximum(heads - 1, 1)
    weight = 1 / lonely[sentences]
    peers = heads[sentences] - 1
    num_peered = np.bincount(spans.types, np.where(peers > 0, 1.0, 0.0), size)
    unseen = np.bincount(spans.types, peers * weight, size) - sums["coincidences"][:size, :size].sum(axis=1)
    coincidences = (sums["coincidences"] + sums["coincidences"].T) / 2
    coincidences[:size, size] += unseen
    coincidences[size, :size] += unseen
    markings = np.bincount(owners * size + spans.types, minlength=number * size).reshape(number, size)
    cells, often = np.unique(sums["cells"], return_counts=True)
    confusion = np.stack([*np.unravel_index(cells, (max(number, 1), max(size, 1), max(size, 1))), often], axis=1)
    marked = MarkedSpans(
        types=tag_set.types,
        annotators=owners,
        spans=spans,
        sentences=sentences,
        aggregated=aggregated,
        aggregated_sentences=aggregated_sentences,
        heads=heads,
        tasks_of=np.bincount(annotators, minlength=number),
        shared=np.bincount(annotators, heads[tasks] > 1, number).astype(np.int64),
        marks=markings,
        expected=expected,
        invented=markings - sums["overlapping"],
        confusion=confusion,
        compared=compared,
        spans_of_tasks=of_tasks,
        coincidences=coincidences,
        same_of_types=ratio(sums["same_of_types"], num_peered),
        edges_of_types=ratio(sums["edges_of_types"], num_peered),
        near=np.zeros(number, np.int64),
        **{
            name: sums[name]
            for name in ("right", "wrong_edges", "wrong_type", "same", "same_positions", "same_of_tasks")
        },
    )
    if sequences.drawn is None:
        return marked
    return _with_drawn(marked, table.drawn_by_task(sequences.drawn))


def _with_drawn(marked: MarkedSpans, drawn: dict[int, dict[int, list[DrawnSpan]]]) -> MarkedSpans:
    """Replaces the agreement of annotators by that on the spans as they were drawn."""
    of_tasks, same_of_tasks = np.zeros((2, len(marked.heads)), np.int64)
    same, near, positions, compared = np.zeros((4, len(marked.tasks_of)), np.int64)
    for task, sets in drawn.items():
        of_tasks[task] = sum(map(len, sets.values()))
        for pair in combinations(sets, 2):
            spans = [sets[annotator] for annotator in pair]
            counts = num_matched(*spans)
            pieces = [Counter(span.fragments for span in side) for side in spans]
            same_of_tasks[task] += 2 * counts[0]
            numbers = *counts, (pieces[0] & pieces[1]).total(), len(spans[0]) + len(spans[1])
            for number, sums in zip(numbers, (same, near, positions, compared), strict=True):
                sums[list(pair)] += number
    return replace(
        marked,
        same=same,
        near=near,
        same_positions=positions,
        compared=compared,
        same_of_tasks=same_of_tasks,
        spans_of_tasks=of_tasks,
    )


def _count(
    spans: SpanTable,
    marker: NDArray[np.int64],
    place: NDArray[np.int64],
    heads: NDArray[np.int64],
    number: int,
    size: int,
) -> dict[str, NDArray[Any]]:
    """Sums over the closest pairs of spans; see the attributes of `MarkedSpans`.

    `cells` has a code of annotator, aggregated type and given type for each pair with an aggregated span,
    `overlapping` the annotators' spans that overlap an aggregated one.
    """
    parts = _closest(spans, marker, place, number)
    left, right = np.concatenate([np.zeros((2, 0), np.int64), *map(np.stack, parts)], axis=1)
    types = spans.types
    alike = types[left] == types[right]
    placed = (spans.starts[left] == spans.starts[right]) & (spans.ends[left] == spans.ends[right])
    same = alike & placed

    def by_type(whose: NDArray[np.int64], rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        cells = marker[whose[rows]] * size + types[left[rows]]
        return np.bincount(cells, minlength=number * size).reshape(number, size)

    true = marker[left] == number  # an aggregated span and an annotator's
    mine = marker[right] == number  # an annotator's span and an aggregated one
    sums = {
        "right": by_type(right, true & same),
        "wrong_edges": by_type(right, true & alike & ~same),
        "wrong_type": by_type(right, true & ~alike),
        "overlapping": by_type(left, mine),
        "cells": (marker[right[true]] * size + types[left[true]]) * size + types[right[true]],
    }
    both = ~true & ~mine
    left, right, alike, same, placed = (column[both] for column in (left, right, alike, same, placed))
    weight, width, edges = 1 / np.maximum(heads[place[left]] - 1, 1), size + 1, alike & ~same
    coincidences = np.bincount(types[left] * width + types[right], weight, width**2)
    return {
        **sums,
        "coincidences": coincidences.reshape(width, width),
        "same_of_types": np.bincount(types[left[same]], weight[same], size),
        "edges_of_types": np.bincount(types[left[edges]], weight[edges], size),
        "same": np.bincount(marker[left[same]], minlength=number),
        "same_positions": np.bincount(marker[left[placed]], minlength=number),
        "same_of_tasks": np.bincount(place[left[same]], minlength=len(heads)),
    }


def _closest(
    spans: SpanTable, marker: NDArray[np.int64], place: NDArray[np.int64], number: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yields pairs of rows, part by part: each span, and the closest overlapping span of each other marker."""
    lengths = spans.ends - spans.starts
    if not len(lengths):
        return
    rows = np.repeat(np.arange(len(lengths)), lengths)
    tokens = np.repeat(spans.starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(rows))
    order = np.lexsort((rows, tokens))
    rows, tokens = rows[order], tokens[order]
    firsts = np.flatnonzero(np.diff(tokens, prepend=-1))
    depth = np.diff(np.append(firsts, len(rows)))  # spans over each token
    # cut between sentences
    of_firsts = place[rows[firsts]]
    before = np.cumsum(depth**2) - depth**2
    heads = np.flatnonzero(np.diff(of_firsts, prepend=-1))
    parts = np.unique(before[heads] // MOST_ROWS, return_index=True)[1]
    for low, high in zip(heads[parts], np.append(heads[parts[1:]], len(firsts)), strict=True):
        deep = depth[low:high]
        begin = firsts[low]
        mine = rows[begin : begin + deep.sum()]
        repeated = np.repeat(deep, deep)
        left = np.repeat(mine, repeated)
        shift = np.arange(len(left)) - np.repeat(np.cumsum(repeated) - repeated, repeated)
        right = mine[np.repeat(np.repeat(np.cumsum(deep) - deep, deep), repeated) + shift]
        apart = marker[left] != marker[right]
        pairs, overlap = np.unique(left[apart] * len(lengths) + right[apart], return_counts=True)
        left, right = np.divmod(pairs, len(lengths))
        alike = spans.types[left] == spans.types[right]
        same = alike & (spans.starts[left] == spans.starts[right]) & (spans.ends[left] == spans.ends[right])
        key = left * (number + 1) + marker[right]
        order = np.lexsort((spans.starts[right], -overlap, ~alike, ~same, key))
        best = order[np.diff(key[order], prepend=-1) != 0]
        yield left[best], right[best]
