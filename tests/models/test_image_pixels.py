"""From image files to pixels, in TensorFlow's own operations; expected pixels are Pillow's."""

import io

import numpy as np
import pytest
from pictures import encoded

tf = pytest.importorskip("tensorflow")
Image = pytest.importorskip("PIL.Image")

from crowdzoo.networks.image_pixels import ImagePixels  # noqa: E402
from crowdzoo.reading.instances.upright_image import upright_image  # noqa: E402

# a smooth picture, so that two ways of scaling it differ by rounding alone; wider than high
ROW, COLUMN = np.mgrid[0:48, 0:80]
PIXELS = np.stack([5 * ROW, 3 * COLUMN, 255 - 2 * ROW - COLUMN], axis=2).astype("uint8")
PICTURE = Image.fromarray(PIXELS)


def graph(*arguments):
    """An encoder that is traced once."""
    encoder = ImagePixels(*arguments)
    return tf.function(encoder, input_signature=list(encoder.inputs.values()))


@pytest.fixture(scope="module")
def whole():
    return graph(48, 80, "stretch")


@pytest.fixture(scope="module")
def square():
    return graph(40, 40, "stretch")


def lying(orientation, kind="JPEG"):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(PICTURE, kind, exif=exif)


JPEG, PNG = encoded(PICTURE, "JPEG"), encoded(PICTURE, "PNG")
HEADER = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (100_000).to_bytes(4, "big") * 2 + b"\x08\x02" + bytes(9)


def test_pixels_are_those_that_pillow_reads(whole):
    files = [JPEG, PNG, encoded(PICTURE, "BMP"), encoded(PICTURE.convert("L"), "JPEG"),
             encoded(PICTURE.convert("P"), "PNG"), encoded(PICTURE.convert("1"), "PNG"),
             encoded(PICTURE, "JPEG", progressive=True)]  # fmt: skip
    expected = [np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in files]
    np.testing.assert_array_equal(whole(files), np.stack(expected))


def test_raw_files_and_what_is_stored_of_them_give_the_same_pixels(whole):
    alpha = Image.fromarray(np.concatenate([PIXELS, (3 * COLUMN[..., None]).astype("uint8")], axis=2))
    files = [encoded(alpha, "PNG"), encoded(PICTURE.convert("LA"), "PNG"), encoded(PICTURE, "BMP"),
             encoded(Image.fromarray((257 * ROW + COLUMN).astype("uint16")), "PNG"),
             encoded(PICTURE.convert("P"), "PNG", transparency=7)]  # fmt: skip
    np.testing.assert_allclose(whole(files), whole([upright_image(file).content for file in files]), atol=1)
    cmyk = encoded(PICTURE.convert("CMYK"), "JPEG", quality=95)
    np.testing.assert_allclose(whole([cmyk]), whole([upright_image(cmyk).content]), atol=10)


def test_photographs_are_turned_as_their_exif_data_say(square):
    files = [lying(orientation) for orientation in range(1, 9)]
    stored = [upright_image(file).content for file in files]
    assert [one == other for one, other in zip(files, stored, strict=True)] == [True] + [False] * 7
    # a smooth picture, where JPEG loses little
    apart = np.abs(square(files).numpy()[:, None] - square(stored).numpy()[None]).mean(axis=(2, 3, 4))
    assert (apart.diagonal() < 2).all()
    assert (apart[~np.eye(8, dtype=bool)] > 20).all()


def test_exif_data_are_read_in_both_byte_orders_and_damaged_ones_are_passed_over(square):
    little = lying(6)
    assert b"Exif\0\0II" in little or b"Exif\0\0MM" in little
    entry = b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
    big = b"Exif\0\0MM\0*\0\0\0\x08\0\x01" + entry + b"\0\0\0\0"
    small = b"Exif\0\0II*\0\x08\0\0\0\x01\0" + b"\x12\x01\x03\0\x01\0\0\0\x06\0\0\0" + b"\0\0\0\0"
    upright, turned = square([JPEG, little]).numpy()
    damaged = (b"Exif\0\0MM\0*\xff\xff\xff\xff", b"Exif\0\0", small.replace(b"\x06", b"\x09"), small[:20])
    found = square([encoded(PICTURE, "JPEG", exif=exif) for exif in (big, small, *damaged)]).numpy()
    np.testing.assert_array_equal(found, np.stack([turned] * 2 + [upright] * 4))


@pytest.mark.slow
def test_crop_takes_the_middle():
    # 48 x 80: the largest square is columns 16 to 63; Pillow's bilinear filter has the same antialiasing
    middle = PICTURE.crop((16, 0, 64, 48)).resize((12, 12), Image.Resampling.BILINEAR)
    np.testing.assert_allclose(ImagePixels(12, 12)([PNG])[0], np.asarray(middle), atol=1.01)


@pytest.mark.slow
def test_of_a_large_photograph_fewer_pixels_are_computed_and_the_picture_is_the_same():
    large = PICTURE.resize((1600, 960), Image.Resampling.BILINEAR)
    same = np.asarray(large.crop((320, 0, 1280, 960)).resize((16, 16), Image.Resampling.BILINEAR))
    np.testing.assert_allclose(ImagePixels(16, 16)([encoded(large, "JPEG", quality=95)])[0], same, atol=6)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"", "no sound JPEG, PNG or BMP"),
        (b"<html>" * 20, "no sound JPEG, PNG or BMP"),
        (JPEG[:-200], "no sound JPEG, PNG or BMP"),
        (PNG[:-40], "no sound JPEG, PNG or BMP"),
        (encoded(PICTURE.convert("P"), "BMP"), "no sound JPEG, PNG or BMP"),
        (encoded(PICTURE, "GIF"), "no sound JPEG, PNG or BMP"),
        (HEADER, "more than 50 megapixels"),
        (encoded(PICTURE, "BMP")[:18] + b"\xff\xff\xff\x7f" * 2 + b"\1\0\x18\0" + bytes(30), "more than 50 megapixels"),
    ],
)
def test_a_request_names_the_rows_that_hold_no_image(whole, bad, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"instances: {message}.* in row\W+1\W+3\b"):
        whole([PNG, bad, JPEG, bad])


@pytest.mark.slow
def test_the_same_pixels_come_out_of_a_saved_graph_and_of_a_data_set(tmp_path):
    encoder = ImagePixels(**ImagePixels(9, 11, "stretch", 30).get_config())
    expected = encoder([JPEG, PNG, lying(8)])
    module = tf.Module()
    module.serve = tf.function(encoder, input_signature=list(encoder.inputs.values()))
    tf.saved_model.save(module, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_array_equal(loaded.serve(tf.constant([JPEG, PNG, lying(8)])), expected)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"in row\W+1"):
        loaded.serve(tf.constant([JPEG, b"..."]))
    mapped = tf.data.Dataset.from_tensor_slices([JPEG, PNG, lying(8)]).batch(2).map(encoder)
    np.testing.assert_array_equal(np.concatenate(list(mapped.as_numpy_iterator())), expected)
    assert encoder(tf.constant([], tf.string)).shape == (0, 9, 11, 3)
