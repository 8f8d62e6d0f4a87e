"""Transforms: an aggregator over a PCollection of blocks, all iterations in one graph."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.typehints import Tuple as Pair

from crowdzoo.aggregation.classes import dawid_skene, glad, ibcc, majority_vote, one_coin
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.large.beam.driver import MAX_SHARD_BYTES, engine_of
from crowdzoo.large.beam.runs import best_run
from crowdzoo.large.beam.values import Item, Message
from crowdzoo.large.forms.forms import method_of

__all__ = ["GLAD", "IBCC", "Aggregate", "DawidSkene", "MajorityVote", "OneCoinDawidSkene"]

OPTIONS = ("max_shard_bytes", "threads_per_worker")


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
        self.engine = engine_of(method, max_shard_bytes, given)
        self.threads_per_worker = threads_per_worker

    def expand(self, pcoll: beam.PCollection) -> dict[str, beam.PCollection]:
        """Begins, iterates, chooses the best start, and gives every block its posteriors."""
        engine = self.engine.threaded(pcoll.pipeline, self.threads_per_worker)
        method = engine.method
        items = pcoll | "Items" >> beam.Map(Item).with_output_types(Item)
        shards = beam.Create(engine.first_shards()).with_output_types(Pair[int, Message])
        flow = engine.begin(items, pcoll.pipeline | "Shards" >> shards)
        for number in range(method.num_steps):
            flow = engine.step(flow, number)
        found = {
            "posteriors": engine.posteriors(flow),
            "run": flow.state | "Choose" >> beam.Map(best_run, method).with_output_types(Run),
        }
        return found | engine.annotators(flow)


class _OfMethod(Aggregate):
    """`Aggregate` with settings instead of an aggregator."""

    kind: ClassVar[type]

    def __init__(self, num_annotators: int, num_classes: int, initial: Run | None = None, **settings: Any):
        options = {name: settings.pop(name) for name in OPTIONS if name in settings}
        super().__init__(self.kind(**settings), num_annotators, num_classes, initial, **options)


class DawidSkene(_OfMethod):
    """Dawid-Skene over a PCollection of blocks: `Aggregate` with settings of `crowdzoo.aggregation.DawidSkene`."""

    kind = dawid_skene.DawidSkene


class OneCoinDawidSkene(_OfMethod):
    """One-coin Dawid-Skene over a PCollection of blocks: `Aggregate` with settings of the class of that name."""

    kind = one_coin.OneCoinDawidSkene


class GLAD(_OfMethod):
    """GLAD over a PCollection of blocks: `Aggregate` with settings of `crowdzoo.aggregation.GLAD`."""

    kind = glad.GLAD


class IBCC(_OfMethod):
    """iBCC over a PCollection of blocks: `Aggregate` with settings of `crowdzoo.aggregation.IBCC`."""

    kind = ibcc.IBCC


class MajorityVote(_OfMethod):
    """Majority vote over a PCollection of blocks: `Aggregate` with settings of `crowdzoo.aggregation.MajorityVote`.

    Instead of "run" there is "params": one `Params`.
    """

    kind = majority_vote.MajorityVote

    def __init__(self, num_annotators: int, num_classes: int, **settings: Any):
        super().__init__(num_annotators, num_classes, None, **settings)

    def expand(self, pcoll: beam.PCollection) -> dict[str, beam.PCollection]:
        """Counts, adds up, and looks at each block once more for its posteriors."""
        found = super().expand(pcoll)
        run = found.pop("run")
        return {**found, "params": run | "Params" >> beam.Map(attrgetter("params")).with_output_types(Params)}
