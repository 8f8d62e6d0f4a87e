"""A local server that speaks TF Serving's REST and gRPC APIs, and a client for both. Names load when first used."""

import importlib
from typing import Any

_NAMES = {
    "Client": "crowdzoo.serving.client",
    "Limits": "crowdzoo.serving.limits",
    "Server": "crowdzoo.serving.server",
    "curl_example": "crowdzoo.serving.curl",
    "serve": "crowdzoo.serving.server",
}

__all__ = list(_NAMES)  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'crowdzoo.serving' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
