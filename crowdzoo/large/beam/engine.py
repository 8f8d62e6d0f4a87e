"""Engine: how a method's steps are wired, as `Whole` and `Sharded` fill it in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.pvalue import AsIter
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.threads import num_threads
from crowdzoo.checks.constraints import Number
from crowdzoo.large.beam.checkpoints import write_manifest, write_shard, write_state
from crowdzoo.large.beam.files import Folder
from crowdzoo.large.beam.values import ShardRows
from crowdzoo.large.forms.base import Method

__all__ = ["AT_LEAST_ONE", "Engine", "Flow", "Shards", "is_alone", "outputs"]

Array = NDArray[np.float64]
AT_LEAST_ONE = Number(1, whole=True)


class Shards(NamedTuple):
    """How annotators are cut: shard s has those from `s * size` on."""

    num_annotators: int
    size: int

    @classmethod
    def of(cls, method: Method, max_bytes: int) -> Shards:
        """Shards of at most so many bytes of parameters, all starts together; of one annotator at least."""
        AT_LEAST_ONE.checked("", "max_shard_bytes", max_bytes)
        size = max_bytes // (method.row_bytes * method.starts) if method.takes_shards else method.num_annotators
        return cls(method.num_annotators, max(1, min(size, method.num_annotators)))

    @property
    def number(self) -> int:
        """How many shards; one means that all workers get all parameters."""
        return max(1, -(-self.num_annotators // self.size))

    def size_of(self, shard: int) -> int:
        """How many annotators a shard has."""
        return min(self.size, self.num_annotators - shard * self.size)


class Flow(NamedTuple):
    """PCollections between two steps.

    Attributes:
        items: Items; with shards, tuples of a block's key and its Item, whose annotators are renumbered.
        state: one State; with shards, without rows.
        shards: tuples of a shard's number and its ShardRows; None: all are in `state`.
        answers: tuples of a block's key and ShardRows that it asked for.
        penalties: one Sums, the annotators' part of the objective.
        requests: tuples of a shard's number and a Request.
    """

    items: beam.PCollection
    state: beam.PCollection
    shards: Any = None
    answers: Any = None
    penalties: Any = None
    requests: Any = None


class Engine(ABC):
    """Wires a method's steps.

    Args:
        method: the steps.
        shards: how annotators are cut.
        given: rows and what is common, which the first start begins from.
        chained: each step passes its items to the next one, so that an output has few readers: Flink keeps a copy and
            buffers of its own for each of them. Else all steps read the same items, which are not sent again.
        threads: of a worker's kernels.
    """

    def __init__(
        self,
        method: Method,
        shards: Shards,
        given: tuple[Array, Array] | None = None,
        chained: bool = False,
        threads: int = 1,
    ):
        self.method, self.shards, self.given, self.threads = method, shards, given, threads
        self.chained = chained

    @property
    def passes_items(self) -> bool:
        """Whether a step's items are those of the next one."""
        return self.chained or self.method.has_state

    def threaded(self, pipeline: beam.Pipeline, threads: int | None) -> Engine:
        """The same with a number of threads."""
        if threads is None:
            threads = num_threads() if is_alone(pipeline) else 1
        AT_LEAST_ONE.checked("", "threads_per_worker", threads)
        return type(self)(self.method, self.shards, self.given, self.chained, threads)

    @abstractmethod
    def begin(self, items: beam.PCollection, shards: beam.PCollection) -> Flow:
        """First parameters from items, of which some have posteriors or states to begin from, and `first_shards`."""

    def first_shards(self) -> list[tuple[int, ShardRows]]:
        """What the shards hold before the beginning: the given rows of the first start, or nothing."""
        size, others = self.shards.size, (None,) * (self.method.starts - 1)
        found = []
        for shard in range(self.shards.number):
            first = None if self.given is None else self.given[0][shard * size : (shard + 1) * size]
            found.append((shard, ShardRows(shard, (first, *others))))
        return found

    @abstractmethod
    def resume(self, items: beam.PCollection, state: beam.PCollection, shards: beam.PCollection, answer: bool) -> Flow:
        """Goes on from items with their states, one State without rows, and tuples (number, ShardRows)."""

    @abstractmethod
    def step(self, flow: Flow, number: int, last: bool = False) -> Flow:
        """E- and M-step."""

    @abstractmethod
    def posteriors(self, flow: Flow) -> beam.PCollection:
        """BlockPosteriors of the best start."""

    def annotators(self, flow: Flow) -> dict[str, beam.PCollection]:
        """The best start's parameters shard by shard as "annotators", where annotators are in shards."""
        return {}

    @abstractmethod
    def rows_to_save(self, flow: Flow) -> beam.PCollection:
        """Tuples of a shard's number and its ShardRows."""

    def items_to_save(self, flow: Flow) -> beam.PCollection:
        """Items with their states."""
        return flow.items

    def save(self, flow: Flow, folder: Folder, number: int, identity: str) -> None:
        """Writes a checkpoint, its manifest last."""
        rows = self.rows_to_save(flow)
        written = [rows | "SaveAnnotators" >> beam.Map(write_shard, folder, number).with_output_types(str)]
        if self.method.has_state:
            items = self.items_to_save(flow)
            written.append(items | "SaveTasks" >> beam.Map(write_state, folder, number).with_output_types(str))
        sides = [AsIter(paths) for paths in written]
        _ = flow.state | "SaveManifest" >> beam.Map(
            write_manifest, folder.manifest(number), identity, *sides
        ).with_output_types(str)


def is_alone(pipeline: beam.Pipeline) -> bool:
    """Whether the runner has one worker, in this process, which so may use all cores."""
    if type(pipeline.runner).__name__ not in ("FnApiRunner", "DirectRunner", "SwitchingDirectRunner"):
        return False
    options = (pipeline.options or PipelineOptions()).view_as(DirectOptions)
    return options.direct_running_mode == "in_memory" and options.direct_num_workers == 1


def outputs(elements: beam.PCollection, label: str, step: beam.ParDo, **hints: Any) -> Any:
    """A step's outputs by name, the first one that it yields without a tag; each with the coder of its hint.

    Hints are set on the outputs: `with_output_types` takes those of tagged outputs only in newer versions of Beam, and
    a cluster's version may be an older one.
    """
    main, *others = hints
    found = elements | label >> step.with_output_types(hints[main]).with_outputs(*others, main=main)
    for name in others:
        found[name].element_type = hints[name]
    return found
