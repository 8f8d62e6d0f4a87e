"""Fuzzing of image files: what the door lets in, the model's graph can read; requests end in rows that are named."""

import functools
import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from PIL import Image
from target import Target

from crowdzoo.errors import DataError
from crowdzoo.instances import IMAGES, read_instances
from crowdzoo.reading.instances.upright_image import upright_image

PIXELS = np.random.default_rng(0).integers(0, 256, (9, 13, 3), dtype="uint8")
MARKS = [b"\xff\xd9", b"\xff\xda", b"\xff\xe1", b"IDAT", b"IEND", b"\0", b"\xff", b"Exif\0\0", b"\x7f\xff\xff\xff"]


@functools.cache
def sound_files():
    """Files of each format in several modes."""
    picture = Image.fromarray(PIXELS)
    exif = Image.Exif()
    exif[0x0112] = 6
    made = [
        ("JPEG", "RGB", {}), ("JPEG", "L", {}), ("JPEG", "CMYK", {}), ("JPEG", "RGB", {"progressive": True}),
        ("JPEG", "RGB", {"exif": exif}), ("PNG", "RGB", {}), ("PNG", "RGBA", {}), ("PNG", "P", {}), ("PNG", "1", {}),
        ("PNG", "I;16", {}), ("PNG", "RGB", {"exif": exif}), ("GIF", "P", {}), ("BMP", "RGB", {}), ("BMP", "P", {}),
        ("GIF", "P", {"save_all": True, "append_images": [picture.convert("P").rotate(90)]}),
        ("TIFF", "RGB", {}), ("WEBP", "RGB", {}),
    ]  # fmt: skip
    files = []
    for kind, mode, settings in made:
        stream = io.BytesIO()
        image = Image.fromarray(257 * PIXELS[..., 0].astype("uint16")) if mode == "I;16" else picture.convert(mode)
        image.save(stream, kind, **settings)
        files.append(stream.getvalue())
    return files


@st.composite
def images(draw):
    """A file that is sound but for some bytes: changed, cut off, repeated, inserted."""
    content = bytearray(draw(st.sampled_from(sound_files())))
    for _ in range(draw(st.integers(0, 4))):
        # most of what a reader looks at stands at the beginning
        at = draw(st.integers(0, draw(st.sampled_from([40, len(content)]))))
        what = draw(st.sampled_from(["byte", "cut", "mark", "twice", "drop"]))
        if what == "byte" and at < len(content):
            content[at] = draw(st.integers(0, 255))
        elif what == "cut":
            del content[at:]
        elif what == "mark":
            content[at:at] = draw(st.sampled_from(MARKS))
        elif what == "twice":
            content[at:at] = content[at : at + 20]
        elif what == "drop":
            del content[at : at + draw(st.integers(1, 20))]
    return bytes(content)


@functools.cache
def graph():
    """What a served model reads images with."""
    import tensorflow as tf

    from crowdzoo.networks.image_pixels import ImagePixels

    encoder = ImagePixels(8, 8, max_megapixels=1)
    return tf.function(encoder, input_signature=list(encoder.inputs.values()))


def door(content):
    """A file is refused, or what is stored of it is read by the graph."""
    import tensorflow as tf

    from crowdzoo.networks.decodable import is_decodable

    try:
        stored = upright_image(content, "a.png", max_megapixels=1)
    except DataError:
        return
    if not is_decodable(stored.content):  # which training says, and AnnotationExampleGen
        with pytest.raises(tf.errors.InvalidArgumentError):
            graph()([stored.content])
        return
    pixels = graph()([stored.content]).numpy()
    assert pixels.shape == (1, 8, 8, 3)
    assert 0 <= pixels.min() <= pixels.max() <= 255
    assert upright_image(stored.content, max_megapixels=1).content == stored.content  # nothing is left to change
    assert upright_image(content, max_megapixels=1, whole=False).content == stored.content


def request(content):
    """A request's bytes are read, or the row is named."""
    import tensorflow as tf

    message = ""
    try:
        graph()([sound_files()[0], content])
    except tf.errors.InvalidArgumentError as error:
        message = str(error)
    assert not message or "in row] [1]" in message, message


def tables(content):
    """A table of images is read, or refused; no image is outside of the table's folder, or behind a link."""
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer, "set")
        folder.mkdir()
        for place in (folder / "a.png", Path(outer, "private.png")):
            place.write_bytes(sound_files()[5])
        (folder / "up").symlink_to("..")
        Path(folder, "images.csv").write_bytes(content)
        for path in (folder, Path(folder, "images.csv")):
            try:
                instances = read_instances(path, IMAGES)
                assert len(instances.values) == len({*instances.tasks.tolist()})
                assert all(value.resolve().is_relative_to(folder.resolve()) for value in instances.values)
            except DataError:
                pass


NAMES = st.sampled_from(
    [
        "task",
        "image",
        "path",
        "file",
        "gold",
        "a.png",
        "../private.png",
        "up/private.png",
        "",
        "..",
        "/",
        "a.png/",
        "\0",
        ".png",
        "é",
    ]
)
ROWS = st.lists(st.lists(NAMES, min_size=1, max_size=3), min_size=1, max_size=4)
TARGETS = {
    "image-files": Target(images(), door, 60),
    "image-requests": Target(images(), request, 40),
    "image-tables": Target(ROWS.map(lambda rows: "\n".join(map(",".join, rows)).encode()), tables, 30),
}
