"""Steps: a pass over all blocks, the next parameters, and the results of the last parameters for the tasks."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints import Tuple as Pair

from crowdzoo.aggregation.engine.loops import in_threads
from crowdzoo.aggregation.engine.run import best_of
from crowdzoo.large.beam.coding import Starts
from crowdzoo.large.beam.files import Folder, read_block, read_value
from crowdzoo.large.forms import BlockPosteriors, Form, Tally

AHEAD = 16  # blocks per thread, after which it waits for the others


class Expect(beam.DoFn):
    """A pass over a bundle's blocks, which are summed in one table per start and thread.

    The output is the sums, once, under the key 0; and "paths" of the blocks for the next pass.

    Args:
        form: form of the method.
        threads: number of threads that count in parallel.
        given: folder with first posteriors; or None.
    """

    def __init__(self, form: Form, threads: int, given: Folder | None):
        super().__init__()
        self.form, self.threads, self.given = form, threads, given

    def start_bundle(self) -> None:
        """Clears the state of the last bundle."""
        self.totals: list[dict[int, Tally]] = [{} for _ in range(self.threads)]
        self.waiting: list[str] = []
        self.state: Starts | None = None

    def process(self, element: str, state: Starts) -> Iterator[TaggedOutput]:
        """Counts a block, now or with the next ones; yields finished ones."""
        if self.state is None:
            self.state = state
            runs = {start: run for start, run in enumerate(state.parts) if not run.done}
            self.runs = {
                start: (run, None if run.params is None else self.form.prepared(run.params))
                for start, run in runs.items()
            }
        self.waiting.append(element)
        if len(self.waiting) == AHEAD * self.threads:
            for path in self._work():
                yield TaggedOutput("paths", path)

    def finish_bundle(self) -> Iterator[Any]:
        """Yields the last blocks, and the bundle's sums."""
        if self.state is None:
            return
        for path in self._work():
            yield TaggedOutput("paths", GlobalWindows.windowed_value(path))
        parts = []
        for start in range(len(self.state.parts)):
            tables = [table[start] for table in self.totals if start in table]
            parts.append(functools.reduce(operator.iadd, tables) if tables else None)
        yield GlobalWindows.windowed_value((0, Starts(tuple(parts))))

    def _work(self) -> list[str]:
        paths, self.waiting = self.waiting, []
        if self.runs:
            jobs = [(totals, paths[place :: self.threads]) for place, totals in enumerate(self.totals)]
            in_threads(self._count, jobs, self.threads)
        return paths

    def _count(self, jobs: Sequence[tuple[dict[int, Tally], list[str]]]) -> None:
        """Adds blocks to the totals of their paths."""
        for totals, paths in jobs:
            for path in paths:
                block = read_block(path)
                given = None if self.given is None else read_value(self.given.given(path))
                for start, (run, prepared) in self.runs.items():
                    total = totals[start] if start in totals else totals.setdefault(start, self.form.zero())
                    if run.params is None:
                        self.form.first(total, block, start, given if start == 0 else None)
                    else:
                        self.form.expect(total, block, prepared)


def next_starts(keyed: tuple[int, Iterable[Starts]], form: Form, state: Starts) -> Starts:
    """M-step of each unfinished start."""
    totals: list[Any] = [None] * len(state.parts)
    for sums in keyed[1]:
        for start, part in enumerate(sums.parts):
            if part is not None:
                totals[start] = part if totals[start] is None else operator.iadd(totals[start], part)
    pairs = zip(state.parts, totals, strict=True)
    return Starts(tuple(run if total is None else form.next_run(run, total) for run, total in pairs))


def step(
    paths: beam.PCollection, state: beam.PCollection, form: Form, threads: int, given: Folder | None, label: str
) -> tuple[beam.PCollection, beam.PCollection]:
    """A pass over all blocks, and the next parameters: paths and one Starts.

    Paths are passed from step to step, so that an output has few readers: Flink keeps a copy and separate buffers for
    each of them.
    """
    expect = beam.ParDo(Expect(form, threads, given), AsSingleton(state)).with_output_types(Pair[int, Starts])
    found = paths | f"Expect{label}" >> expect.with_outputs("paths", main="sums")
    # `with_output_types` accepts hints of tagged outputs only in newer versions of Beam
    found["paths"].element_type = str
    maximise = beam.Map(next_starts, form, AsSingleton(state)).with_output_types(Starts)
    return found["paths"], found["sums"] | f"Group{label}" >> beam.GroupByKey() | f"Maximise{label}" >> maximise


class Answer(beam.DoFn):
    """Results of the best start for blocks; none until all starts are done."""

    def __init__(self, form: Form):
        super().__init__()
        self.form = form

    def start_bundle(self) -> None:
        """Forgets the last bundle."""
        self.answer: Any = None

    def process(self, element: Any, state: Starts) -> Iterator[tuple[str, BlockPosteriors]]:
        """Processes a block, or the path of a block; yields the path and the results."""
        if not state.done:
            return
        if self.answer is None:
            self.answer = self.form.answers(best_of(state.parts).params)
        path = element if isinstance(element, str) else ""
        yield path, self.answer(read_block(path) if path else element)
