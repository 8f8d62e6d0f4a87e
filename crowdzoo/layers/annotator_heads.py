"""What both forms of Doctor Net share: a head for every annotator, and weights with which the heads are averaged."""

from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from crowdzoo.layers.crowd_layer import CrowdLayer

# Far below every logit and every logarithm of a weight, and finite, so that no gradient becomes NaN.
LOWEST = -1e30


class AnnotatorHeads(CrowdLayer):
    """Parent of `DoctorNet` and `RatingDoctorNet`: heads on a shared hidden layer, whose weighted mean is the truth.

    Attributes:
        learns_weights: whether the heads' weights are learnt in a second phase; set by the constructor.
        kernel: `[R, D, K]`, of ratings `[R, D]`.
        bias: `[R, K]`, of ratings `[R]`.
        log_weight: `[R]`, or None where no weights are learnt.
        seen: `[R]`, above 0 for annotators who labelled something in training.
    """

    stands_on_hidden_layer: ClassVar[bool] = True

    learns_weights: bool
    log_weight: Any = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """Makes the heads.

        Args:
            inputs_shape: `[B, D]` (sequences `[B, T, D]`) of the hidden layer; D must be known.
        """
        size = self._check_hidden(inputs_shape)
        outputs = self._num_classes = self._num_classes or 1
        own = (outputs,) if self.label_kind.has_classes else ()
        # Glorot's range of one head; Keras' own would count the annotators' axis as inputs
        limit = np.sqrt(6 / (size + outputs))
        start = keras.initializers.RandomUniform(-limit, limit)
        self.kernel = self._weight("kernel", (self.num_annotators, size, *own), start)
        self.bias = self._weight("bias", (self.num_annotators, *own))
        if self.learns_weights:
            self.log_weight = self._weight("log_weight", (self.num_annotators,))
            self.log_weight.trainable = False  # until the second phase
        self.seen = self._weight("seen", (self.num_annotators,), trainable=False)
        super().build(inputs_shape)

    def annotator_weights(self) -> np.ndarray:
        """How much every annotator's head counts in the estimate of the truth.

        Returns:
            float64 `[R]`, sums to one; 0 for annotators without labels in training. Before training all are equal.

        Raises:
            ValueError: the layer has no weights yet.
        """
        self._check_built()
        weights = ops.convert_to_numpy(self._weights()).astype("float64")
        return weights / weights.sum()

    def _weights(self) -> Any:
        """Weights of all heads, `[R]`; equal ones if nobody was seen yet."""
        seen = self._cast(self.seen)
        return ops.softmax(ops.where(seen > 0, self._log_weights(seen), LOWEST))

    def _log_weights(self, seen: Any) -> Any:
        return ops.zeros_like(seen) if self.log_weight is None else self._cast(self.log_weight)

    def _check_hidden(self, shape: tuple[int | None, ...]) -> int:
        """Units of the hidden layer, of an input of the right shape."""
        name = type(self).__name__
        written = "[batch, tokens, units]" if self.label_kind.has_positions else "[batch, units]"
        if len(shape) != 1 + self.label_kind.axes or shape[-1] is None:
            raise ValueError(f"{name}: the input must have shape {written}, units known, got {tuple(shape)}")
        if self.built and shape[-1] != self.kernel.shape[1]:
            raise ValueError(f"{name}: built for {self.kernel.shape[1]} units, got {tuple(shape)}")
        return shape[-1]
