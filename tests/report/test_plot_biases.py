"""Learnt against true biases, drawn."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from crowdzoo.report.plots import plot_biases

TRUE = np.array([-1.0, 0.0, 2.0, 50.0])
COUNTS = np.array([10, 20, 5, 0])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Pictures of a ninth of the pixels."""
    monkeypatch.setattr("crowdzoo.report.plots.DPI", 50)


def picture(path, learned):
    plot_biases(TRUE, learned, COUNTS, path, title="Annotators")
    return path.read_bytes()


def test_what_all_biases_have_in_common_and_who_rated_nothing_does_not_show(tmp_path):
    learned = np.array([-0.5, 0.25, 1.0, 0.0])
    one = picture(tmp_path / "one.png", {"B": learned})
    assert one.startswith(b"\x89PNG")
    assert picture(tmp_path / "same.png", {"B": learned + np.array([8.0, 8.0, 8.0, 100.0])}) == one
    assert picture(tmp_path / "other.png", {"B": learned * 2}) != one


def test_each_method_has_a_picture_beside_the_others(tmp_path):
    from matplotlib.image import imread

    for methods in (1, 2):
        picture(tmp_path / "p.png", {f"m{number}": TRUE for number in range(methods)})
        height, width = imread(tmp_path / "p.png").shape[:2]
        assert (width > 1.5 * height) == (methods == 2)
