"""Batteries of checks for layers and aggregators, and strategies for property tests. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "AGGREGATOR_CHECKS": "crowdzoo.testing.aggregators",
        "LAYER_CHECKS": "crowdzoo.testing.layers",
        "LayerCase": "crowdzoo.testing.layers",
        "check_aggregator": "crowdzoo.testing.aggregators",
        "check_layer": "crowdzoo.testing.layers",
        "finite_differences": "crowdzoo.testing.layers",
        "gradients": "crowdzoo.testing.layers",
        "simulated_crowd": "crowdzoo.testing.aggregators",
    },
)
