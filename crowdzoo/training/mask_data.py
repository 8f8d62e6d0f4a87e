"""Training data for segmentation: images and annotators' masks in memory."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from crowdzoo.backend import KerasBatches
from crowdzoo.errors import DataError
from crowdzoo.training.batches import INPUTS, TargetBatches
from crowdzoo.training.data import split_row
from crowdzoo.training.pair_rows import num_rows


class MaskData:
    """`TrainingData` of images and the masks that annotators drew, in memory.

    A mask is stored once for each annotator who drew one, whatever the number of annotators: with three masks per
    image, M is 3. Small integers, such as int8, are kept.

    Args:
        x: images `[N, H, W, C]`, or a structure of arrays.
        labels: class codes `[N, H, W, M]`, -1 where a pixel has none; without `annotators`, one column per annotator.
        annotators: int `[N, M]`, codes of those who drew the masks, -1 for padding.
        num_annotators: R.
        num_classes: K.

    Attributes:
        num_tasks: N; images without a mask are ignored.
        num_tokens: rows and columns, (H, W).

    Raises:
        DataError: shapes that do not fit, codes out of range, or no label.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import MaskData
        >>> images = np.zeros((2, 8, 8, 3), "float32")
        >>> masks = np.zeros((2, 8, 8, 3), "int8")  # one for each of three annotators
        >>> masks[1, :, :, 2] = -1  # the third annotator did not draw the second image
        >>> data = MaskData(images, masks, num_annotators=3, num_classes=2)
        >>> data.num_tasks, data.num_tokens
        (2, (8, 8))
    """

    def __init__(self, x: Any, labels: Any, annotators: Any = None, *, num_annotators: int, num_classes: int):
        labels, rows = np.asarray(labels), num_rows(x)
        ids = None if annotators is None else np.asarray(annotators)
        if labels.ndim != 4 or labels.dtype.kind not in "iu" or len(labels) != rows:
            raise DataError(
                f"masks must be integers [images, rows, columns, annotators], here [{rows}, ...], got {labels.dtype} "
                f"of shape {list(labels.shape)}"
            )
        if labels.max(initial=-1) >= num_classes:
            image = np.argwhere(labels >= num_classes)[0].tolist()
            raise DataError(
                f"masks[{', '.join(map(str, image))}] is {labels[tuple(image)]}, the model has {num_classes} classes, "
                f"0 to {num_classes - 1}; write -1 where a pixel has no label."
            )
        drawn = (labels >= 0).any(axis=(1, 2))  # [N, M]
        if ids is None:
            if labels.shape[-1] != num_annotators:
                raise DataError(
                    f"masks have {labels.shape[-1]} columns of annotators, the crowd layer has {num_annotators} "
                    "annotators. To pass only existing masks, write x as "
                    '{"instances": x, "annotators": ids}, ids [N, M] and masks [N, H, W, M].'
                )
            # the columns of those who drew the image, first
            order = np.argsort(~drawn, axis=1, kind="stable")[:, : max(1, int(drawn.sum(axis=1).max(initial=0)))]
            labels = np.take_along_axis(labels, order[:, None, None], axis=-1)
            drawn = np.take_along_axis(drawn, order, axis=1)
            ids = np.where(drawn, order, -1)
        elif ids.shape != drawn.shape or ids.max(initial=-1) >= num_annotators or (ids[drawn] < 0).any():
            raise DataError(
                f"annotators must be codes {list(drawn.shape)} of 0 to {num_annotators - 1}, one for each mask, -1 "
                f"where missing; got shape {list(ids.shape)}, codes {ids.min(initial=0)} to {ids.max(initial=0)}."
            )
        if not drawn.any():
            raise DataError("there are no masks to learn from: all labels are -1.")
        self.x = keras.tree.map_structure(np.asarray, x)
        self.labels, self.annotators = labels, ids.astype("int32")
        self.num_tasks = rows
        self.num_tokens: int | tuple[int, ...] | None = labels.shape[1:3]
        self.num_annotators, self.num_classes = num_annotators, num_classes

    @property
    def arrays(self) -> tuple:
        """The training data: x, labels and annotators."""
        return self.x, self.labels, self.annotators

    def split(self, fraction: float) -> tuple["MaskData", "MaskData"]:
        """Splits the data into the first images and a share of last ones; see `ArrayData.split`."""
        place = split_row(self.num_tasks, fraction)
        sizes = {"num_annotators": self.num_annotators, "num_classes": self.num_classes}
        first, last = (
            MaskData(*keras.tree.map_structure(lambda array, part=part: array[part], self.arrays), **sizes)
            for part in (slice(place), slice(place, None))
        )
        return first, last

    def batches(
        self, batch_size: int, seed: int, *, inputs: Sequence[str] = ("annotators",), targets: Any = None, **how: Any
    ) -> KerasBatches:
        """See `TrainingData.batches`."""
        known = dict(zip(INPUTS, (self.annotators, self.labels, np.arange(self.num_tasks, dtype="int32")), strict=True))
        x = {"instances": self.x, **{name: known[name] for name in inputs}} if inputs else self.x
        y = self.labels if targets is None else targets
        return TargetBatches(x, y, batch_size=batch_size, seed=seed, **how).for_keras()
