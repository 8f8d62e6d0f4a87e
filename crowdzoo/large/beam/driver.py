"""fit and aggregate: pipelines of a few iterations each, and checkpoints between them."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.runners.runner import PipelineState
from apache_beam.typehints import Tuple as Pair
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.engine.block import MAX_CELLS
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.engine.threads import in_threads, num_threads
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.checks.constraints import Number
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.tags import TagSet
from crowdzoo.errors import ConfigError, CrowdzooError
from crowdzoo.large.beam.checkpoints import read_posteriors, read_shard, stored_item, with_state, write_posteriors
from crowdzoo.large.beam.coding import encode
from crowdzoo.large.beam.engine import AT_LEAST_ONE, Engine, Flow, Shards
from crowdzoo.large.beam.files import Folder, read_value, write_bytes, write_value
from crowdzoo.large.beam.items import key_of
from crowdzoo.large.beam.runs import best_start
from crowdzoo.large.beam.shards import Sharded
from crowdzoo.large.beam.values import Item, Message, State
from crowdzoo.large.beam.whole import Whole
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.job import form_of, job_of
from crowdzoo.large.forms.runs import finished_run

__all__ = ["MAX_SHARD_BYTES", "aggregate", "engine_of", "fit"]

_log = logging.getLogger(__name__)

MAX_SHARD_BYTES = 2**26
MIN_ANNOTATIONS, MAX_ANNOTATIONS = 2**14, 2**20  # of a block
BLOCKS = 64  # at least so many, if they are not small then
ITERATIONS = 25  # a pipeline
ITERATIONS_ON_FLINK, ITERATIONS_IN_SHARDS_ON_FLINK = 8, 1
OFTEN_FLINK = ("FlinkRunner", "PortableRunner")  # the latter's job server may be Flink's; it does not say
NOT_NEGATIVE = Number(0, whole=True)
POSITIVE = Number(0, above=True, optional=True)
MOST_SECONDS = 60  # between a failure and the retry
MAX_ROWS_BYTES = 2**30  # of the annotators of a block, where they are asked for

Array = NDArray[np.float64]


def fit(
    read_blocks: Callable[[beam.Pipeline], beam.PCollection],
    aggregator: Any,
    num_annotators: int,
    num_classes: int,
    *,
    make_pipeline: Callable[[], beam.Pipeline],
    folder: str,
    initial: Run | None = None,
    iterations_per_pipeline: int | None = None,
    data_id: str = "",
    max_shard_bytes: int = MAX_SHARD_BYTES,
    threads_per_worker: int | None = None,
    retries: int = 0,
    timeout: float | None = None,
    tag_set: TagSet | None = None,
    num_words: int = 0,
) -> Run:
    """Fits an aggregator with one pipeline per few iterations, until it has converged.

    Args:
        read_blocks: gives a pipeline's PCollection[Block], such as `lambda pipeline: pipeline | beam.Create(blocks)`,
            or by reading files; at least one block, if an empty one, and the same blocks each time. Blocks of ratings
            are made by `Block.of_ratings`; if their mean is more than a thousand deviations from zero, take it from
            them first. Of sentences a PCollection[SentenceBlock].
        aggregator: the settings, see `aggregate`; no TokenAggregation: give its method for classes, and tokens as
            tasks.
        num_annotators: R.
        num_classes: K; 0 for ratings.
        make_pipeline: gives a fresh pipeline each time it is called.
        folder: where checkpoints go, on a file system that all workers and the caller see. They are removed when
            the fit is complete; if it was killed, the next call with the same arguments goes on from the last one.
        initial: where the first start begins, else as the aggregator's `fit`.
        iterations_per_pipeline: how many. A graph of more is slower to build, and runs past convergence; between
            pipelines blocks are read again and a checkpoint is written. Default: 25; on Flink 8, and 1 with
            annotators in shards, since its planner's time doubles with each iteration, and its memory for what goes
            between steps is small.
        data_id: what identifies the data, so that a checkpoint of other data is not taken for its own.
        max_shard_bytes: annotators are cut in shards whose parameters take no more than this. Not for ratings: every
            worker has the parameters of all annotators, 64 bytes each.
        threads_per_worker: that a worker's kernels use; None: all cores where the runner has one worker in this
            process, else one.
        retries: how often a pipeline that failed is run again, each from the last complete checkpoint: on a cluster
            of which a worker or a master may die. A warning says what failed. The first retry waits a second, each
            further one twice as long, a minute at most. Errors in the data or settings are raised at once.
        timeout: seconds after which a pipeline is cancelled and has failed, on runners that run it elsewhere: Flink
            waits without end for a worker that died while it started. Default: none.
        tag_set: tags of the sentences, for methods for sentences.
        num_words: V, for sentences whose blocks have words.

    Returns:
        The best start's `Run`; the caller holds all parameters.

    Raises:
        ConfigError: `folder` holds a checkpoint of other settings or other data; an aggregator that has no form on
            Beam; a setting that is out of range.
    """
    _check_numbers(iterations_per_pipeline, retries, timeout)
    method = form_of(aggregator, num_annotators, num_classes, tag_set, num_words)
    place = Folder(folder)
    place.make()

    def read_items(pipeline: beam.Pipeline, first: bool) -> beam.PCollection:
        return read_blocks(pipeline) | "Items" >> beam.Map(Item).with_output_types(Item)

    given = None if initial is None else method.rows_of(initial.params)
    engine = engine_of(method, max_shard_bytes, given)
    driver = _Driver(
        engine,
        place,
        make_pipeline,
        read_items,
        iterations_per_pipeline,
        threads_per_worker,
        data_id,
        retries,
        timeout,
    )
    driver.train()
    run = driver.run()
    place.clean()
    return run


def aggregate(
    annotations: Annotations | CrowdSequences,
    aggregator: Any,
    *,
    make_pipeline: Callable[[], beam.Pipeline],
    folder: str,
    gold: ArrayLike | None = None,
    initial: ArrayLike | Aggregation | None = None,
    max_annotations: int | None = None,
    iterations_per_pipeline: int | None = None,
    max_shard_bytes: int = MAX_SHARD_BYTES,
    threads_per_worker: int | None = None,
    retries: int = 0,
    timeout: float | None = None,
) -> Aggregation | RatingAggregation | SequenceAggregation:
    """What `aggregator.fit(annotations, gold, initial)` gives, computed on Beam; equal to 1e-6.

    Args:
        annotations: what the aggregator's `fit` takes: annotations of classes, ratings, or sentences.
        aggregator: a local aggregator, whose settings are used. Of classes a MajorityVote, DawidSkene,
            OneCoinDawidSkene, GLAD, IBCC, HierarchicalDawidSkene or Robust. Of ratings a RatingMean, RatingMedian or
            RatingEM; of sentences a BayesianSequenceCombination, an HMMCrowd, or a TokenAggregation with one of these
            methods for classes.
        make_pipeline: gives a fresh pipeline each time it is called.
        folder: for blocks, checkpoints and posteriors, on a file system that all workers and the caller see; is made,
            and what was written there is removed at the end.
        gold: known class codes, int [N], -1 where unknown; of classes only.
        initial: as the aggregator's `fit` takes it; of classes only.
        max_annotations: most annotations a block. Default: a 64th of all, between 2**14 and 2**20; where annotators
            are in shards 2**20, or less if parameters are large, since a block costs as much as it has annotators.
        iterations_per_pipeline: see `fit`.
        max_shard_bytes: see `fit`.
        threads_per_worker: see `fit`.
        retries: see `fit`.
        timeout: see `fit`.

    Raises:
        ConfigError: an aggregator that has no form on Beam, or see `fit`.
        DataError: annotations, gold or initial do not fit.
    """
    _check_numbers(iterations_per_pipeline, retries, timeout)
    job = job_of(aggregator, annotations, gold, initial)
    if job.known is not None:
        return job.known
    method, (rows, shares, states) = job.method, job.begin
    place = Folder(folder)
    place.make()
    engine = engine_of(method, max_shard_bytes, rows, chained=True)  # items are no more than paths
    if max_annotations is None:
        max_annotations = _block_size(job.num_annotations, method, engine.shards)
    places, data_id = _write_items(job.blocks(max_annotations), shares, states, place)
    has_begin = shares is not None or states is not None

    def read_items(pipeline: beam.Pipeline, first: bool) -> beam.PCollection:
        return (
            pipeline
            | "Places" >> beam.Create(places).with_output_types(Pair[str, int, int])
            | "Spread" >> beam.Reshuffle()  # else one worker reads them all
            | "Items" >> beam.Map(stored_item, place, first and has_begin).with_output_types(Item)
        )

    driver = _Driver(
        engine,
        place,
        make_pipeline,
        read_items,
        iterations_per_pipeline,
        threads_per_worker,
        data_id,
        retries,
        timeout,
    )
    driver.train(find=True)
    driver.find()
    result: Any = job.result(driver.run(), read_posteriors(place, job.num_answers, method.num_columns))
    place.clean()
    return result


def _check_numbers(iterations_per_pipeline: int | None, retries: int, timeout: float | None) -> None:
    if iterations_per_pipeline is not None:
        AT_LEAST_ONE.checked("", "iterations_per_pipeline", iterations_per_pipeline)
    NOT_NEGATIVE.checked("", "retries", retries)
    POSITIVE.checked("", "timeout", timeout)


def engine_of(
    method: Method, max_shard_bytes: int, given: tuple[Array, Array] | None = None, chained: bool = False
) -> Engine:
    """The engine for so many annotators: `Whole` where all parameters fit in one shard."""
    shards = Shards.of(method, max_shard_bytes)
    return (Whole if shards.number == 1 else Sharded)(method, shards, given, chained)


@dataclass
class _Driver:
    """Pipelines one after the other, and the checkpoints between them."""

    engine: Engine
    folder: Folder
    make_pipeline: Callable[[], beam.Pipeline]
    read_items: Callable[[beam.Pipeline, bool], beam.PCollection]  # True: with what they begin from
    iterations: int | None
    threads_per_worker: int | None
    data_id: str
    retries: int = 0
    timeout: float | None = None
    number: int = 0
    state: State | None = None
    has_found: bool = False

    @functools.cached_property
    def identity(self) -> str:
        """What a checkpoint must have in common with this fit."""
        method = self.engine.method
        begin = hashlib.blake2b(digest_size=16)
        for array in self.engine.given or ():
            begin.update(np.ascontiguousarray(array).data)
        values = {
            "method": type(method.aggregator).__name__,
            "settings": asdict(method.aggregator),
            "annotators": method.num_annotators,
            "classes": method.num_classes,
            "annotators per shard": self.engine.shards.size,
            "begin": begin.hexdigest(),
            **method.identity,
            "data": self.data_id,
        }
        return json.dumps(values, sort_keys=True, default=lambda number: number.item())

    def train(self, find: bool = False) -> None:
        """Goes on from the last checkpoint, or begins, until all starts are done.

        With `find`, the pipeline that ends with that writes the posteriors, too, if all annotators are in one shard.
        """
        find = find and self.engine.shards.number == 1
        self._read_last()
        while not self.is_complete:
            self._retried(lambda: self._advance(find))

    @property
    def is_complete(self) -> bool:
        """Whether all starts are done."""
        return self.state is not None and all(run.done for run in self.state.runs)

    def _advance(self, find: bool) -> None:
        """One pipeline, and the checkpoint that it writes."""
        self._read_last()  # a pipeline that failed may have written its checkpoint before
        if self.is_complete:
            return
        if find:
            self.folder.clean_posteriors()
        with self._pipeline() as pipeline:
            engine = self.engine.threaded(pipeline, self.threads_per_worker)
            if self.state is None:
                flow = self._begun(engine, self.read_items(pipeline, True))
            else:
                flow = self._resumed(engine, pipeline)
            steps = self._steps(pipeline)
            for step in range(steps):
                flow = engine.step(flow, step, last=step + 1 == steps)
            engine.save(flow, self.folder, self.number + 1, self.identity)
            if find:
                self._write_posteriors(engine, flow)
        self.number += 1
        self.has_found = find
        self._read_manifest()
        self.folder.clean(but=self.number)

    @contextmanager
    def _pipeline(self) -> Iterator[beam.Pipeline]:
        """A pipeline, which runs at the end of the block."""
        pipeline = self.make_pipeline()
        if self.timeout is None:
            with pipeline:
                yield pipeline
            return
        yield pipeline
        result = pipeline.run()
        state = result.wait_until_finish(duration=max(1, int(1000 * self.timeout)))
        if not PipelineState.is_terminal(state):
            with suppress(Exception):  # whom it is asked of may be what does not answer
                result.cancel()
            raise TimeoutError(f"it has not ended after {self.timeout:g} s")

    def _retried(self, run_pipeline: Callable[[], None]) -> None:
        """Runs a pipeline, and again if it fails."""
        for retry in itertools.count(1):
            try:
                run_pipeline()
            except CrowdzooError:
                raise
            except Exception as error:  # each runner has its own
                if retry > self.retries:
                    raise
                seconds = min(2 ** (retry - 1), MOST_SECONDS)
                what = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(" .")
                start = f"checkpoint {self.number}" if self.number else "the start"
                message = "A pipeline on Beam failed (%s). It is run again from %s, in %d s (retry %d of %d)."
                _log.warning(message, what, start, seconds, retry, self.retries)
                time.sleep(seconds)
            else:
                return

    def _begun(self, engine: Engine, items: beam.PCollection) -> Flow:
        """From nothing. Given rows go by files: a graph is to stay small, however many annotators there are."""
        for shard, rows in engine.first_shards():
            write_value(self.folder.shard(0, shard), rows)
        return engine.begin(items, self._shards(engine, items.pipeline))

    def _steps(self, pipeline: beam.Pipeline) -> int:
        """How many E-steps a pipeline has."""
        runs = () if self.state is None else self.state.runs
        sofar = min((len(run.history) for run in runs if not run.done), default=0)
        most = ITERATIONS if self.iterations is None else self.iterations
        if self.iterations is None and type(pipeline.runner).__name__ in OFTEN_FLINK:
            most = ITERATIONS_ON_FLINK if self.engine.shards.number == 1 else ITERATIONS_IN_SHARDS_ON_FLINK
        return min(most, self.engine.method.num_steps - sofar)

    def find(self) -> None:
        """Writes the posteriors that follow from the last checkpoint, unless they are there."""
        if not self.has_found:
            self._retried(self._find)

    def _find(self) -> None:
        self.folder.clean_posteriors()
        with self._pipeline() as pipeline:
            engine = self.engine.threaded(pipeline, self.threads_per_worker)
            self._write_posteriors(engine, self._resumed(engine, pipeline, answer=False))

    def _write_posteriors(self, engine: Engine, flow: Flow) -> None:
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

    def _read_last(self) -> None:
        """The last checkpoint, if it is not the one that is here."""
        last = self.folder.last_manifest()
        if last > self.number:
            self.number = last
            self._read_manifest()

    def _read_manifest(self) -> None:
        path = self.folder.manifest(self.number)
        identity, self.state = read_value(path)
        if identity != self.identity:
            raise ConfigError(f"{path} is a checkpoint of other data or settings: give an empty folder.")

    def _resumed(self, engine: Engine, pipeline: beam.Pipeline, answer: bool = True) -> Flow:
        items = self.read_items(pipeline, False)
        if engine.method.has_state:
            items = items | "States" >> beam.Map(with_state, self.folder, self.number).with_output_types(Item)
        state = pipeline | "Manifest" >> beam.Create([self.state])
        return engine.resume(items, state, self._shards(engine, pipeline), answer)

    def _shards(self, engine: Engine, pipeline: beam.Pipeline) -> beam.PCollection:
        return (
            pipeline
            | "Shards" >> beam.Create(list(range(engine.shards.number)))
            | "ReadShards" >> beam.Map(read_shard, self.folder, self.number).with_output_types(Pair[int, Message])
        )


def _block_size(num_annotations: int, method: Method, shards: Shards) -> int:
    if shards.number == 1:
        wanted = min(max(MIN_ANNOTATIONS, num_annotations // BLOCKS), MAX_ANNOTATIONS)
    else:
        # an annotator's rows cross twice for each block that it is in
        wanted = min(MAX_ANNOTATIONS, max(MIN_ANNOTATIONS, MAX_ROWS_BYTES // (method.row_bytes * method.starts)))
    return min(wanted, max(1, MAX_CELLS // max(method.num_columns, 1)))


def _write_items(
    blocks: Sequence[Any], shares: Array | None, states: Array | None, folder: Folder
) -> tuple[list[tuple[str, int, int]], str]:
    """Writes all blocks; gives their paths, sizes and keys, and a hash of them."""

    def write(some: Sequence[tuple[int, Any]]) -> list[tuple[tuple[str, int, int], bytes]]:
        written = []
        for number, block in some:
            data, digest = encode(block), hashlib.blake2b(digest_size=16)
            digest.update(data)
            if states is not None or shares is not None:
                state = None if states is None else np.stack([states[block.tasks]] * 2)
                begin = encode((state, None if shares is None else shares[block.tasks]))
                write_bytes(folder.begin(key_of(block)), begin)
                digest.update(begin)
            place = (write_bytes(folder.block(number), data), len(data), key_of(block))
            written.append((place, digest.digest()))
        return written

    parts = in_threads(write, list(enumerate(blocks)), num_threads())
    places, digests = zip(*itertools.chain(*parts), strict=True)
    return list(places), hashlib.blake2b(b"".join(digests), digest_size=16).hexdigest()
