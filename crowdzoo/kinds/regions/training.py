"""train_masks: trains segmentation networks."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage
from crowdzoo.kinds.regions.masks import mask_of
from crowdzoo.kinds.scoring import Objects
from crowdzoo.networks.instance_encoder import InstanceEncoder
from crowdzoo.training.bases import BASES, Sizes
from crowdzoo.training.batches import TargetBatches
from crowdzoo.training.checkpoint import checkpoint_of
from crowdzoo.training.crowd_model import CrowdModel
from crowdzoo.training.faults import LOOKED_AT, warn_if_one_class
from crowdzoo.training.instance_training import build_model
from crowdzoo.training.length import with_length
from crowdzoo.training.mask_data import MaskData
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import MaskSettings
from crowdzoo.training.training_loop import fit_and_check
from crowdzoo.training.training_scope import in_training_scope


@in_training_scope
def train_masks(
    settings: MaskSettings,
    images: Sequence[Path] | Objects,
    annotations: Annotations,
    classes: Sequence[str],
    regions: Iterable[MarkedImage] = (),
    **how: Any,
) -> tuple[CrowdModel, InstanceEncoder]:
    """Train a segmentation network from scratch. Images and masks are held in memory in the network's input size.

    Args:
        settings: training settings.
        images: N paths, or the bytes of N files.
        annotations: kind "region"; task code i is image i.
        classes: names of the K pixel classes.
        regions: N `MarkedImage` to use instead of the annotations; for method "aggregated".
        **how: `checkpoint`, where the state is saved after each epoch, see `instance_training.train`; and `callbacks`
            and `verbose` of Keras.

    Returns:
        The trained model, and the encoder from images to its input.

    Raises:
        ConfigError: the checkpoint belongs to another training.
        DataError: an unreadable image, or a NaN or infinite loss or weight.

    Warns:
        NotLearnedWarning: the trained model predicts one class for all pixels, while annotators also used others.
    """
    settings = with_length(settings, len(images))
    assert settings.batch_size is not None
    keras.utils.set_random_seed(settings.seed)
    encoder: Any = BASES[settings.base].encoder(settings, lambda: [images])
    model = build_model(settings, Sizes(annotations.num_annotators, len(classes)), encoder)
    x, size = encoder.to_numpy(images), (encoder.height, encoder.width)
    if settings.method == AGGREGATED:
        masks, ids = np.stack([mask_of(image, classes, *size) for image in regions]), None
        y = (masks[..., None] == np.arange(len(classes))).astype("float32")
        data = TargetBatches(x, y, batch_size=settings.batch_size, seed=settings.seed).for_keras()
    else:
        ids, labels = annotations.padded()
        codes, values = np.unique(labels[labels >= 0]).tolist(), np.asarray(annotations.values)
        drawn = {-1: np.full(size, -1, "int8")} | {code: mask_of(values[code], classes, *size) for code in codes}
        masks = np.stack([np.stack([drawn[code] for code in row], axis=-1) for row in labels.tolist()])
        data = MaskData(x, masks, ids, num_annotators=annotations.num_annotators, num_classes=len(classes))
    keep = checkpoint_of(how.pop("checkpoint", None), (x, masks, ids), settings)
    fit_and_check(model, settings, data, checkpoint=keep, **how)
    predicted = model.predict(x[:LOOKED_AT], verbose=0).argmax(axis=-1)
    warn_if_one_class(predicted.ravel(), masks.ravel(), classes, "pixels")
    return model, encoder
