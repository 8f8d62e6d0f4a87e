"""Instances through a graph of TensorFlow Transform, in training and in the served model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import tensorflow as tf
from tensorflow_transform.output_wrapper import TFTransformOutput
from tensorflow_transform.saved.saved_transform_io_v2 import SavedModelLoader

from crowdzoo.components.instance_features import instance_features
from crowdzoo.instances import InstanceKind, instance_kind
from crowdzoo.models.instance_encoder import InstanceEncoder

__all__ = ["TransformedInstances"]


class TransformedInstances(InstanceEncoder):
    """What a `preprocessing_fn` makes of instances; its graph goes into the exported model.

    Outputs of the function that need more than the instances, such as the annotators' labels, are left out.

    Args:
        folder: of the TransformGraph, `fn_args.transform_graph_path`.
        info: result of `read_dataset_info`.
    """

    key = "transform"
    example: ClassVar[Mapping[str, Any]] = {}
    per_batch = True

    def __init__(self, folder: str | Path, info: Mapping[str, Any]):
        self.folder = str(folder)
        self.info = dict(info)
        self._graph = SavedModelLoader(TFTransformOutput(self.folder).transform_savedmodel_dir)
        features = instance_features(self.info)
        self._specs = {
            name: tf.TensorSpec([None, *feature.shape], feature.dtype, name) for name, feature in features.items()
        }
        self.example = {  # type: ignore[misc]
            name: "warm up" if spec.dtype == tf.string else tf.zeros(spec.shape[1:], spec.dtype).numpy()
            for name, spec in self._specs.items()
        }

    @property
    def instances(self) -> InstanceKind:  # type: ignore[override]
        """Kind of instances that it takes."""
        return instance_kind(self.info["instances"])

    @property
    def inputs(self) -> dict[str, Any]:
        """What the Examples hold of an instance."""
        return dict(self._specs)

    @property
    def resources(self) -> Any:
        """The graph's tables and variables."""
        parts = vars(self._graph).values()
        return [part for part in parts if isinstance(part, tf.__internal__.tracking.Trackable)]

    def __call__(self, values: Any) -> Any:
        """What the function returns: a tensor where that is one, else a dictionary of them."""
        given = values if isinstance(values, Mapping) else {"instances": values}
        if [*self._specs] == ["instances"] and self._specs["instances"].shape.rank == 1:
            given = {"instances": tf.reshape(given["instances"], [-1])}
        made = self._graph.apply_transform_model(dict(given))
        return next(iter(made.values())) if len(made) == 1 else made

    def to_numpy(self, values: Any) -> Any:
        """The same for instances in memory."""
        made = self(tf.nest.map_structure(tf.constant, values))
        return tf.nest.map_structure(lambda tensor: tensor.numpy(), made)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {"folder": self.folder, "info": self.info}
