import numpy as np
import pytest

pytest.importorskip("matplotlib")

import matplotlib.image

from crowdzoo import Annotations, compare
from crowdzoo.report.plots import plot_comparison

DARK = np.array([0x1D, 0x2B, 0x3A])


def pixels(path):
    """RGB values, int [H, W, 3]."""
    return np.round(matplotlib.image.imread(path)[..., :3] * 255).astype(int)


def share(path, colour):
    return (np.abs(pixels(path) - colour).max(axis=2) <= 1).mean()


def test_methods_level_with_the_best_are_dark_and_those_that_failed_are_left_out(tmp_path, failing_method):
    annotations = Annotations.from_dense(np.random.default_rng(0).integers(0, 3, (60, 5)))
    gold = np.random.default_rng(0).integers(0, 3, 60)
    found = compare(annotations, gold=gold, methods=["wawa", failing_method])
    path = plot_comparison(found, tmp_path / "comparison.png")
    assert share(path, DARK) > 0.0002
    assert pixels(path).shape == pixels(plot_comparison(
        compare(annotations, gold=gold, methods=["wawa"]), tmp_path / "without.png"
    )).shape  # fmt: skip
