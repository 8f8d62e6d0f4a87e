"""train_masks: one recipe for networks for masks, for the command line and the pipeline alike."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage
from crowdzoo.kinds.regions.masks import mask_of
from crowdzoo.networks.decodable import naming_undecodable
from crowdzoo.training.bases import BASES, Sizes
from crowdzoo.training.batches import TargetBatches
from crowdzoo.training.checkpoint import checkpoint_of
from crowdzoo.training.faults import warn_if_one_class
from crowdzoo.training.instance_training import build_model
from crowdzoo.training.length import with_length
from crowdzoo.training.mask_data import MaskData
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.training_loop import fit_and_check
from crowdzoo.training.training_scope import in_training_scope

LOOKED_AT = 32  # images


@in_training_scope
def train_masks(
    settings: Any,
    images: Any,
    annotations: Annotations,
    classes: Sequence[str],
    regions: Iterable[str] = (),
    *,
    verbose: Any = 0,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    checkpoint: Any = None,
) -> tuple[Any, Any]:
    """Trains a network for masks from scratch. Images and masks are held in memory, in the size that it takes.

    Args:
        settings: how to train.
        images: N paths, or the bytes of N files.
        annotations: kind "region"; task code i is image i.
        classes: of pixels, see `class_names`.
        regions: texts of `MarkedImage` in the place of the annotations, [N]; for method "aggregated".
        verbose: Keras' verbosity.
        callbacks: Keras callbacks.
        checkpoint: folder in which the state is kept after each epoch; see `instance_training.train`.

    Returns:
        The trained model, and what turns images into its input.

    Raises:
        ConfigError: a checkpoint of another training.
        DataError: an image that cannot be read; or the loss or a weight became NaN or infinite.

    Warns:
        NotLearnedWarning: the trained model gives one class to all pixels, while annotators gave others as well.
    """
    settings = with_length(settings, len(images))
    keras.utils.set_random_seed(settings.seed)
    base = BASES[settings.base]
    encoder: Any = base.encoder(settings, lambda: [images])
    model = build_model(settings, Sizes(annotations.num_annotators, len(classes)), encoder, base)
    height, width = model.bottleneck_shape[1:3]  # type: ignore[index]  # a functional base is built

    def drawn(text: str) -> Any:
        return mask_of(MarkedImage.parse(text), classes, height, width)

    with naming_undecodable(images):
        x = encoder.to_numpy(images)
    data: Any
    if settings.method == AGGREGATED:
        masks, ids = np.stack([*map(drawn, regions)]), None
        y = (masks[..., None] == np.arange(len(classes))).astype("float32")
        data = TargetBatches(x, y, batch_size=settings.batch_size, seed=settings.seed).for_keras()
    else:
        ids, said = annotations.padded()
        found = {code: drawn(np.asarray(annotations.classes)[code]) for code in np.unique(said).tolist() if code >= 0}
        found[-1] = np.full_like(next(iter(found.values())), -1)
        masks = np.stack([np.stack([found[code] for code in row], axis=-1) for row in said.tolist()])
        data = MaskData(x, masks, ids, num_annotators=annotations.num_annotators, num_classes=len(classes))
    keep = checkpoint_of(checkpoint, (x, masks, ids), settings)
    fit_and_check(model, settings, data, callbacks=callbacks, checkpoint=keep, verbose=verbose)
    predicted = model.predict(x[:LOOKED_AT], verbose=0).argmax(axis=-1)
    warn_if_one_class(predicted.ravel(), masks.ravel(), classes, "pixels")
    return model, encoder
