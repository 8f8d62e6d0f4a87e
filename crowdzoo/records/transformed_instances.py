"""Encodes instances by a graph of TensorFlow Transform, in training and in the served model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import tensorflow as tf
from tensorflow_transform.output_wrapper import TFTransformOutput
from tensorflow_transform.saved.saved_transform_io_v2 import SavedModelLoader

from crowdzoo.data.instance_kinds import InstanceKind, instance_kind
from crowdzoo.networks.instance_encoder import InstanceEncoder
from crowdzoo.records.instance_features import COLUMN, instance_features


class TransformedInstances(InstanceEncoder):
    """Encodes instances by a `preprocessing_fn`, whose graph becomes part of the exported model.

    Outputs of the function that depend on other data than the instances, such as annotators' labels, are dropped.

    Args:
        folder: folder of the TransformGraph, `fn_args.transform_graph_path`.
        info: result of `read_dataset_info`.
    """

    key = "transform"
    example: ClassVar[Mapping[str, Any]] = {}
    per_batch = True

    def __init__(self, folder: str | Path, info: Mapping[str, Any]):
        self.folder = str(folder)
        self.info = dict(info)
        output = TFTransformOutput(self.folder)
        self._graph = SavedModelLoader(output.transform_savedmodel_dir)
        self._raw = output.raw_feature_spec()
        features = {name.removeprefix(COLUMN): feature for name, feature in instance_features(self.info).items()}
        self._specs = {
            name: tf.TensorSpec([None, *feature.shape], feature.dtype, name) for name, feature in features.items()
        }
        self.example = {  # type: ignore[misc]
            name: "warm up" if spec.dtype == tf.string else tf.zeros(spec.shape[1:], spec.dtype).numpy()
            for name, spec in self._specs.items()
        }

    @property
    def instances(self) -> InstanceKind:  # type: ignore[override]
        """Kind of instances that it encodes."""
        return instance_kind(self.info["instances"])

    @property
    def inputs(self) -> dict[str, Any]:
        """Features of an instance in the Examples; columns of a table have their served names."""
        return dict(self._specs)

    @property
    def resources(self) -> Any:
        """The graph's tables and variables."""
        parts = vars(self._graph).values()
        return [part for part in parts if isinstance(part, tf.__internal__.tracking.Trackable)]

    def __call__(self, values: Any) -> Any:
        """The result of the function: a tensor, or a dictionary of several."""
        inputs = values if isinstance(values, Mapping) else {"instances": values}
        begin = "" if "instances" in self._specs else COLUMN
        outputs = self._graph.apply_transform_model(
            {begin + name: self._as_raw(begin + name, inputs[name]) for name in inputs}
        )
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def _as_raw(self, name: str, values: Any) -> Any:
        """Values in the shape that the function was traced with: a column may be `[B]` or `[B, 1]`, or ragged."""
        values = tf.convert_to_tensor(values)
        feature = self._raw.get(name)
        if isinstance(feature, tf.io.FixedLenFeature):
            return tf.reshape(values, [-1, *feature.shape])
        if isinstance(feature, tf.io.VarLenFeature):
            rows = values if len(values.shape) > 1 else values[:, None]
            places = tf.where(tf.ones_like(rows, tf.bool))  # all places, as zeros and "" are values as well
            return tf.SparseTensor(places, tf.reshape(rows, [-1]), tf.shape(rows, tf.int64))
        return values

    def to_numpy(self, values: Any) -> Any:
        """The same for instances in memory."""
        outputs = self(tf.nest.map_structure(tf.constant, values))
        return tf.nest.map_structure(lambda tensor: tensor.numpy(), outputs)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {"folder": self.folder, "info": self.info}
