"""Encoders, which turn instances into the input of a model, as they are saved next to the model."""

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

# key -> module and class, which loads TensorFlow
_ENCODERS = {
    "image_pixels": "image_pixels:ImagePixels",
    "raw_texts": "text_ids:RawTexts",
    "text_ids": "text_ids:TextIds",
    "table_columns": "table_columns:TableColumns",
    "named_inputs": "named_inputs:NamedInputs",
    "encoder": "token_encoder:TokenEncoder",
}


def encoder_config(encoder: Encoder | None) -> dict[str, object]:
    """The entry of a file of names for an encoder: its key and its configuration; nothing for None."""
    return {} if encoder is None else {encoder.key: encoder.get_config()}


def model_names(
    classes: Iterable[object] | None,
    annotators: Iterable[object],
    features: Iterable[str] | None,
    encoder: Encoder | None,
    training: Mapping[str, object],
) -> dict[str, object]:
    """What is saved next to a model: the names of its codes, its encoder, and facts about its training.

    Args:
        classes: names [K]; None of ratings.
        annotators: names [R].
        features: names of the columns of feature vectors, or None.
        encoder: what turns instances into the input of the model, or None.
        training: anything JSON can hold.
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
    """What turns instances into the input of a model; None for models that take them as they are.

    Args:
        names: what `crowdzoo.files.model_files.read_model_names` found.
        path: the file, for messages.

    Raises:
        DataError: settings that make no encoder.
    """
    for key, place in _ENCODERS.items():
        if key in names:
            try:
                return resolve_name(f"crowdzoo.networks.{place}")(**names[key])
            except Exception as error:  # a file that was changed may hold arguments of any kind
                name = place.partition(":")[2]
                raise DataError(f"{path}: {key!r} makes no {name}: {error}. Train the model again.") from error
    return None
