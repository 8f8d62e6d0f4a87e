"""Annotators who compare two tasks: how well they discriminate, their position bias and their tie bias."""

from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import Number, checked
from crowdzoo.layers.crowd_layer import CrowdLayer, LayerTraits

VARIANCE = Number(1e-9, 1e12)


@keras.saving.register_keras_serializable(package="crowdzoo")
class PairAnnotators(CrowdLayer):
    """A slope, a position bias and a tie bias per annotator, on top of a model of comparisons.

    The model's probabilities p of left, right and equal (of `PairProbabilities`) have the difference
    `d = log p[left] - log p[right]` and the tie `t = log p[equal] - (log p[left] + log p[right]) / 2`. Annotator r
    answers left, right and equal with odds `exp(e / 2) : exp(-e / 2) : exp(t + c[r])` with `e = a[r] d + b[r]`: the
    model of `crowdzoo.aggregation.AnnotatorBradleyTerry`. Its normal priors, around 1 for a and 0 for b and c, are
    added to the loss, divided by the number of annotations as the loss is a mean over them.

    Args:
        num_annotators: R, number of annotators.
        num_annotations: A, number of annotations that the model is trained on.
        slope_variance: variance of the prior of a.
        bias_variance: variance of the prior of b.
        tie_variance: variance of the prior of c.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: probabilities of left, right and equal, `[B, 3]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators.

    Returns:
        Log-probabilities of the answers, `[B, M, 3]` (`[B, R, 3]`).

    Raises:
        ValueError: invalid values, or an input of the wrong shape.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import PairAnnotators
        >>> probabilities = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]], "float32")  # left, right, equal
        >>> layer = PairAnnotators(num_annotators=5, num_annotations=8)
        >>> tuple(layer(probabilities, annotators=np.array([[0, 2], [1, 4]])).shape)
        (2, 2, 3)
        >>> layer.slopes.tolist()  # before training, everybody is typical
        [1.0, 1.0, 1.0, 1.0, 1.0]

    Source:
        R. Davidson, JASA 65, 1970; the annotators' parameters are those of a two-parameter logistic model.

    Needs:
        Instances of both sides of a comparison, and annotators with several comparisons each.
    """

    traits = LayerTraits(
        why_no_confusions=(
            "an answer depends on how far apart the tasks are, so there are no confusion matrices; `slopes` and "
            "`biases` describe the annotators"
        )
    )

    @checked(
        num_annotations=Number(1, whole=True),
        slope_variance=VARIANCE,
        bias_variance=VARIANCE,
        tie_variance=VARIANCE,
    )
    def __init__(
        self,
        num_annotators: int,
        num_annotations: int,
        slope_variance: float = 0.25,
        bias_variance: float = 0.25,
        tie_variance: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, **kwargs)
        self.num_annotations = num_annotations
        self.slope_variance = slope_variance
        self.bias_variance = bias_variance
        self.tie_variance = tie_variance
        self.kernel: Any = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """Creates the annotators' weights, `[R, 3]`: slope minus 1, position bias and tie bias.

        Args:
            inputs_shape: shape of the probabilities.
        """
        self._num_classes = self._check_shape(inputs_shape)
        if self._num_classes != 3:
            raise ValueError(f"PairAnnotators: the input must have shape [batch, 3], got {tuple(inputs_shape)}")
        self.kernel = self._weight("kernel", (self.num_annotators, 3))
        super().build(inputs_shape)

    def call(self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False) -> Tensor:
        """Log-probabilities of the answers; see the class for shapes."""
        self._check_shape(inputs.shape)
        logs = self._log_prior(inputs)
        difference = (logs[:, 0] - logs[:, 1])[:, None]
        tie = (logs[:, 2] - (logs[:, 0] + logs[:, 1]) / 2)[:, None]
        parameters = self.rows_of(self.kernel, annotators)
        parameters = parameters[None] if annotators is None else parameters
        half = ((1 + parameters[..., 0]) * difference + parameters[..., 1]) / 2
        if training:
            variances = ops.convert_to_tensor([self.slope_variance, self.bias_variance, self.tie_variance], half.dtype)
            prior = ops.sum(ops.square(self._cast(self.kernel)) / variances) / 2
            self.add_loss(prior / self.num_annotations)
        return ops.log_softmax(ops.stack([half, -half, tie + parameters[..., 2]], axis=-1), axis=-1)

    @property
    def slopes(self) -> np.ndarray:
        """How strongly each annotator's answers follow the scores, float64 `[R]`; 1 is typical, 0 is uninformative."""
        return 1 + self._kernel_column(0)

    @property
    def biases(self) -> np.ndarray:
        """Position bias of each annotator in units of the scores, float64 `[R]`; positive values prefer the left."""
        return self._kernel_column(1)

    @property
    def tie_biases(self) -> np.ndarray:
        """Tie bias of each annotator, float64 `[R]`, which is added to the log-odds of "equal"."""
        return self._kernel_column(2)

    def _kernel_column(self, column: int) -> np.ndarray:
        self._check_built()
        return ops.convert_to_numpy(self.kernel)[:, column].astype("float64")
