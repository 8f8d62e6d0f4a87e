"""Columns of a table to vectors, in TensorFlow's own operations."""

import json

import numpy as np
import pytest

from crowdzoo.errors import ConfigError, DataError

tf = pytest.importorskip("tensorflow")

from crowdzoo.networks.table_columns import TableColumns  # noqa: E402

NAN = float("nan")
COLUMNS = {
    "age": np.array([20.0, NAN, 40.0, 30.0]),
    "city": np.array(["Porto", "", "Lisbon", "Porto"], object),
    "children": np.array([2.0, 2.0, 2.0, 2.0]),
}
REQUEST = {
    "age": tf.constant([NAN, 35.0]),
    "city": tf.constant(["Faro", "Lisbon"]),
    "children": tf.constant([3.0, NAN]),
}
# mean of 20, 40, 30 is 30, their variance 200 / 3; categories are Porto (twice), missing, Lisbon
AGE = np.sqrt(200 / 3)
EXPECTED = [[0, 1, 0, 0, 0, 1], [5 / AGE, 0, 0, 0, 1, 0]]


def test_vectors_are_those_worked_out_by_hand():
    encoder = TableColumns.from_batches([COLUMNS])
    assert encoder.columns["city"] == {"categories": ["Porto", "", "Lisbon"]}
    assert encoder.num_features == 6
    found = encoder(COLUMNS)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(
        found, [[-10 / AGE, 0, 1, 0, 0, 0], [0, 1, 0, 1, 0, 0], [10 / AGE, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0]], 1e-6
    )
    # Faro is unknown, so all its zeros; a number that is missing for the first time is the mean
    np.testing.assert_allclose(encoder(REQUEST), EXPECTED, 1e-6)


def test_statistics_of_many_batches_are_those_of_one():
    rng = np.random.default_rng(0)
    x = rng.normal(1e6, 3, size=1000)
    x[rng.random(1000) < 0.1] = NAN
    letters = rng.choice(list("abcdefgh"), 1000).astype(object)
    parts = [{"x": x[cut], "c": letters[cut]} for cut in np.array_split(np.arange(1000), 7)]
    found = TableColumns.from_batches(iter(parts)).columns
    assert found["x"] == pytest.approx({"mean": np.nanmean(x), "deviation": np.nanstd(x), "missing": True}, rel=1e-9)
    assert found["c"] == TableColumns.from_batches([{"c": letters}]).columns["c"]


def test_vectors_are_standardised_by_place_and_stand_beside_other_columns():
    batches = [{"v": np.float32([[1, 5], [3, 5]]), "c": ["a", "a"]}, {"v": np.float32([[5, 5]]), "c": ["a"]}]
    encoder = TableColumns.from_batches(batches)
    assert encoder.inputs["v"].shape.as_list() == [None, 2]
    # 1, 3, 5 have mean 3 and variance 8 / 3; what never varies is only centred
    expected = [[-2 / np.sqrt(8 / 3), 0, 1], [0, 0, 1]]
    np.testing.assert_allclose(encoder(batches[0]), expected, 1e-6)
    again = TableColumns(**json.loads(json.dumps(encoder.get_config())))
    np.testing.assert_allclose(again(batches[0]), expected, 1e-6)


def test_the_most_frequent_categories_are_kept_and_bytes_are_text():
    batch = {"c": np.array(["é".encode(), b"b", "é".encode(), b"a"], object)}
    encoder = TableColumns.from_batches([batch], max_categories=2)
    assert encoder.columns == {"c": {"categories": ["é", "a"]}}
    np.testing.assert_array_equal(encoder(batch), [[1, 0], [0, 0], [1, 0], [0, 1]])


def test_the_same_vectors_come_out_of_a_saved_graph_and_of_the_saved_settings(tmp_path):
    first = TableColumns.from_batches([{"size (cm)": COLUMNS["age"], "city": COLUMNS["city"]}])
    encoder = TableColumns(**json.loads(json.dumps(first.get_config())))
    assert {name: spec.dtype.name for name, spec in encoder.inputs.items()} == {
        "size__cm_": "float32",
        "city": "string",
    }
    module = tf.Module()
    module.tables = encoder.resources
    serve = tf.function(lambda values: {"vectors": encoder(values)}).get_concrete_function(encoder.inputs)
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures={"serving_default": serve})
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    answer = loaded.signatures["serving_default"](size__cm_=REQUEST["age"], city=REQUEST["city"])
    np.testing.assert_allclose(answer["vectors"], [row[:5] for row in EXPECTED], 1e-6)


def test_columns_that_make_no_sense_are_refused():
    with pytest.raises(DataError, match="column 'x' has no value in any training row"):
        TableColumns.from_batches([{"x": np.array([NAN])}])
    with pytest.raises(DataError, match="there are no rows"):
        TableColumns.from_batches([])
    with pytest.raises(ConfigError, match="at least one column, and no two"):
        TableColumns({"a b": {"categories": ["x"]}, "a_b": {"categories": ["x"]}})
    with pytest.raises(ConfigError, match="column 'a' must have mean, deviation and missing, or categories"):
        TableColumns({"a": {"mean": 1.0}})
    with pytest.raises(ConfigError, match="column 'a' must have mean, deviation and missing, or categories"):
        TableColumns({"a": {"mean": 1.0, "deviation": 0.0, "missing": False}})


def test_a_category_is_known_whether_it_is_written_as_an_integer_or_as_a_float():
    encoder = TableColumns.from_batches([{"code": np.array(["1.0", "2.0", "1", "1.5", "v1.0"], object)}])
    assert encoder.columns["code"] == {"categories": ["1", "1.5", "2", "v1.0"]}
    found = encoder({"code": tf.constant(["2", "2.0", "-2.0"])})
    np.testing.assert_array_equal(found, [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    assert TableColumns({"code": {"categories": ["1.0", "2"]}}).get_config() == {
        "columns": {"code": {"categories": ["1", "2"]}}
    }
