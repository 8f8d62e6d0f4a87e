"""The aggregators on Apache Beam: the local engine's kernels over a PCollection of blocks, added up by Beam.

Elements are `Block`s, never single annotations. What crosses workers is a value made of arrays, with a coder of its own
(`beam_values`); nothing relies on one process, a global or a local file.

Where the annotators' parameters are small (`max_shard_bytes`), each worker gets all of them as a side input, and blocks
stay where they are. Where they are not, annotators are cut in shards: every block asks the shards for those annotators
that it has, is joined with the answers, and sends counts back to the shards. No worker then holds more than a shard, or
a block with its annotators.

Two ways to iterate:

- A PTransform (`DawidSkene`, `OneCoinDawidSkene`, `GLAD`, `IBCC`, `MajorityVote`): all iterations are unrolled into one
  graph, and once a run is done it passes through the rest unchanged.
- `fit` and `aggregate` run a few iterations per pipeline and stop when the run has converged. Parameters cross from one
  pipeline to the next as a checkpoint in a folder, from which a later call goes on after a crash.

DirectRunner tries to download another runner first: pass `--runner=FnApiRunner`. See docs/beam.md.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.pvalue import AsIter, AsSingleton
from apache_beam.typehints import Tuple as Pair
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes import dawid_skene, glad, ibcc, majority_vote, one_coin
from crowdzoo.aggregation.engine.block import MAX_CELLS, Block, blocks_of, checked_gold
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.engine.threads import in_threads, num_threads
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.beam.files import Folder, read_value, write_bytes, write_value
from crowdzoo.beam.methods import Method, method_of, runs_on_beam
from crowdzoo.beam.steps import (
    Expect,
    ExpectPiece,
    First,
    FirstPiece,
    Posteriors,
    Shards,
    StepOfShard,
    answers_of,
    begin_common,
    begin_state,
    best_run,
    best_shard,
    best_start,
    finished_run,
    item_of,
    key_of,
    keyed_item_of,
    keyed_sums_of,
    last_answers,
    next_common,
    next_state,
    params_of_run,
    parts_of,
    penalties_of,
    piece_of,
    piece_posteriors,
    read_posteriors,
    read_shard,
    requests_of,
    rows_of_shard,
    rows_of_state,
    stored_item,
    sums_of,
    with_rows,
    with_state,
    write_manifest,
    write_posteriors,
    write_shard,
    write_state,
)
from crowdzoo.beam.values import (
    BlockPosteriors,
    Item,
    Parcel,
    ShardRows,
    ShardStep,
    State,
    Step,
    Sums,
    encode,
)
from crowdzoo.constraints import Number
from crowdzoo.errors import ConfigError

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = [
    "GLAD",
    "IBCC",
    "Aggregate",
    "BlockPosteriors",
    "DawidSkene",
    "MajorityVote",
    "OneCoinDawidSkene",
    "aggregate",
    "fit",
    "runs_on_beam",
]

MAX_SHARD_BYTES = 2**26
AT_LEAST_ONE = Number(1, whole=True)
MIN_ANNOTATIONS, MAX_ANNOTATIONS = 2**14, 2**20  # of a block
BLOCKS = 64  # at least so many, if they are not small then
MAX_ROWS_BYTES = 2**30  # of the annotators of a block, where they are asked for

Array = NDArray[np.float64]


# === The transforms ===


class Aggregate(beam.PTransform):
    """An aggregator over a PCollection of blocks, all iterations in one graph.

    The graph holds `max_iter` iterations even if fewer are needed: `fit` builds only what it takes.

    Args:
        aggregator: the settings: a DawidSkene, OneCoinDawidSkene, GLAD, IBCC or MajorityVote of
            `crowdzoo.aggregation`.
        num_annotators: R.
        num_classes: K.
        initial: a `Run` whose parameters the first start begins from, and which becomes part of the graph; None: as
            the aggregator's `fit` does.
        max_shard_bytes: annotators are cut in shards whose parameters take no more than this.
        threads_per_worker: that a worker's kernels use; None: all cores where the runner has one worker in this
            process, else one.

    Returns:
        Of a PCollection[Block]: a dictionary of PCollections.

        - "posteriors": one `BlockPosteriors` a block; its `state` for GLAD is b, the log of inverse difficulties.
        - "run": one `Run` with the parameters, history and convergence of the best start.
        - "annotators": where annotators are in shards, tuples of the code of a shard's first annotator and the
          parameters of its annotators; those of the run are then of no annotator.

    Raises:
        ConfigError: an aggregator that has no form on Beam, or a setting that is out of range.
    """

    def __init__(
        self,
        aggregator: Any,
        num_annotators: int,
        num_classes: int,
        initial: Run | None = None,
        *,
        max_shard_bytes: int = MAX_SHARD_BYTES,
        threads_per_worker: int | None = None,
    ):
        super().__init__()
        method = method_of(aggregator, num_annotators, num_classes)
        given = None if initial is None else method.rows_of(initial.params)
        self.engine = _Engine(method, Shards.of(method, max_shard_bytes), given)
        self.threads_per_worker = threads_per_worker

    def expand(self, pcoll: beam.PCollection) -> dict[str, beam.PCollection]:
        """Begins, iterates, chooses the best start, and gives every block its posteriors."""
        engine = self.engine.threaded(pcoll.pipeline, self.threads_per_worker)
        method = engine.method
        items = pcoll | "Items" >> beam.Map(Item).with_output_types(Item)
        flow = engine.begin(items, pcoll.pipeline | "Shards" >> beam.Create(engine.first_shards()))
        for number in range(method.max_iter + 1 if method.max_iter else 0):
            flow = engine.step(flow, number)
        found = {
            "posteriors": engine.posteriors(flow),
            "run": flow.state | "Choose" >> beam.Map(best_run, method).with_output_types(Run),
        }
        if flow.shards is not None:
            hints = Pair[int, method.params_type]
            choose = beam.Map(best_shard, method, engine.shards.size, AsSingleton(flow.state))
            found["annotators"] = flow.shards | "ChooseRows" >> choose.with_output_types(hints)
        return found


class DawidSkene(Aggregate):
    """Dawid-Skene over a PCollection of blocks: `Aggregate` with settings of `crowdzoo.aggregation.DawidSkene`."""

    def __init__(self, num_annotators: int, num_classes: int, initial: Run | None = None, **settings: Any):
        super().__init__(*_split(dawid_skene.DawidSkene, settings, num_annotators, num_classes, initial), **settings)


class OneCoinDawidSkene(Aggregate):
    """One-coin Dawid-Skene over a PCollection of blocks: `Aggregate` with settings of the class of that name."""

    def __init__(self, num_annotators: int, num_classes: int, initial: Run | None = None, **settings: Any):
        super().__init__(
            *_split(one_coin.OneCoinDawidSkene, settings, num_annotators, num_classes, initial), **settings
        )


class GLAD(Aggregate):
    """GLAD over a PCollection of blocks: `Aggregate` with settings of `crowdzoo.aggregation.GLAD`."""

    def __init__(self, num_annotators: int, num_classes: int, initial: Run | None = None, **settings: Any):
        super().__init__(*_split(glad.GLAD, settings, num_annotators, num_classes, initial), **settings)


class IBCC(Aggregate):
    """iBCC over a PCollection of blocks: `Aggregate` with settings of `crowdzoo.aggregation.IBCC`."""

    def __init__(self, num_annotators: int, num_classes: int, initial: Run | None = None, **settings: Any):
        super().__init__(*_split(ibcc.IBCC, settings, num_annotators, num_classes, initial), **settings)


class MajorityVote(Aggregate):
    """Majority vote over a PCollection of blocks: `Aggregate` with settings of `crowdzoo.aggregation.MajorityVote`.

    Instead of "run" there is "params": one `Params`.
    """

    def __init__(self, num_annotators: int, num_classes: int, **settings: Any):
        super().__init__(*_split(majority_vote.MajorityVote, settings, num_annotators, num_classes, None), **settings)

    def expand(self, pcoll: beam.PCollection) -> dict[str, beam.PCollection]:
        """Counts, adds up, and looks at each block once more for its posteriors."""
        found = super().expand(pcoll)
        run = found.pop("run")
        return {**found, "params": run | "Params" >> beam.Map(params_of_run).with_output_types(Params)}


def _split(
    kind: type, settings: dict[str, Any], num_annotators: int, num_classes: int, initial: Run | None
) -> tuple[Any, int, int, Run | None]:
    """Takes the aggregator's own settings out of `settings`."""
    own = {name: settings.pop(name) for name in list(settings) if name not in ("max_shard_bytes", "threads_per_worker")}
    return kind(**own), num_annotators, num_classes, initial


