"""The aggregators on Apache Beam, which this imports."""

from crowdzoo.beam.transforms import (
    GLAD,
    IBCC,
    Aggregate,
    BlockPosteriors,
    DawidSkene,
    MajorityVote,
    OneCoinDawidSkene,
    aggregate,
    fit,
    runs_on_beam,
)

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
    "runs_on_beam",
]
