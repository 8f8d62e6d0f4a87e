"""The accuracy of compiled crowd models, by hand: what counts, and what does not."""

import numpy as np
import pytest

from crowdzoo.training.gold_metric import CrowdAccuracy

SAID = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])  # of two classes: 0, 1, 0


def accuracy(*batch):
    metric = CrowdAccuracy()
    metric.update_state(*batch)
    return float(metric.result())


def test_known_codes_of_two_classes_count():
    assert accuracy([0, 0, -1], SAID) == 0.5


def test_labels_of_several_annotators_count_one_by_one():
    assert accuracy([[0, 1], [-1, 1]], np.stack([SAID[:2], SAID[1:]])) == pytest.approx(2 / 3)


def test_distributions_count_by_their_largest_share_and_zeros_do_not():
    assert accuracy([[0.3, 0.7], [0.3, 0.7], [0.0, 0.0]], SAID) == 0.5


def test_rows_count_by_their_weight():
    assert accuracy([0, 0, 0], SAID, [1.0, 2.0, 3.0]) == pytest.approx(4 / 6)
    both = np.stack([SAID[:2], SAID[1:]])
    assert accuracy([[0, 1], [0, 1]], both, [1.0, 3.0]) == pytest.approx(2 / 8)