# === The driver ===


def fit(
    read_blocks: Callable[[beam.Pipeline], beam.PCollection],
    aggregator: Any,
    num_annotators: int,
    num_classes: int,
    *,
    make_pipeline: Callable[[], beam.Pipeline],
    folder: str,
    initial: Run | None = None,
    iterations_per_pipeline: int = 25,
    data_id: str = "",
    max_shard_bytes: int = MAX_SHARD_BYTES,
    threads_per_worker: int | None = None,
) -> Run:
    """Fits an aggregator with one pipeline per few iterations, until it has converged.

    Args:
        read_blocks: gives a pipeline's PCollection[Block], such as `lambda pipeline: pipeline | beam.Create(blocks)`,
            or by reading files; at least one block, if an empty one, and the same blocks each time.
        aggregator: the settings: a DawidSkene, OneCoinDawidSkene, GLAD, IBCC or MajorityVote of
            `crowdzoo.aggregation`.
        num_annotators: R.
        num_classes: K.
        make_pipeline: gives a fresh pipeline each time it is called.
        folder: where checkpoints go, on a file system that all workers and the caller see. They are removed when
            the fit is complete; if it was killed, the next call with the same arguments goes on from the last one.
        initial: where the first start begins, else as the aggregator's `fit`.
        iterations_per_pipeline: how many. A graph of more is slower to build, and runs past convergence; between
            pipelines blocks are read again and a checkpoint is written.
        data_id: what identifies the data, so that a checkpoint of other data is not taken for its own.
        max_shard_bytes: annotators are cut in shards whose parameters take no more than this.
        threads_per_worker: that a worker's kernels use; None: all cores where the runner has one worker in this
            process, else one.

    Returns:
        The best start's `Run`; the caller holds all parameters.

    Raises:
        ConfigError: `folder` holds a checkpoint of other settings or other data; an aggregator that has no form on
            Beam; a setting that is out of range.
    """
    iterations_per_pipeline = AT_LEAST_ONE.checked("", "iterations_per_pipeline", iterations_per_pipeline)
    method = method_of(aggregator, num_annotators, num_classes)
    place = Folder(folder)
    place.make()

    def read_items(pipeline: beam.Pipeline) -> beam.PCollection:
        return read_blocks(pipeline) | "Items" >> beam.Map(Item).with_output_types(Item)

    given = None if initial is None else method.rows_of(initial.params)
    engine = _Engine(method, Shards.of(method, max_shard_bytes), given)
    driver = _Driver(engine, place, make_pipeline, iterations_per_pipeline, threads_per_worker, data_id)
    driver.train(read_items, read_items)
    run = driver.run()
    place.clean()
    return run


