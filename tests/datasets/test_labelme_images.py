import io

import numpy as np
import pytest

import crowdzoo.datasets
from crowdzoo.datasets import load_labelme, load_labelme_images, write_files
from crowdzoo.instances import IMAGES, read_instances
from crowdzoo.reading.instances.upright_image import opened

Image = pytest.importorskip("PIL.Image")


def test_a_thousand_small_photographs_have_the_labels_of_labelme():
    images, labelme = load_labelme_images(), load_labelme()
    assert images.annotations is not None
    np.testing.assert_array_equal(images.gold, labelme.gold)
    assert len(images.instances) == 1000
    assert len({*images.instances.tolist()}) == 1000
    assert {Image.open(io.BytesIO(content)).size for content in images.instances} == {(64, 64)}
    assert crowdzoo.datasets.instances_of("labelme-images") == IMAGES
    assert repr(images).endswith(" images>")


@pytest.mark.slow
def test_images_are_written_as_files_that_can_be_read_again(tmp_path):
    images = load_labelme_images()
    _, path = write_files(images, tmp_path)
    found = read_instances(path)
    assert found.kind == IMAGES
    assert found.tasks.tolist() == images.annotations.tasks.tolist()
    assert found.split.tolist() == images.split.tolist()
    assert opened(found.values).tolist() == images.instances.tolist()
    np.testing.assert_array_equal(found.gold_codes(images.annotations.classes), images.gold)


def test_the_labels_belong_to_the_photographs():
    """Forests are dark and green, coasts bright and blue: a model of three numbers tells them apart."""
    images = load_labelme_images()
    classes = images.annotations.classes.tolist()
    colour = {}
    for name in ("forest", "coast"):
        chosen = images.instances[images.gold == classes.index(name)]
        colour[name] = np.mean([np.asarray(Image.open(io.BytesIO(content))).mean(axis=(0, 1)) for content in chosen], 0)
    assert colour["coast"][2] > colour["forest"][2] + 30
    assert colour["coast"].sum() > colour["forest"].sum()
