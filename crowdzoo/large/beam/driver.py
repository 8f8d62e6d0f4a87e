"""fit and aggregate: pipelines of a few iterations each, and checkpoints between them."""

from __future__ import annotations

import hashlib
import itertools
import logging
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.pvalue import AsSingleton
from apache_beam.runners.runner import PipelineState
from apache_beam.typehints import Tuple as Pair
from numpy.typing import ArrayLike

from crowdzoo.aggregation.engine.block import MAX_CELLS
from crowdzoo.aggregation.engine.loops import in_threads, num_threads
from crowdzoo.aggregation.engine.run import Run, best_of
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import Number
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, CrowdzooError
from crowdzoo.large.beam.coding import Starts, encode
from crowdzoo.large.beam.files import Folder, read_value, write_value
from crowdzoo.large.beam.steps import Answer, step
from crowdzoo.large.forms import BlockPosteriors, Form, form_of, job_of

_log = logging.getLogger(__name__)

MIN_ANNOTATIONS, MAX_ANNOTATIONS = 2**14, 2**20  # of a block
BLOCKS = 64  # at least so many, if they are not small then
ITERATIONS, ITERATIONS_ON_FLINK = 25, 8  # a pipeline
OFTEN_FLINK = ("FlinkRunner", "PortableRunner")  # the latter's job server may be Flink's; it does not say
AT_LEAST_ONE = Number(1, whole=True, optional=True)
NOT_NEGATIVE = Number(0, whole=True)
POSITIVE = Number(0, above=True, optional=True)
MOST_SECONDS = 60  # between a failure and the retry