def aggregate(
    annotations: Annotations,
    aggregator: Any,
    *,
    make_pipeline: Callable[[], beam.Pipeline],
    folder: str,
    gold: ArrayLike | None = None,
    initial: ArrayLike | Aggregation | None = None,
    max_annotations: int | None = None,
    iterations_per_pipeline: int = 25,
    max_shard_bytes: int = MAX_SHARD_BYTES,
    threads_per_worker: int | None = None,
) -> Aggregation:
    """What `aggregator.fit(annotations, gold, initial)` gives, computed on Beam; equal to 1e-6.

    Args:
        annotations: N tasks, R annotators, K classes.
        aggregator: a local aggregator, whose settings are used: see `fit`.
        make_pipeline: gives a fresh pipeline each time it is called.
        folder: for blocks, checkpoints and posteriors, on a file system that all workers and the caller see; is made,
            and what was written there is removed at the end.
        gold: known class codes, int [N], -1 where unknown.
        initial: as the aggregator's `fit` takes it.
        max_annotations: most annotations a block. Default: a 64th of all, between 2**14 and 2**20; where annotators
            are in shards 2**20, or less if parameters are large, since a block costs as much as it has annotators.
        iterations_per_pipeline: see `fit`.
        max_shard_bytes: see `fit`.
        threads_per_worker: see `fit`.

    Raises:
        ConfigError: an aggregator that has no form on Beam, or see `fit`.
        DataError: annotations, gold or initial do not fit.
    """
    iterations_per_pipeline = AT_LEAST_ONE.checked("", "iterations_per_pipeline", iterations_per_pipeline)
    num_tasks, num_classes = annotations.num_tasks, annotations.num_classes
    method = method_of(aggregator, annotations.num_annotators, num_classes)
    check_classification(annotations, type(aggregator).__name__)
    known = checked_gold(gold, num_tasks, num_classes)
    rows, shares, states = method.begin_from(annotations, initial)
    place = Folder(folder)
    place.make()
    shards = Shards.of(method, max_shard_bytes)
    if max_annotations is None:
        max_annotations = _block_size(len(annotations), method, shards)
    places, data_id = _write_items(annotations, known, max_annotations, shares, states, place)
    engine = _Engine(method, shards, rows)
    driver = _Driver(engine, place, make_pipeline, iterations_per_pipeline, threads_per_worker, data_id)

    has_begin = shares is not None or states is not None

    def read_items(pipeline: beam.Pipeline, first: bool = False) -> beam.PCollection:
        return (
            pipeline
            | "Places" >> beam.Create(places).with_output_types(Pair[str, int, int])
            | "Spread" >> beam.Reshuffle()  # else one worker reads them all
            | "Items" >> beam.Map(stored_item, first and has_begin).with_output_types(Item)
        )

    place.clean_posteriors()
    driver.train(functools.partial(read_items, first=True), read_items, find=True)
    driver.find(read_items)
    found = read_posteriors(place, num_tasks, num_classes)
    run = driver.run()
    place.clean()
    return method.result(annotations, run, found)


