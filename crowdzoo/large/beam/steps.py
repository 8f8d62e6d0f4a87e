"""Steps: a pass over all blocks, what follows from it, and what the last parameters say of the tasks."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints import Tuple as Pair

from crowdzoo.aggregation.engine.run import best_of
from crowdzoo.aggregation.engine.threads import in_threads
from crowdzoo.large.beam.coding import Item, Starts
from crowdzoo.large.beam.files import read_block
from crowdzoo.large.forms.base import BlockPosteriors, Form, Tally

AHEAD = 16  # blocks a thread, after which it waits for the others


class Expect(beam.DoFn):
    """A pass over a bundle's blocks, which are added up in a table for each start and thread.

    Out come the sums, once, under the key 0; and "items" for the next pass.
    """

    def __init__(self, form: Form, threads: int):
        super().__init__()
        self.form, self.threads = form, threads

    def start_bundle(self) -> None:
        """Forgets the last bundle."""
        self.totals: list[dict[int, Tally]] = [{} for _ in range(self.threads)]
        self.waiting: list[Item] = []
        self.state: Starts | None = None

    def process(self, element: Item, state: Starts) -> Iterator[TaggedOutput]:
        """Counts an item, now or with the next ones; gives what is done."""
        if self.state is None:
            self.state = state
            runs = {start: run for start, run in enumerate(state.parts) if not run.done}
            self.runs = {
                start: (run, None if run.params is None else self.form.prepared(run.params))
                for start, run in runs.items()
            }
        self.waiting.append(element)
        if len(self.waiting) == AHEAD * self.threads:
            for item in self._work():
                yield TaggedOutput("items", item)

    def finish_bundle(self) -> Iterator[Any]:
        """The last items, and the bundle's sums."""
        if self.state is None:
            return
        for item in self._work():
            yield TaggedOutput("items", GlobalWindows.windowed_value(item))
        parts = []
        for start in range(len(self.state.parts)):
            tables = [table[start] for table in self.totals if start in table]
            parts.append(functools.reduce(operator.iadd, tables) if tables else None)
        yield GlobalWindows.windowed_value((0, Starts(tuple(parts))))

    def _work(self) -> list[Item]:
        items, self.waiting = self.waiting, []
        if not self.runs:
            return items
        jobs = [(totals, items[place :: self.threads]) for place, totals in enumerate(self.totals)]
        done = in_threads(
            lambda some: [self._count(totals, item) for totals, items in some for item in items], jobs, self.threads
        )
        return [item for part in done for item in part]

    def _count(self, totals: dict[int, Tally], item: Item) -> Item:
        form, block = self.form, read_block(item.path)
        for start, (run, prepared) in self.runs.items():
            total = totals[start] if start in totals else totals.setdefault(start, form.zero())
            if run.params is None:
                form.first(total, block, start, item.given if start == 0 else None)
            else:
                form.expect(total, block, prepared, len(run.history) < form.max_iter)
        return Item(item.path)


def next_starts(keyed: tuple[int, Iterable[Starts]], form: Form, state: Starts) -> Starts:
    """M-step of each start that is not done."""
    totals: list[Any] = [None] * len(state.parts)
    for sums in keyed[1]:
        for start, part in enumerate(sums.parts):
            if part is not None:
                totals[start] = part if totals[start] is None else operator.iadd(totals[start], part)
    pairs = zip(state.parts, totals, strict=True)
    return Starts(tuple(run if total is None else form.next_run(run, total) for run, total in pairs))


def step(
    items: beam.PCollection, state: beam.PCollection, form: Form, threads: int, label: str
) -> tuple[beam.PCollection, beam.PCollection]:
    """A pass over all blocks, and the parameters that follow: items and one Starts.

    Items are passed from step to step, so that an output has few readers: Flink keeps a copy and buffers of its own for
    each of them. They are no more than paths.
    """
    expect = beam.ParDo(Expect(form, threads), AsSingleton(state)).with_output_types(Pair[int, Starts])
    found = items | f"Expect{label}" >> expect.with_outputs("items", main="sums")
    # `with_output_types` takes hints of tagged outputs only in newer versions of Beam
    found["items"].element_type = Item
    maximise = beam.Map(next_starts, form, AsSingleton(state)).with_output_types(Starts)
    return found["items"], found["sums"] | f"Group{label}" >> beam.GroupByKey() | f"Maximise{label}" >> maximise


class Answer(beam.DoFn):
    """What the best start says of blocks; nothing until all starts are done."""

    def __init__(self, form: Form):
        super().__init__()
        self.form = form

    def start_bundle(self) -> None:
        """Forgets the last bundle."""
        self.answer: Any = None

    def process(self, element: Any, state: Starts) -> Iterator[tuple[str, BlockPosteriors]]:
        """Of a block, or of an Item; with the Item's path."""
        if not state.done:
            return
        if self.answer is None:
            self.answer = self.form.answers(best_of(state.parts).params)
        path = element.path if isinstance(element, Item) else ""
        yield path, self.answer(read_block(path) if path else element)
