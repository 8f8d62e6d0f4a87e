"""Steps whose annotators are cut in shards: blocks ask for what they need, and no worker holds everyone."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import AsIter, AsSingleton, TaggedOutput
from apache_beam.typehints import Tuple as Pair
from numpy.typing import NDArray

from crowdzoo.errors import DataError
from crowdzoo.large.beam.engine import Engine, Flow, Shards, outputs
from crowdzoo.large.beam.items import (
    Last,
    Totals,
    block_of,
    codes_of,
    count_expected,
    count_first,
    key_of,
    prepared_starts,
    with_first_states,
    with_new_states,
)
from crowdzoo.large.beam.runs import best_start, sum_of
from crowdzoo.large.beam.values import BlockPosteriors, Item, Message, Request, ShardRows, State, StoredBlock, Sums
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.runs import begun, next_run
from crowdzoo.large.forms.tally import Tally

__all__ = ["Sharded"]

Array = NDArray[np.float64]
Keyed = Pair[int, Message]  # to Beam: under the key of a block or the number of a shard


def piece_of(item: Item) -> tuple[int, Item]:
    """An item whose annotators are numbered among themselves."""
    block = block_of(item)
    is_here = np.zeros(int(block.annotator_ids.max(initial=-1)) + 1, np.bool_)
    is_here[block.annotator_ids] = True
    codes = np.flatnonzero(is_here)
    kept = item.block if isinstance(item.block, StoredBlock) else block.renumbered(codes)
    return key_of(block), replace(item, block=kept, codes=codes)


def _ranges(codes: NDArray[np.int64], shards: Shards) -> Iterator[tuple[int, slice]]:
    """The shards that ascending codes fall in, and where."""
    if not len(codes):
        return
    owners = codes // shards.size
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    for begin, end in zip(first, [*first[1:], len(codes)], strict=True):
        yield int(owners[begin]), slice(int(begin), int(end))


def requests_of(keyed: tuple[int, Item], shards: Shards) -> Iterator[tuple[int, Request]]:
    """What a block asks of which shard."""
    key, codes = keyed[0], codes_of(keyed[1])
    if len(codes) and codes[-1] >= shards.num_annotators:
        raise DataError(f"A block has annotator {codes[-1]}, but there are {shards.num_annotators}.")
    for shard, place in _ranges(codes, shards):
        yield shard, Request(key, codes[place] - shard * shards.size)


def _sent(key: int, item: Item, totals: Totals, method: Method, shards: Shards) -> Iterator[Any]:
    """What a block sends: the annotators' counts to their shards, the rest to all, and itself if tasks have states."""
    codes, by_start = codes_of(item), [totals.get(start) for start in range(method.starts)]
    rest = (None if total is None else replace(total, rows=total.rows[:0]) for total in by_start)
    yield TaggedOutput("sums", Sums(tuple(rest)))
    for shard, place in _ranges(codes, shards) if totals else ():
        rows = tuple(None if total is None else total.rows[place] for total in by_start)
        yield shard, ShardRows(shard, rows, codes[place] - shard * shards.size)
    if method.has_state:
        yield TaggedOutput("items", (key, item))


def first_piece(keyed: tuple[int, Item], method: Method, shards: Shards, has_given: bool) -> Iterator[Any]:
    """Counts a block before there are parameters; gives counts, and the item with its first states."""
    key, item = keyed
    totals: Totals = defaultdict(functools.partial(method.zero, len(codes_of(item))))
    new = count_first(method, totals, item, block_of(item), has_given)
    yield from _sent(key, with_first_states(item, new), totals, method, shards)


def expect_piece(element: tuple[int, Iterable[Message]], method: Method, shards: Shards, state: State) -> Iterator[Any]:
    """E-step of a block and the annotators that it asked for; gives counts, and the item with its new states."""
    key, messages = element
    items, answers = _sorted_out(messages)
    for item in items:
        size = len(codes_of(item))
        totals: Totals = defaultdict(functools.partial(method.zero, size))
        if not all(run.done for run in state.runs):  # else blocks need not be read
            prepared = prepared_starts(method, state.runs, functools.partial(_rows_of, answers, method, size))
            new = count_expected(method, totals, item, block_of(item), prepared)
            item = with_new_states(item, new) if method.has_state else item
        yield from _sent(key, item, totals, method, shards)


