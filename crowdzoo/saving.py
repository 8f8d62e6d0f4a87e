"""Makes saved models load in a process that has imported `keras` and `crowdzoo`, in either order.

Keras finds a class by the name under which it was registered, which happens when its module is imported. So that
`import crowdzoo` does not import Keras, a placeholder is registered for each class once Keras is imported; it imports
the class's module when a file needs it.
"""

import importlib.abc
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from crowdzoo.errors import DataError
from crowdzoo.files.model_files import check_keras_file
from crowdzoo.files.regular import check_regular
from crowdzoo.plugins import registered_layers

__all__ = ["load_model", "register_with_keras"]


def __dir__() -> list[str]:
    return __all__


_UNKNOWN = re.compile(r"[Cc]ould not locate ((?:class|function) '[^']*')")
_PACKAGE = re.compile(r"'package': '([^']+)'")  # from `CrowdLayer.get_config`
# module -> its public layer that is registered for saving; also the names of `crowdzoo.layers`
LAYERS = {
    "crowdzoo.layers.conal": "CoNAL",
    "crowdzoo.layers.confusion_matrices": "ConfusionMatrices",
    "crowdzoo.layers.crf": "CRF",
    "crowdzoo.layers.cross_fitted_em": "CrossFittedEM",
    "crowdzoo.layers.crowdsourced_layer": "CrowdsourcedLayer",
    "crowdzoo.layers.deep_em": "DeepEM",
    "crowdzoo.layers.doctor_net": "DoctorNet",
    "crowdzoo.layers.geo_crowd_net": "GeoCrowdNet",
    "crowdzoo.layers.label_unit": "LabelUnit",
    "crowdzoo.layers.lia": "LIA",
    "crowdzoo.layers.max_mig": "MaxMIG",
    "crowdzoo.layers.pair_annotators": "PairAnnotators",
    "crowdzoo.layers.pair_probabilities": "PairProbabilities",
    "crowdzoo.layers.pooled_confusions": "PooledConfusions",
    "crowdzoo.layers.rating_em": "RatingEM",
    "crowdzoo.layers.spatial_confusions": "SpatialConfusions",
    "crowdzoo.layers.standardization": "Standardization",
    "crowdzoo.layers.trace_regularization": "TraceRegularization",
    "crowdzoo.layers.union_net": "UnionNet",
    "crowdzoo.layers.waum": "WAUM",
}
# module -> its classes that are registered for saving, separated by spaces
_CLASSES = {
    **LAYERS,
    "crowdzoo.layers.doctor_net": "DoctorNet VoteShareCrossentropy",
    "crowdzoo.layers.masked_convolution": "MaskedConvolution",
    "crowdzoo.layers.max_mig": "MaxMIG MutualInformationGain",
    "crowdzoo.layers.mirror_and_shift": "MirrorAndShift",
    "crowdzoo.layers.tf_idf": "TfIdf",
    "crowdzoo.layers.union_net": "MaskedNegativeLogLikelihood UnionNet",
    "crowdzoo.layers.waum": "VotesCrossentropy WAUM",
    "crowdzoo.losses": (
        "ExpectedLogLikelihood MaskedCrossentropy MaskedCrowdCrossentropy MaskedCrowdEvidence "
        "MaskedCrowdMeanSquaredError RatingSquaredError"
    ),
    "crowdzoo.training.gold_metric": "CrowdAccuracy GoldMetric",
    "crowdzoo.training.crowd_model": "CrowdModel",
    "crowdzoo.networks.feature_network": "FeatureClassifier FeatureRegressor",
    "crowdzoo.networks.image_network": "ImageClassifier ImageRegressor",
    "crowdzoo.networks.preprocessed": "Preprocessed",
    "crowdzoo.networks.reward_model": "RewardModel",
    "crowdzoo.networks.sequence_tagger": "SequenceTagger",
    "crowdzoo.networks.text_network": "TextClassifier TextRegressor",
    "crowdzoo.networks.unet": "UNet",
    "crowdzoo.optimizers": "LazyAdam",
}


