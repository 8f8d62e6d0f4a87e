"""Writes a crowd model as a TensorFlow SavedModel, ready for TF Serving and for `crowdzoo serve`."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import crowdzoo
from crowdzoo.errors import ConfigError, ServingError
from crowdzoo.export.signatures import build_signatures
from crowdzoo.files.version_folders import newest_version
from crowdzoo.files.writing import atomic_folder

if TYPE_CHECKING:
    from crowdzoo.models.crowd_model import CrowdModel

__all__ = [
    "MODEL_CARD_FILE",
    "REQUEST_FILES",
    "WARMUP_FILE",
    "WARMUP_INSTANCES",
    "export_model",
    "load_and_predict",
    "load_saved_model",
    "stacked",
]

# TF Serving looks for warm-up requests here, and nowhere else.
WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
MODEL_CARD_FILE = "assets.extra/model_card.json"
# One real request a signature, so that a `curl` line can be pasted whatever the length of an instance.
REQUEST_FILES = {
    "serving_default": "assets.extra/request.json",
    "annotators": "assets.extra/request_annotators.json",
    "spans": "assets.extra/request_spans.json",
}
# Most instances kept for warming up. TF Serving refuses more than 1,000 records; we write two a signature.
WARMUP_INSTANCES = 16


def export_model(
    model: CrowdModel,
    path: str | Path,
    *,
    classes: Sequence[str] | None = None,
    annotators: Sequence[str] = (),
    encoder: Any = None,
    name: str = "model",
    warmup_instances: Any = None,
    model_card: Mapping[str, Any] | None = None,
) -> Path:
    """Writes `model` as a TensorFlow SavedModel that loads without crowdzoo and without Keras.

    Signatures (`B` instances in a request, `K` classes):

    - `serving_default`: `instances` float32 `[B, D]` (or whatever the base takes, such as images
      `[B, H, W, C]`; with an encoder raw text, string `[B]`) -> `probabilities` float32 `[B, K]`, `label` int64 `[B]`,
      `class` string `[B]`. Of a regressor `value` float32 `[B]`, in the ratings' unit. Of a tagger, padded to the
      longest of the batch, T tokens: `tokens` and `tags` string `[B, T]`, `scores` float32 `[B, T]` (probability of the
      tag), `starts` and `ends` int64 `[B, T]` (bytes of the text's UTF-8, end exclusive), `lengths` int64 `[B]`.
    - `spans`, of a tagger with BIO or IOBES tags: `instances` -> `types`, `texts` string `[B, S]`, `scores` float32
      `[B, S]` (mean of the span's tokens), `starts`, `ends` int64 `[B, S]` (bytes), `lengths` int64 `[B]`.
    - `annotators`, where the model has a crowd layer: `instances` and `annotator`, string `[B]`, the
      annotators' names -> the same outputs as `serving_default`, for what that annotator would say of the instance. A
      name that the model was not trained with is an `InvalidArgumentError` that quotes it.

    Beside the graph, in `assets.extra/`: warm-up requests in TF Serving's format (`PredictionLog` records),
    `model_card.json`, and for each signature one request as JSON.

    The folder appears at once and complete: it is written under another name and then renamed.

    Args:
        model: a built `CrowdModel` on the TensorFlow backend.
        path: folder to write. To be served it should be `MODEL_DIR/<version>`, the version an integer.
        classes: names of the `K` classes or tags, in the order of the base's output; None for ratings.
        annotators: names of the `R` annotators, in the order of their codes. Ignored without a crowd layer.
        encoder: from raw text to what the base takes, `TokenEncoder` or `TextIds`; it goes into the graph. None where
            the base takes the instances themselves. A tagger needs one.
        name: the model's name in the warm-up requests and the card.
        warmup_instances: array `[n, ...]` of instances (texts, with an encoder); the first 16 become warm-up requests.
            None takes one instance of zeros (or the text "warm up").
        model_card: more to say in the card, such as metrics; anything JSON can hold.

    Returns:
        `path`.

    Raises:
        ConfigError: another backend, an output of another shape, a folder that is there already and not empty,
            names that do not fit the model, or warm-up instances that do not fit the base.
        DataError: a weight is NaN or infinite.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(
            f"export: {path} is there already and is not empty. Choose another folder; "
            f"for a served model that is MODEL_DIR/<a higher version number>"
        )
    _check_backend()
    from crowdzoo.training.faults import check_weights

    check_weights(model)
    class_names = None if classes is None else _names(classes, "classes")
    annotator_names = _names(annotators, "annotators") if model.crowd is not None else []
    if model.crowd is not None and len(annotator_names) != model.crowd.num_annotators:
        raise ConfigError(
            f"export: {len(annotator_names)} annotators are named, the crowd layer has {model.crowd.num_annotators}"
        )
    if encoder is None:
        spec = _instance_spec(model.base, warmup_instances)
        warmup = _warmup_array(warmup_instances, spec)
    else:
        spec, warmup = None, _warmup_texts(warmup_instances)
    module, signatures = build_signatures(model, spec, class_names, annotator_names, encoder)
    card = _card(model, name, class_names, annotator_names, signatures, model_card)
    requests = {name: {"instances": warmup} for name in signatures if name != "annotators"}
    if model.crowd is not None:
        cycled = [annotator_names[i % len(annotator_names)] for i in range(len(warmup))]
        requests["annotators"] = {"instances": warmup, "annotator": np.array(cycled, dtype=object)}

    import tensorflow as tf

    try:
        with atomic_folder(path) as folder:  # replaces an empty folder, never a full one
            tf.saved_model.save(module, str(folder), signatures=signatures)
            (folder / "assets.extra").mkdir()
            _write_warmup(folder / WARMUP_FILE, name, requests)
            for signature, inputs in requests.items():
                (folder / REQUEST_FILES[signature]).write_text(_request_json(signature, inputs), encoding="utf-8")
            (folder / MODEL_CARD_FILE).write_text(card, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"export: {path} cannot be written: {error}") from error
    return path


def load_and_predict(
    path: str | Path, instances: Any, *, batch_size: int = 256, signature: str = "serving_default"
) -> dict[str, np.ndarray]:
    """Predicts with an exported model in this process, without a server.

    Args:
        path: an exported model, or a served folder `MODEL_DIR`, whose highest version is taken.
        instances: array `[n, ...]`, as the exported model's signature takes them; of a model of texts n strings.
        batch_size: instances in a call.
        signature: "serving_default" or "spans".

    Returns:
        The signature's outputs as in `export_model`, strings as `str`; what is padded, to the longest of all.

    Raises:
        ServingError: there is no model at `path`, or it does not take these instances.
    """
    import tensorflow as tf

    folder = newest_version(path)
    try:
        loaded = load_saved_model(folder)  # kept in a name: the variables live as long as it does
    except Exception as error:  # TensorFlow raises a dozen kinds for files that are damaged
        reason = str(error).strip() or type(error).__name__
        raise ServingError(
            f"{folder}: this model cannot be loaded: {reason[:1000]}. Export it again, or copy the whole folder again."
        ) from error
    if signature not in loaded.signatures:
        raise ServingError(f"{folder}: this model has no signature {signature}, only {sorted(loaded.signatures)}")
    function = loaded.signatures[signature]
    if list(function.structured_input_signature[1]) != ["instances"]:
        raise ServingError(f"{folder}: was not written by crowdzoo: its input is not called 'instances'")
    spec = function.structured_input_signature[1]["instances"]
    array = np.asarray(instances, dtype=object if spec.dtype == tf.string else None)
    fits = (
        all(isinstance(text, str | bytes) for text in array.flat)
        if spec.dtype == tf.string
        else array.dtype.kind in "biuf"
    )
    if not fits or not spec.shape.is_compatible_with(array.shape):
        raise ServingError(
            f"{folder}: instances have shape {list(array.shape)} ({np.asarray(instances).dtype}), "
            f"the model takes {spec.shape.as_list()} ({spec.dtype.name})"
        )
    array = array.astype(spec.dtype.as_numpy_dtype)
    parts = [
        {
            name: value.numpy()
            for name, value in function(instances=tf.constant(array[i : i + batch_size], spec.dtype)).items()
        }
        for i in range(0, max(len(array), 1), batch_size)
    ]
    outputs = {name: stacked([part[name] for part in parts]) for name in parts[0]}
    return {name: _as_text(value) if value.dtype == object else value for name, value in outputs.items()}


def load_saved_model(folder: str | Path) -> Any:
    """Loads a SavedModel; where its graph cuts text into tokens, tensorflow-text is imported first, which it needs.

    Raises:
        ValueError: it needs tensorflow-text, which is not installed.
        OSError, tf.errors.OpError: it cannot be loaded.
    """
    import tensorflow as tf

    if b"RegexSplitWithOffsets" in (Path(folder) / "saved_model.pb").read_bytes():
        try:
            import tensorflow_text  # noqa: F401  registers the operations
        except ImportError as error:
            raise ValueError("its graph needs tensorflow-text: pip install 'crowdzoo[text]'") from error
    return tf.saved_model.load(str(folder))


def stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Answers to several requests, one below the other; what each has padded to its longest, to the longest of all."""
    shapes = [part.shape[1:] for part in parts]
    if len(set(shapes)) == 1 or len({len(shape) for shape in shapes}) > 1:
        return np.concatenate(parts)
    widest = np.max(shapes, axis=0)
    filler: Any = {"O": b"", "U": ""}.get(parts[0].dtype.kind, 0)
    return np.concatenate([
        np.pad(part, [(0, 0), *((0, int(more)) for more in widest - part.shape[1:])], constant_values=filler)
        for part in parts
    ])  # fmt: skip


def _as_text(array: np.ndarray) -> np.ndarray:
    """UTF-8 bytes as `str`."""
    return np.array([cell.decode("utf-8", errors="replace") for cell in array.flat], dtype=str).reshape(array.shape)


def _check_backend() -> None:
    import keras

    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise ConfigError(
            f"export: a SavedModel needs Keras on TensorFlow, this process has KERAS_BACKEND={backend}. "
            "Save the model with model.save('model.keras') and export it with KERAS_BACKEND=tensorflow"
        )


def _names(values: Sequence[Any], what: str) -> list[str]:
    names = [str(value) for value in values]
    if not names:
        raise ConfigError(f"export: {what} is empty")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"export: {what} has {twice!r} twice")
    return names


def _instance_spec(base: Any, warmup_instances: Any) -> Any:
    """What the base takes, as a `tf.TensorSpec` with an open batch."""
    import tensorflow as tf

    dtype = "float32"
    shape: Any
    if inputs := getattr(base, "inputs", None):
        if len(inputs) != 1:
            raise ConfigError(
                f"export: the base takes {len(inputs)} inputs, a served model takes one. Give a base that takes "
                "them as columns of one array; for a tagger, which takes raw strings when it is served, write "
                "export(..., encoder=TokenEncoder)"
            )
        shape, dtype = tuple(inputs[0].shape), inputs[0].dtype
    elif (shape := (base.get_build_config() or {}).get("input_shape")) is None:
        if warmup_instances is None:
            raise ConfigError("export: the base is not built yet. Call it once, or give `warmup_instances`")
        shape = np.shape(warmup_instances)
    return tf.TensorSpec([None, *shape[1:]], dtype, name="instances")


def _warmup_array(instances: Any, spec: Any) -> np.ndarray:
    shape = spec.shape.as_list()[1:]
    if instances is None:
        # an open axis, such as an image's height, has no size to choose but the smallest
        nothing = "warm up" if spec.dtype.name == "string" else 0
        return np.full([1, *(size or 1 for size in shape)], nothing, spec.dtype.as_numpy_dtype)
    array = np.asarray(instances)[:WARMUP_INSTANCES].astype(spec.dtype.as_numpy_dtype)
    if not len(array) or not spec.shape.is_compatible_with(array.shape):
        raise ConfigError(
            f"export: warmup_instances has shape {list(np.shape(instances))}, the base takes {[None, *shape]}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ConfigError("export: warmup_instances has a number that is not finite")
    return array


def _write_warmup(path: Path, name: str, requests: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Two records a signature: a batch of one, as most clients send, and all instances."""
    import tensorflow as tf

    try:
        from tensorflow_serving.apis.predict_pb2 import PredictRequest
        from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog, PredictLog
    except ImportError as error:
        raise ConfigError(
            "export: warm-up requests need tensorflow-serving-api: pip install 'crowdzoo[serving]'"
        ) from error

    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests.items():
            sizes = {1, len(inputs["instances"])}
            for size in sorted(sizes):
                request = PredictRequest()
                request.model_spec.name = name
                request.model_spec.signature_name = signature
                for key, value in inputs.items():
                    request.inputs[key].CopyFrom(tf.make_tensor_proto(value[:size]))
                log = PredictionLog(predict_log=PredictLog(request=request))
                writer.write(log.SerializeToString())


def _warmup_texts(texts: Any) -> np.ndarray:
    chosen = ["warm up"] if texts is None else list(texts)[:WARMUP_INSTANCES]
    if not chosen or not all(isinstance(text, str) for text in chosen):
        raise ConfigError("export: warmup_instances must be texts, because the encoder reads texts")
    return np.array(chosen, dtype=object)


def _request_json(signature: str, inputs: Mapping[str, np.ndarray]) -> str:
    """The first warm-up request in TF Serving's row form."""
    first = {key: _json_value(value[0]) for key, value in inputs.items()}
    row = first["instances"] if len(first) == 1 else first
    named = {} if signature == "serving_default" else {"signature_name": signature}
    return json.dumps({**named, "instances": [row]}, ensure_ascii=False) + "\n"


def _json_value(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value if isinstance(value, str) else value.item()
    if value.dtype == np.float32:  # shortest digits that read back as the same float32
        return value.astype(str).astype(np.float64).tolist()
    return value.tolist()


def _card(
    model: Any,
    name: str,
    classes: list[str] | None,
    annotators: list[str],
    signatures: Mapping[str, Any],
    more: Mapping[str, Any] | None,
) -> str:
    """The card as JSON. Annotators are counted, not named: names may be personal data."""
    software = {"crowdzoo": crowdzoo.__version__, "python": platform.python_version()}
    outputs = signatures["serving_default"].structured_outputs
    # of the modules: a distribution may have another name, such as tensorflow-cpu
    packages = ["keras", "tensorflow", "numpy"] + (["tensorflow-text"] if "tokens" in outputs else [])
    software |= {package: import_module(package.replace("-", "_")).__version__ for package in packages}
    card: dict[str, Any] = {
        "name": name,
        "classes": classes,
        "num_classes": len(classes or ()),
        "num_annotators": len(annotators),
        "num_parameters": int(model.base.count_params()),
        "signatures": {
            key: {
                "inputs": {s.name: _describe(s) for s in function.structured_input_signature[0]},
                "outputs": {output: _describe(s) for output, s in function.structured_outputs.items()},
            }
            for key, function in signatures.items()
        },
        "software": software,
    }
    for key, value in (more or {}).items():
        if key in card and card[key] != value:
            raise ConfigError(f"export: model_card[{key!r}] is {value!r}, but export itself writes {card[key]!r} there")
        card[key] = value
    try:
        return json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"
    except (TypeError, ValueError) as error:
        raise ConfigError(f"export: model_card cannot be written as JSON: {error}") from error


def _describe(spec: Any) -> dict[str, Any]:
    return {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Path):
        return value.name
    raise TypeError(f"{type(value).__name__} {value!r}")
