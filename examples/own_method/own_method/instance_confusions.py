"""InstanceConfusions: a confusion matrix for each annotator and task."""

import keras
from keras import ops

from crowdzoo.layers import CrowdLayer, LayerTraits


@keras.saving.register_keras_serializable(package="own_method")  # the name of this package: so saved models load
class InstanceConfusions(CrowdLayer):
    """A confusion matrix for each annotator, moved by the features of the task alike for all annotators.

    What annotator r says of task i where the class is k: `softmax_l(A_r[k, l] + (x_i B)[k, l])`.

    Args:
        num_annotators: R.
        start: A is this times the identity at first.
        **kwargs: `keras.layers.Layer`'s own.

    Source:
        An example; crowdzoo's `LIA` is a method of this sort.

    Needs:
        Features of about unit size, by which annotators err alike.
    """

    traits = LayerTraits(uses_features=True)

    def __init__(self, num_annotators, start=2.0, **kwargs):
        super().__init__(num_annotators, **kwargs)
        self.start = start

    def build(self, inputs_shape, features_shape=None):
        """Makes A `[R, K, K]` and B `[D, K * K]`."""
        classes = inputs_shape[-1]
        identity = keras.initializers.Constant(self.start * ops.convert_to_numpy(ops.eye(classes)))
        shape = (self.num_annotators, classes, classes)
        self.own = self.add_weight(shape=shape, initializer=identity, name="own", autocast=False)
        shape = (features_shape[-1], classes * classes)
        self.common = self.add_weight(shape=shape, initializer="zeros", name="common", autocast=False)
        super().build(inputs_shape)

    def log_confusions(self, annotators, features=None):
        """Log-probabilities `[B, M, K, K]`; without features those of a task at the origin."""
        logits = self.rows_of(self.own, annotators)
        if features is not None:
            moved = ops.matmul(ops.cast(features, logits.dtype), self.common)
            logits = logits + ops.reshape(moved, (-1, 1, *logits.shape[2:]))
        return ops.log_softmax(logits, axis=-1)

    def get_config(self):
        """The arguments; `CrowdLayer` adds its own."""
        return {**super().get_config(), "start": self.start}
