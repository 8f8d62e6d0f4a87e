"""Circles and the annotators who are asked about them."""

import numpy as np

from crowdzoo.datasets.circles import ask_annotators, make_circles, neighbour_annotators


def test_points_lie_on_the_circle_of_their_class():
    x, gold = make_circles(3, 50, noise=0.0)
    assert x.shape == (150, 2)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(np.bincount(gold), [50, 50, 50])
    np.testing.assert_allclose(np.hypot(*x.T), (gold + 1) / 3, rtol=1e-5)
    # all around, and in random order
    assert (np.bincount(((np.arctan2(*x.T) + np.pi) // (np.pi / 2 + 1e-6)).astype(int), minlength=4) > 20).all()
    assert (np.diff(gold) != 0).sum() > 50


def test_an_annotator_says_the_class_of_the_nearest_known_point():
    x, gold = make_circles(3, 40, seed=1)
    everything, little = neighbour_annotators(x, gold, 2, known=[120, 5], seed=0)
    np.testing.assert_array_equal(everything(x), gold)
    said = little(x)
    assert len(np.unique(said)) > 1
    # 5 seeds of a Voronoi diagram: who is right and who is wrong depends on the place
    assert 0.3 < (said == gold).mean() < 0.95


def test_each_point_is_answered_by_as_many_as_asked_for_and_by_what_they_say():
    x, gold = make_circles(2, 30, seed=0)
    annotators = neighbour_annotators(x, gold, 6, known=8, seed=0)
    annotations = ask_annotators(x, annotators, 2, redundancy=3, seed=5)
    assert annotations.num_annotators == 6
    np.testing.assert_array_equal(annotations.redundancy, [3] * 60)
    for task, who, label in zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True):
        assert label == annotators[who](x)[task]
    assert len(np.unique(annotations.annotator_ids)) == 6
    assert annotations == ask_annotators(x, annotators, 2, redundancy=3, seed=5)
    assert len(ask_annotators(x, annotators, 2)) == 6 * 60
