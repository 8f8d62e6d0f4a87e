"""Aggregators on Apache Beam: the local engine's kernels over blocks in files, summed by Beam.

Workers exchange paths of blocks, never annotations, or values made of arrays, which have their own coder
(`crowdzoo.large.beam.coding`); nothing depends on a single process or a global. Each worker gets all parameters as a
side input, and returns one table of counts.

`fit` and `aggregate` run a few iterations per pipeline and stop when the run has converged. Parameters are passed from
one pipeline to the next as a checkpoint in a folder, from which a later call continues after a crash.

DirectRunner tries to download another runner first: pass `--runner=FnApiRunner`.
"""

from crowdzoo.large.beam.driver import Posteriors, aggregate, fit, fits_one_block
from crowdzoo.large.forms import BlockPosteriors
from crowdzoo.large.forms import runs_in_parts as runs_on_beam

__all__ = ["BlockPosteriors", "Posteriors", "aggregate", "fit", "fits_one_block", "runs_on_beam"]