def _sorted_out(messages: Iterable[Message]) -> tuple[list[Item], list[ShardRows]]:
    items, answers = [], []
    for message in messages:
        if isinstance(message, Item):
            items.append(message)
        elif isinstance(message, ShardRows):
            answers.append(message)
    return items, sorted(answers, key=lambda answer: answer.shard)


def _rows_of(answers: list[ShardRows], method: Method, num_annotators: int, start: int) -> Array:
    """Rows of a block's annotators: answers are in order of shards, and each in that of its request."""
    rows = np.concatenate([method.no_rows, *(answer.rows[start] for answer in answers)])
    if len(rows) != num_annotators:
        raise DataError(f"{num_annotators} annotators of a block got {len(rows)} answers.")
    return rows


def step_of_shard(
    element: tuple[int, Iterable[Message]], method: Method, shards: Shards, maximise: bool, state: State
) -> Iterator[Any]:
    """M-step of a shard; gives its rows, their penalties, and an answer to each request.

    Args:
        element: number of the shard, and all that was sent to it.
        method: whose.
        shards: how annotators are cut.
        maximise: False: only those starts get rows that have none, as at the beginning, or not even these.
        state: of all starts.
    """
    shard, messages = element
    totals: Totals = defaultdict(
        functools.partial(method.zero, shards.size_of(shard))
    )  # if nobody there said anything: zero
    requests, old = [], None
    for message in messages:
        if isinstance(message, Request):
            requests.append(message)
        elif isinstance(message, ShardRows) and message.codes is None:
            old = message
        elif isinstance(message, ShardRows):
            for start, part in enumerate(message.rows):
                if part is not None:
                    totals[start].rows[message.codes] += part  # codes are unique
    assert old is not None
    rows: list[Array] = []
    for start, (run, before) in enumerate(zip(state.runs, old.rows, strict=True)):
        if before is None or (maximise and not run.done):
            before = method.maximise(totals[start], before, run.params)[0]
        rows.append(before)
    yield shard, ShardRows(shard, tuple(rows))
    yield TaggedOutput("penalties", Sums(tuple(Tally(row[:0], np.array([method.penalty(row)])) for row in rows)))
    if all(run.done for run in state.runs):
        return
    for request in requests:  # all answers together may be many times the shard, so each is an element of its own
        wanted = (None if run.done else row[request.codes] for run, row in zip(state.runs, rows, strict=True))
        yield TaggedOutput("answers", (request.key, ShardRows(shard, tuple(wanted))))


def begin_common(_: bytes, method: Method, given: Array | None, sums: Iterable[Sums]) -> State:
    """First parameters that are common to all annotators."""
    commons = (given if total is None else method.maximise(total, None, None)[1] for total in sum_of(sums).parts)
    return State(tuple(begun(method, common) for common in commons if common is not None))


def next_common(state: State, method: Method, sums: Iterable[Sums], penalties: Iterable[Sums]) -> State:
    """Histories, and M-step of what is common to all annotators."""
    runs = []
    for total, run, penalty in zip(sum_of(sums).parts, state.runs, sum_of(penalties).parts, strict=True):
        assert penalty is not None
        runs.append(run if total is None else next_run(method, run, total, float(penalty.common[0])))
    return State(tuple(runs))


def best_shard(keyed: tuple[int, ShardRows], method: Method, size: int, state: State) -> tuple[int, Any]:
    """The best start's parameters of a shard, under the code of its first annotator."""
    best = best_start(state)
    rows = keyed[1].rows[best]
    assert rows is not None
    return keyed[0] * size, method.params(rows, state.runs[best].params)


def last_answers(element: tuple[int, Iterable[Message]], state: State) -> Iterator[tuple[int, ShardRows]]:
    """The best start's rows, for everyone who asked."""
    shard, messages = element[0], list(element[1])
    (rows,) = (message.rows[best_start(state)] for message in messages if isinstance(message, ShardRows))
    assert rows is not None
    for message in messages:
        if isinstance(message, Request):
            yield message.key, ShardRows(shard, (rows[message.codes],))


def piece_posteriors(element: tuple[int, Iterable[Message]], method: Method, state: State) -> Iterator[BlockPosteriors]:
    """What the best start says of a block's tasks, given the answers of the shards."""
    items, answers = _sorted_out(element[1])
    for item in items:
        rows = _rows_of(answers, method, len(codes_of(item)), 0)
        yield Last.of(method, rows, state.runs[best_start(state)].params).posteriors(item)


