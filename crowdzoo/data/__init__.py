"""Values that open no file: annotations, rankings, sentences, tags, regions of images. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.data.annotations": "Annotations",
        "crowdzoo.data.crowd_sequences": "CrowdSequences",
        "crowdzoo.data.rankings": "Rankings",
        "crowdzoo.data.regions": "Mask MarkedImage Region",
    },
)
