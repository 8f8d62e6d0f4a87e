"""The one table of annotations: read from files and arrays, checked, written. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "crowdzoo.data.annotations": "Annotations",
        "crowdzoo.reading.tables.options": "ReadingOptions",
        "crowdzoo.data.rankings": "Rankings",
    },
)
