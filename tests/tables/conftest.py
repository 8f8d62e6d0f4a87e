"""Files that are read in one piece, and in pieces of a few bytes."""

import pytest

# so small that characters, lines, quotes and vocabularies fall across the edges of pieces
SMALL = {
    "crowdzoo.reading.tables.sources.CHUNK_BYTES": 7,
    "crowdzoo.reading.tables.sources.SLOW_ROWS": 2,
    "crowdzoo.reading.tables.parquet.BATCH_ROWS": 2,
    "crowdzoo.reading.tables.frames.BATCH_ROWS": 2,
    "crowdzoo.data.vocabulary._MERGE_AT": 1,
}


@pytest.fixture(params=["whole", "chunks of 7 bytes"])
def chunks(request, monkeypatch):
    """The size of the pieces in which files are read."""
    if request.param != "whole":
        for constant, value in SMALL.items():
            monkeypatch.setattr(constant, value)
