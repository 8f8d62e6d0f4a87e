"""Image files: what is kept, what is changed, what is refused, and where a message says it is."""

import io
import struct
import zlib

import numpy as np
import pytest
from pictures import encoded
from PIL import Image
from refusals import bad_row, bad_rows

from crowdzoo.errors import DataError
from crowdzoo.instances import IMAGES, read_instances
from crowdzoo.reading.instances.images import read_image_table
from crowdzoo.reading.instances.tables import tables
from crowdzoo.reading.instances.upright_image import opened, read_image, upright_image
from crowdzoo.reading.tables.layout import Layout

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 10, 3), dtype="uint8")
PICTURE = Image.fromarray(PIXELS)


def turned(orientation):
    """A JPEG file, and a PNG file, that say how they lie."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(PICTURE, "JPEG", exif=exif, quality=95, subsampling=0), encoded(PICTURE, "PNG", exif=exif)


def pixels(content):
    return np.asarray(Image.open(io.BytesIO(content)))


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def bomb(width, height):
    """A PNG file of a few bytes whose header has any size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


JPEG, PNG = encoded(PICTURE, "JPEG"), encoded(PICTURE, "PNG")


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (JPEG, "a.jpg"),
        (JPEG, "A.JPEG"),
        (encoded(PICTURE.convert("L"), "JPEG"), "a.jpg"),
        (encoded(PICTURE, "JPEG", progressive=True), "a.jpg"),
        (PNG, "a.png"),
        (encoded(PICTURE.convert("L"), "PNG"), "a.png"),
    ],
)
def test_a_plain_upright_file_is_kept_byte_for_byte(content, name):
    found = upright_image(content, name)
    assert (found.content, found.size, found.changes) == (content, (10, 6), ())


# What each orientation of EXIF means, as operations on rows and columns (CIPA DC-008, Orientation)
UPRIGHT = {
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.swapaxes(0, 1),
    6: lambda x: x.swapaxes(0, 1)[:, ::-1],
    7: lambda x: x[::-1, ::-1].swapaxes(0, 1),
    8: lambda x: x.swapaxes(0, 1)[::-1],
}


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_what_lies_on_its_side_is_turned(orientation):
    jpeg, png = turned(orientation)
    found = upright_image(png)
    np.testing.assert_array_equal(pixels(found.content), UPRIGHT[orientation](PIXELS))
    assert found.changes == ("turned upright, as their EXIF data say",)
    again = upright_image(jpeg)
    expected = UPRIGHT[orientation](pixels(jpeg))
    assert np.abs(pixels(again.content).astype(int) - expected).mean() < 5  # it is a JPEG file again
    assert again.content[:2] == b"\xff\xd8"
    assert again.size == found.size == expected.shape[1::-1]


def test_deep_grey_keeps_its_upper_bits():
    deep = np.random.default_rng(1).integers(0, 65536, (6, 10), dtype="uint16")
    found = upright_image(encoded(Image.fromarray(deep), "PNG"))
    np.testing.assert_array_equal(pixels(found.content), deep >> 8)
    assert found.changes == ("of more than 8 bits a colour, now 8",)


def test_transparency_is_laid_on_white():
    alpha = np.random.default_rng(2).integers(0, 256, (6, 10, 1), dtype="uint8")
    found = upright_image(encoded(Image.fromarray(np.concatenate([PIXELS, alpha], axis=2)), "PNG"))
    share = alpha / 255
    np.testing.assert_allclose(pixels(found.content), PIXELS * share + 255 * (1 - share), atol=1)
    assert found.changes == ("transparent, now on white",)