class _Driver:
    """Pipelines one after the other, and the checkpoints between them."""

    def __init__(
        self,
        engine: _Engine,
        folder: Folder,
        make_pipeline: Callable[[], beam.Pipeline],
        iterations_per_pipeline: int,
        threads_per_worker: int | None,
        data_id: str,
    ):
        self.engine, self.folder = engine, folder
        self.make_pipeline, self.threads_per_worker = make_pipeline, threads_per_worker
        self.iterations = iterations_per_pipeline
        method, shards = engine.method, engine.shards
        begin = hashlib.blake2b(digest_size=16)
        for array in engine.given or ():
            begin.update(np.ascontiguousarray(array).data)
        self.identity = json.dumps(
            {
                "method": type(method.aggregator).__name__,
                "settings": asdict(method.aggregator),
                "annotators": method.num_annotators,
                "classes": method.num_classes,
                "annotators per shard": shards.size,
                "begin": begin.hexdigest(),
                "data": data_id,
            },
            sort_keys=True,
            default=lambda number: number.item(),
        )
        self.number = 0
        self.state: State | None = None
        self.has_found = False

    def train(
        self,
        read_first: Callable[[beam.Pipeline], beam.PCollection],
        read_items: Callable[[beam.Pipeline], beam.PCollection],
        find: bool = False,
    ) -> None:
        """Goes on from the last checkpoint, or begins, until all starts are done.

        With `find`, the pipeline that ends with that writes the posteriors, too, if all annotators are in one shard.
        """
        find = find and self.engine.shards.number == 1
        self.number = self.folder.last_manifest()
        if self.number:
            self._read_manifest()
        while self.state is None or not all(run.done for run in self.state.runs):
            with self.make_pipeline() as pipeline:
                engine = self.engine.threaded(pipeline, self.threads_per_worker)
                if self.state is None:
                    flow = self._begun(engine, read_first(pipeline))
                else:
                    flow = self._resumed(engine, pipeline, read_items)
                steps = self._steps()
                for step in range(steps):
                    flow = engine.step(flow, step, last=step + 1 == steps)
                engine.save(flow, self.folder, self.number + 1, self.identity)
                if find:
                    self._write_posteriors(engine, flow)
            self.number += 1
            self.has_found = find
            self._read_manifest()
            self.folder.clean(but=self.number)

    def _begun(self, engine: _Engine, items: beam.PCollection) -> _Flow:
        """From nothing. Given rows go by files: a graph is to stay small, however many annotators there are."""
        for shard, parcel in engine.first_shards():
            write_value(self.folder.shard(0, shard), parcel.content)
        return engine.begin(items, self._shards(engine, items.pipeline))

    def _steps(self) -> int:
        """How many E-steps the next pipeline has."""
        if not self.engine.method.max_iter:
            return 0
        runs = () if self.state is None else self.state.runs
        sofar = min((len(run.history) for run in runs if not run.done), default=0)
        return min(self.iterations, self.engine.method.max_iter + 1 - sofar)

    def find(self, read_items: Callable[[beam.Pipeline], beam.PCollection]) -> None:
        """Writes the posteriors that follow from the last checkpoint, unless they are there."""
        if self.has_found:
            return
        self.folder.clean_posteriors()
        with self.make_pipeline() as pipeline:
            engine = self.engine.threaded(pipeline, self.threads_per_worker)
            self._write_posteriors(engine, self._resumed(engine, pipeline, read_items, answer=False))

    def _write_posteriors(self, engine: _Engine, flow: _Flow) -> None:
        found = engine.posteriors(flow)
        _ = found | "Write" >> beam.Map(write_posteriors, self.folder).with_output_types(str)

    def run(self) -> Run:
        """The best start, with all parameters."""
        assert self.state is not None
        method, best = self.engine.method, best_start(self.state)
        shards = [
            read_value(self.folder.shard(self.number, shard)).rows[best] for shard in range(self.engine.shards.number)
        ]
        return finished_run(method, self.state.runs[best], np.concatenate(shards))

    def _read_manifest(self) -> None:
        path = self.folder.manifest(self.number)
        identity, self.state = read_value(path)
        if identity != self.identity:
            raise ConfigError(f"{path} is a checkpoint of other data or settings: give an empty folder.")

    def _resumed(
        self,
        engine: _Engine,
        pipeline: beam.Pipeline,
        read_items: Callable[[beam.Pipeline], beam.PCollection],
        answer: bool = True,
    ) -> _Flow:
        items = read_items(pipeline)
        if engine.method.has_state:
            items = items | "States" >> beam.Map(with_state, self.folder, self.number).with_output_types(Item)
        state = pipeline | "Manifest" >> beam.Create([self.state])
        return engine.resume(items, state, self._shards(engine, pipeline), answer)

    def _shards(self, engine: _Engine, pipeline: beam.Pipeline) -> beam.PCollection:
        return (
            pipeline
            | "Shards" >> beam.Create(list(range(engine.shards.number)))
            | "ReadShards" >> beam.Map(read_shard, self.folder, self.number).with_output_types(Pair[int, Parcel])
        )


