"""Allowed values of the settings of the layers and of their training."""

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.checks.constraints import Choice, Number
from crowdzoo.errors import ConfigError, bad_setting

CODES = 2**31 - 1  # codes are int32
ANNOTATORS = Number(1, CODES, whole=True)
CLASSES = Number(2, CODES, whole=True)
UNITS = Number(1, 65_536, whole=True)
DIAGONAL = Number(1e-6, 1 - 1e-6)  # within float32, with a finite logarithm on both sides
PSEUDO_COUNT = Number(1e-9, 1e9)
STRENGTH = Number(0, 1e6)
FLOOR = Number(1e-6, 1)  # of a Gram matrix whose eigenvalues are about 1; float32 resolves them to 1e-7
SCALE = Number(-1e4, 1e4)
PHASE = Number(1, 10_000, whole=True)  # additional epochs or rounds
MORE_EPOCHS = Number(0, 10_000, whole=True, optional=True)  # of an optional phase; None is its default
EPOCHS = Number(1, 10**9, whole=True)
BATCH = Number(1, CODES, whole=True)
LEARNING_RATE = Number(0, 1e3, above=True)
DROPOUT = Number(0, 1, below=True)
SEED = Number(0, 2**32 - 1, whole=True)  # what keras.utils.set_random_seed takes
NETWORKS = ("convolutional", "bag-of-words")  # of texts
FITS = ("crop", "stretch")  # how images of other shapes are fitted
# Values of pixels that a backbone was trained on, made from 0 to 255
PIXEL_SCALES = ("0 to 255", "0 to 1", "-1 to 1", "imagenet", "imagenet-bgr")
SIDE = Number(8, 4096, whole=True)  # of images, in pixels
MARGIN = Choice(("top-2", "pleiss"))  # of AUM
DENOMINATOR = Choice(("trust", "redundancy"))  # of WAUM


class _Hidden:
    """Units of hidden layers: a list of numbers, as a tuple."""

    def checked(self, where: str, name: str, value: object) -> tuple[int, ...]:
        """See `crowdzoo.checks.constraints.Rule`."""
        if not isinstance(value, (list, tuple)):
            raise bad_setting(name, "must be a list of units, such as [128]", value, where)
        return tuple(UNITS.checked(where, name, units) for units in value)


HIDDEN = _Hidden()


def feature_table(
    where: str, numbers: ArrayLike | None, shape: tuple[int | None, int | None]
) -> list[list[float]] | None:
    """Checks annotators' features and returns them as lists for a configuration; None if missing.

    Args:
        where: class that has them, for messages.
        numbers: a row for each annotator.
        shape: annotators and features; None is any number.

    Raises:
        ConfigError: the wrong shape, or a number that is not finite.
    """
    if numbers is None:
        return None
    try:
        array = np.asarray(numbers, dtype="float64")
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: annotator_features must be a table of finite numbers. {error}") from error
    fits = array.ndim == 2 and array.shape[1] > 0
    fits = fits and all(needed in (None, size) for needed, size in zip(shape, array.shape, strict=True))
    if not fits or not np.isfinite(array).all():
        written = f"[{shape[0] or 'annotators'}, {shape[1] or 'features'}]"
        raise ConfigError(f"{where}: annotator_features must be finite numbers {written}, got shape {array.shape}")
    rows: list[list[float]] = array.tolist()
    return rows
