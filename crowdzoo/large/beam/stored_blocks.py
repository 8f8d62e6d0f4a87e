"""stored_blocks: a folder of blocks, as a PCollection."""

from __future__ import annotations

import os

import apache_beam as beam

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.large.beam.files import read_value
from crowdzoo.large.stored.stored_blocks import StoredBlocks

__all__ = ["stored_blocks"]


def stored_blocks(pipeline: beam.Pipeline, folder: str | os.PathLike[str]) -> beam.PCollection:
    """The blocks that `crowdzoo.aggregation.write_blocks` wrote, for `fit` and the PTransforms.

    Args:
        pipeline: the pipeline.
        folder: the folder, which the caller and all workers see under the same path.

    Returns:
        PCollection of `Block`.

    Raises:
        DataError: it is not such a folder.
    """
    blocks = StoredBlocks.open(folder)
    return (
        pipeline
        | "Paths" >> beam.Create([str(blocks.path(place)) for place in range(len(blocks))])
        | "Spread" >> beam.Reshuffle()  # else one worker reads them all
        | "Blocks" >> beam.Map(read_value).with_output_types(Block)
    )
