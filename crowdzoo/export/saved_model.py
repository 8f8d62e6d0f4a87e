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
from crowdzoo.errors import ConfigError
from crowdzoo.files.json import FORMAT_VERSION
from crowdzoo.files.served_model import MODEL_CARD_FILE, REQUEST_FILES, WARMUP_FILE
from crowdzoo.files.writing import atomic_folder
from crowdzoo.networks.encoders import Encoder

if TYPE_CHECKING:
    from crowdzoo.export.warmup import WarmupInstances
    from crowdzoo.training.crowd_model import CrowdModel


def export_model(
    model: CrowdModel,
    path: str | Path,
    *,
    classes: Sequence[str] | None = None,
    annotators: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    name: str = "model",
    warmup_instances: WarmupInstances = None,
    model_card: Mapping[str, object] | None = None,
) -> Path:
    """Writes `model` as a TensorFlow SavedModel that loads without crowdzoo and without Keras.

    Signatures (`B` instances in a request, `K` classes):

    - `serving_default`: `instances` float32 `[B, D]` (or the base's input, such as images `[B, H, W, C]`; with an
      encoder raw text, string `[B]`; for a base of several inputs each by the name of its `keras.Input`) ->
      `probabilities` float32 `[B, K]`, `label` int64 `[B]`, `class` string `[B]`. For a regressor `value` float32
      `[B]`, in the ratings' unit. For masks `probabilities` float32 `[B, H, W, K]`, `label` int64 `[B, H, W]` and
      `classes` string `[B, K]`, their names. For a tagger, padded to the longest of the batch, T tokens: `tokens` and
      `tags` string `[B, T]`, `scores` float32 `[B, T]` (probability of the tag), `starts` and `ends` int64 `[B, T]`
      (bytes of the text's UTF-8, end exclusive), `lengths` int64 `[B]`.
    - `spans`, for a tagger with BIO or IOBES tags: `instances` -> `types`, `texts` string `[B, S]`, `scores` float32
      `[B, S]` (mean of the span's tokens), `starts`, `ends` int64 `[B, S]` (bytes), `lengths` int64 `[B]`.
    - `pairs`, for a model on a `RewardModel`, whose `serving_default` returns `score` float32 `[B]` of single
      instances: `left` and `right`, each like `instances` (for several inputs `left_x` and `right_x` for each) ->
      `probabilities` float32 `[B, 3]` of left, right and equal, `label` int64 `[B]`, `class` string `[B]`.
    - `annotators`, if the model has a crowd layer: `instances` (for pairs `left` and `right`) and `annotator`, string
      `[B]`, the annotators' names -> the same outputs as `serving_default` (for pairs as `pairs`), for that annotator's
      answer. A name that the model was not trained with raises an `InvalidArgumentError` that quotes it.

    The endpoint `serve` is that of Keras' own export, for `keras.layers.TFSMLayer(folder, call_endpoint="serve")`: it
    takes the instances of `serving_default` (for pairs those of `pairs`), several inputs by name, and returns the
    result of `predict`. It is not a signature, so servers do not offer it.

    `assets.extra/` has warm-up requests in TF Serving's format (`PredictionLog` records), `model_card.json`, and one
    request per signature as JSON. The folder is written atomically: it is created under another name and then renamed.

    Args:
        model: a built `CrowdModel` on the TensorFlow backend.
        path: folder to write. For serving, use `MODEL_DIR/<version>`, with an integer version.
        classes: names of the `K` classes or tags, in the order of the base's output; None uses those from `fit`; None
            for ratings.
        annotators: names of the `R` annotators, in the order of their codes; None uses those from `fit`. Ignored
            without a crowd layer.
        encoder: converts requests to the base's input, an `InstanceEncoder` (such as `TextIds`) or `TokenEncoder`. It
            becomes part of the graph, and its `inputs` are those of the signatures. None if the base takes the
            instances themselves. A tagger needs one.
        name: the model's name in the warm-up requests and the card.
        warmup_instances: array `[n, ...]` of instances (with an encoder, its input; for several inputs a list or
            dictionary of arrays); the first 16 become warm-up requests. None uses one instance of zeros (or the
            encoder's `example`).
        model_card: further facts for the card, such as metrics; anything that JSON can represent.

    Returns:
        `path`.

    Raises:
        ConfigError: another backend, an unsupported shape of the output, an existing folder that is not empty, names
            that do not fit the model, inputs without valid names, or warm-up instances that do not fit the base.
        DataError: a weight is NaN or infinite.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(
            f"export: {path} already exists and is not empty. Choose another folder; "
            f"for a served model that is MODEL_DIR/<a higher version number>"
        )
    _check_backend()
    import tensorflow as tf

    from crowdzoo.export.signatures import build_pair_signatures, build_signatures
    from crowdzoo.export.warmup import instance_specs, request_json, warmup_arrays, write_warmup
    from crowdzoo.networks.reward_model import SIDES, RewardModel, input_name
    from crowdzoo.training.faults import check_weights

    check_weights(model)
    classes = model.classes if classes is None else classes
    annotators = model.annotators if annotators is None else annotators
    class_names = None if classes is None else _names(classes, "classes")
    annotator_names = _names([] if annotators is None else annotators, "annotators") if model.crowd is not None else []
    if model.crowd is not None and len(annotator_names) != model.crowd.num_annotators:
        raise ConfigError(
            f"export: {len(annotator_names)} annotators are named, the crowd layer has {model.crowd.num_annotators}"
        )
    of_pairs = isinstance(model.base, RewardModel)
    base = model.base.scorer if of_pairs else model.base
    if encoder is None:
        specs = instance_specs(base, warmup_instances)
    else:
        specs = encoder.inputs
        if warmup_instances is None:
            warmup_instances = {name: [value] for name, value in encoder.example.items()}
    warmup = warmup_arrays(warmup_instances, specs, base)
    build = build_pair_signatures if of_pairs else build_signatures
    module, signatures = build(model, specs, class_names, annotator_names, encoder)
    card_facts = {**getattr(encoder, "card", {}), **(model_card or {})}
    card = _card(model, name, class_names, annotator_names, signatures, card_facts)
    requests = {name: warmup for name in signatures if name != "annotators"}
    if of_pairs:  # each instance is compared with the next
        warmup = {
            input_name(side, name): np.roll(values, -place, axis=0)
            for place, side in enumerate(SIDES)
            for name, values in warmup.items()
        }
        requests["pairs"] = warmup
    if model.crowd is not None:
        rows = len(next(iter(warmup.values())))
        cycled = [annotator_names[i % len(annotator_names)] for i in range(rows)]
        requests["annotators"] = {**warmup, "annotator": np.array(cycled, dtype=object)}
    try:
        with atomic_folder(path) as folder:  # replaces an empty folder only
            tf.saved_model.save(module, str(folder), signatures=signatures)
            (folder / "assets.extra").mkdir()
            write_warmup(folder / WARMUP_FILE, name, requests)
            for signature, inputs in requests.items():
                (folder / REQUEST_FILES[signature]).write_text(request_json(signature, inputs), encoding="utf-8")
            (folder / MODEL_CARD_FILE).write_text(card, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"export: {path} cannot be written: {error}") from error
    return path


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
        raise ConfigError(f"export: the {what} have no names: give {what}=[...], in the order of their codes.")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"export: {what} has {twice!r} twice")
    return names


def _card(
    model: Any,
    name: str,
    classes: list[str] | None,
    annotators: list[str],
    signatures: Mapping[str, Any],
    facts: Mapping[str, Any] | None,
) -> str:
    """The card as JSON, with the number of annotators and not their names, which may be personal data."""
    import tensorflow as tf

    software = {"crowdzoo": crowdzoo.__version__, "python": platform.python_version()}
    outputs = signatures["serving_default"].structured_outputs
    # versions of modules: a distribution may have another name, such as tensorflow-cpu
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
                "inputs": {s.name: _describe(s) for s in tf.nest.flatten(function.structured_input_signature[0])},
                "outputs": {output: _describe(s) for output, s in function.structured_outputs.items()},
            }
            for key, function in signatures.items()
        },
        "software": software,
        "format_version": FORMAT_VERSION,
    }
    for key, value in (facts or {}).items():
        if key in card and card[key] != value:
            raise ConfigError(f"export: model_card[{key!r}] is {value!r}, but export sets it to {card[key]!r}")
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
