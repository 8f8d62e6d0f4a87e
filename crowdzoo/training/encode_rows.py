"""Instances as a model takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.reading.instances.instances import take_rows

if TYPE_CHECKING:
    from crowdzoo.backend import KerasBatches
    from crowdzoo.networks.instance_encoder import InstanceEncoder
    from crowdzoo.training.pair_rows import Examples


def encode_rows(values: Examples, rows: np.ndarray, encoder: InstanceEncoder | None) -> Examples | KerasBatches:
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
    from crowdzoo.training.batches import TargetBatches  # loads Keras

    batches = TargetBatches(chosen, np.flatnonzero(rows), batch_size=64, seed=0, shuffle=False, encode=encoder)
    return batches.as_tf_dataset().map(lambda x, _: x)
