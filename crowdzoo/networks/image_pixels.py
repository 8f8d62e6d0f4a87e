"""Decodes image files to pixels in TensorFlow operations only, so that training and serving run the same graph."""

import base64
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from crowdzoo.checks.constraints import Choice, Number, checked
from crowdzoo.data.instance_kinds import IMAGES
from crowdzoo.layers.ranges import FITS, SIDE
from crowdzoo.networks.exif_upright import EXIF_WITHIN, exif_upright
from crowdzoo.networks.instance_encoder import InstanceEncoder
from crowdzoo.reading.instances.upright_image import opened

_MOST_FASTER = 8  # libjpeg decodes at an eighth of the size at least
# a PNG file of one white pixel
_EXAMPLE = base64.b64decode(
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
)


class ImagePixels(InstanceEncoder):
    """Images as pixels of one size; callable inside a TensorFlow graph, such as a serving signature.

    JPEG, PNG and BMP (24 or 32 bits) are decoded to RGB as displayed: grey is repeated three times, only the upper 8
    bits are used, transparent PNG is put on white, and JPEG is rotated according to its EXIF data. `upright_image`
    (crowdzoo.reading.instances) converts files, including GIF, so that they are read here as displayed.

    Images are scaled with antialiasing (bilinear). "crop" fills `height` x `width` with the middle of the image and
    cuts off two sides; "stretch" keeps the whole image and changes its shape.

    Args:
        height: H, rows of the output, 8 to 4,096.
        width: W, columns.
        fit: "crop" or "stretch".
        max_megapixels: largest size of an image, in millions of pixels; larger ones are rejected before decoding.

    Raises:
        ConfigError: a value out of its range.

    Example:
        >>> import io
        >>> import PIL.Image
        >>> from crowdzoo.models import ImagePixels
        >>> file = io.BytesIO()
        >>> PIL.Image.new("RGB", (60, 40), "red").save(file, "PNG")
        >>> pixels = ImagePixels(height=16, width=16).to_numpy([file.getvalue()])
        >>> pixels.shape, pixels[0, 0, 0].tolist()
        ((1, 16, 16, 3), [255.0, 0.0, 0.0])
    """

    key = "image_pixels"
    instances = IMAGES
    example: ClassVar = {"instances": _EXAMPLE}

    @checked(height=SIDE, width=SIDE, fit=Choice(FITS), max_megapixels=Number(0, 2000, above=True))
    def __init__(self, height: int = 64, width: int = 64, fit: str = "crop", max_megapixels: float = 50.0):
        self.height, self.width, self.fit, self.max_megapixels = height, width, fit, float(max_megapixels)

    @property
    def card(self) -> dict[str, object]:
        """Facts about the images for a model's card."""
        return {"images": {**self.get_config(), "formats": ["JPEG", "PNG", "BMP (24 or 32 bits)"]}}

    @property
    def encode_one(self) -> Callable[[tf.Tensor], tf.Tensor]:
        """Function that decodes one checked file to pixels, float32 `[H, W, 3]`, without the search for bad rows.

        Data sets map it over their records and batch the pixels.
        """
        return self._decode

    def get_config(self) -> dict[str, object]:
        """Every argument of the constructor."""
        return {"height": self.height, "width": self.width, "fit": self.fit, "max_megapixels": self.max_megapixels}

    def to_numpy(self, values: ArrayLike, batch_size: int = 64) -> np.ndarray:
        """Pixels of many images in memory, float32 `[N, H, W, 3]`.

        Args:
            values: N paths, or the bytes of N files.
            batch_size: number of files in memory at a time.
        """
        values = np.asarray(values, object)
        starts = range(0, max(1, len(values)), batch_size)
        return np.concatenate([self(opened(values[start : start + batch_size])).numpy() for start in starts])

    def __call__(self, values: tf.Tensor) -> tf.Tensor:
        """Pixels of images.

        Args:
            values: strings `[B]`, the bytes of each file.

        Returns:
            float32 tensor `[B, H, W, 3]`, 0 to 255.

        Raises:
            tf.errors.InvalidArgumentError: an image is too large, damaged or of another format; the message names the
            rows, from 0.
        """
        images = tf.convert_to_tensor(values, tf.string)
        number = tf.size(images, tf.int64)
        rows = tf.range(number)
        no_images = tf.zeros([0], tf.int64), tf.zeros([0]), tf.zeros([0, self.height, self.width, 3])

        def decode_row(row: tf.Tensor, content: tf.Tensor) -> tf.Tensor:
            pixels = _num_pixels(content)
            few = tf.logical_and(pixels > 0, pixels <= self.max_megapixels * 1e6)
            blank = tf.zeros([self.height, self.width, 3])
            return row, pixels, tf.cond(few, lambda: self._decode(content), lambda: blank)

        # a data set inside the graph can continue after a decoder's error, and so find the row that has it
        read = tf.data.Dataset.from_tensor_slices((rows, images)).map(decode_row, num_parallel_calls=tf.data.AUTOTUNE)
        batch = read.ignore_errors().batch(tf.maximum(number, 1)).concatenate(tf.data.Dataset.from_tensors(no_images))
        decoded_rows, sizes, pixels = batch.take(1).get_single_element()
        large = tf.boolean_mask(decoded_rows, sizes > self.max_megapixels * 1e6)
        bad = tf.sets.difference(rows[None], tf.boolean_mask(decoded_rows, sizes > 0)[None]).values
        limit = f"instances: more than {self.max_megapixels:g} megapixels in row"
        # the usual fault is plain base64; TensorFlow would escape quotes
        sent = "(bytes of a file; in JSON {b64: ...} with their base64)"
        no_image = f"instances: no sound JPEG, PNG or BMP (24 or 32 bits) image {sent} in row"
        checks = [
            tf.debugging.Assert(tf.equal(tf.size(rows_), 0), [message, rows_], summarize=3)
            for message, rows_ in ((limit, large), (no_image, bad))
        ]
        with tf.control_dependencies(checks):
            return tf.ensure_shape(pixels, [None, self.height, self.width, 3])

    def _decode(self, content: tf.Tensor) -> tf.Tensor:
        """Pixels of one image, float32 `[H, W, 3]`."""
        image = tf.cond(
            _begins(content, _JPEG), lambda: self._jpeg(content), lambda: _as_separate_call(_decode_png_or_bmp)(content)
        )
        shape = tf.shape(image)
        fits = tf.logical_and(tf.equal(shape[0], self.height), tf.equal(shape[1], self.width))
        # scaling an image to its own size has no effect, and takes as long as decoding a small one
        pixels = tf.cond(
            fits, lambda: tf.cast(image, tf.float32), lambda: _as_separate_call(self._crop_and_scale)(image)
        )
        return tf.ensure_shape(pixels, [self.height, self.width, 3])

    def _crop_and_scale(self, image: tf.Tensor) -> tf.Tensor:
        """Crops and scales an image of another size, float32 `[H, W, 3]`."""
        shape = tf.shape(image)
        if self.fit == "crop":
            # the largest part with the wanted aspect ratio, from the middle
            height = tf.minimum(shape[0], _divide_rounded(shape[1] * self.height, self.width))
            width = tf.minimum(shape[1], _divide_rounded(shape[0] * self.width, self.height))
            top, left = (shape[0] - height) // 2, (shape[1] - width) // 2
            image = image[top : top + height, left : left + width]  # faster than TensorFlow's crop with its checks
        small = tf.image.resize(image, [self.height, self.width], antialias=True)
        return tf.clip_by_value(small, 0.0, 255.0)

    def _jpeg(self, content: tf.Tensor) -> tf.Tensor:
        """JPEG, uint8 `[?, ?, 3]`; large photographs are decoded at a fraction of their size."""
        size = tf.image.extract_jpeg_shape(content)
        least = tf.minimum(size[0], size[1]) // max(self.height, self.width)

        def decode(content: tf.Tensor, ratio: int) -> tf.Tensor:
            return tf.io.decode_jpeg(content, 3, ratio=ratio, dct_method="INTEGER_ACCURATE")

        def decode_upright(content: tf.Tensor, least: tf.Tensor) -> tf.Tensor:
            cases = [(least >= ratio, lambda ratio=ratio: decode(content, ratio)) for ratio in (_MOST_FASTER, 4, 2)]
            return exif_upright(tf.case(cases, default=lambda: decode(content, 1)), content)

        # reading EXIF data takes longer than decoding a small image, and most files have none
        exif = tf.strings.regex_full_match(tf.strings.substr(content, 0, EXIF_WITHIN), r"\C*Exif\C*")
        return tf.cond(
            tf.logical_or(least >= 2, exif),
            lambda: _as_separate_call(decode_upright)(content, least),
            lambda: decode(content, 1),
        )


