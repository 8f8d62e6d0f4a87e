"""A model that takes a column of a table an input, over REST and gRPC."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from running_server import rest, serving

from crowdzoo.errors import ServingError
from crowdzoo.networks.table_columns import TableColumns

NAN = float("nan")
COLUMNS = {"age (years)": np.array([20.0, NAN, 40.0, 30.0]), "city": np.array(["Porto", "", "Lisbon", "Porto"], object)}
# mean 30, deviation sqrt(200 / 3); then whether the age is missing; Porto, missing, Lisbon
AGE = np.sqrt(200 / 3)
VECTORS = [[-10 / AGE, 0, 1, 0, 0], [0, 1, 0, 1, 0], [10 / AGE, 0, 0, 0, 1], [0, 0, 1, 0, 0]]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of a model that answers with the vectors of `TableColumns`."""
    encoder = TableColumns.from_batches([COLUMNS])
    module = tf.Module()
    module.tables = encoder.resources
    serve = tf.function(lambda values: {"vectors": encoder(values)}).get_concrete_function(encoder.inputs)
    folder = tmp_path_factory.mktemp("people")
    tf.saved_model.save(module, str(folder / "1"), signatures={"serving_default": serve})
    with serving(folder, "people") as running:
        yield running


def ask(server, **body):
    return rest(server, "/v1/models/people:predict", body)


def test_rows_and_columns_get_the_same_answer(server):
    rows = [{"age__years_": 20, "city": "Porto"}, {"age__years_": NAN, "city": ""}]
    np.testing.assert_allclose(ask(server, instances=rows).json()["predictions"], VECTORS[:2], 1e-6)
    columns = {"age__years_": [20, NAN], "city": ["Porto", ""]}
    np.testing.assert_allclose(ask(server, inputs=columns).json()["outputs"], VECTORS[:2], 1e-6)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"age__years_": None, "city": "x"}, "null at [0] is null, not a number; a missing number is NaN"),
        ({"age__years_": 1, "city": None}, 'null at [0] is null, not a string; a missing category is ""'),
        ({"age__years_": "1", "city": "x"}, '"1" at [0] is a string, not a number'),
        ({"age__years_": float("inf"), "city": "x"}, "Infinity at [0] is not a finite number"),
        ({"city": "x"}, "instances[0]: missing input 'age__years_'"),
        ({"age__years_": 1, "citi": "x"}, "unknown input 'citi'. Signature 'serving_default' takes 'age__years_', 'c"),
    ],
)
def test_a_wrong_row_is_refused_by_name(server, row, reason):
    answer = ask(server, instances=[row])
    assert answer.status_code == 400
    assert reason in answer.json()["error"]


@pytest.mark.parametrize(
    "table",
    [
        COLUMNS,
        {"age__years_": [20, None, 40, 30], "city": ["Porto", None, "Lisbon", "Porto"]},
        pd.DataFrame(COLUMNS),
        pd.DataFrame({"city": pd.Categorical(["Porto", None, "Lisbon", "Porto"]),
                      "age (years)": pd.array([20, None, 40, 30], "Int64")}),
    ],
    ids=["arrays", "lists", "frame", "nullable"],
)  # fmt: skip
def test_the_client_takes_columns_and_frames_with_missing_values(client, table):
    np.testing.assert_allclose(client.predict(table, batch_size=3)["vectors"], VECTORS, 1e-6)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"city": [1050.5]}, "1050.5 at [0] is not a text"),
        ({"age (years)": [np.inf]}, r"input 'age__years_': inf at [0] is not a finite number"),
        ({"age (years)": ["x"]}, "not float32"),
        ({"age (years)": [1e39]}, "too large for float32"),
        ({"shoe size": [1]}, "unknown input 'shoe_size'"),
    ],
)
def test_the_client_refuses_wrong_columns_by_name(client, columns, reason):
    with pytest.raises(ServingError) as caught:
        client.predict({"age (years)": [1.0], "city": ["x"], **columns})
    assert reason in str(caught.value)


def test_a_frame_may_hold_task_gold_and_split_as_files_do(client):
    frame = pd.DataFrame({"task": ["a", "b"], "age (years)": [20.0, NAN], "city": ["Porto", ""], "gold": ["x", None]})
    np.testing.assert_allclose(client.predict(frame)["vectors"], VECTORS[:2], 1e-6)
    with pytest.raises(ServingError, match="unknown input 'height'"):
        client.predict(frame.assign(height=[1.0, 2.0]))