def _block_size(num_annotations: int, method: Method, shards: Shards) -> int:
    if shards.number == 1:
        wanted = min(max(MIN_ANNOTATIONS, num_annotations // BLOCKS), MAX_ANNOTATIONS)
    else:
        # an annotator's rows cross twice for each block that it is in
        wanted = min(MAX_ANNOTATIONS, max(MIN_ANNOTATIONS, MAX_ROWS_BYTES // (method.row_bytes * method.starts)))
    return min(wanted, max(1, MAX_CELLS // max(method.num_classes, 1)))


def _write_items(
    annotations: Annotations,
    gold: NDArray[np.int64] | None,
    max_annotations: int,
    shares: Array | None,
    states: Array | None,
    folder: Folder,
) -> tuple[list[tuple[str, int, int]], str]:
    """Writes all blocks; gives their paths, sizes and keys, and a hash of them."""

    def write(some: Sequence[tuple[int, Block]]) -> list[tuple[tuple[str, int, int], bytes]]:
        written = []
        for number, block in some:
            state = None if states is None else np.stack([states[block.tasks]] * 2)
            data = encode(Item(block, None, state, None if shares is None else shares[block.tasks]))
            place = (write_bytes(folder.item(number), data), len(data), key_of(block))
            written.append((place, hashlib.blake2b(data, digest_size=16).digest()))
        return written

    blocks = blocks_of(annotations, gold, max_annotations) or [Block([], [], [])]
    parts = in_threads(write, list(enumerate(blocks)), num_threads())
    places, digests = zip(*itertools.chain(*parts), strict=True)
    return list(places), hashlib.blake2b(b"".join(digests), digest_size=16).hexdigest()


# === Dataflow ===


class _Flow(NamedTuple):
    """PCollections between two steps.

    Attributes:
        items: Items; with shards, tuples of a block's key and a Parcel of its Item, whose annotators are renumbered.
        state: one State; with shards, without rows.
        shards: tuples of a shard's number and a Parcel of its ShardRows; None: all are in `state`.
        answers: tuples of a block's key and a Parcel of ShardRows that it asked for.
        penalties: one Sums, the annotators' part of the objective.
        requests: tuples of a shard's number and a Parcel of a Request.
    """

    items: beam.PCollection
    state: beam.PCollection
    shards: beam.PCollection | None = None
    answers: beam.PCollection | None = None
    penalties: beam.PCollection | None = None
    requests: beam.PCollection | None = None


class _Engine:
    """Wires a method's steps.

    Args:
        method: the steps.
        shards: how annotators are cut.
        given: rows and what is common, which the first start begins from.
        threads: of a worker's kernels.
    """

    def __init__(self, method: Method, shards: Shards, given: tuple[Array, Array] | None = None, threads: int = 1):
        self.method, self.shards, self.given, self.threads = method, shards, given, threads

    def threaded(self, pipeline: beam.Pipeline, threads: int | None) -> _Engine:
        """The same with a number of threads."""
        if threads is None:
            threads = num_threads() if _alone(pipeline) else 1
        AT_LEAST_ONE.checked("", "threads_per_worker", threads)
        return _Engine(self.method, self.shards, self.given, threads)

    # --- from nothing

    def begin(self, items: beam.PCollection, shards: beam.PCollection) -> _Flow:
        """First parameters from items, of which some have posteriors or states to begin from, and `first_shards`."""
        method, common = self.method, None if self.given is None else self.given[1]
        if self.shards.number == 1:
            first = beam.ParDo(First(method, common is not None, self.threads))
            items, sums = self._ran(items | "First" >> self._typed(first), items, "First")
            begin = beam.Map(begin_state, method, common, AsSingleton(shards))
            return _Flow(items, sums | "Begin" >> begin.with_output_types(State))
        pieces, requests = self._pieces(items)
        first = beam.ParDo(FirstPiece(method, self.shards, common is not None))
        steps = pieces | "First" >> first.with_output_types(Step)
        state = (
            items.pipeline
            | "One" >> beam.Impulse()
            | "Begin" >> beam.Map(begin_common, method, common, AsIter(_sums(steps, "First"))).with_output_types(State)
        )
        flow = _Flow(_pieces_after(steps, "First", pieces, method), state, shards, requests=requests)
        return self._sharded(flow, _parts(steps, "First"), "BeginShards")

    def first_shards(self) -> list[tuple[int, Parcel]]:
        """What the shards hold before the beginning: the given rows of the first start, or nothing."""
        size, starts = self.shards.size, self.method.starts
        if self.given is None:
            return [(shard, Parcel(ShardRows(shard, (None,) * starts))) for shard in range(self.shards.number)]
        parts = (self.given[0][shard * size : (shard + 1) * size] for shard in range(self.shards.number))
        return [(shard, Parcel(ShardRows(shard, (part, *(None,) * (starts - 1))))) for shard, part in enumerate(parts)]

    def _pieces(self, items: beam.PCollection) -> tuple[beam.PCollection, beam.PCollection]:
        pieces = items | "Renumber" >> beam.Map(piece_of).with_output_types(Pair[int, Parcel])
        requests = pieces | "Ask" >> beam.FlatMap(requests_of, self.shards).with_output_types(Pair[int, Parcel])
        return pieces, requests

    # --- from a checkpoint

    def resume(self, items: beam.PCollection, state: beam.PCollection, shards: beam.PCollection, answer: bool) -> _Flow:
        """Goes on from items with their states, one State without rows, and tuples (number, ShardRows)."""
        if self.shards.number == 1:
            whole = state | "Rows" >> beam.Map(with_rows, AsSingleton(shards)).with_output_types(State)
            return _Flow(items, whole)
        pieces, requests = self._pieces(items)
        flow = _Flow(pieces, state, shards, requests=requests)
        return self._sharded(flow, None, "ResumeShards") if answer else flow

    # --- one iteration

    def step(self, flow: _Flow, number: int, last: bool = False) -> _Flow:
        """E- and M-step."""
        method, label = self.method, f"Expect{number}"
        if flow.shards is None or flow.penalties is None:
            expect = beam.ParDo(Expect(method, self.threads), AsSingleton(flow.state))
            items, sums = self._ran(flow.items | label >> self._typed(expect), flow.items, label)
            # an AsIter is fetched when it is looked at, an AsSingleton always
            maximise = beam.Map(next_state, method, AsIter(flow.state)).with_output_types(State)
            return _Flow(items, sums | f"Maximise{number}" >> maximise)
        expect = beam.ParDo(ExpectPiece(method, self.shards), AsSingleton(flow.state))
        steps = (
            (flow.items, flow.answers)
            | f"Meet{number}" >> beam.Flatten()
            | f"Join{number}" >> beam.GroupByKey()
            | label >> expect.with_output_types(Step)
        )
        decide = beam.Map(next_common, method, AsIter(_sums(steps, label)), AsIter(flow.penalties))
        after = flow._replace(
            items=_pieces_after(steps, label, flow.items, method),
            state=flow.state | f"Decide{number}" >> decide.with_output_types(State),
        )
        return self._sharded(after, _parts(steps, label), f"Maximise{number}", maximise=True, answer=not last)

    def _typed(self, transform: beam.ParDo) -> beam.PTransform:
        return transform.with_output_types(Step if self.method.has_state else Pair[int, Sums])

    def _ran(
        self, steps: beam.PCollection, before: beam.PCollection, label: str
    ) -> tuple[beam.PCollection, beam.PCollection]:
        """Items after a step (where tasks have no state, those before it) and its sums, grouped under one key."""
        sums, items = steps, before
        if self.method.has_state:
            sums = steps | f"{label}Sums" >> beam.FlatMap(keyed_sums_of).with_output_types(Pair[int, Sums])
            items = steps | f"{label}Items" >> beam.FlatMap(item_of).with_output_types(Item)
        return items, sums | f"{label}Group" >> beam.GroupByKey()

    def _sharded(
        self, flow: _Flow, parts: beam.PCollection | None, label: str, *, maximise: bool = False, answer: bool = True
    ) -> _Flow:
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

    # --- the end

    def posteriors(self, flow: _Flow) -> beam.PCollection:
        """BlockPosteriors of the best start."""
        if flow.shards is None:
            find = beam.ParDo(Posteriors(self.method, self.threads), AsSingleton(flow.state))
            return flow.items | "Posteriors" >> find.with_output_types(BlockPosteriors)
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

    def save(self, flow: _Flow, folder: Folder, number: int, identity: str) -> None:
        """Writes a checkpoint, its manifest last."""
        if flow.shards is None:
            rows = flow.state | "RowsToSave" >> beam.Map(rows_of_state).with_output_types(Pair[int, Parcel])
        else:
            rows = flow.shards
        written = [rows | "SaveAnnotators" >> beam.Map(write_shard, folder, number).with_output_types(str)]
        if self.method.has_state:
            items = flow.items if flow.shards is None else flow.items | "ItemsToSave" >> beam.Values()
            written.append(items | "SaveTasks" >> beam.Map(write_state, folder, number).with_output_types(str))
        sides = [AsIter(paths) for paths in written]
        _ = flow.state | "SaveManifest" >> beam.Map(
            write_manifest, folder.manifest(number), identity, *sides
        ).with_output_types(str)


def _alone(pipeline: beam.Pipeline) -> bool:
    """Whether the runner has one worker, in this process, which so may use all cores."""
    if type(pipeline.runner).__name__ not in ("FnApiRunner", "DirectRunner", "SwitchingDirectRunner"):
        return False
    options = (pipeline.options or PipelineOptions()).view_as(DirectOptions)
    return options.direct_running_mode == "in_memory" and options.direct_num_workers == 1


def _sums(steps: beam.PCollection, label: str) -> beam.PCollection:
    return steps | f"{label}Sums" >> beam.FlatMap(sums_of).with_output_types(Sums)


def _pieces_after(steps: beam.PCollection, label: str, before: beam.PCollection, method: Method) -> beam.PCollection:
    """Pieces after a step; where tasks have no state, those before it."""
    if not method.has_state:
        return before
    return steps | f"{label}Items" >> beam.FlatMap(keyed_item_of).with_output_types(Pair[int, Parcel])


def _parts(steps: beam.PCollection, label: str) -> beam.PCollection:
    return steps | f"{label}Parts" >> beam.FlatMap(parts_of).with_output_types(Pair[int, Parcel])
