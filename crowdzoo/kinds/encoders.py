"""What turns instances into the input of a model, as it is saved beside the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.errors import DataError
from crowdzoo.instances import take_rows

__all__ = ["encoded", "encoder_config", "encoder_of"]


def encoder_config(encoder: Any) -> dict[str, Any]:
    """The entry of a file of names for an encoder: its key and its configuration; nothing for None."""
    return {} if encoder is None else {encoder.key: encoder.get_config()}


def encoder_of(names: Mapping[str, Any], path: Path) -> Any:
    """What turns instances into the input of a model; None for models that take them as they are.

    Args:
        names: what `crowdzoo.files.model_files.read_model_names` found.
        path: the file, for messages.

    Raises:
        DataError: settings that make no encoder.
    """
    for made in _encoders():
        if made.key in names:
            try:
                return made(**names[made.key])
            except Exception as error:  # a file that was changed may hold arguments of any kind
                raise DataError(
                    f"{path}: {made.key!r} makes no {made.__name__}: {error}. Train the model again."
                ) from error
    return None


def encoded(values: Any, rows: np.ndarray, encoder: Any) -> Any:
    """Some instances as the model takes them.

    Args:
        values: of all tasks, as `crowdzoo.instances.Instances` holds them.
        rows: which of them, bool [N].
        encoder: from them to the model's input, or None.

    Returns:
        What `CrowdModel.predict` takes.
    """
    chosen = take_rows(values, rows)
    if encoder is None or not encoder.per_batch:
        return chosen if encoder is None else encoder.to_numpy(chosen)
    from crowdzoo.training.batches import TargetBatches

    batches = TargetBatches(chosen, np.flatnonzero(rows), batch_size=64, seed=0, shuffle=False, encode=encoder)
    return batches.as_tf_dataset().map(lambda x, _: x)


def _encoders() -> tuple[Any, ...]:
    from crowdzoo.models.image_pixels import ImagePixels
    from crowdzoo.models.named_inputs import NamedInputs
    from crowdzoo.models.raw_texts import RawTexts
    from crowdzoo.models.table_columns import TableColumns
    from crowdzoo.models.text_ids import TextIds
    from crowdzoo.models.token_encoder import TokenEncoder

    return ImagePixels, RawTexts, TextIds, TableColumns, NamedInputs, TokenEncoder
