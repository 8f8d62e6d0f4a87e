"""Learning from crowds with Keras 3. Names load when first used."""

from crowdzoo.lazy_names import lazy_names
from crowdzoo.saving import register_with_keras

__version__ = "1.0.0"

# module -> names that it holds; importing crowdzoo itself does not load TensorFlow, Beam or TFX
_NAMES = {
    "crowdzoo.data.annotations": "Annotations",
    "crowdzoo.comparison.compare": "Comparison compare",
    "crowdzoo.reading.tables.read": "read_annotations",
    "crowdzoo.errors": "ConfigError CrowdzooError DataError",
    "crowdzoo.asking": "next_answers",
    "crowdzoo.plugins": "register",
    "crowdzoo.training.crowd_model": "CrowdModel",
    "crowdzoo.saving": "load_model",
    # TFX finds an artifact type by `TYPE_NAME`, which must be importable from the top-level package
    "crowdzoo.components.artifacts": "AnnotationsArtifact AnnotatorReport CrowdPage",
}
_MODULES = (
    "aggregation", "beam", "checks", "components", "data", "datasets", "errors", "export", "instances",
    "label_studio", "layers", "losses", "metrics", "models", "optimizers", "pipelines", "quality", "records",
    "report", "saving", "sequences", "serving", "tables", "testing", "training",
)  # fmt: skip

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    _NAMES,
    modules=_MODULES,
    loaded=["__version__"],
    hidden="AnnotationsArtifact AnnotatorReport CrowdPage",
)

# a saved model loads after `import keras, crowdzoo`
register_with_keras()
