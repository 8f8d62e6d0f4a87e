"""The crowds that scripts of aggregation share."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def script(reproduce):
    return reproduce("crowd_draws")


def test_generated_crowds_depend_as_their_sort_says(script):
    plain, truth = script.generated("independent", 4, 60, 6, 1)
    for sort in script.SORTS[1:]:
        changed, same = script.generated(sort, 4, 60, 6, 1)
        np.testing.assert_array_equal(same, truth)
        assert 0.02 < (changed.labels != plain.labels).mean() < 0.6
