"""The aggregators on Apache Beam: the local engine's kernels over blocks in files, added up by Beam.

What crosses workers is a path of a block, never an annotation, or a value made of arrays, with a coder of its own
(`crowdzoo.large.beam.coding`); nothing relies on one process or a global. Each worker gets all parameters as a side
input, and gives one table of counts.

`fit` and `aggregate` run a few iterations per pipeline and stop when the run has converged. Parameters cross from one
pipeline to the next as a checkpoint in a folder, from which a later call goes on after a crash.

DirectRunner tries to download another runner first: pass `--runner=FnApiRunner`.
"""

from crowdzoo.large.beam.driver import Posteriors, aggregate, fit, fits_one_block
from crowdzoo.large.forms import BlockPosteriors
from crowdzoo.large.forms import runs_in_parts as runs_on_beam

__all__ = ["BlockPosteriors", "Posteriors", "aggregate", "fit", "fits_one_block", "runs_on_beam"]
