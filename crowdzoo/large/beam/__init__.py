"""The aggregators on Apache Beam: the local engine's kernels over a PCollection of blocks, added up by Beam.

Elements are `Block`s, never single annotations. What crosses workers is a value made of arrays, with a coder of its own
(`crowdzoo.large.beam.coding`); nothing relies on one process, a global or a local file.

Where the annotators' parameters are small (`max_shard_bytes`), each worker gets all of them as a side input, and blocks
stay where they are. Where they are not, annotators are cut in shards: every block asks the shards for those annotators
that it has, is joined with the answers, and sends counts back to the shards. No worker then holds more than a shard, or
a block with its annotators.

Two ways to iterate:

- A PTransform (`DawidSkene`, `OneCoinDawidSkene`, `GLAD`, `IBCC`, `MajorityVote`): all iterations are unrolled into one
  graph, and once a run is done it passes through the rest unchanged.
- `fit` and `aggregate` run a few iterations per pipeline and stop when the run has converged. Parameters cross from one
  pipeline to the next as a checkpoint in a folder, from which a later call goes on after a crash.

DirectRunner tries to download another runner first: pass `--runner=FnApiRunner`. See docs/scale.md.
"""

from crowdzoo.large.beam.driver import aggregate, fit
from crowdzoo.large.beam.one_block import fits_one_block
from crowdzoo.large.beam.stored_blocks import stored_blocks
from crowdzoo.large.beam.transforms import GLAD, IBCC, Aggregate, DawidSkene, MajorityVote, OneCoinDawidSkene
from crowdzoo.large.beam.values import BlockPosteriors
from crowdzoo.large.forms.job import runs_in_parts as runs_on_beam

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
    "fits_one_block",
    "runs_on_beam",
    "stored_blocks",
]
