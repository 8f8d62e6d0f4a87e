"""Steps whose annotators are cut in shards: blocks ask for what they need, and no worker holds everyone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import AsIter, AsSingleton
from apache_beam.typehints import Tuple as Pair
from numpy.typing import NDArray

from crowdzoo.beam.engine import Engine, Flow, Shards
from crowdzoo.beam.items import Last, block_of, key_of, renumbered, stacked
from crowdzoo.beam.methods.base import Method
from crowdzoo.beam.runs import begun, best_start, next_run, sum_of
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
from crowdzoo.errors import DataError

__all__ = ["ExpectPiece", "FirstPiece", "Sharded", "StepOfShard"]

Array = NDArray[np.float64]


def piece_of(item: Item) -> tuple[int, Parcel]:
    """An item whose annotators are numbered among themselves."""
    block = block_of(item)
    is_here = np.zeros(int(block.annotator_ids.max(initial=-1)) + 1, np.bool_)
    is_here[block.annotator_ids] = True
    codes = np.flatnonzero(is_here)
    kept = item.block if isinstance(item.block, StoredBlock) else renumbered(block, codes)
    return key_of(block), Parcel(replace(item, block=kept, codes=codes))


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
                    after = stacked(now, new)
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


def sums_of(step: Step) -> tuple[Sums, ...]:
    """The sums, if there are any."""
    return () if step.sums is None else (step.sums,)


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
    commons = (given if total is None else method.maximise(total, None, None)[1] for total in sum_of(sums).parts)
    return State(tuple(begun(method, common) for common in commons if common is not None))


def next_common(state: State, method: Method, sums: Iterable[Sums], penalties: Iterable[Sums]) -> State:
    """Histories, and M-step of what is common to all annotators."""
    runs = []
    for total, run, penalty in zip(sum_of(sums).parts, state.runs, sum_of(penalties).parts, strict=True):
        assert penalty is not None
        runs.append(run if total is None else next_run(method, run, total, float(penalty.common[0])))
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


class Sharded(Engine):
    """Every block asks the shards for its annotators, and sends them its counts."""

    def begin(self, items: beam.PCollection, shards: beam.PCollection) -> Flow:
        """See `Engine.begin`."""
        method, common = self.method, None if self.given is None else self.given[1]
        pieces, requests = self._pieces(items)
        first = beam.ParDo(FirstPiece(method, self.shards, common is not None))
        steps = pieces | "First" >> first.with_output_types(Step)
        state = (
            items.pipeline
            | "One" >> beam.Impulse()
            | "Begin" >> beam.Map(begin_common, method, common, AsIter(_sums(steps, "First"))).with_output_types(State)
        )
        flow = Flow(self._pieces_after(steps, "First", pieces), state, shards, requests=requests)
        return self._sharded(flow, _parts(steps, "First"), "BeginShards")

    def resume(self, items: beam.PCollection, state: beam.PCollection, shards: beam.PCollection, answer: bool) -> Flow:
        """See `Engine.resume`."""
        pieces, requests = self._pieces(items)
        flow = Flow(pieces, state, shards, requests=requests)
        return self._sharded(flow, None, "ResumeShards") if answer else flow

    def step(self, flow: Flow, number: int, last: bool = False) -> Flow:
        """See `Engine.step`."""
        method, label = self.method, f"Expect{number}"
        expect = beam.ParDo(ExpectPiece(method, self.shards), AsSingleton(flow.state))
        steps = (
            (flow.items, flow.answers)
            | f"Meet{number}" >> beam.Flatten()
            | f"Join{number}" >> beam.GroupByKey()
            | label >> expect.with_output_types(Step)
        )
        decide = beam.Map(next_common, method, AsIter(_sums(steps, label)), AsIter(flow.penalties))
        after = flow._replace(
            items=self._pieces_after(steps, label, flow.items),
            state=flow.state | f"Decide{number}" >> decide.with_output_types(State),
        )
        return self._sharded(after, _parts(steps, label), f"Maximise{number}", maximise=True, answer=not last)

    def posteriors(self, flow: Flow) -> beam.PCollection:
        """See `Engine.posteriors`."""
        answers = (
            (flow.shards, flow.requests)
            | "LastMail" >> beam.Flatten()
            | "LastGroup" >> beam.GroupByKey()
            | "LastAnswers" >> beam.FlatMap(last_answers, AsSingleton(flow.state)).with_output_types(Pair[int, Parcel])
        )
        return (
            (flow.items, answers)
            | "LastMeet" >> beam.Flatten()
            | "LastJoin" >> beam.GroupByKey()
            | "Posteriors"
            >> beam.FlatMap(piece_posteriors, self.method, AsSingleton(flow.state)).with_output_types(BlockPosteriors)
        )

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
        pieces = items | "Renumber" >> beam.Map(piece_of).with_output_types(Pair[int, Parcel])
        requests = pieces | "Ask" >> beam.FlatMap(requests_of, self.shards).with_output_types(Pair[int, Parcel])
        return pieces, requests

    def _pieces_after(self, steps: beam.PCollection, label: str, before: beam.PCollection) -> beam.PCollection:
        """Pieces after a step; where tasks have no state, those before it."""
        if not self.method.has_state:
            return before
        return steps | f"{label}Items" >> beam.FlatMap(keyed_item_of).with_output_types(Pair[int, Parcel])

    def _sharded(
        self, flow: Flow, parts: beam.PCollection | None, label: str, *, maximise: bool = False, answer: bool = True
    ) -> Flow:
        """The shards' rows and, if asked for, their answers to what the next E-step needs."""
        mail = [flow.shards, *([] if parts is None else [parts]), *([flow.requests] if answer else [])]
        step = beam.ParDo(StepOfShard(self.method, self.shards, maximise), AsSingleton(flow.state))
        steps = (
            mail
            | f"{label}Mail" >> beam.Flatten()
            | f"{label}Group" >> beam.GroupByKey()
            | label >> step.with_output_types(ShardStep)
        )
        return flow._replace(
            shards=steps | f"{label}Rows" >> beam.FlatMap(rows_of_shard).with_output_types(Pair[int, Parcel]),
            answers=steps | f"{label}Answers" >> beam.FlatMap(answers_of).with_output_types(Pair[int, Parcel]),
            penalties=steps | f"{label}Penalties" >> beam.FlatMap(penalties_of).with_output_types(Sums),
        )


def _sums(steps: beam.PCollection, label: str) -> beam.PCollection:
    return steps | f"{label}Sums" >> beam.FlatMap(sums_of).with_output_types(Sums)


def _parts(steps: beam.PCollection, label: str) -> beam.PCollection:
    return steps | f"{label}Parts" >> beam.FlatMap(parts_of).with_output_types(Pair[int, Parcel])
