"""Batteries of checks for layers and aggregators, and strategies for property tests. Names load when first used."""

import importlib
from typing import Any

_NAMES = {
    "AGGREGATOR_CHECKS": "crowdzoo.testing.aggregators",
    "LAYER_CHECKS": "crowdzoo.testing.layers",
    "LayerCase": "crowdzoo.testing.layers",
    "check_aggregator": "crowdzoo.testing.aggregators",
    "check_layer": "crowdzoo.testing.layers",
    "finite_differences": "crowdzoo.testing.layers",
    "gradients": "crowdzoo.testing.layers",
    "simulated_crowd": "crowdzoo.testing.aggregators",
}

__all__ = [*_NAMES]  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'crowdzoo.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
