"""brush_rle: a mask as a brush of Label Studio."""

import numpy as np
from numpy.typing import NDArray

_LONGEST = 1 << 16  # numbers of a part


def brush_rle(pixels: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A mask as Label Studio packs the image RGBA of a brush, whose pixels are 255 four times, or 0.

    The 32 bits of the number of values, 5 of the bits of a value, and four times 4 of the bits of a length (each but
    the first less one) come first. A part is a bit that says that its values are one, 2 that say which length it has,
    its length less one, and the value. `crowdzoo.reading.platforms.shapes.brush_mask` is the way back.

    Args:
        pixels: bool `[H, W]`.

    Returns:
        The bytes.

    Source:
        https://github.com/thi-ng/umbrella/blob/develop/packages/rle-pack, `encode`.
    """
    flat = pixels.ravel()
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    lengths = 4 * np.diff(starts, append=flat.size)
    parts = -(-lengths // _LONGEST)
    sizes = np.full(parts.sum(), _LONGEST)
    sizes[np.cumsum(parts) - 1] = lengths - (parts - 1) * _LONGEST
    values = np.repeat(255 * flat[starts].astype(np.int64), parts)
    words = (1 << 26 | 3 << 24 | (sizes - 1) << 8 | values).astype(">u4")
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 32)[:, 5:]
    head = f"{4 * flat.size:032b}{7:05b}" + f"{15:04b}" * 4
    return np.packbits(np.concatenate([np.array([*head], np.uint8), bits.ravel()]))
