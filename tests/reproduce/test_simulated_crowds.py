"""Annotators who share confusions, as the arguments promise."""

import math

import numpy as np
import pytest


@pytest.mark.parametrize("pattern", ["asymmetric", "symmetric"])
def test_labels_follow_the_confusion_that_was_drawn(reproduce, pattern):
    crowd = reproduce("simulated_crowds").simulate_common_confusions(
        6, pattern=pattern, common_strength=0.6, own_strength=0.2
    )
    annotations, followed = crowd.annotations, crowd.followed_common
    truths = crowd.gold[annotations.task_ids]
    counted = np.zeros((6, 6))
    np.add.at(counted, (truths[followed], annotations.labels[followed]), 1)
    # about 2,000 labels a class: the standard error of a share is at most .011
    np.testing.assert_allclose(counted / counted.sum(axis=1, keepdims=True), crowd.common_confusion, atol=0.05)
    own = crowd.own_confusions[annotations.annotator_ids, truths]
    said_own = np.take_along_axis(own, annotations.labels[:, None], axis=1)[~followed, 0]
    assert set(np.round(said_own, 9)) == {0.2, 0.8}  # never a third class
    assert np.mean(np.isclose(said_own, 0.2)) == pytest.approx(0.2, abs=4 * math.sqrt(0.16 / 12_000))
