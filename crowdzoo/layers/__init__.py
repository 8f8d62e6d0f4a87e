"""Keras layers for labels from many annotators: one public layer per file, `keras.ops` only. Names load when used."""

from crowdzoo.lazy_names import lazy_names
from crowdzoo.saving import LAYERS

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        **LAYERS,
        "crowdzoo.layers.crf": "CRF crf_decode crf_log_likelihood",
        "crowdzoo.layers.crowd_layer": "CrowdLayer LayerTraits",
    },
)
