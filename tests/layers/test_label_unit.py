"""LabelUnit gives standardised numbers back in the labels' unit."""

import numpy as np
import pytest
from keras import ops

from crowdzoo.layers import LabelUnit


def test_values_come_back_in_the_labels_unit_and_by_default_as_they_are():
    x = np.float32([[-1.0], [0.0], [2.0]])
    np.testing.assert_allclose(ops.convert_to_numpy(LabelUnit(5.0, 2.0)(x)), [[3.0], [5.0], [9.0]])
    np.testing.assert_array_equal(ops.convert_to_numpy(LabelUnit()(x)), x)


@pytest.mark.parametrize(("center", "unit"), [(float("nan"), 1.0), (0.0, 0.0), (0.0, float("inf"))])
def test_a_unit_that_cannot_be_is_refused(center, unit):
    with pytest.raises(ValueError, match=r"center|unit"):
        LabelUnit(center, unit)