class Sharded(Engine):
    """Every block asks the shards for its annotators, and sends them its counts."""

    def begin(self, items: beam.PCollection, shards: beam.PCollection) -> Flow:
        """See `Engine.begin`."""
        method, common = self.method, None if self.given is None else self.given[1]
        pieces, requests = self._pieces(items)
        counts, sums, after = self._sent(pieces, pieces, "First", first_piece, common is not None)
        begin = beam.Map(begin_common, method, common, AsIter(sums))
        state = items.pipeline | "One" >> beam.Impulse() | "Begin" >> begin.with_output_types(State)
        return self._sharded(Flow(after, state, shards, requests=requests), "BeginShards", counts, requests)

    def resume(self, items: beam.PCollection, state: beam.PCollection, shards: beam.PCollection, answer: bool) -> Flow:
        """See `Engine.resume`."""
        pieces, requests = self._pieces(items)
        flow = Flow(pieces, state, shards, requests=requests)
        return self._sharded(flow, "ResumeShards", requests) if answer else flow

    def step(self, flow: Flow, number: int, last: bool = False) -> Flow:
        """See `Engine.step`."""
        joined = _joined(f"Join{number}", flow.items, flow.answers)
        state = AsSingleton(flow.state)
        counts, sums, items = self._sent(joined, flow.items, f"Expect{number}", expect_piece, state)
        decide = beam.Map(next_common, self.method, AsIter(sums), AsIter(flow.penalties))
        after = flow._replace(items=items, state=flow.state | f"Decide{number}" >> decide.with_output_types(State))
        mail = (counts,) if last else (counts, flow.requests)
        return self._sharded(after, f"Maximise{number}", *mail, maximise=True)

    def posteriors(self, flow: Flow) -> beam.PCollection:
        """See `Engine.posteriors`."""
        state = AsSingleton(flow.state)
        answer = beam.FlatMap(last_answers, state).with_output_types(Keyed)
        answers = _joined("LastMail", flow.shards, flow.requests) | "LastAnswers" >> answer
        find = beam.FlatMap(piece_posteriors, self.method, state).with_output_types(BlockPosteriors)
        return _joined("LastJoin", flow.items, answers) | "Posteriors" >> find

    def annotators(self, flow: Flow) -> dict[str, beam.PCollection]:
        """See `Engine.annotators`."""
        hints = Pair[int, self.method.params_type]
        choose = beam.Map(best_shard, self.method, self.shards.size, AsSingleton(flow.state))
        return {"annotators": flow.shards | "ChooseRows" >> choose.with_output_types(hints)}

    def rows_to_save(self, flow: Flow) -> beam.PCollection:
        """See `Engine.rows_to_save`."""
        return flow.shards

    def items_to_save(self, flow: Flow) -> beam.PCollection:
        """See `Engine.items_to_save`."""
        return flow.items | "ItemsToSave" >> beam.Values()

    def _pieces(self, items: beam.PCollection) -> tuple[beam.PCollection, beam.PCollection]:
        pieces = items | "Renumber" >> beam.Map(piece_of).with_output_types(Keyed)
        requests = pieces | "Ask" >> beam.FlatMap(requests_of, self.shards).with_output_types(Keyed)
        return pieces, requests

    def _sent(
        self, elements: beam.PCollection, before: beam.PCollection, label: str, step: Any, argument: Any
    ) -> tuple[beam.PCollection, beam.PCollection, beam.PCollection]:
        """Counts for shards, sums for all, and pieces after the step; where tasks have no state, those before it."""
        count = beam.FlatMap(step, self.method, self.shards, argument)
        found = outputs(elements, label, count, counts=Keyed, sums=Sums, items=Keyed)
        return found["counts"], found["sums"], found["items"] if self.method.has_state else before

    def _sharded(self, flow: Flow, label: str, *mail: beam.PCollection, maximise: bool = False) -> Flow:
        """The shards' rows, and their answers to what the next E-step needs."""
        step = beam.FlatMap(step_of_shard, self.method, self.shards, maximise, AsSingleton(flow.state))
        mail_of = _joined(f"{label}Mail", flow.shards, *mail)
        found = outputs(mail_of, label, step, rows=Keyed, penalties=Sums, answers=Keyed)
        return flow._replace(shards=found["rows"], answers=found["answers"], penalties=found["penalties"])


def _joined(label: str, *parts: beam.PCollection) -> beam.PCollection:
    """All messages under the same key."""
    return parts | f"{label}All" >> beam.Flatten() | label >> beam.GroupByKey()
