"""ImageNet features belong to the tasks of their photographs."""

import numpy as np
import pytest

from crowdzoo import Annotations


@pytest.fixture(scope="module")
def script(reproduce):
    return reproduce("imagenet_features")


def test_features_are_put_into_the_order_of_the_tasks_by_name(script):
    annotations = Annotations.from_arrays([7, 3, 11, 3], ["a", "a", "a", "b"], [0, 1, 0, 1], tasks=[3, 7, 11])
    x = np.array([[11.0], [3.0], [7.0]])
    data = script._data(x, annotations, np.array([1, 0, 0]), np.array([11, 3, 7]))
    assert data.x.ravel().tolist() == [float(task) for task in annotations.tasks] == [3, 7, 11]
