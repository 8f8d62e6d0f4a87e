import numpy as np
import pytest

from crowdzoo.aggregation.engine.kernels import normalised_logs

TINY = np.finfo(np.float64).tiny


@pytest.mark.parametrize("count", [0.0, 5e-324, TINY / 2])
def test_a_row_whose_counts_are_next_to_nothing_is_uniform_and_never_nan(count):
    counts = np.zeros((1, 2, 2))  # [annotator, said, true]
    counts[0, :, 0] = 3.0, 1.0
    counts[0, 0, 1] = count
    found = np.exp(normalised_logs(counts, np.zeros((2, 2))))
    np.testing.assert_allclose(found[0], [[0.75, 0.5], [0.25, 0.5]], rtol=1e-14)


def test_a_row_of_the_smallest_normal_counts_is_normalised():
    counts = np.zeros((1, 2, 2))
    counts[0, :, 0] = 3.0, 1.0
    counts[0, 0, 1] = 2 * TINY
    found = np.exp(normalised_logs(counts, np.zeros((2, 2))))
    np.testing.assert_allclose(found[0], [[0.75, 1.0], [0.25, 0.0]], rtol=1e-14, atol=1e-300)
