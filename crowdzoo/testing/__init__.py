"""Batteries of checks for layers and aggregators. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.testing.aggregators": "AGGREGATOR_CHECKS check_aggregator simulated_crowd",
        "crowdzoo.testing.layers": "LAYER_CHECKS LayerCase check_layer gradients",
    },
)
