"""benchmarks/reproduce/coupled_confusions.py: coupled confusion correction."""

from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"


@pytest.fixture(scope="module")
def coupled(reproduce):
    return reproduce("coupled_confusions")


def softmax(z):
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def test_easy_labels_are_those_that_a_network_fits_best_of_each_class(coupled, monkeypatch):
    monkeypatch.setattr(coupled, "EASY_EACH", 2)
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    tasks, labels = np.array([0, 0, 1, 2, 3, 3]), np.array([0, 1, 1, 0, 0, 1])
    assert coupled.easy_labels(probabilities, tasks, labels).tolist() == [0, 3, 2, 5]


@pytest.mark.slow
def test_a_correction_goes_down_the_loss_of_easy_labels_after_an_update(coupled):
    """Against differences of a loss in float64: an update of all weights, of which C moves the last layer alone."""
    import keras

    from crowdzoo.models import TrainingSettings

    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    x, easy_x = rng.normal(size=(12, 4)).astype("float32"), rng.normal(size=(9, 4)).astype("float32")
    settings = TrainingSettings(hidden=(5,), dropout=0.0, learning_rate=0.5)
    half = coupled.Half(x, 3, 3, settings)
    said = np.eye(3, dtype="float32")[rng.integers(3, size=(12, 3))] * (rng.random((12, 3, 1)) < 0.7)
    easy, groups = rng.integers(3, size=9), np.array([0, 1, 0], "int32")
    found = half.correction(x, said.astype("float32"), groups, 2, easy_x, easy).numpy().astype("float64")

    matrices = half.matrices.numpy().astype("float64")
    mean, deviation = x.mean(axis=0, dtype="float64"), x.std(axis=0, dtype="float64")
    weights = [variable.numpy().astype("float64") for variable in half.network.trainable_variables]
    assert [each.shape for each in weights] == [(4, 5), (5,), (5, 3), (3,)]

    def hidden(values, one, two):
        return np.maximum((values - mean) / deviation @ one + two, 0)

    def loss(parts, correction):
        one, two, three, four, own = parts
        p = softmax(hidden(x, one, two) @ three + four)
        scores = np.einsum("bk,rkl->brl", p, own + correction[groups])
        return -(said * np.log(softmax(scores) + coupled.FLOOR)).sum() / said.sum()

    def slope(function, at, step=1e-5):
        gradient = np.zeros_like(at)
        for place in np.ndindex(at.shape):
            moved = [at.copy(), at.copy()]
            moved[0][place] += step
            moved[1][place] -= step
            gradient[place] = (function(moved[0]) - function(moved[1])) / (2 * step)
        return gradient

    def updated(correction, which):
        parts = [*weights, matrices]

        def with_part(value):
            return loss([*parts[:which], value, *parts[which + 1 :]], correction)

        return parts[which] - 0.5 * slope(with_part, parts[which])

    nothing = np.zeros((2, 3, 3))
    seen = hidden(easy_x, updated(nothing, 0), updated(nothing, 1))

    def wrong(correction):
        p = softmax(seen @ updated(correction, 2) + updated(correction, 3))
        return -np.log(p[np.arange(9), easy]).mean()

    down = slope(wrong, nothing, 1e-3)
    expected = -0.5 * updated(nothing, 4).max() * down / np.abs(down).max()
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.slow
def test_both_networks_learn_the_classes_with_and_without_corrections(coupled, three_clouds):
    found = {row: train(three_clouds, 0).predict(three_clouds.x) for row, train in coupled.ROWS.items()}
    for probabilities in found.values():
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
        assert (probabilities.argmax(axis=1) == three_clouds.gold).mean() > 0.95
    assert np.abs(np.subtract(*found.values())).max() > 1e-3


def test_what_the_guide_says_of_it_is_what_the_results_say(coupled):
    import newer

    guide = (FOLDER.parents[1] / "docs" / "methods.md").read_text(encoding="utf-8")
    text = " ".join(guide[guide.index("Coupled confusion correction (2024)") :].partition("\n\n")[0].split())
    results = newer.read(coupled.RESULTS)
    (_, header, against), (_, _, by_set) = newer.tables(results, coupled.ROWS, coupled.TITLE)
    row = dict(zip(header, against[0], strict=True))
    assert (row["trained by"], row["against"]) == ("CCC", "CCEM")
    assert f"has {row['its mean']} ({row['difference, paired']} against `ccem`)" in text
    with_it, without = (np.array([float(cell) for cell in line[1:]]) for line in by_set[:2])
    assert int((with_it > without).sum()) == 6
    assert len(with_it) == 9
    best = int((with_it - without).argmax())
    assert list(results)[best] == "medical, treats"
    assert f"({with_it[best]}, without them {without[best]})" in text
    assert f"cost {round(max(without - with_it))} points on the circles" in text
    assert f"have {against[5][2]}, level with `ccem`" in text
