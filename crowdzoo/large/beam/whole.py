"""Steps whose workers have all parameters at hand."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import AsIter, AsSingleton, TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints import Tuple as Pair
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.engine.threads import in_threads
from crowdzoo.large.beam.engine import Engine, Flow, outputs
from crowdzoo.large.beam.files import Reader
from crowdzoo.large.beam.items import (
    Last,
    Totals,
    block_of,
    count_expected,
    count_first,
    prepared_starts,
    with_first_states,
    with_new_states,
)
from crowdzoo.large.beam.runs import best_start, sum_of, without_rows
from crowdzoo.large.beam.values import BlockPosteriors, Item, Message, ShardRows, State, Sums
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.runs import begun, next_start
from crowdzoo.large.forms.tally import Tally

__all__ = ["Expect", "First", "Posteriors", "Whole"]

Array = NDArray[np.float64]
AHEAD = 16  # blocks a thread, after which it waits for the others


class _Bundle(beam.DoFn):
    """Adds up a bundle's blocks in one table for each start and thread, and gives their sum once.

    Out come the sums, under the key 0, and "items" if the next step is to have them, with new states where tasks have
    any.
    """

    def __init__(self, method: Method, passes_items: bool, threads: int):
        super().__init__()
        self.method, self.passes_items, self.threads = method, passes_items, threads

    def start_bundle(self) -> None:
        """Forgets the last bundle."""
        zero = functools.partial(self.method.zero, self.method.num_annotators)
        self.tables: list[Totals] = [defaultdict(zero) for _ in range(self.threads)]
        self.readers = [Reader() for _ in range(self.threads)]
        self.waiting: list[Item] = []
        self.before: State | None = None
        self.seen = False

    def count(self, totals: Totals, item: Item, block: Block) -> Array:
        """Adds an item's block to the totals; gives its tasks' states, [T], or []. Called in threads."""
        raise NotImplementedError

    def after(self, item: Item, new: Array) -> Item:
        """What goes on of an item whose tasks have new states."""
        raise NotImplementedError

    def take(self, item: Item) -> Iterator[TaggedOutput]:
        """Counts an item, now or with the next ones; gives what is done."""
        self.seen = True
        self.waiting.append(item)
        if len(self.waiting) == AHEAD * self.threads:
            for done in self._work():
                yield TaggedOutput("items", done)

    def finish_bundle(self) -> Iterator[Any]:
        """The last items, and the bundle's sums."""
        for done in self._work():
            yield TaggedOutput("items", GlobalWindows.windowed_value(done))
        if self.seen:
            parts: list[Tally | None] = []
            for start in range(self.method.starts):
                tables = [table[start] for table in self.tables if start in table]
                parts.append(functools.reduce(operator.iadd, tables) if tables else None)
            yield GlobalWindows.windowed_value((0, Sums(tuple(parts), self.before)))

    def _work(self) -> list[Item]:
        items, self.waiting = self.waiting, []
        # so that few blocks keep all threads busy, too
        parts = [_cut(item, self.threads) if len(items) < self.threads else [item] for item in items]
        flat = list(itertools.chain(*parts))
        ends = [len(flat) * number // self.threads for number in range(self.threads + 1)]
        shares = [flat[begin:end] for begin, end in itertools.pairwise(ends)]
        jobs = list(zip(self.tables, self.readers, shares, strict=True))
        states = [state for done in in_threads(self._count_some, jobs, self.threads) for state in done]
        if not self.method.has_state:
            return items if self.passes_items else []
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        places = (slice(*place) for place in itertools.pairwise(ends))
        return [self.after(item, np.concatenate(states[place])) for item, place in zip(items, places, strict=True)]

    def _count_some(self, jobs: Sequence[tuple[Totals, Reader, list[Item]]]) -> list[Array]:
        return [self.count(table, item, block_of(item, reader)) for table, reader, items in jobs for item in items]


def _cut(item: Item, number: int) -> list[Item]:
    """An item as about so many."""
    block = block_of(item)
    blocks = block.cut(max(1, -(-len(block) // number))) or [block]
    ends = np.cumsum([0, *(len(part.tasks) for part in blocks)]).tolist()
    return [
        Item(
            part,
            item.codes,
            None if item.state is None else item.state[:, begin:end],
            None if item.given is None else item.given[begin:end],
        )
        for part, (begin, end) in zip(blocks, itertools.pairwise(ends), strict=True)
    ]


class First(_Bundle):
    """Counts blocks before there are parameters."""

    def __init__(self, method: Method, has_given: bool, passes_items: bool, threads: int):
        super().__init__(method, passes_items, threads)
        self.has_given = has_given

    def process(self, element: Item) -> Iterator[TaggedOutput]:
        """Items, with their first states where tasks have any."""
        yield from self.take(element)

    def count(self, totals: Totals, item: Item, block: Block) -> Array:
        """See `count_first`."""
        return count_first(self.method, totals, item, block, self.has_given)

    def after(self, item: Item, new: Array) -> Item:
        """See `with_first_states`."""
        return with_first_states(item, new)


class Expect(_Bundle):
    """E-step of blocks."""

    def start_bundle(self) -> None:
        """Forgets the last bundle."""
        super().start_bundle()
        self.prepared: dict[int, tuple[Any, bool]] | None = None

    def process(self, element: Item, state: State) -> Iterator[TaggedOutput]:
        """Items, with their new states where tasks have any."""
        if self.prepared is None:
            self.before = without_rows(state)
            self.prepared = prepared_starts(self.method, state.runs, state.rows.__getitem__)
        if self.prepared:
            yield from self.take(element)
            return
        self.seen = True
        if self.passes_items:
            yield TaggedOutput("items", element)

    def count(self, totals: Totals, item: Item, block: Block) -> Array:
        """See `count_expected`."""
        assert self.prepared is not None
        return count_expected(self.method, totals, item, block, self.prepared)

    def after(self, item: Item, new: Array) -> Item:
        """See `with_new_states`."""
        return with_new_states(item, new)


def begin_state(
    keyed: tuple[int, Iterable[Sums]], method: Method, given: Array | None, shard: tuple[int, ShardRows]
) -> State:
    """First parameters; those of a start without counts are given, its rows by the only shard."""
    runs, all_rows = [], []
    for total, rows in zip(sum_of(keyed[1]).parts, shard[1].rows, strict=True):
        found = (rows, given) if total is None else method.maximise(total, None, None)
        assert found[0] is not None
        assert found[1] is not None
        runs.append(begun(method, found[1]))
        all_rows.append(found[0])
    return _with_penalties(method, runs, all_rows)


def _with_penalties(method: Method, runs: Iterable[Run[Array]], rows: Sequence[Array]) -> State:
    return State(tuple(runs), tuple(rows), tuple(map(method.penalty, rows)))


def next_state(keyed: tuple[int, Iterable[Sums]], method: Method, states: Iterable[State]) -> State:
    """M-step. The state before it comes once without rows, in the sums, and once, for those who look, with them."""
    runs, all_rows = [], []
    total = sum_of(keyed[1])
    assert total.before is not None
    rows_before = functools.cache(lambda: next(iter(states)).rows)
    for start, part in enumerate(total.parts):
        run, penalty = total.before.runs[start], total.before.penalties[start]

        def rows(start: int = start) -> Array:
            return rows_before()[start]

        after = (run, rows()) if part is None else next_start(method, run, part, rows, penalty)
        runs.append(after[0])
        all_rows.append(after[1])
    return _with_penalties(method, runs, all_rows)


class Posteriors(beam.DoFn):
    """What the best start says of blocks' tasks."""

    def __init__(self, method: Method, threads: int):
        super().__init__()
        self.method, self.threads = method, threads

    def start_bundle(self) -> None:
        """Forgets the last bundle."""
        self.waiting: list[Item] = []
        self.last: Last | None = None

    def process(self, element: Item, state: State) -> Iterator[BlockPosteriors]:
        """Waits for some more, and looks at them in all threads; gives nothing until all starts are done."""
        if not all(run.done for run in state.runs):
            return
        if self.last is None:
            best = best_start(state)
            self.last = Last.of(self.method, state.rows[best], state.runs[best].params)
        self.waiting.append(element)
        if len(self.waiting) == AHEAD * self.threads:
            yield from self._work()

    def finish_bundle(self) -> Iterator[Any]:
        """The last items'."""
        for found in self._work():
            yield GlobalWindows.windowed_value(found)

    def _work(self) -> list[BlockPosteriors]:
        items, self.waiting = self.waiting, []
        last = self.last
        if last is None:
            return []
        found = in_threads(lambda some: [last.posteriors(item) for item in some], items, self.threads)
        return list(itertools.chain(*found))


def with_rows(state: State, shard: tuple[int, ShardRows]) -> State:
    """A state with the rows of the only shard."""
    return replace(state, rows=tuple(rows for rows in shard[1].rows if rows is not None))


def rows_of_state(state: State) -> tuple[int, ShardRows]:
    """The rows of a state, as the only shard."""
    return 0, ShardRows(0, state.rows)


class Whole(Engine):
    """Each worker gets all parameters as a side input, and blocks stay where they are."""

    def begin(self, items: beam.PCollection, shards: beam.PCollection) -> Flow:
        """See `Engine.begin`."""
        common = None if self.given is None else self.given[1]
        first = beam.ParDo(First(self.method, common is not None, self.passes_items, self.threads))
        items, sums = self._ran(items, "First", first)
        begin = beam.Map(begin_state, self.method, common, AsSingleton(shards))
        return Flow(items, sums | "Begin" >> begin.with_output_types(State))

    def resume(self, items: beam.PCollection, state: beam.PCollection, shards: beam.PCollection, answer: bool) -> Flow:
        """See `Engine.resume`."""
        return Flow(items, state | "Rows" >> beam.Map(with_rows, AsSingleton(shards)).with_output_types(State))

    def step(self, flow: Flow, number: int, last: bool = False) -> Flow:
        """See `Engine.step`."""
        expect = beam.ParDo(Expect(self.method, self.passes_items, self.threads), AsSingleton(flow.state))
        items, sums = self._ran(flow.items, f"Expect{number}", expect)
        # an AsIter is fetched when it is looked at, an AsSingleton always
        maximise = beam.Map(next_state, self.method, AsIter(flow.state)).with_output_types(State)
        return Flow(items, sums | f"Maximise{number}" >> maximise)

    def posteriors(self, flow: Flow) -> beam.PCollection:
        """See `Engine.posteriors`."""
        find = beam.ParDo(Posteriors(self.method, self.threads), AsSingleton(flow.state))
        return flow.items | "Posteriors" >> find.with_output_types(BlockPosteriors)

    def rows_to_save(self, flow: Flow) -> beam.PCollection:
        """See `Engine.rows_to_save`."""
        return flow.state | "RowsToSave" >> beam.Map(rows_of_state).with_output_types(Pair[int, Message])

    def _ran(self, items: beam.PCollection, label: str, step: beam.ParDo) -> tuple[beam.PCollection, beam.PCollection]:
        """Items for the next step, and a step's sums, grouped under one key."""
        found = outputs(items, label, step, sums=Pair[int, Sums], items=Item)
        sums = found["sums"] | f"{label}Group" >> beam.GroupByKey()
        return found["items"] if self.passes_items else items, sums