class RetryOptions(PipelineOptions):
    """Arguments of `fit` that components read from the options that TFX gives them."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--crowdzoo_retries", type=int, default=0, help="times a failed pipeline is run again")
        parser.add_argument("--crowdzoo_timeout", type=float, help="seconds after which a pipeline has failed")


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
    threads_per_worker: int | None = None,
    retries: int = 0,
    timeout: float | None = None,
) -> Run:
    """Fits an aggregator with one pipeline per few iterations, until it has converged.

    Args:
        read_blocks: gives a pipeline's PCollection[Block], such as `lambda pipeline: pipeline | beam.Create(blocks)`,
            or by reading files; at least one block, if an empty one. Blocks of ratings are made by `Block.of_ratings`;
            if their mean is more than a thousand deviations from zero, take it from them first.
        aggregator: the settings, see `aggregate`.
        num_annotators: R.
        num_classes: K; 0 for ratings.
        make_pipeline: gives a fresh pipeline each time it is called.
        folder: where blocks and checkpoints go, on a file system that all workers and the caller see. They are removed
            when the fit is complete; if it was killed, the next call with the same arguments goes on from the last one.
        initial: where the first start begins, else as the aggregator's `fit`.
        iterations_per_pipeline: how many. A graph of more is slower to build, and runs past convergence; between
            pipelines a checkpoint is written. Default: 25; on Flink 8, since its planner's time doubles with each
            iteration, and its memory for what goes between steps is small.
        data_id: what identifies the data, so that a checkpoint of other data is not taken for its own.
        threads_per_worker: that a worker's kernels use; None: all cores where the runner has one worker in this
            process, else one.
        retries: how often a pipeline that failed is run again, each from the last complete checkpoint: on a cluster
            of which a worker or a master may die. A warning says what failed. The first retry waits a second, each
            further one twice as long, a minute at most. Errors in the data or settings are raised at once.
        timeout: seconds after which a pipeline is cancelled and has failed, on runners that run it elsewhere: Flink
            waits without end for a worker that died while it started. Default: none.

    Returns:
        The best start's `Run`.

    Raises:
        ConfigError: `folder` holds a checkpoint of other settings or other data; an aggregator that has no form on
            Beam; a setting that is out of range.
    """
    form = form_of(aggregator, num_annotators, num_classes)
    place = Folder(folder)
    driver = _Driver(form, place, make_pipeline, iterations_per_pipeline, threads_per_worker, retries, timeout)

    def write() -> None:
        place.clean("block-")
        with driver.pipeline() as pipeline:
            _ = read_blocks(pipeline) | "WriteBlocks" >> beam.Map(place.write_block).with_output_types(str)

    driver.begin(None if initial is None else initial.params, data_id, write)
    driver.paths = place.found("block-")
    run = driver.run(find=False)
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
    iterations_per_pipeline: int | None = None,
    threads_per_worker: int | None = None,
    retries: int = 0,
    timeout: float | None = None,
) -> Aggregation | RatingAggregation:
    """What `aggregator.fit(annotations, gold, initial)` gives, computed on Beam; equal to 1e-6.

    Args:
        annotations: what the aggregator's `fit` takes: annotations of classes, or ratings.
        aggregator: a local aggregator, whose settings are used. For classes a MajorityVote, DawidSkene,
            OneCoinDawidSkene or Robust; for ratings a RatingMean or RatingMedian.
        make_pipeline: gives a fresh pipeline each time it is called.
        folder: for blocks, checkpoints and posteriors, on a file system that all workers and the caller see; is made,
            and what was written there is removed at the end.
        gold: known class codes, int [N], -1 where unknown; for classes only.
        initial: as the aggregator's `fit` takes it; for classes only.
        max_annotations: most annotations a block. Default: a 64th of all, between 2**14 and 2**20.
        iterations_per_pipeline: see `fit`.
        threads_per_worker: see `fit`.
        retries: see `fit`.
        timeout: see `fit`.

    Raises:
        ConfigError: an aggregator that has no form on Beam, or see `fit`.
        DataError: annotations, gold or initial do not fit.
    """
    job = job_of(aggregator, annotations, gold, initial)
    form, place, (params, shares) = job.form, Folder(folder), job.begin
    driver = _Driver(form, place, make_pipeline, iterations_per_pipeline, threads_per_worker, retries, timeout)
    driver.has_given = shares is not None
    if max_annotations is None:
        wanted = min(max(MIN_ANNOTATIONS, len(annotations) // BLOCKS), MAX_ANNOTATIONS)
        max_annotations = min(wanted, max(1, MAX_CELLS // max(form.num_columns, 1)))

    def write(some: Sequence[tuple[int, Any]]) -> list[tuple[str, bytes]]:
        written = []
        for number, block in some:
            data = [encode(block)]
            path = write_value(place.block(number), data[0])
            if shares is not None:
                data.append(encode(shares[block.tasks]))
                write_value(place.given(path), data[1])
            written.append((path, b"".join(hashlib.blake2b(column).digest() for column in data)))
        return written

    parts = in_threads(write, list(enumerate(job.blocks(max_annotations))), num_threads())
    paths, digests = zip(*itertools.chain(*parts), strict=True)
    driver.paths = list(paths)
    driver.begin(params, hashlib.blake2b(b"".join(digests)).hexdigest())
    run = driver.run(find=True)
    result: Any = job.result(run, place.read_posteriors(annotations.num_tasks, form.num_columns))
    place.clean()
    return result


class Posteriors(beam.PTransform):
    """What a run of `fit` says of the tasks of a PCollection[Block]; gives a PCollection[BlockPosteriors].

    Args:
        aggregator: the settings, for classes or ratings.
        run: what `fit` gave; becomes part of the graph.
        num_annotators: R.
        num_classes: K; 0 for ratings.

    Raises:
        ConfigError: an aggregator that has no form on Beam.
    """

    def __init__(self, aggregator: Any, run: Run, num_annotators: int, num_classes: int):
        super().__init__()
        self.form, self.run = form_of(aggregator, num_annotators, num_classes), run

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        """Each block by itself."""
        state = pcoll.pipeline | "Run" >> beam.Create([Starts((self.run,))])
        answer = beam.ParDo(Answer(self.form), AsSingleton(state)).with_output_types(Pair[str, BlockPosteriors])
        return pcoll | "Answer" >> answer | "Found" >> beam.Values()


def fits_one_block(annotations: Annotations, pipeline: beam.Pipeline) -> bool:
    """Whether `aggregate` would make a single block, and the runner's only worker is this process.

    The aggregator's own `fit` then gives the same result without the cost of pipelines, which is some hundredths of a
    second for each iteration, of which a small table may need hundreds.

    Args:
        annotations: what would be aggregated.
        pipeline: one of the pipelines that would run.
    """
    return len(annotations) <= MIN_ANNOTATIONS and _is_alone(pipeline)


def _is_alone(pipeline: beam.Pipeline) -> bool:
    """Whether the runner has one worker, in this process, which so may use all cores."""
    if type(pipeline.runner).__name__ not in ("FnApiRunner", "DirectRunner", "SwitchingDirectRunner"):
        return False
    options = (pipeline.options or PipelineOptions()).view_as(DirectOptions)
    return options.direct_running_mode == "in_memory" and options.direct_num_workers == 1


@dataclass
class _Driver:
    """Pipelines one after the other, and the checkpoints between them."""

    form: Form
    folder: Folder
    make_pipeline: Callable[[], beam.Pipeline]
    iterations: int | None
    threads: int | None
    retries: int
    timeout: float | None
    has_given: bool = False  # whether there are files of posteriors to begin from
    paths: list[str] = field(default_factory=list)  # of blocks
    identity: str = ""
    number: int = -1  # of the last checkpoint
    state: Any = None  # in it

    def __post_init__(self) -> None:
        AT_LEAST_ONE.checked("", "iterations_per_pipeline", self.iterations)
        AT_LEAST_ONE.checked("", "threads_per_worker", self.threads)
        NOT_NEGATIVE.checked("", "retries", self.retries)
        POSITIVE.checked("", "timeout", self.timeout)
        self.folder.make()

    def begin(self, params: Any, data_id: str, write: Callable[[], None] | None = None) -> None:
        """Takes up the last checkpoint, or makes the first one, after what else there is to `write`."""
        state = Starts((Run(params), *[Run(None)] * (self.form.starts - 1)))
        about = repr((self.form.identity, data_id)).encode() + encode(state)
        self.identity = hashlib.blake2b(about, digest_size=16).hexdigest()
        self._read_last()
        if self.number < 0:
            if write is not None:
                self._retried(write)
            self.folder.write_manifest(state, 0, self.identity)
            self._read_last()

    def run(self, find: bool) -> Run:
        """The best start, once all are done.

        With `find`, the pipeline that ends with that writes the posteriors, too.
        """
        found = False
        while not self.state.done or (find and not found):
            self._retried(lambda: self._advance(find))
            found = self.state.done
        return best_of(self.state.parts)

    def _advance(self, find: bool) -> None:
        """One pipeline, and the checkpoint that it writes."""
        self._read_last()  # a pipeline that failed may have written its checkpoint before
        self.folder.clean("posteriors-")  # all that are here will be read
        with self.pipeline() as pipeline:
            threads = self.threads or (num_threads() if _is_alone(pipeline) else 1)
            # dealt out: else one worker reads them all
            paths = pipeline | "Paths" >> beam.Create(self.paths) | "Spread" >> beam.Reshuffle()
            last = pipeline | "Last" >> beam.Create([self.folder.manifest(self.number)])
            state = last | "State" >> beam.Map(lambda path: read_value(path)[1]).with_output_types(Starts)
            steps = self._steps(pipeline)
            given = self.folder if self.has_given and self.number == 0 else None
            for number in range(steps):
                paths, state = step(paths, state, self.form, threads, None if number else given, str(number))
            if steps:
                save = beam.Map(self.folder.write_manifest, self.number + 1, self.identity)
                _ = state | "SaveManifest" >> save.with_output_types(str)
            if find:
                answer = beam.ParDo(Answer(self.form), AsSingleton(state))
                found = paths | "Answer" >> answer.with_output_types(Pair[str, BlockPosteriors])
                _ = found | "WritePosteriors" >> beam.Map(self.folder.write_posteriors).with_output_types(str)
        self._read_last()
        self.folder.clean("checkpoint-", but=self.number)

    def _steps(self, pipeline: beam.Pipeline) -> int:
        """How many passes a pipeline has: one that counts for the start, and one for each iteration."""
        passes = [len(run.history) + (run.params is not None) for run in self.state.parts if not run.done]
        if not passes:
            return 0
        most = ITERATIONS_ON_FLINK if type(pipeline.runner).__name__ in OFTEN_FLINK else ITERATIONS
        most = (self.iterations or most) + (min(passes) == 0)
        return min(most, self.form.max_iter + 2 - min(passes) if self.form.max_iter else 1)

    def _read_last(self) -> None:
        """The last checkpoint, if it is not the one that is here."""
        last = self.folder.last()
        if last <= self.number:
            return
        path = self.folder.manifest(last)
        identity, state = read_value(path)
        if identity != self.identity:
            raise ConfigError(f"{path} is a checkpoint of other data or settings: give an empty folder.")
        self.number, self.state = last, state

    @contextmanager
    def pipeline(self) -> Iterator[beam.Pipeline]:
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
                return run_pipeline()
            except CrowdzooError:
                raise
            except Exception as error:  # each runner has its own
                if retry > self.retries:
                    raise
                seconds = min(2 ** (retry - 1), MOST_SECONDS)
                what = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(" .")
                start = f"checkpoint {self.number}" if self.number > 0 else "the start"
                message = "A pipeline on Beam failed (%s). It is run again from %s, in %d s (retry %d of %d)."
                _log.warning(message, what, start, seconds, retry, self.retries)
                time.sleep(seconds)
