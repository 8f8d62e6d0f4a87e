"""annot-mix of benchmarks/reproduce: labels are mixed with their instance and annotator, and what is said follows."""

import importlib

import numpy as np
import pytest


@pytest.fixture(scope="module")
def annot_mix(reproduce):
    return reproduce("annot_mix")


def test_rows_are_mixed_by_one_share_for_instance_annotator_and_label(annot_mix):
    rng, codes = np.random.default_rng(0), np.arange(200)
    x, label = np.eye(200, dtype="float32"), np.eye(200, dtype="float32")[(codes + 7) % 200]
    mixed_x, mixed_label = annot_mix.mixed(x, label, alpha=1.0, rng=rng)
    np.testing.assert_allclose(mixed_x.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(np.roll(mixed_x, 7, axis=1), mixed_label)  # the label goes with its instance
    shares = mixed_x[codes, codes]
    assert 0.4 < shares.mean() < 0.6  # Beta(1, 1) is uniform
    assert ((mixed_x > 0).sum(axis=1) <= 2).all()
    same_x, same_label = annot_mix.mixed(x, label, alpha=0.0, rng=rng)
    np.testing.assert_array_equal(same_x, x)
    np.testing.assert_array_equal(same_label, label)


def test_what_is_said_is_a_distribution_by_base_and_matrices_that_start_at_nine_tenths(annot_mix):
    import keras

    from crowdzoo.models import TrainingSettings

    keras.utils.set_random_seed(0)
    x = np.random.default_rng(0).normal(size=(50, 4)).astype("float32")
    model, base = annot_mix.networks(x, 3, 5, TrainingSettings())
    who = np.eye(3, dtype="float32")[np.arange(50) % 3]
    logs = model.predict([x, who], verbose=0).astype("float64")
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, atol=1e-5)
    bias = next(each for each in model.weights if each.shape == (25,)).numpy().reshape(5, 5)
    rows = np.exp(bias) / np.exp(bias).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.diagonal(rows), 0.9, rtol=1e-5)
    for weight in model.weights:  # without embeddings the matrices are their start
        if weight.shape == (32, 25):
            weight.assign(np.zeros((32, 25)))
    p = np.exp(base.predict(x, verbose=0).astype("float64"))
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(model.predict([x, who], verbose=0)), p @ rows, atol=1e-5)


def test_a_row_with_the_figures_of_ccem_is_level_with_it_and_one_with_a_run_missing_is_not_shown(annot_mix):
    recipe = importlib.import_module("recipe")
    others = recipe.complete(recipe.read())
    newer = importlib.import_module("newer")
    row, rest = annot_mix.ROWS
    results = {name: {row: rows["CCEM"], rest: rows["CCEM"][1:]} for name, rows in others.items()}
    (_, header, lines), (_, _, by_set) = newer.tables(results, annot_mix.ROWS, annot_mix.TITLE)
    assert {line[0] for line in lines} == {row}
    against = dict(zip(header, next(line for line in lines if line[1] == "CCEM"), strict=True))
    assert against["difference, paired"] == "+0.0 ± 0.0"
    assert against["its mean"] == against["the other's mean"] == f"{recipe.average(others, 'CCEM', 'test'):.1f}"
    assert against["sets won"] == f"0 of {len(others)}"
    assert by_set[0][1:] == by_set[1][1:]
    assert not list(newer.tables({}, annot_mix.ROWS, annot_mix.TITLE))


@pytest.mark.slow
def test_the_base_learns_the_classes_from_mixed_labels(annot_mix, three_clouds):
    said = annot_mix.trained(three_clouds, 0, 1.0).predict(three_clouds.x, verbose=0).argmax(axis=1)
    assert (said == three_clouds.gold).mean() > 0.95
