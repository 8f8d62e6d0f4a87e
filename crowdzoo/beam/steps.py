"""What workers call on Beam: functions and DoFns over items, shards and files. `beam` wires them."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.transforms.window import GlobalWindows
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import FIELDS, Block
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.engine.threads import in_threads
from crowdzoo.beam.files import Folder, Reader, read_value, write_value
from crowdzoo.beam.methods import Found, Method
from crowdzoo.beam.values import (
    BlockPosteriors,
    Item,
    Parcel,
    Request,
    ShardRows,
    ShardStep,
    State,
    Step,
    StoredBlock,
    Sums,
    Tally,
)
from crowdzoo.constraints import Number
from crowdzoo.errors import DataError

__all__ = [
    "Expect",
    "ExpectPiece",
    "First",
    "FirstPiece",
    "Posteriors",
    "Shards",
    "StepOfShard",
    "answers_of",
    "begin_common",
    "begin_state",
    "best_run",
    "best_shard",
    "best_start",
    "finished_run",
    "item_of",
    "keyed_item_of",
    "keyed_sums_of",
    "last_answers",
    "next_common",
    "next_state",
    "params_of_run",
    "parts_of",
    "penalties_of",
    "piece_of",
    "piece_posteriors",
    "read_posteriors",
    "read_shard",
    "requests_of",
    "rows_of_shard",
    "rows_of_state",
    "stored_item",
    "sums_of",
    "with_rows",
    "with_state",
    "write_manifest",
    "write_posteriors",
    "write_shard",
    "write_state",
]

Array = NDArray[np.float64]


class Shards(NamedTuple):
    """How annotators are cut: shard s has those from `s * size` on."""

    num_annotators: int
    size: int

    @classmethod
    def of(cls, method: Method, max_bytes: int) -> Shards:
        """Shards of at most so many bytes of parameters, all starts together; of one annotator at least."""
        Number(1, whole=True).checked("", "max_shard_bytes", max_bytes)
        size = max_bytes // (method.row_bytes * method.starts)
        return cls(method.num_annotators, max(1, min(size, method.num_annotators)))

    @property
    def number(self) -> int:
        """How many shards; one means that all workers get all parameters."""
        return max(1, -(-self.num_annotators // self.size))

    def size_of(self, shard: int) -> int:
        """How many annotators a shard has."""
        return min(self.size, self.num_annotators - shard * self.size)


# === What workers call: all parameters at hand ===


AHEAD = 16  # blocks a thread, after which it waits for the others


class _Bundle(beam.DoFn):
    """Adds up a bundle's blocks in one table for each start and thread, and gives their sum once.

    Where tasks have states, out come Steps, of an item or of sums; else only the sums, under the key 0.
    """

    def __init__(self, method: Method, threads: int):
        super().__init__()
        self.method, self.threads = method, threads

    def start_bundle(self) -> None:
        """Forgets the last bundle."""
        self.tables: list[dict[int, Tally]] = [{} for _ in range(self.threads)]
        self.readers = [Reader() for _ in range(self.threads)]
        self.waiting: list[Item] = []
        self.before: State | None = None
        self.seen = False

    def count(self, table: Callable[[int], Tally], item: Item, block: Block) -> Array:
        """Adds an item's block to the table of each start; gives its tasks' states, [T], or []. Called in threads."""
        raise NotImplementedError

    def after(self, item: Item, state: Array) -> Item:
        """What goes on of an item whose tasks have new states."""
        raise NotImplementedError

    def take(self, item: Item) -> list[Step]:
        """Counts an item, now or with the next ones; gives what is done."""
        self.seen = True
        self.waiting.append(item)
        return self._work() if len(self.waiting) == AHEAD * self.threads else []

    def finish_bundle(self) -> Iterator[Any]:
        """The last items, and the bundle's sums."""
        for step in self._work():
            yield GlobalWindows.windowed_value(step)
        if self.seen:
            parts: list[Tally | None] = []
            for start in range(self.method.starts):
                tables = [table[start] for table in self.tables if start in table]
                parts.append(functools.reduce(operator.iadd, tables) if tables else None)
            sums = Sums(tuple(parts), self.before)
            yield GlobalWindows.windowed_value(Step(sums=sums) if self.method.has_state else (0, sums))

    def _work(self) -> list[Step]:
        items, self.waiting = self.waiting, []
        # so that few blocks keep all threads busy, too
        parts = [_cut(item, self.threads) if len(items) < self.threads else [item] for item in items]
        flat = list(itertools.chain(*parts))
        ends = [len(flat) * number // self.threads for number in range(self.threads + 1)]
        shares = [flat[begin:end] for begin, end in itertools.pairwise(ends)]
        jobs = list(zip(self.tables, self.readers, shares, strict=True))
        states = [state for done in in_threads(self._count_some, jobs, self.threads) for state in done]
        if not self.method.has_state:
            return []
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        places = (slice(*place) for place in itertools.pairwise(ends))
        return [
            Step(item=self.after(item, np.concatenate(states[place])))
            for item, place in zip(items, places, strict=True)
        ]

    def _count_some(self, jobs: Sequence[tuple[dict[int, Tally], Reader, list[Item]]]) -> list[Array]:
        states = []
        for tables, reader, items in jobs:

            def table(start: int, tables: dict[int, Tally] = tables) -> Tally:
                if start not in tables:
                    tables[start] = self.method.zero(self.method.num_annotators)
                return tables[start]

            states += [self.count(table, item, block_of(item, reader)) for item in items]
        return states


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

    def __init__(self, method: Method, has_given: bool, threads: int):
        super().__init__(method, threads)
        self.has_given = has_given

    def process(self, element: Item) -> Iterator[Step]:
        """Items with their first states, where tasks have any."""
        yield from self.take(element)

    def count(self, table: Callable[[int], Tally], item: Item, block: Block) -> Array:
        """Each start's first counts; the last start's states."""
        new = np.full(len(block.tasks), self.method.first_state)
        for start in range(int(self.has_given), self.method.starts):
            found = self.method.first(table(start), block, start, None, item.given if start == 0 else None)
            new = new if found is None else found
        return new

    def after(self, item: Item, state: Array) -> Item:
        """States before and after are the same, and are those that the item came with, if it did."""
        return Item(item.block, None, np.stack([state, state]) if item.state is None else item.state)


class Expect(_Bundle):
    """E-step of blocks."""

    def start_bundle(self) -> None:
        """Forgets the last bundle."""
        super().start_bundle()
        self.prepared: dict[int, tuple[Any, bool]] | None = None

    def process(self, element: Item, state: State) -> Iterator[Step]:
        """Items with their new states, where tasks have any."""
        if self.prepared is None:
            self.before = without_rows(state)
            self.prepared = {
                # without a further M-step there is nothing to count
                start: (self.method.prepared(state.rows[start], run.params), len(run.history) < self.method.max_iter)
                for start, run in enumerate(state.runs)
                if not run.done
            }
        if self.prepared:
            yield from self.take(element)
            return
        self.seen = True
        if self.method.has_state:
            yield Step(item=element)

    def count(self, table: Callable[[int], Tally], item: Item, block: Block) -> Array:
        """Each start's expected counts; the last start's states."""
        assert self.prepared is not None
        new: Array = np.zeros(0)
        for start, (params, counting) in self.prepared.items():
            now = None if item.state is None else item.state[1]
            found = self.method.expect(table(start), block, params, now, counting)
            new = new if found is None else found
        return new

    def after(self, item: Item, state: Array) -> Item:
        """The states before this step, and after it."""
        assert item.state is not None
        return Item(item.block, None, _stacked(item.state[1], state))


def _stacked(before: Array | None, after: Array) -> Array:
    assert before is not None
    return np.stack([before, after])


def keyed_sums_of(step: Step) -> tuple[tuple[int, Sums], ...]:
    """The sums, if there are any, under the key 0."""
    return () if step.sums is None else ((0, step.sums),)


def sums_of(step: Step) -> tuple[Sums, ...]:
    """The sums, if there are any."""
    return () if step.sums is None else (step.sums,)


def _sum(values: Iterable[Sums]) -> Sums:
    return functools.reduce(Sums.__add__, values)


def item_of(step: Step) -> tuple[Item, ...]:
    """The item, if there is one."""
    return () if step.item is None else (step.item,)


def begin_state(
    keyed: tuple[int, Iterable[Sums]], method: Method, given: Array | None, shard: tuple[int, Parcel]
) -> State:
    """First parameters; those of a start without counts are given, its rows by the only shard."""
    content = shard[1].content
    assert isinstance(content, ShardRows)
    runs, all_rows = [], []
    for total, rows in zip(_sum(keyed[1]).parts, content.rows, strict=True):
        found = (rows, given) if total is None else method.maximise(total, None, None)
        assert found[0] is not None
        assert found[1] is not None
        runs.append(_begun(method, found[1]))
        all_rows.append(found[0])
    return _with_penalties(method, runs, all_rows)


def _with_penalties(method: Method, runs: Iterable[Run[Array]], rows: Sequence[Array]) -> State:
    return State(tuple(runs), tuple(rows), tuple(map(method.penalty, rows)))


def without_rows(state: State) -> State:
    """All that is small of a state."""
    return replace(state, rows=())


def _begun(method: Method, common: Array) -> Run[Array]:
    return Run(common) if method.max_iter else Run(common, (0.0,), 0.0, True, True)


def next_state(keyed: tuple[int, Iterable[Sums]], method: Method, states: Iterable[State]) -> State:
    """M-step. The state before it comes once without rows, in the sums, and once, for those who look, with them."""
    runs, all_rows = [], []
    total = _sum(keyed[1])
    assert total.before is not None
    rows_before = functools.cache(lambda: next(iter(states)).rows)
    for start, part in enumerate(total.parts):
        run = total.before.runs[start]
        after = run if part is None else _next_run(method, run, part, total.before.penalties[start])
        runs.append(after)
        if part is None or after.done:
            all_rows.append(rows_before()[start])
        else:
            all_rows.append(method.maximise(part, rows_before()[start] if method.needs_rows else None, run.params)[0])
    return _with_penalties(method, runs, all_rows)


def _next_run(method: Method, run: Run[Array], total: Tally, penalty: float) -> Run[Array]:
    nobody = replace(total, rows=total.rows[:0])
    return advance(
        run,
        method.objective(total.common, run.params) + penalty,
        float(total.common[-3]),
        int(total.common[-1]),
        method.max_iter,
        method.tol,
        lambda: method.maximise(nobody, None, run.params)[1],
    )


def best_start(state: State) -> int:
    """The start with the highest objective; the earliest of equals."""
    return max(range(len(state.runs)), key=lambda start: state.runs[start].history[-1])


def best_run(state: State, method: Method) -> Run:
    """The best start as the local engine has it; with shards, of no annotator."""
    best = best_start(state)
    return finished_run(method, state.runs[best], state.rows[best] if state.rows else method.zero(0).rows)


def finished_run(method: Method, run: Run[Array], rows: Array) -> Run:
    """A run as the local engine has it."""
    history = run.history if method.max_iter else ()
    return replace(run, params=method.params(rows, run.params), history=history)


def params_of_run(run: Run) -> Any:
    """A run's parameters."""
    return run.params


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


class Last(NamedTuple):
    """The final parameters, ready for all blocks."""

    method: Method
    params: Any
    means: Any

    @classmethod
    def of(cls, method: Method, rows: Array, common: Array) -> Last:
        """From the best start's rows, and what is common to all annotators."""
        return cls(method, method.prepared(rows, common), method.means(rows, common))

    def posteriors(self, item: Item) -> BlockPosteriors:
        """What they say of a block."""
        block, method = block_of(item), self.method
        before = None if item.state is None else item.state[0]
        posteriors = method.posteriors(block, self.params, self.means, before)
        labels = method.labels(posteriors, block.tasks)
        likelihood = method.last_likelihood(block, self.means)
        return BlockPosteriors(block.tasks, posteriors, labels, before, likelihood)


# === What workers call: annotators in shards ===


def key_of(block: Block | StoredBlock) -> int:
    """A block's first task, which no other block has; -1 of an empty block."""
    if isinstance(block, StoredBlock):
        return block.key
    return int(block.tasks[0]) if len(block.tasks) else -1


def block_of(item: Item, reader: Reader | None = None) -> Block:
    """An item's block; where it is stored, in memory that is good until the reader reads the next."""
    if isinstance(item.block, Block):
        return item.block
    block = (reader or Reader()).read(item.block.path, item.block.size).block
    return block if item.codes is None else _renumbered(block, item.codes)


def piece_of(item: Item) -> tuple[int, Parcel]:
    """An item whose annotators are numbered among themselves."""
    block = block_of(item)
    is_here = np.zeros(int(block.annotator_ids.max(initial=-1)) + 1, np.bool_)
    is_here[block.annotator_ids] = True
    codes = np.flatnonzero(is_here)
    kept = item.block if isinstance(item.block, StoredBlock) else _renumbered(block, codes)
    return key_of(block), Parcel(replace(item, block=kept, codes=codes))


def _renumbered(block: Block, codes: NDArray[np.int64]) -> Block:
    """The same block with annotators numbered as they stand in `codes`, which has all of them."""
    places = np.empty(codes.max(initial=-1) + 1, np.int32)
    places[codes] = np.arange(len(codes))
    changed = Block.__new__(Block)
    for name in FIELDS:
        setattr(changed, name, getattr(block, name))
    changed.annotator_ids = places[block.annotator_ids]
    return changed


def _ranges(codes: NDArray[np.int64], shards: Shards) -> Iterator[tuple[int, slice]]:
    """The shards that ascending codes fall in, and where."""
    if not len(codes):
        return
    owners = codes // shards.size
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    for begin, end in zip(first, [*first[1:], len(codes)], strict=True):
        yield int(owners[begin]), slice(int(begin), int(end))


def requests_of(keyed: tuple[int, Parcel], shards: Shards) -> Iterator[tuple[int, Parcel]]:
    """What a block asks of which shard."""
    key, item = keyed[0], keyed[1].content
    assert isinstance(item, Item)
    assert item.codes is not None
    if len(item.codes) and item.codes[-1] >= shards.num_annotators:
        raise DataError(f"A block has annotator {item.codes[-1]}, but there are {shards.num_annotators}.")
    for shard, place in _ranges(item.codes, shards):
        yield shard, Parcel(Request(key, item.codes[place] - shard * shards.size))


def _piece_step(
    key: int, item: Item, totals: list[Tally | None], state: Array | None, method: Method, shards: Shards
) -> Step:
    """What a block sends: the annotators' counts to their shards, the rest to all."""
    assert item.codes is not None
    sums = Sums(tuple(None if total is None else replace(total, rows=total.rows[:0]) for total in totals))
    parts: list[ShardRows] = []
    if any(total is not None for total in totals):
        for shard, place in _ranges(item.codes, shards):
            rows = tuple(None if total is None else total.rows[place] for total in totals)
            parts.append(ShardRows(shard, rows, item.codes[place] - shard * shards.size))
    after = replace(item, state=state, given=None) if method.has_state else None
    return Step(key, after, sums, tuple(parts))


class FirstPiece(beam.DoFn):
    """Counts a block before there are parameters."""

    def __init__(self, method: Method, shards: Shards, has_given: bool):
        super().__init__()
        self.method, self.shards, self.has_given = method, shards, has_given

    def process(self, element: tuple[int, Parcel]) -> Iterator[Step]:
        """Counts, and the item with its first states."""
        key, item = element[0], element[1].content
        assert isinstance(item, Item)
        method, state, block = self.method, item.state, block_of(item)
        assert item.codes is not None
        new = np.full(len(block.tasks), method.first_state)
        totals: list[Tally | None] = [None] * int(self.has_given)
        for start in range(int(self.has_given), method.starts):
            total = method.zero(len(item.codes))
            found = method.first(total, block, start, item.codes, item.given if start == 0 else None)
            totals.append(total)
            if found is not None:
                new = found
        if state is None and method.has_state:
            state = np.stack([new, new])
        yield _piece_step(key, item, totals, state, method, self.shards)


class ExpectPiece(beam.DoFn):
    """E-step of a block and the annotators that it asked for."""

    def __init__(self, method: Method, shards: Shards):
        super().__init__()
        self.method, self.shards = method, shards

    def process(self, element: tuple[int, Iterable[Parcel]], state: State) -> Iterator[Step]:
        """Counts, and the item with its new states."""
        key, parcels = element
        items, answers = _sorted_out(parcels)
        method = self.method
        if all(run.done for run in state.runs):  # and blocks need not be read
            yield from (
                _piece_step(key, item, [None] * method.starts, item.state, method, self.shards) for item in items
            )
            return
        for item in items:
            assert item.codes is not None
            totals: list[Tally | None] = []
            after, block = item.state, block_of(item)
            for start, run in enumerate(state.runs):
                if run.done:
                    totals.append(None)
                    continue
                params = method.prepared(_rows_of(answers, start, method, len(item.codes)), run.params)
                total = method.zero(len(item.codes))
                now = None if item.state is None else item.state[1]
                counting = len(run.history) < method.max_iter
                new = method.expect(total, block, params, now, counting)
                totals.append(total)
                if new is not None:
                    after = _stacked(now, new)
            yield _piece_step(key, item, totals, after, method, self.shards)


def _sorted_out(parcels: Iterable[Parcel]) -> tuple[list[Item], list[ShardRows]]:
    contents = [parcel.content for parcel in parcels]
    items = [content for content in contents if isinstance(content, Item)]
    answers = [content for content in contents if isinstance(content, ShardRows)]
    return items, sorted(answers, key=lambda answer: answer.shard)


def _rows_of(answers: list[ShardRows], start: int, method: Method, num_annotators: int) -> Array:
    """Rows of a block's annotators: answers are in order of shards, and each in that of its request."""
    rows = np.concatenate([method.zero(0).rows, *(answer.rows[start] for answer in answers)])
    if len(rows) != num_annotators:
        raise DataError(f"{num_annotators} annotators of a block got {len(rows)} answers.")
    return rows


class StepOfShard(beam.DoFn):
    """M-step of a shard, and its answers.

    Args:
        method: whose.
        shards: how annotators are cut.
        maximise: False: only those starts get rows that have none, as at the beginning, or not even these.
    """

    def __init__(self, method: Method, shards: Shards, maximise: bool):
        super().__init__()
        self.method, self.shards, self.maximise = method, shards, maximise

    def process(self, element: tuple[int, Iterable[Parcel]], state: State) -> Iterator[ShardStep]:
        """New rows of the starts that are not done; then an answer to each request."""
        shard, parcels = element
        method, requests = self.method, []
        totals: list[Tally | None] = [None] * method.starts
        old: ShardRows | None = None
        for parcel in parcels:
            content = parcel.content
            if isinstance(content, Request):
                requests.append(content)
            elif isinstance(content, ShardRows) and content.codes is None:
                old = content
            elif isinstance(content, ShardRows):
                for start, part in enumerate(content.rows):
                    if part is None:
                        continue
                    if totals[start] is None:
                        totals[start] = method.zero(self.shards.size_of(shard))
                    totals[start].rows[content.codes] += part  # type: ignore[union-attr]  # codes are unique
        assert old is not None
        rows: list[Array] = []
        for start, (run, before) in enumerate(zip(state.runs, old.rows, strict=True)):
            if before is None or (self.maximise and not run.done):
                total = totals[start]
                if total is None:  # nobody of this shard said anything
                    total = method.zero(self.shards.size_of(shard))
                rows.append(method.maximise(total, before, run.params)[0])
            else:
                rows.append(before)
        penalties = Sums(tuple(Tally(row[:0], np.array([method.penalty(row)])) for row in rows))
        yield ShardStep(ShardRows(shard, tuple(rows)), penalties)
        if all(run.done for run in state.runs):
            return
        for request in requests:
            wanted = (None if run.done else row[request.codes] for run, row in zip(state.runs, rows, strict=True))
            yield ShardStep(answer=ShardRows(shard, tuple(wanted)), key=request.key)


def rows_of_shard(step: ShardStep) -> tuple[tuple[int, Parcel], ...]:
    """The shard's parameters, if they are there, under its number."""
    return () if step.state is None else ((step.state.shard, Parcel(step.state)),)


def answers_of(step: ShardStep) -> tuple[tuple[int, Parcel], ...]:
    """The answer, if there is one, under the key of the block that asked."""
    return () if step.answer is None else ((step.key, Parcel(step.answer)),)


def penalties_of(step: ShardStep) -> tuple[Sums, ...]:
    """The annotators' part of the objective, if it is there."""
    return () if step.penalties is None else (step.penalties,)


def keyed_item_of(step: Step) -> tuple[tuple[int, Parcel], ...]:
    """The item, if there is one, under its block's key."""
    return () if step.item is None else ((step.key, Parcel(step.item)),)


def parts_of(step: Step) -> Iterator[tuple[int, Parcel]]:
    """The annotators' counts, under the numbers of their shards."""
    for part in step.parts:
        yield part.shard, Parcel(part)


def begin_common(_: bytes, method: Method, given: Array | None, sums: Iterable[Sums]) -> State:
    """First parameters that are common to all annotators."""
    commons = (given if total is None else method.maximise(total, None, None)[1] for total in _sum(sums).parts)
    return State(tuple(_begun(method, common) for common in commons if common is not None))


def next_common(state: State, method: Method, sums: Iterable[Sums], penalties: Iterable[Sums]) -> State:
    """Histories, and M-step of what is common to all annotators."""
    runs = []
    for total, run, penalty in zip(_sum(sums).parts, state.runs, _sum(penalties).parts, strict=True):
        assert penalty is not None
        runs.append(run if total is None else _next_run(method, run, total, float(penalty.common[0])))
    return State(tuple(runs))


def best_shard(keyed: tuple[int, Parcel], method: Method, size: int, state: State) -> tuple[int, Any]:
    """The best start's parameters of a shard, under the code of its first annotator."""
    best, content = best_start(state), keyed[1].content
    assert isinstance(content, ShardRows)
    rows = content.rows[best]
    assert rows is not None
    return keyed[0] * size, method.params(rows, state.runs[best].params)


def last_answers(element: tuple[int, Iterable[Parcel]], state: State) -> Iterator[tuple[int, Parcel]]:
    """The best start's rows, for everyone who asked."""
    shard, parcels = element
    contents = [parcel.content for parcel in parcels]
    (rows,) = (content.rows[best_start(state)] for content in contents if isinstance(content, ShardRows))
    assert rows is not None
    for content in contents:
        if isinstance(content, Request):
            yield content.key, Parcel(ShardRows(shard, (rows[content.codes],)))


def piece_posteriors(element: tuple[int, Iterable[Parcel]], method: Method, state: State) -> Iterator[BlockPosteriors]:
    """What the best start says of a block's tasks, given the answers of the shards."""
    items, answers = _sorted_out(element[1])
    for item in items:
        assert item.codes is not None
        rows = _rows_of(answers, 0, method, len(item.codes))
        yield Last.of(method, rows, state.runs[best_start(state)].params).posteriors(item)


# === What workers call: files ===


def stored_item(place: tuple[str, int, int], first: bool) -> Item:
    """A block that `aggregate` wrote, by path, size and key; with what it begins from, or without."""
    stored = StoredBlock(*place)
    return replace(read_value(stored.path), block=stored) if first else Item(stored)


def with_state(item: Item, folder: Folder, number: int) -> Item:
    """An item with its tasks' states as of a checkpoint."""
    return replace(item, state=read_value(folder.tasks(number, key_of(item.block))))


def read_shard(shard: int, folder: Folder, number: int) -> tuple[int, Parcel]:
    """A shard's parameters as of a checkpoint."""
    return shard, Parcel(read_value(folder.shard(number, shard)))


def with_rows(state: State, shard: tuple[int, Parcel]) -> State:
    """A state with the rows of the only shard."""
    content = shard[1].content
    assert isinstance(content, ShardRows)
    return replace(state, rows=tuple(rows for rows in content.rows if rows is not None))


def rows_of_state(state: State) -> tuple[int, Parcel]:
    """The rows of a state, as the only shard."""
    return 0, Parcel(ShardRows(0, state.rows))


def write_shard(keyed: tuple[int, Parcel], folder: Folder, number: int) -> str:
    """Writes a shard's part of a checkpoint."""
    return write_value(folder.shard(number, keyed[0]), keyed[1].content)


def write_state(item: Item | Parcel, folder: Folder, number: int) -> str:
    """Writes the states of a block's tasks."""
    content = item.content if isinstance(item, Parcel) else item
    assert isinstance(content, Item)
    return write_value(folder.tasks(number, key_of(content.block)), content.state)


def write_manifest(state: State, path: str, identity: str, *written: Iterable[str]) -> str:
    """Writes what makes a checkpoint whole, once all that was `written` is there."""
    for paths in written:
        for _ in paths:  # they are there once they can be listed
            pass
    return write_value(path, (identity, without_rows(state)))


def write_posteriors(found: BlockPosteriors, folder: Folder) -> str:
    """Writes what was found for a block."""
    if not len(found.tasks):
        return ""
    return write_value(folder.posteriors(int(found.tasks[0])), found)


def read_posteriors(folder: Folder, num_tasks: int, num_classes: int) -> Found:
    """Of all tasks, from all files."""
    posteriors, states = np.empty((num_tasks, num_classes)), np.empty(num_tasks)
    labels = np.full(num_tasks, -1, np.int64)
    log_likelihood = 0.0
    for path in folder.found("posteriors-", ".bin"):
        found = read_value(path)
        posteriors[found.tasks] = found.posteriors
        labels[found.tasks] = found.labels
        log_likelihood += found.log_likelihood
        if found.state is not None:
            states[found.tasks] = found.state
    if (labels < 0).any():
        raise DataError(f"{(labels < 0).sum():,} of {num_tasks:,} tasks came back without posteriors.")
    return Found(posteriors, labels, states, log_likelihood)
