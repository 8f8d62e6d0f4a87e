"""Images that Pillow reads and TensorFlow does not are named."""

import io

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.errors import DataError
from crowdzoo.instances import read_instances
from crowdzoo.networks.decodable import is_decodable, naming_undecodable
from crowdzoo.reading.instances.upright_image import upright_image
from crowdzoo.training.bases import BASES
from crowdzoo.training.instance_training import train

tf = pytest.importorskip("tensorflow")
Image = pytest.importorskip("PIL.Image")


def jpeg():
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype="uint8")).save(stream, "JPEG")
    return stream.getvalue()


@pytest.fixture
def folder(tmp_path):
    """Images, one of them without its last two bytes, which say that the file ends."""
    for number in range(4):
        tmp_path.joinpath(f"p{number}.jpg").write_bytes(jpeg()[: -2 if number == 2 else None])
    return tmp_path


def test_a_file_without_an_end_is_not_decodable():
    assert upright_image(jpeg()[:-2]).content == jpeg()[:-2]
    assert is_decodable(jpeg())
    assert not is_decodable(jpeg()[:-2])


def test_the_files_are_named_and_other_errors_stay(folder):
    values = {"age": np.zeros(4), "photo": read_instances(folder).values}
    named = pytest.raises(DataError, match=r"column 'image': 'p2.jpg' is damaged: TensorFlow")
    with named, naming_undecodable(values):
        raise tf.errors.InvalidArgumentError(None, None, "no sound JPEG")
    for error, read in [(ValueError("else"), values), (tf.errors.InvalidArgumentError(None, None, "else"), {})]:
        with pytest.raises(type(error), match="else"), naming_undecodable(read):
            raise error


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_training_names_it(folder):
    instances = read_instances(folder)
    crowd = Annotations.from_arrays(instances.tasks.repeat(2), ["a", "b"] * 4, ["x", "y"] * 4)
    settings = BASES["image-classifier"].make_settings(
        kind="classification", method="crowdsourced-layer", height=8, width=8, stages=[4], epochs=1
    )
    with pytest.raises(DataError, match=r"'p2.jpg' is damaged"):
        train(settings, instances, annotations=crowd)