def test_palettes_grey_steps_and_cmyk_become_rgb():
    palette = PICTURE.convert("P", palette=Image.Palette.ADAPTIVE)
    for kind in ("PNG", "GIF", "BMP"):
        found = upright_image(encoded(palette, kind))
        np.testing.assert_array_equal(pixels(found.content), np.asarray(palette.convert("RGB")))
        assert found.changes == (
            ("of a palette or black and white, now RGB",) if kind == "PNG" else (f"{kind}, now PNG",)
        )
    cmyk = encoded(PICTURE.convert("CMYK"), "JPEG", quality=95, subsampling=0)
    found = upright_image(cmyk)
    assert found.changes == ("CMYK, now RGB",)
    ink = np.asarray(Image.open(io.BytesIO(cmyk))).astype(float)
    expected = (255 - ink[..., :3]) * (255 - ink[..., 3:]) / 255
    assert np.abs(pixels(found.content) - expected).mean() < 5
    assert pixels(upright_image(encoded(PICTURE.convert("1"), "PNG")).content).shape == (6, 10, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello, world", r"not a readable image \(it begins with b'hello, w'\)"),
        (b"<!DOCTYPE html><html>404", r"not a readable image \(a web page\)"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', r"not a readable image \(SVG\)"),
        (JPEG[: len(JPEG) // 2], "cut off or damaged"),
        (JPEG[:30], "cut off or damaged|not a readable image"),
        (PNG[:-30], "cut off or damaged"),
        (PNG[:60] + b"\x55" + PNG[61:], "cut off or damaged"),
        (encoded(PICTURE, "GIF")[:-20], "cut off or damaged"),
        (encoded(PICTURE, "BMP")[:-20], "cut off or damaged"),
        (encoded(PICTURE, "TIFF"), "is a TIFF image. Give a JPEG, PNG, GIF or BMP file"),
        (encoded(PICTURE, "WEBP"), "is a WEBP image"),
        (bomb(10_000, 10_000), "has 10,000 x 10,000 pixels, more than 50 megapixels"),
        (bomb(2**31 - 1, 2**31 - 1), "more pixels|far more pixels"),
    ],
)
def test_what_is_no_sound_image_is_refused(content, message):
    with pytest.raises(DataError, match=message):
        upright_image(content, "a.jpg")


def test_the_limit_on_pixels_is_an_option_and_the_limit_itself_is_allowed(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    assert read_image(tmp_path / "a.png", max_megapixels=60e-6).content == PNG
    with pytest.raises(DataError, match=r"a.png has 10 x 6 pixels, more than 5.9e-05 megapixels"):
        read_image(tmp_path / "a.png", max_megapixels=59e-6)


def test_a_folder_gives_a_task_for_each_image_named_after_the_file(tmp_path):
    for name in ("b.jpg", "a.PNG", "cats/one.gif", ".hidden.jpg", "__MACOSX/b.jpg", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(PNG)
    with pytest.warns(UserWarning, match="stored and sent changed: 2 had the ending of another"):
        instances = read_instances(tmp_path)
    assert instances.kind == IMAGES
    assert instances.tasks.tolist() == ["a", "b", "cats/one"]
    assert instances.values.tolist() == [tmp_path / "a.PNG", tmp_path / "b.jpg", tmp_path / "cats" / "one.gif"]
    assert opened(instances.values[:2]).tolist() == [PNG, PNG]


def test_a_folder_without_images_and_one_with_others_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(DataError, match=r"holds no images\. Their names end in \.jpg"):
        read_image_table(tmp_path)
    (tmp_path / "a.heic").write_bytes(b"...")
    with pytest.raises(DataError, match=r"'a.heic' is of a format .* Convert it to JPEG"):
        read_image_table(tmp_path)


def test_a_table_has_paths_relative_to_its_own_folder(tmp_path, write):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "1.png").write_bytes(PNG)
    instances = read_instances(write("images.csv", "filename,gold,split,width\nphotos/1.png,cat,train,10\n"), IMAGES)
    assert (instances.tasks.tolist(), instances.gold.tolist()) == (["photos/1"], ["cat"])
    assert instances.values.tolist() == [tmp_path / "photos" / "1.png"]


def test_every_bad_image_of_a_table_is_listed_with_its_row(tmp_path):
    (tmp_path / "1.png").write_bytes(PNG)
    (tmp_path / "2.png").write_bytes(b"")
    (tmp_path / "3.png").mkdir()
    (tmp_path / "images.csv").write_text("task,image\na,1.png\nb,2.png\nc,3.png\nd,22.png\n")
    bad = [(number, "image", name) for number, name in ((3, "2.png"), (4, "3.png"), (5, "22.png"))]
    with pytest.raises(DataError, match="cannot be used", check=bad_rows(*bad)) as caught:
        read_instances(tmp_path / "images.csv")
    for row, reason in zip(caught.value.rows, ("is empty.", "is a folder.", "Did you mean '2.png'?"), strict=True):
        assert reason in row.reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,picture\n1,a.png\n", r"has no column of images \(image, path, file, filename\)"),
        ("task,image\n1,\n", "row 2, column 'image': '' is empty. Give the path of an image"),
        ("image\nhttps://example.org/a.png\n", "row 2, column 'image': .* is a URL. Download"),
    ],
)
def test_a_broken_table_is_refused_with_the_place(write, text, message):
    with pytest.raises(DataError, match=message):
        read_image_table(write("images.csv", text))


def test_only_the_decoders_of_known_formats_see_a_file(monkeypatch):
    asked = []
    opened_by = Image.open
    monkeypatch.setattr(Image, "open", lambda file, **given: asked.append(given) or opened_by(file, **given))
    upright_image(PNG)
    upright_image(JPEG)
    assert asked
    for given in asked:
        assert {*given["formats"]} <= {"JPEG", "MPO", "PNG", "GIF", "BMP"}
    with pytest.raises(DataError, match=r"is a HEIC image\. Give a JPEG"):
        upright_image(b"\0\0\0\x18ftypheic" + bytes(20))


@pytest.mark.parametrize("inputs", [None, {"photo": "image"}], ids=["images", "table"])
def test_a_bad_image_is_named_by_the_column_of_the_file(tmp_path, inputs):
    (tmp_path / "a.jpg").write_bytes(JPEG[:-60])
    (tmp_path / "a.csv").write_text("task,photo,age\nx,a.jpg,3\n")
    layout = Layout.of_second("image=photo", {}) if inputs is None else None
    kind = IMAGES if inputs is None else tables(inputs)
    with pytest.raises(DataError, check=bad_row(2, "photo", "a.jpg")):
        read_instances(tmp_path / "a.csv", kind, layout)
    (tmp_path / "a.csv").write_text("task,photo,age\nx,,3\n")
    with pytest.raises(DataError, check=bad_row(2, "photo", "")):
        read_instances(tmp_path / "a.csv", kind, layout)


def test_a_file_of_endless_bytes_is_not_read_to_its_end(tmp_path):
    with open(tmp_path / "a.png", "wb") as file:
        file.write(PNG)
        file.truncate(1 << 34)  # takes no room on disk
    with pytest.raises(DataError, match="has more than 16,778,016 bytes"):
        read_image(tmp_path / "a.png", max_megapixels=1e-4)
