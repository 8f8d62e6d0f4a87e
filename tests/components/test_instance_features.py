"""Instances in tf.Examples come back as they were."""

import io
import json

import numpy as np
import pytest

pytest.importorskip("tfx")
import tensorflow as tf
from PIL import Image

from crowdzoo.errors import DataError
from crowdzoo.instances import IMAGES, TABLES, Instances
from crowdzoo.records.instance_features import add_instance, instance_features, instance_info, parsed_instances


def test_the_columns_of_a_table_come_back_under_the_names_by_which_they_are_served():
    columns = {
        "age (years)": np.array([31, np.nan]),
        "city": np.array(["São Paulo", ""], object),
        "embedding": np.float32([[1, 2, 3], [4, 5, 6]]),
    }
    instances = Instances(np.array([7, 8]), TABLES, columns)
    info = json.loads(json.dumps(instance_info(instances)))
    assert info["columns"] == {"age__years_": [], "city": None, "embedding": [3]}
    examples = [tf.train.Example() for _ in range(2)]
    for row, example in enumerate(examples):
        add_instance(example, instances, row)
        example.features.feature["gold"].int64_list.value.append(1)
    features = instance_features(info) | {"gold": tf.io.FixedLenFeature([], tf.int64)}
    found = parsed_instances(tf.io.parse_example([example.SerializeToString() for example in examples], features))
    assert list(found) == ["age__years_", "city", "embedding"]
    np.testing.assert_array_equal(found["age__years_"], columns["age (years)"])
    assert [city.decode() for city in found["city"].numpy()] == ["São Paulo", ""]
    np.testing.assert_array_equal(found["embedding"], columns["embedding"])


def test_an_image_that_tensorflow_does_not_decode_is_named(tmp_path):
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype="uint8")).save(stream, "JPEG")
    (tmp_path / "a.jpg").write_bytes(stream.getvalue()[:-2])  # without its end, which Pillow does not need
    instances = Instances(np.array(["a"], object), IMAGES, np.array([tmp_path / "a.jpg"], object))
    with pytest.raises(DataError, match=r"'a.jpg' is damaged: TensorFlow does not decode it"):
        add_instance(tf.train.Example(), instances, 0)
