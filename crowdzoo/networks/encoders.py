"""Encoders, which turn instances into the input of a model and are saved next to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from crowdzoo.errors import DataError
from crowdzoo.files.json import FORMAT_VERSION
from crowdzoo.networks.instance_encoder import InstanceEncoder

if TYPE_CHECKING:
    from crowdzoo.networks.token_encoder import TokenEncoder

Encoder: TypeAlias = Union[InstanceEncoder, "TokenEncoder"]

# key -> module and class, whose import loads TensorFlow
_ENCODERS = {
    "image_pixels": "image_pixels:ImagePixels",
    "raw_texts": "text_ids:RawTexts",
    "text_ids": "text_ids:TextIds",
    "table_columns": "table_columns:TableColumns",
    "named_inputs": "named_inputs:NamedInputs",
    "encoder": "token_encoder:TokenEncoder",
}


def encoder_config(encoder: Encoder | None) -> dict[str, object]:
    """The entry of a file of names for an encoder: its key and its configuration; empty for None."""
    return {} if encoder is None else {encoder.key: encoder.get_config()}


def model_names(
    classes: Iterable[object] | None,
    annotators: Iterable[object],
    features: Iterable[str] | None,
    encoder: Encoder | None,
    training: Mapping[str, object],
) -> dict[str, object]:
    """Contents of the file next to a model: the names of its codes, its encoder, and facts about its training.

    Args:
        classes: names [K]; None for ratings.
        annotators: names [R].
        features: names of the columns of feature vectors, or None.
        encoder: encoder that turns instances into the model's input, or None.
        training: anything that JSON can represent.
    """
    return {
        "classes": None if classes is None else [str(name) for name in classes],
        "annotators": [str(name) for name in annotators],
        **({} if features is None else {"features": list(features)}),
        **encoder_config(encoder),
        "training": dict(training),
        "format_version": FORMAT_VERSION,
    }


def encoder_of(names: Mapping[str, Any], path: Path) -> Any:
    """The encoder that turns instances into a model's input; None for models that take them unchanged.

    Args:
        names: result of `crowdzoo.files.model_files.read_model_names`.
        path: the file, for messages.

    Raises:
        DataError: settings from which no encoder can be made.
    """
    for key, place in _ENCODERS.items():
        if key in names:
            try:
                return resolve_name(f"crowdzoo.networks.{place}")(**names[key])
            except Exception as error:  # an edited file may have any arguments
                name = place.partition(":")[2]
                raise DataError(f"{path}: {key!r} is not a valid {name}: {error}. Train the model again.") from error
    return None