def load_model(
    path: str | Path, *, custom_objects: Mapping[str, Any] | None = None, compile: bool = True, safe_mode: bool = True
) -> Any:
    """Loads a model that was saved by `model.save("model.keras")`, or the folder of `save_pretrained`.

    `keras.saving.load_model` does the same in a process that has imported crowdzoo.

    Args:
        path: the `.keras` file, or the folder.
        custom_objects: custom classes in the model, by name; not needed for those registered by
            `keras.saving.register_keras_serializable`.
        compile: whether to load optimizer and loss, so that training can continue.
        safe_mode: False allows Python lambdas in the file, which run as code.

    Returns:
        The model: a `CrowdModel`, or whatever was saved.

    Raises:
        DataError: the file does not exist, is damaged, would unpack to far more than its size, or is not a loadable
            model.
    """
    path = Path(path)
    if path.is_dir() and not (path / "config.json").is_file():
        raise DataError(
            f"{path}: is a folder. A model that was exported for serving cannot be trained on; load the .keras file "
            "that model.save wrote."
        )
    if not path.is_dir():
        check_regular(path)
        if path.suffix != ".keras":
            raise DataError(f"{path}: the name of a model file must end in .keras.")
    check_keras_file(path)
    import keras

    objects = None if custom_objects is None else dict(custom_objects)
    try:
        return keras.saving.load_model(path, custom_objects=objects, compile=compile, safe_mode=safe_mode)
    except Exception as error:  # Keras raises all kinds of errors for an edited configuration
        raise DataError(f"{path}: cannot be loaded as a Keras model: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Keras' message, without the configurations that it repeats."""
    reason = str(error).rpartition("Exception encountered: ")[2].strip() or type(error).__name__
    if match := _UNKNOWN.search(reason):
        if package := _PACKAGE.search(str(error)):
            return (
                f"could not locate {match[1]}, which is of the package {package[1]}. Install it: pip install "
                f"'{package[1]}'."
            )
        return (
            f"could not locate {match[1]}. Import the module that defines and registers it first; `crowdzoo export` "
            "does so with --base FILE.py:FUNCTION, the function that made the base."
        )
    return re.split(r"\s*(?:Full object )?config\s?[:=]\s?\{", reason)[0][:1000]


def register_with_keras() -> None:
    """Registers the placeholders, now or when Keras is imported."""
    if sys.modules.get("keras") is not None:
        _register_placeholders()
    else:
        sys.meta_path.insert(0, _AfterImport("keras", _register_placeholders))


def _register_placeholders() -> None:
    from keras.saving import get_custom_objects

    loads = registered_layers()
    for module, names in _CLASSES.items():
        loads |= {f"crowdzoo>{name}": partial(resolve_name, f"{module}:{name}") for name in names.split()}
    for name, load in loads.items():
        get_custom_objects().setdefault(name, _Placeholder(name, load))


class _Placeholder:
    """Placeholder of a class in Keras' registry; importing the class's module replaces it."""

    def __init__(self, name: str, load: Callable[[], Any]):
        self._name = name
        self._load = load

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # Python checks whether an object can be copied, called and so on
            raise AttributeError(attribute)
        return getattr(self._load(), attribute)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._load()(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self._name}, not imported yet>"


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function as soon as a module was imported."""

    def __init__(self, name: str, function: Callable[[], None]):
        self._name = name
        self._function = function

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Returns the result of the other finders, with a loader that calls the function at the end."""
        if fullname != self._name:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        specs = (finder.find_spec(fullname, path, target) for finder in finders)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_call(module: Any) -> None:
            execute(module)
            del loader.exec_module  # restores the class's own method
            sys.meta_path.remove(self)
            self._function()

        loader.exec_module = execute_and_call
        return spec
