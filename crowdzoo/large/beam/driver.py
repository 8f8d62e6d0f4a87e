"""fit and aggregate: pipelines of a few iterations each, with checkpoints between them."""

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
BLOCKS = 64  # minimum number of blocks, unless they would be small
ITERATIONS, ITERATIONS_ON_FLINK = 25, 8  # per pipeline
OFTEN_FLINK = ("FlinkRunner", "PortableRunner")  # the job server of the latter may be Flink's, which is not visible
AT_LEAST_ONE = Number(1, whole=True, optional=True)
NOT_NEGATIVE = Number(0, whole=True)
POSITIVE = Number(0, above=True, optional=True)
MOST_SECONDS = 60  # between a failure and the retry


class RetryOptions(PipelineOptions):
    """Arguments of `fit` that components read from TFX's pipeline options."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--crowdzoo_retries", type=int, default=0, help="number of retries of a failed pipeline")
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
    """Fits an aggregator with a sequence of pipelines of a few iterations each, until it has converged.

    Args:
        read_blocks: function from a pipeline to PCollection[Block], such as
            `lambda pipeline: pipeline | beam.Create(blocks)`, or one that reads files; at least one block, which may be
            empty. Create blocks of ratings by `Block.of_ratings`; if their mean is more than a thousand deviations from
            zero, subtract it first.
        aggregator: aggregator with the settings, see `aggregate`.
        num_annotators: R.
        num_classes: K; 0 for ratings.
        make_pipeline: function that returns a new pipeline in each call.
        folder: folder for blocks and checkpoints, on a file system that all workers and the caller can access. They are
            removed when the fit is complete; if it was killed, the next call with the same arguments continues from the
            last checkpoint.
        initial: starting point of the first start. Default: as the aggregator's `fit`.
        iterations_per_pipeline: number of iterations per pipeline. A larger graph is slower to build, and runs past
            convergence; a checkpoint is written after each pipeline. Default: 25; on Flink 8, as its planner's time
            doubles with each iteration, and its memory for data between steps is small.
        data_id: identifier of the data, so that a checkpoint of other data is not used.
        threads_per_worker: threads of a worker's kernels; None: all cores if the runner has one worker in this process,
            else one.
        retries: number of retries of a failed pipeline, each from the last complete checkpoint, for clusters whose
            workers or masters may die. A warning describes the failure. The first retry waits a second, each further
            one twice as long, at most a minute. Errors in the data or settings are raised at once.
        timeout: seconds after which a pipeline is cancelled as failed, on runners outside this process: Flink waits
            indefinitely for a worker that died while it started. Default: none.

    Returns:
        The `Run` of the best start.

    Raises:
        ConfigError: `folder` has a checkpoint of other settings or data, the aggregator has no form on Beam, or a
            setting is out of range.
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
    """Returns the result of `aggregator.fit(annotations, gold, initial)` to 1e-6, computed on Beam.

    Args:
        annotations: annotations of classes, or ratings.
        aggregator: a local aggregator with the settings: for classes MajorityVote, DawidSkene, OneCoinDawidSkene or
            Robust; for ratings RatingMean or RatingMedian.
        make_pipeline: function that returns a new pipeline in each call.
        folder: folder for blocks, checkpoints and posteriors, on a file system that all workers and the caller can
            access; it is created, and files written there are removed at the end.
        gold: known class codes, int [N], -1 where unknown; for classes only.
        initial: as in the aggregator's `fit`; for classes only.
        max_annotations: maximum number of annotations per block. Default: a 64th of all, between 2**14 and 2**20.
        iterations_per_pipeline: see `fit`.
        threads_per_worker: see `fit`.
        retries: see `fit`.
        timeout: see `fit`.

    Raises:
        ConfigError: the aggregator has no form on Beam, or see `fit`.
        DataError: annotations, gold or initial do not match.
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
    """Applies a run of `fit` to the tasks of a PCollection[Block]; returns a PCollection[BlockPosteriors].

    Args:
        aggregator: aggregator with the settings, for classes or ratings.
        run: result of `fit`; becomes part of the graph.
        num_annotators: R.
        num_classes: K; 0 for ratings.

    Raises:
        ConfigError: the aggregator has no form on Beam.
    """

    def __init__(self, aggregator: Any, run: Run, num_annotators: int, num_classes: int):
        super().__init__()
        self.form, self.run = form_of(aggregator, num_annotators, num_classes), run

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        """Processes each block independently."""
        state = pcoll.pipeline | "Run" >> beam.Create([Starts((self.run,))])
        answer = beam.ParDo(Answer(self.form), AsSingleton(state)).with_output_types(Pair[str, BlockPosteriors])
        return pcoll | "Answer" >> answer | "Found" >> beam.Values()


def fits_one_block(annotations: Annotations, pipeline: beam.Pipeline) -> bool:
    """Whether `aggregate` would use a single block, and the runner's only worker is this process.

    Then the aggregator's own `fit` gives the same result without the cost of pipelines, some hundredths of a second per
    iteration; a small table may need hundreds of iterations.

    Args:
        annotations: annotations to aggregate.
        pipeline: one of the pipelines that would run.
    """
    return len(annotations) <= MIN_ANNOTATIONS and _is_alone(pipeline)


def _is_alone(pipeline: beam.Pipeline) -> bool:
    """Whether the runner has one worker, in this process, which may thus use all cores."""
    if type(pipeline.runner).__name__ not in ("FnApiRunner", "DirectRunner", "SwitchingDirectRunner"):
        return False
    options = (pipeline.options or PipelineOptions()).view_as(DirectOptions)
    return options.direct_running_mode == "in_memory" and options.direct_num_workers == 1


@dataclass
class _Driver:
    """Runs pipelines one after the other, with checkpoints between them."""

    form: Form
    folder: Folder
    make_pipeline: Callable[[], beam.Pipeline]
    iterations: int | None
    threads: int | None
    retries: int
    timeout: float | None
    has_given: bool = False  # whether there are files of first posteriors
    paths: list[str] = field(default_factory=list)  # paths of blocks
    identity: str = ""
    number: int = -1  # number of the last checkpoint
    state: Any = None  # state in the last checkpoint

    def __post_init__(self) -> None:
        AT_LEAST_ONE.checked("", "iterations_per_pipeline", self.iterations)
        AT_LEAST_ONE.checked("", "threads_per_worker", self.threads)
        NOT_NEGATIVE.checked("", "retries", self.retries)
        POSITIVE.checked("", "timeout", self.timeout)
        self.folder.make()

    def begin(self, params: Any, data_id: str, write: Callable[[], None] | None = None) -> None:
        """Continues from the last checkpoint, or creates the first one after calling `write`."""
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
        """Returns the best start, once all are done.

        With `find`, the last pipeline also writes the posteriors.
        """
        found = False
        while not self.state.done or (find and not found):
            self._retried(lambda: self._advance(find))
            found = self.state.done
        return best_of(self.state.parts)

    def _advance(self, find: bool) -> None:
        """Runs one pipeline, and reads the checkpoint that it writes."""
        self._read_last()  # a failed pipeline may have written its checkpoint before it failed
        self.folder.clean("posteriors-")  # all files there will be read
        with self.pipeline() as pipeline:
            threads = self.threads or (num_threads() if _is_alone(pipeline) else 1)
            # reshuffled, otherwise one worker reads them all
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
        """Number of passes of a pipeline: one that counts for the start, and one per iteration."""
        passes = [len(run.history) + (run.params is not None) for run in self.state.parts if not run.done]
        if not passes:
            return 0
        most = ITERATIONS_ON_FLINK if type(pipeline.runner).__name__ in OFTEN_FLINK else ITERATIONS
        most = (self.iterations or most) + (min(passes) == 0)
        return min(most, self.form.max_iter + 2 - min(passes) if self.form.max_iter else 1)

    def _read_last(self) -> None:
        """Reads the last checkpoint, unless it is already loaded."""
        last = self.folder.last()
        if last <= self.number:
            return
        path = self.folder.manifest(last)
        identity, state = read_value(path)
        if identity != self.identity:
            raise ConfigError(f"{path} is a checkpoint of other data or settings: use an empty folder.")
        self.number, self.state = last, state

    @contextmanager
    def pipeline(self) -> Iterator[beam.Pipeline]:
        """Yields a pipeline, which runs at the end of the block."""
        pipeline = self.make_pipeline()
        if self.timeout is None:
            with pipeline:
                yield pipeline
            return
        yield pipeline
        result = pipeline.run()
        state = result.wait_until_finish(duration=max(1, int(1000 * self.timeout)))
        if not PipelineState.is_terminal(state):
            with suppress(Exception):  # the runner to ask may be the one that does not answer
                result.cancel()
            raise TimeoutError(f"it has not ended after {self.timeout:g} s")

    def _retried(self, run_pipeline: Callable[[], None]) -> None:
        """Runs a pipeline, and retries it if it fails."""
        for retry in itertools.count(1):
            try:
                return run_pipeline()
            except CrowdzooError:
                raise
            except Exception as error:  # each runner has its own type
                if retry > self.retries:
                    raise
                seconds = min(2 ** (retry - 1), MOST_SECONDS)
                what = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(" .")
                start = f"checkpoint {self.number}" if self.number > 0 else "the start"
                message = "A pipeline on Beam failed (%s). It is run again from %s, in %d s (retry %d of %d)."
                _log.warning(message, what, start, seconds, retry, self.retries)
                time.sleep(seconds)
