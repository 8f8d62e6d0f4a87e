"""The aggregators on Apache Beam: the same kernels over a PCollection of blocks, added up by Beam.

Elements are `Block`s, never single annotations. Everything that crosses workers (blocks, counts, runs, posteriors) is a
value made of arrays that pickles; nothing relies on one process, a global or a local file.

Two ways to iterate:

- `DawidSkene` is one PTransform: all iterations are unrolled into one graph, and once a run is done its parameters pass
  through the rest unchanged. On FnApiRunner an iteration costs about 0.1 s, done or not.
- `fit` and `aggregate` run a few iterations per pipeline and stop when EM has converged. Parameters cross from one
  pipeline to the next as a checkpoint in a folder, from which a later call goes on after a crash.

DirectRunner tries to download another runner first: pass `--runner=FnApiRunner`.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import AsSingleton
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation import dawid_skene, majority_vote
from crowdzoo.aggregation.base import Aggregation, check_classification, check_number
from crowdzoo.aggregation.block import Block, blocks_of, checked_gold
from crowdzoo.aggregation.counts import Counts
from crowdzoo.aggregation.dawid_skene import start_weights
from crowdzoo.aggregation.labels import choose_labels
from crowdzoo.aggregation.params import Params
from crowdzoo.aggregation.run import Run, best_of
from crowdzoo.errors import ConfigError, DataError

if TYPE_CHECKING:
    from crowdzoo.annotations import Annotations

__all__ = ["BlockPosteriors", "DawidSkene", "MajorityVote", "aggregate", "fit"]


@dataclass(frozen=True, eq=False)
class BlockPosteriors:
    """What was found for a block's tasks.

    Attributes:
        tasks: task codes, int64 [T].
        posteriors: class probabilities, [T, K].
        labels: class codes, int64 [T].
    """

    tasks: NDArray[np.int64]
    posteriors: NDArray[np.float64]
    labels: NDArray[np.int64]


class MajorityVote(beam.PTransform):
    """Majority vote over a PCollection of blocks; see `crowdzoo.aggregation.MajorityVote`.

    Args:
        num_annotators: R.
        num_classes: K.
        **settings: arguments of `crowdzoo.aggregation.MajorityVote`.

    Returns:
        Of a PCollection[Block]: a dictionary of PCollections, "posteriors": one `BlockPosteriors` per block, and
        "params": one `Params`.
    """

    def __init__(self, num_annotators: int, num_classes: int, **settings: Any):
        super().__init__()
        self.aggregator = majority_vote.MajorityVote(**settings)
        self.num_annotators = num_annotators
        self.num_classes = num_classes

    def expand(self, pcoll: beam.PCollection) -> dict[str, beam.PCollection]:
        """Counts, adds up, and looks at each block once more for its posteriors."""
        params = (
            pcoll
            | "Count" >> beam.Map(_votes, (0,), 0, self.num_annotators, self.num_classes)
            | "AddUp" >> beam.CombineGlobally(_Sum(1)).without_defaults()
            | "Update" >> beam.Map(_vote_params)
        )
        posteriors = pcoll | "Posteriors" >> beam.Map(
            functools.partial(_vote_posteriors, self.aggregator), AsSingleton(params)
        )
        return {"posteriors": posteriors, "params": params}


class DawidSkene(beam.PTransform):
    """Dawid-Skene over a PCollection of blocks, all iterations in one graph; see `crowdzoo.aggregation.DawidSkene`.

    The graph holds `max_iter` iterations even if fewer are needed: `fit` builds only what it takes.

    Args:
        num_annotators: R.
        num_classes: K.
        initial: where the first start begins, else the vote.
        **settings: arguments of `crowdzoo.aggregation.DawidSkene`.

    Returns:
        Of a PCollection[Block]: a dictionary of PCollections, "posteriors": one `BlockPosteriors` per block, and
        "run": one `Run` with the parameters, history and convergence of the best start.
    """

    def __init__(self, num_annotators: int, num_classes: int, initial: Run | None = None, **settings: Any):
        super().__init__()
        self.aggregator = dawid_skene.DawidSkene(**settings)
        self.num_annotators = num_annotators
        self.num_classes = num_classes
        self.initial = initial

    def expand(self, pcoll: beam.PCollection) -> dict[str, beam.PCollection]:
        """Begins, iterates, chooses the best start, and gives every block its posteriors."""
        runs = pcoll | "Begin" >> _Begin(self.aggregator, self.num_annotators, self.num_classes, self.initial)
        runs = _iterate(pcoll, runs, self.aggregator, self.aggregator.max_iter + 1)
        run = runs | "Choose" >> beam.Map(best_of)
        posteriors = pcoll | "Posteriors" >> beam.Map(
            functools.partial(_run_posteriors, self.aggregator.seed), AsSingleton(run)
        )
        return {"posteriors": posteriors, "run": run}


def fit(
    read_blocks: Callable[[beam.Pipeline], beam.PCollection],
    aggregator: dawid_skene.DawidSkene,
    num_annotators: int,
    num_classes: int,
    *,
    make_pipeline: Callable[[], beam.Pipeline],
    folder: str,
    initial: Run | None = None,
    iterations_per_pipeline: int = 10,
    data_id: str = "",
) -> Run:
    """Fits Dawid-Skene with one pipeline per few iterations, until it has converged.

    Args:
        read_blocks: gives a pipeline's PCollection[Block], such as `lambda pipeline: pipeline | beam.Create(blocks)`,
            or by reading files; at least one block, if an empty one.
        aggregator: the settings.
        num_annotators: R.
        num_classes: K.
        make_pipeline: gives a fresh pipeline each time it is called.
        folder: where checkpoints go, on a file system that all workers and the caller see. They are removed when
            the fit is complete; if it was killed, the next call with the same arguments goes on from the last one.
        initial: where the first start begins, else the vote.
        iterations_per_pipeline: how many. A graph of more is slower to build, and runs past convergence.
        data_id: what identifies the data, so that a checkpoint of other data is not taken for its own.

    Returns:
        The best start's `Run`.

    Raises:
        ConfigError: `folder` holds a checkpoint of other settings or other data.
    """
    check_number("iterations_per_pipeline", iterations_per_pipeline, 1, whole=True)
    identity = {"settings": asdict(aggregator), "annotators": num_annotators, "classes": num_classes, "data": data_id}
    runs, number = _last_checkpoint(folder, identity)
    while runs is None or not all(run.done for run in runs):
        number += 1
        path = FileSystems.join(folder, _checkpoint(number))
        with make_pipeline() as pipeline:
            pcoll = read_blocks(pipeline)
            if runs is None:
                state = pcoll | "Begin" >> _Begin(aggregator, num_annotators, num_classes, initial)
            else:
                state = pipeline | "Resume" >> beam.Create([runs])
            state = _iterate(pcoll, state, aggregator, iterations_per_pipeline)
            _ = state | "Checkpoint" >> beam.Map(functools.partial(_write_runs, identity=identity), path)
        runs = _read_runs(path, identity)
    _delete(FileSystems.join(folder, _checkpoint(n)) for n in range(1, number + 1))
    return best_of(runs)


def aggregate(
    annotations: Annotations,
    aggregator: dawid_skene.DawidSkene | majority_vote.MajorityVote,
    *,
    make_pipeline: Callable[[], beam.Pipeline],
    folder: str,
    gold: ArrayLike | None = None,
    initial: ArrayLike | Aggregation | None = None,
    max_annotations: int | None = None,
    iterations_per_pipeline: int = 10,
) -> Aggregation:
    """What `aggregator.fit(annotations, gold, initial)` gives, computed on Beam; equal to 1e-6.

    Args:
        annotations: N tasks, R annotators, K classes.
        aggregator: a local aggregator: its settings are used.
        make_pipeline: gives a fresh pipeline each time it is called.
        folder: for checkpoints and posteriors, on a file system that all workers and the caller see; is made, and what
            was written there is removed at the end.
        gold: known class codes, int [N], -1 where unknown.
        initial: Dawid-Skene: confusions [R, K, K] or an earlier `Aggregation`. Not posteriors.
        max_annotations: most annotations a block.
        iterations_per_pipeline: see `fit`.

    Raises:
        ConfigError: an aggregator that has no form on Beam, or see `fit`.
        DataError: annotations, gold or initial do not fit.
    """
    check_classification(annotations, type(aggregator).__name__)
    num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
    known = checked_gold(gold, annotations.num_tasks, num_classes)
    blocks = blocks_of(annotations, known, max_annotations) or [Block([], [], [])]

    def read_blocks(pipeline: beam.Pipeline) -> beam.PCollection:
        return pipeline | "Blocks" >> beam.Create(blocks)

    if not FileSystems.exists(folder):
        FileSystems.mkdirs(folder)
    parts = FileSystems.join(folder, "posteriors-")
    _delete(found.path for found in _matching(parts + "*"))
    if isinstance(aggregator, majority_vote.MajorityVote):
        if initial is not None:
            raise ConfigError("Majority vote takes no `initial`.")
        with make_pipeline() as pipeline:
            vote = MajorityVote(num_annotators, num_classes, **asdict(aggregator))
            found = read_blocks(pipeline) | "Vote" >> vote
            _ = found["posteriors"] | "Write" >> beam.Map(_write_posteriors, parts)
            _ = found["params"] | "WriteParams" >> beam.Map(_write_params, parts + "params.npz")
        with _opened(parts + "params.npz") as arrays:
            params = Params(arrays["log_confusions"], arrays["log_class_prior"])
        _delete([parts + "params.npz"])
        posteriors, labels = _read_posteriors(parts, annotations.num_tasks, num_classes)
        return Aggregation.of("majority-vote", annotations, posteriors, labels, params)
    if not isinstance(aggregator, dawid_skene.DawidSkene):
        raise ConfigError(f"{type(aggregator).__name__} does not run on Beam: use MajorityVote or DawidSkene.")
    run = fit(
        read_blocks,
        aggregator,
        num_annotators,
        num_classes,
        make_pipeline=make_pipeline,
        folder=folder,
        initial=None if initial is None else aggregator.warm_start(annotations, initial),
        iterations_per_pipeline=iterations_per_pipeline,
        data_id=_digest(annotations, known, initial),
    )
    with make_pipeline() as pipeline:
        fitted = pipeline | "Run" >> beam.Create([run])
        kernel = functools.partial(_run_posteriors, aggregator.seed)
        found = read_blocks(pipeline) | "Posteriors" >> beam.Map(kernel, AsSingleton(fitted))
        _ = found | "Write" >> beam.Map(_write_posteriors, parts)
    posteriors, labels = _read_posteriors(parts, annotations.num_tasks, num_classes)
    aggregator.warn_unless_converged(run, len(annotations))
    return aggregator.result(annotations, run, posteriors, labels)


# === Wiring ===


class _Begin(beam.PTransform):
    """From blocks to one tuple of runs, one for each start."""

    def __init__(self, aggregator: dawid_skene.DawidSkene, num_annotators: int, num_classes: int, initial: Run | None):
        super().__init__()
        self.aggregator, self.initial = aggregator, initial
        self.num_annotators, self.num_classes = num_annotators, num_classes

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        starts = tuple(range(0 if self.initial is None else 1, self.aggregator.num_starts))
        sizes = (self.num_annotators, self.num_classes)
        return (
            pcoll
            | "Vote" >> beam.Map(_votes, starts, self.aggregator.seed, *sizes)
            | "AddUp" >> beam.CombineGlobally(_Sum(len(starts))).without_defaults()
            | "Update" >> beam.Map(functools.partial(_begin_runs, self.aggregator, self.initial))
        )


def _iterate(
    pcoll: beam.PCollection,
    runs: beam.PCollection,
    aggregator: dawid_skene.DawidSkene,
    steps: int,
) -> beam.PCollection:
    """Unrolls E- and M-steps; blocks and runs in, runs out."""
    for step in range(steps):
        counts = (
            pcoll
            | f"Expect{step}" >> beam.Map(_contributions, AsSingleton(runs))
            | f"AddUp{step}" >> beam.CombineGlobally(_Sum(aggregator.num_starts)).without_defaults()
        )
        runs = runs | f"Maximise{step}" >> beam.Map(functools.partial(_step_runs, aggregator), AsSingleton(counts))
    return runs


class _Sum(beam.CombineFn):
    """Adds tuples of counts, one for each start; None (a start that is done) adds nothing."""

    def __init__(self, num_starts: int):
        super().__init__()
        self.num_starts = num_starts

    def create_accumulator(self) -> tuple[Counts | None, ...]:
        return (None,) * self.num_starts

    def add_input(
        self, mutable_accumulator: tuple[Counts | None, ...], element: tuple[Counts | None, ...]
    ) -> tuple[Counts | None, ...]:
        pairs = zip(mutable_accumulator, element, strict=True)
        return tuple(b if a is None else a if b is None else a + b for a, b in pairs)

    def merge_accumulators(self, accumulators: Iterable[tuple[Counts | None, ...]]) -> tuple[Counts | None, ...]:
        return functools.reduce(self.add_input, accumulators, self.create_accumulator())

    def extract_output(self, accumulator: tuple[Counts | None, ...]) -> tuple[Counts | None, ...]:
        return accumulator


# === What workers call ===


def _votes(
    block: Block, starts: tuple[int, ...], seed: int, num_annotators: int, num_classes: int
) -> tuple[Counts, ...]:
    weights = (start_weights(num_annotators, start, seed) for start in starts)
    return tuple(majority_vote.contribution(block, weight, num_classes) for weight in weights)


def _begin_runs(aggregator: dawid_skene.DawidSkene, initial: Run | None, counts: tuple[Counts, ...]) -> tuple[Run, ...]:
    given = () if initial is None else (initial,)
    return (*given, *map(aggregator.begin, counts))


def _contributions(block: Block, runs: tuple[Run, ...]) -> tuple[Counts | None, ...]:
    return tuple(None if run.done else dawid_skene.contribution(block, run.params) for run in runs)


def _step_runs(
    aggregator: dawid_skene.DawidSkene, runs: tuple[Run, ...], counts: tuple[Counts | None, ...]
) -> tuple[Run, ...]:
    pairs = zip(runs, counts, strict=True)
    return tuple(run if added is None else aggregator.step(run, added) for run, added in pairs)


def _run_posteriors(seed: int, block: Block, run: Run) -> BlockPosteriors:
    posteriors = dawid_skene.posteriors(block, run.params)
    return BlockPosteriors(block.tasks, posteriors, choose_labels(posteriors, block.tasks, seed=seed))


def _vote_params(counts: tuple[Counts, ...]) -> Params:
    return majority_vote.update(counts[0])


def _vote_posteriors(aggregator: majority_vote.MajorityVote, block: Block, params: Params) -> BlockPosteriors:
    posteriors = majority_vote.posteriors(block, params, aggregator.voting, aggregator.ties, aggregator.seed)
    labels = choose_labels(posteriors, block.tasks, aggregator.ties, aggregator.seed)
    return BlockPosteriors(block.tasks, posteriors, labels)


# === Files between pipelines ===


def _write(path: str, **arrays: Any) -> None:
    """Writes arrays under a name of its own and renames: a worker that dies or repeats leaves no half file."""
    data = io.BytesIO()
    np.savez(data, **arrays)
    draft = f"{path}.{uuid4().hex}"
    with FileSystems.create(draft, mime_type="application/octet-stream") as file:
        file.write(data.getvalue())
    FileSystems.rename([draft], [path])


def _opened(path: str) -> Any:
    with FileSystems.open(path, mime_type="application/octet-stream") as file:
        return np.load(io.BytesIO(file.read()), allow_pickle=False)


def _write_params(params: Params, path: str) -> None:
    _write(path, log_confusions=params.log_confusions, log_class_prior=params.log_class_prior)


def _write_runs(runs: tuple[Run, ...], path: str, identity: dict[str, Any]) -> None:
    arrays: dict[str, Any] = {"identity": json.dumps(identity, sort_keys=True), "num_runs": len(runs)}
    for n, run in enumerate(runs):
        arrays[f"{n}.log_confusions"] = run.params.log_confusions
        arrays[f"{n}.log_class_prior"] = run.params.log_class_prior
        arrays[f"{n}.history"] = np.asarray(run.history, np.float64)
        arrays[f"{n}.state"] = np.array([run.log_likelihood, run.converged, run.done])
    _write(path, **arrays)


def _read_runs(path: str, identity: dict[str, Any]) -> tuple[Run, ...]:
    with _opened(path) as arrays:
        if str(arrays["identity"]) != json.dumps(identity, sort_keys=True):
            raise ConfigError(f"{path} is a checkpoint of other data or settings: give an empty folder.")
        runs = []
        for n in range(int(arrays["num_runs"])):
            log_likelihood, converged, done = arrays[f"{n}.state"]
            params = Params(arrays[f"{n}.log_confusions"], arrays[f"{n}.log_class_prior"])
            history = tuple(map(float, arrays[f"{n}.history"]))
            runs.append(Run(params, history, float(log_likelihood), bool(converged), bool(done)))
    return tuple(runs)


def _checkpoint(number: int) -> str:
    return f"runs-{number:06d}.npz"


def _last_checkpoint(folder: str, identity: dict[str, Any]) -> tuple[tuple[Run, ...] | None, int]:
    if not FileSystems.exists(folder):
        FileSystems.mkdirs(folder)
    names = sorted(
        FileSystems.split(found.path)[1]
        for found in _matching(FileSystems.join(folder, "runs-*"))
        if found.path.endswith(".npz")
    )
    if not names:
        return None, 0
    return _read_runs(FileSystems.join(folder, names[-1]), identity), int(names[-1][5:-4])


def _write_posteriors(found: BlockPosteriors, prefix: str) -> None:
    if len(found.tasks):
        path = f"{prefix}{found.tasks[0]}.npz"
        _write(path, tasks=found.tasks, posteriors=found.posteriors, labels=found.labels)


def _read_posteriors(prefix: str, num_tasks: int, num_classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    posteriors = np.full((num_tasks, num_classes), np.nan)
    labels = np.full(num_tasks, -1, np.int64)
    paths = [found.path for found in _matching(prefix + "*") if found.path.endswith(".npz")]
    for path in paths:
        with _opened(path) as arrays:
            posteriors[arrays["tasks"]] = arrays["posteriors"]
            labels[arrays["tasks"]] = arrays["labels"]
    if (labels < 0).any():
        raise DataError(f"{(labels < 0).sum():,} of {num_tasks:,} tasks came back without posteriors.")
    _delete(paths)
    return posteriors, labels


def _matching(pattern: str) -> Iterator[Any]:
    return iter(FileSystems.match([pattern])[0].metadata_list)


def _delete(paths: Iterable[str]) -> None:
    present = [path for path in paths if FileSystems.exists(path)]
    if present:
        FileSystems.delete(present)


def _digest(annotations: Annotations, gold: NDArray[np.int64] | None, initial: Any) -> str:
    """A hash of all that decides the result beside the settings."""
    digest = hashlib.blake2b(digest_size=16)
    start = initial.confusions if isinstance(initial, Aggregation) else initial
    for column in (annotations.task_ids, annotations.annotator_ids, annotations.labels, gold, start):
        digest.update(b"-" if column is None else np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
