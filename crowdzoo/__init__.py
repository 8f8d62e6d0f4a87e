"""Learning from crowds with Keras 3: a table of contents whose names load when first used."""

import importlib
from typing import Any

from crowdzoo.saving import register_with_keras

__version__ = "0.1.0"

# name -> module that holds it; importing crowdzoo itself loads no TensorFlow, Beam or TFX
_NAMES = {
    "Annotations": "crowdzoo.tables.annotations",
    "ConfigError": "crowdzoo.errors",
    "CrowdModel": "crowdzoo.models.crowd_model",
    "CrowdzooError": "crowdzoo.errors",
    "DataError": "crowdzoo.errors",
    "load_model": "crowdzoo.saving",
    # TFX finds an artifact type by `TYPE_NAME`, which has to be importable from the top-level package
    "AnnotationsArtifact": "crowdzoo.components.artifacts",
    "AnnotatorReport": "crowdzoo.components.artifacts",
}
_MODULES = (
    "aggregation", "beam", "components", "datasets", "errors", "export", "instances", "layers", "losses",
    "metrics", "models", "optimizers", "pipelines", "quality", "report", "saving", "sequences", "serving",
    "tables", "testing", "training",
)  # fmt: skip

__all__ = ["__version__", *_MODULES, *_NAMES]  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"crowdzoo.{name}")
    raise AttributeError(f"module 'crowdzoo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


# a saved model loads after `import keras, crowdzoo`
register_with_keras()