_JPEG, _PNG, _BMP = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"BM"


def _begins(content: tf.Tensor, start: bytes) -> tf.Tensor:
    return tf.equal(tf.strings.substr(content, 0, len(start)), start)


def _divide_rounded(number: tf.Tensor, by: int) -> tf.Tensor:
    """A rounded quotient of integers, at least 1."""
    return tf.maximum(1, (2 * number + by) // (2 * by))


def _decode_png_or_bmp(content: tf.Tensor) -> tf.Tensor:
    """PNG and BMP, uint8 `[?, ?, 3]`."""

    def blend_on_white() -> tf.Tensor:
        image = tf.cast(tf.io.decode_png(content, 4), tf.int32)
        colours, share = image[..., :3], image[..., 3:]
        return tf.cast((colours * share + 255 * (255 - share) + 127) // 255, tf.uint8)

    def png() -> tf.Tensor:
        # byte 25 is the colour type: 3 a palette, which may be transparent, 4 grey and 6 RGB with transparency
        kind = tf.io.decode_raw(tf.strings.substr(content, 25, 1), tf.uint8)[0]
        return tf.cond(tf.reduce_any(tf.equal(kind, [3, 4, 6])), blend_on_white, lambda: tf.io.decode_png(content, 3))

    return tf.cond(_begins(content, _PNG), png, lambda: tf.io.decode_bmp(content, 0)[..., :3])


def _num_pixels(content: tf.Tensor) -> tf.Tensor:
    """Number of pixels according to a file's header, scalar float32; 0 for other formats or a damaged header."""

    def numbers(start: int, length: int, signed: bool, little: bool) -> tf.Tensor:
        kind = tf.int32 if signed else tf.uint16
        part = tf.strings.substr(content, start, length)
        return tf.cast(tf.io.decode_raw(part, kind, little_endian=little), tf.float32)

    def jpeg() -> tf.Tensor:
        return tf.reduce_prod(tf.cast(tf.image.extract_jpeg_shape(content)[:2], tf.float32))

    def png() -> tf.Tensor:
        return tf.reduce_prod(tf.abs(numbers(16, 8, True, False)))

    def bmp() -> tf.Tensor:
        bits = numbers(28, 2, False, True)[0]
        # a negative height means that rows run down
        pixels = tf.reduce_prod(tf.abs(numbers(18, 8, True, True)))
        return tf.where(tf.logical_or(tf.equal(bits, 24), tf.equal(bits, 32)), pixels, 0.0)

    long_enough = tf.strings.length(content) >= 30
    kinds = [
        (tf.logical_and(long_enough, _begins(content, start)), size)
        for start, size in ((_JPEG, jpeg), (_PNG, png), (_BMP, bmp))
    ]
    return tf.case(kinds, default=lambda: tf.constant(0.0))


def _as_separate_call(function: Callable[..., Any]) -> tf.Tensor:
    """Calls a function of tensors as one operation of a TensorFlow graph, instead of inlining its operations.

    TensorFlow visits every operation of a `tf.cond` branch that is not taken, which takes longer than decoding a small
    image. A branch that is a separate call is a single operation.

    Args:
        function: function of tensors, in TensorFlow operations.
    """
    return tf.function(tf.autograph.experimental.do_not_convert(function), experimental_attributes={"_noinline": True})
