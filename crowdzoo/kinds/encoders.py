"""What turns text into the input of a model, as it is saved beside the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdzoo.errors import DataError

__all__ = ["encoder_config", "encoder_of"]


def encoder_config(encoder: Any) -> dict[str, Any]:
    """The entry of a file of names for an encoder: its key and its configuration; nothing for None."""
    if encoder is None:
        return {}
    return {key: encoder.get_config() for key, made in _encoders().items() if isinstance(encoder, made)}


def encoder_of(names: Mapping[str, Any], path: Path) -> Any:
    """What turns text into the input of a tagger or of a regressor of texts; None for other models.

    Args:
        names: what `crowdzoo.files.model_files.read_model_names` found.
        path: the file, for messages.

    Raises:
        DataError: settings that make no encoder.
    """
    for key, made in _encoders().items():
        if key in names:
            try:
                return made(**names[key])
            except Exception as error:  # a file that was changed may hold arguments of any kind
                raise DataError(f"{path}: {key!r} makes no {made.__name__}: {error}. Train the model again.") from error
    return None


def _encoders() -> dict[str, Any]:
    from crowdzoo.models.text_ids import TextIds
    from crowdzoo.models.token_encoder import TokenEncoder

    return {"text_ids": TextIds, "encoder": TokenEncoder}
