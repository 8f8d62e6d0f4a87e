"""LabelUnit gives standardised numbers back in the labels' unit."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.layers import LabelUnit, PairProbabilities


def test_values_come_back_in_the_labels_unit_and_by_default_as_they_are():
    x = np.float32([[-1.0], [0.0], [2.0]])
    np.testing.assert_allclose(ops.convert_to_numpy(LabelUnit(5.0, 2.0)(x)), [[3.0], [5.0], [9.0]])
    np.testing.assert_array_equal(ops.convert_to_numpy(LabelUnit()(x)), x)


@pytest.mark.parametrize(
    ("layer", "config"),
    [
        (LabelUnit(np.float32(3), np.int64(2)), {"center": 3.0, "unit": 2.0}),
        (PairProbabilities(np.float32(0.5)), {"tie": 0.5}),
    ],
)
def test_numbers_of_numpy_are_saved(layer, config):
    stored = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    assert config.items() <= stored["config"].items()
    assert keras.saving.deserialize_keras_object(stored).get_config() == layer.get_config()
