"""Aggregation on Apache Beam (`crowdzoo.large.beam`). Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__, {"crowdzoo.large.beam": "BlockPosteriors Posteriors aggregate fit fits_one_block runs_on_beam"}
)
