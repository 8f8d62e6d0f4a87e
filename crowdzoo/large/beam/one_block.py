"""fits_one_block: whether Beam has nothing to share out."""

from __future__ import annotations

import apache_beam as beam

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.large.beam.driver import MIN_ANNOTATIONS
from crowdzoo.large.beam.engine import is_alone

__all__ = ["fits_one_block"]


def fits_one_block(annotations: Annotations | CrowdSequences, pipeline: beam.Pipeline) -> bool:
    """Whether `aggregate` would make a single block, and the runner's only worker is this process.

    The aggregator's own `fit` then gives the same result without the cost of pipelines, which is some hundredths of a
    second for each iteration, of which a small table may need hundreds.

    Args:
        annotations: what would be aggregated.
        pipeline: one of the pipelines that would run.
    """
    crowd = annotations.annotations if isinstance(annotations, CrowdSequences) else annotations
    return len(crowd) <= MIN_ANNOTATIONS and is_alone(pipeline)
