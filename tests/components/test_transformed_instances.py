"""A graph of TensorFlow Transform on vectors, texts and tables, in training and in the served model."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils

from crowdzoo.records.transformed_instances import TransformedInstances

ROWS = [(10.0, "Porto"), (20.0, "Lisbon"), (30.0, "Porto")]


def of_table(inputs):
    def dense(name):
        values = inputs[f"instances/{name}"]
        return tf.sparse.to_dense(values) if isinstance(values, tf.SparseTensor) else values

    codes = tft.compute_and_apply_vocabulary(tf.reshape(dense("city"), [-1]))
    return {
        "age": tf.reshape(tft.scale_to_z_score(dense("age")), [-1, 1]),
        "city": tf.reshape(codes, [-1, 1]),
        "labels": inputs["annotator_labels"],  # needs more than the instances, so it is left out
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "feature",
    [
        lambda dtype: tf.io.FixedLenFeature([], dtype),
        lambda dtype: tf.io.FixedLenFeature([1], dtype),
        tf.io.VarLenFeature,
    ],
    ids=["[]", "[1]", "open"],
)
def test_columns_of_a_table_go_through_the_graph_under_their_own_names(tmp_path, feature):
    spec = {
        "instances/age": feature(tf.float32), "instances/city": feature(tf.string),
        "annotator_labels": tf.io.VarLenFeature(tf.int64),
    }  # fmt: skip
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    is_list = not (isinstance(spec["instances/age"], tf.io.FixedLenFeature) and spec["instances/age"].shape == [])
    rows = [
        {
            "instances/age": [age] if is_list else age, "instances/city": [city] if is_list else city,
            "annotator_labels": [1, 0],
        }
        for age, city in ROWS
    ]  # fmt: skip
    with tft_beam.Context(temp_dir=str(tmp_path / "scratch")):
        function = (rows, metadata) | tft_beam.AnalyzeDataset(of_table)
        function | tft_beam.WriteTransformFn(str(tmp_path / "graph"))
    metadata_io.write_metadata(metadata, str(tmp_path / "graph" / "metadata"))  # as TFX's Transform does
    info = {"instances": "tables", "columns": {"age": [], "city": None}, "num_features": None}
    encoder = TransformedInstances(tmp_path / "graph", info)
    assert {name: (spec.dtype.name, spec.shape.as_list()) for name, spec in encoder.inputs.items()} == {
        "age": ("float32", [None]), "city": ("string", [None])
    }  # fmt: skip
    found = encoder({"age": tf.constant([20.0, 30.0]), "city": tf.constant(["Porto", "Lisbon"])})
    assert {*found} == {"age", "city"}
    np.testing.assert_allclose(found["age"], [[0.0], [10 / np.sqrt(200 / 3)]], 1e-6)
    assert found["city"].numpy().tolist() == [[0], [1]]  # the more frequent one first
