"""The crowd layer: one small map per annotator from the truth's estimate to the annotator's answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike
from scipy.special import softmax

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import CENTER, FLAG, UNIT, Choice, checked
from crowdzoo.errors import ConfigError
from crowdzoo.layers.crowd_layer import CrowdLayer, LayerTraits
from crowdzoo.layers.ranges import SCALE
from crowdzoo.losses import MaskedCrowdMeanSquaredError, RatingSquaredError

CONNECTIONS, OF_RATINGS = ("MW", "VW", "VB", "VW+B", "S"), ("S", "B", "S+B")


@keras.saving.register_keras_serializable(package="crowdzoo")
class CrowdsourcedLayer(CrowdLayer):
    """Predicts each annotator's answer from an estimate of the truth.

    The layer sits on a base model's output (the bottleneck) and is removed after training.
    With `p` the bottleneck, annotator r's output is

        | connection | output                          | weights of r        |
        |------------|---------------------------------|---------------------|
        | MW         | a[l] = sum_k p[k] W_r[k, l]     | kernel [K, K]       |
        | VW         | a = w_r * p                     | kernel [K]          |
        | VB         | a = c p + b_r                   | bias [K]            |
        | VW+B       | a = w_r * p + b_r               | kernel [K], bias [K] |
        | S          | a = s_r p                       | kernel, one number  |

    For classification and sequences `a` holds logits: the annotator's label distribution is `softmax(a)`, which
    `crowdzoo.losses.MaskedCrowdCrossentropy` applies. The two softmaxes, of the base and of the loss, are intended (the
    paper's form), so a kernel is not a confusion matrix. `annotator_confusions()` returns the layer's answers for each
    true class; `CrowdModel.calibrated_confusions` estimates how often annotators are right. For regression `p` is the
    estimate itself, and the connections are `S` (s_r p), `B` (p + b_r) and `S+B` (s_r p + b_r), on standardised ratings
    as in the paper: with `center` c and `unit` u the answer is `c + s_r (p - c) + u b_r`, with p and the answer in the
    labels' unit.

    Adding a constant to p and subtracting it from all biases changes no answer, so the level of p is arbitrary. With
    `anchor` the biases sum to zero over all annotations after `fit`, and `truth` adds their former mean.

    The dense form, `layer(p)`, returns every annotator's answer. The sparse form, `layer(p, annotators=ids)`, returns
    only the answers of the annotators who labelled, so that the cost grows with the number of annotations and a million
    annotators can be trained.

    Weights start at `scale` times the identity (kernels) and at zero (biases): at first every annotator agrees with the
    base. For VB `scale` is c, which is not trained. Computation is in float32 (or wider), also under mixed precision.

    Args:
        num_annotators: R, number of annotators.
        connection: `"MW"`, `"VW"`, `"VB"`, `"VW+B"` or `"S"`; for regression `"S"`, `"B"` or `"S+B"`.
        kind: `"classification"`, `"sequence"` or `"regression"`.
        scale: factor of the identity that initializes kernels, and c of VB. With 1, the paper's choice, no annotator's
            probability can exceed e / (e + K - 1) at first, and the base may lose classes (docs/methods.md). None is
            log(13/7 (K - 1)), at least 1, for classes, with which P(right label) starts at .65; for sequences and
            ratings 1.
        majority_epochs: see `CrowdLayer`; None is 5 for sequences, where almost nothing is learnt without them, and 0
            otherwise.
        center: regression only: mean of the ratings, in their unit; see `crowdzoo.models.rating_unit`.
        unit: regression only: standard deviation of the ratings, above 0.
        anchor: regression with connection "B": whether biases are anchored when `fit` ends.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: the bottleneck, `[B, K]` (sequence `[B, T, K]`, regression `[B, 1]`).
        annotators: int `[B, M]`, annotator codes in 0..R-1, -1 for padding; or None for the dense form. Outputs at
            padding are meaningless: give padding a missing label, which the loss ignores.

    Returns:
        Logits `[B, R, K]` (sequence `[B, T, R, K]`), for regression values `[B, R]`. In the sparse form M
        replaces R.

    Raises:
        ValueError: unknown kind or connection, impossible sizes, or an input of the wrong rank.

    Example:
        >>> import keras
        >>> from crowdzoo.layers import CrowdsourcedLayer
        >>> model = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(4, activation="softmax")])
        >>> model.add(CrowdsourcedLayer(num_annotators=59, connection="MW"))
        >>> model.output_shape
        (None, 59, 4)

    Source:
        F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section 4. VB and S are in the
        authors' code only.

    Needs:
        Instances, and annotators with several labels each.
    """

    traits = LayerTraits(
        kinds=("classification", "sequence", "regression"),
        returns_logits=True,
        starts_from_votes=True,
        initial_accuracy=0.65,
    )

    @checked(scale=replace(SCALE, optional=True), center=CENTER, unit=UNIT, anchor=FLAG)
    def __init__(
        self,
        num_annotators: int,
        connection: str = "MW",
        kind: str = "classification",
        scale: float | None = None,
        majority_epochs: int | None = None,
        center: float = 0.0,
        unit: float = 1.0,
        anchor: bool = False,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, kind, majority_epochs, **kwargs)
        self._is_rating = is_rating = not self.label_kind.has_classes
        known = OF_RATINGS if is_rating else CONNECTIONS
        self.connection = Choice(known).checked("CrowdsourcedLayer", "connection", connection)
        self.scale = scale
        self.center, self.unit = float(center), float(unit)
        self.anchor = anchor
        if is_rating:
            clause = "the annotators' biases are anchored when fit ends (anchor=True)" if anchor else None
            why = "a regression has no confusion matrices; use annotator_scales() and annotator_biases()"
            self.traits = replace(self.traits, extra_training=clause, why_no_confusions=why)
        if anchor and not (is_rating and connection == "B"):
            raise ConfigError(
                "CrowdsourcedLayer: anchor is for connection 'B' of a regression, got "
                f"connection={connection!r}, kind={self.kind!r}"
            )
        if (self.center, self.unit) != (0.0, 1.0) and not is_rating:
            raise ConfigError(f"CrowdsourcedLayer: center and unit are for a regression, got kind={self.kind!r}")
        self.kernel: Any = None
        self.bias: Any = None
        self.factor: Any = None
        self.shift: Any = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """Creates the annotators' weights.

        Args:
            inputs_shape: shape of the bottleneck; its last axis (K) must be known.
        """
        classes = self._num_classes = self._check_shape(inputs_shape)
        vector = () if self._is_rating else (classes,)
        if self.connection not in ("B", "VB"):
            shape = {"MW": (classes, classes), "S": ()}.get(self.connection, vector)
            self.kernel = self._weight("kernel", (self.num_annotators, *shape), self._identity)
        if self.connection == "VB":  # c, a weight because models of earlier releases have 1
            self.factor = self._weight("factor", (), self._identity, trainable=False)
        if self.connection.endswith("B"):
            self.bias = self._weight("bias", (self.num_annotators, *vector))
        if self.anchor:  # the former mean of the biases, in their unit
            self.shift = self._weight("shift", (), trainable=False)
        super().build(inputs_shape)

    def load_own_variables(self, store: Mapping[str, ArrayLike]) -> None:
        """Loads the weights; connection VB may lack a factor, which was 1 in earlier releases."""
        if self.factor is not None and "1" not in store:
            store = {"0": store["0"], "1": 1.0}
        super().load_own_variables(store)

    def call(self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False) -> Tensor:
        """Returns the answers of all annotators, or of the given ones; see the class for shapes."""
        self._check_call(inputs, training)
        p = self._cast(inputs)
        weights = self.kernel, self.bias
        kernel, bias = (None if weight is None else self.rows_of(weight, annotators) for weight in weights)
        if not self._is_rating:
            return self._class_answers(p, kernel, bias, sparse=annotators is not None)
        p = self.truth(p)
        answers = p if kernel is None else self.center + (p - self.center) * kernel
        return answers if bias is None else answers + self.unit * bias

    def truth(self, bottleneck: Tensor) -> Tensor:
        """The bottleneck; with `anchor`, plus the former mean of the annotators' biases."""
        if self.shift is None:
            return bottleneck
        return self._cast(bottleneck) + self.unit * self._cast(self.shift)

    def _class_answers(self, p: Any, kernel: Any, bias: Any, sparse: bool) -> Any:
        """Logits `[B, (T,) R or M, K]`; kernel and bias start with the axes `[R]` or `[B, M]`."""
        if self.connection == "MW" and sparse and not self.label_kind.has_positions:
            # K products per number: einsum would take longer to set up its matrices
            return ops.sum(p[:, None, :, None] * kernel, axis=-2)
        if self.connection == "MW":
            weights = "bmkl" if sparse else "mkl"
            return ops.einsum(f"{self._axes}k,{weights}->{self._axes}ml", p, kernel)
        p = ops.expand_dims(p, axis=-2)  # [B, (T,) 1, K]
        if self.factor is not None:
            p = p * self._cast(self.factor)
        if sparse:  # weights [B, M, K]
            kernel, bias = (None if weight is None else self._over_places(weight) for weight in (kernel, bias))
        if kernel is not None:
            p = p * (kernel[..., None] if self.connection == "S" else kernel)
        return p if bias is None else p + bias

    def log_confusions(self, annotators: Tensor, features: Tensor | None = None) -> Tensor:
        """See `CrowdLayer.log_confusions`: the answer for each true class."""
        if self.traits.why_no_confusions is not None:
            return super().log_confusions(annotators)
        self._check_built()
        if self.connection == "MW":
            return ops.log_softmax(self.rows_of(self.kernel, annotators), axis=-1)
        logits = ops.eye(self._num_classes, dtype=self._computing_dtype())
        if self.factor is not None:
            logits = logits * self._cast(self.factor)
        if self.kernel is not None:
            kernel = self.rows_of(self.kernel, annotators)
            logits = logits * (kernel[..., None, None] if self.connection == "S" else kernel[..., None, :])
        if self.bias is not None:
            logits = logits + self.rows_of(self.bias, annotators)[..., None, :]
        shape = (*ops.shape(annotators), *logits.shape[-2:])
        return ops.log_softmax(ops.broadcast_to(logits, shape), axis=-1)

    def annotator_confusions(self) -> np.ndarray:
        """Confusion matrix of each annotator: their label distribution for each true class.

        Returns:
            float64 `[R, K, K]`, `confusions[r, k, l]` = P(r says l | truth k); rows sum to one.

        Raises:
            ValueError: the layer is for regression, or has no weights yet.
        """
        if self.traits.why_no_confusions is not None:
            return self.log_confusions(None)
        self._check_built()
        truths = np.eye(self._num_classes or 1, dtype="float32")
        # for sequences K tokens, one of each class
        answers = self(truths[None])[0] if self.label_kind.has_positions else self(truths)
        logits = np.moveaxis(ops.convert_to_numpy(answers).astype("float64"), 0, 1)  # [annotator, true, said]
        return softmax(logits, axis=-1)

    def annotator_scales(self) -> np.ndarray:
        """Factor s_r of every annotator of a regression, float64 `[R]`; ones if the connection has no factors."""
        return self._numbers(self.kernel, 1.0)

    def annotator_biases(self) -> np.ndarray:
        """Bias b_r of every annotator of a regression, in the labels' unit, float64 `[R]`; zeros where missing.

        Adding a number to every bias and subtracting it from the base's output does not change the loss, so only
        differences between annotators are meaningful, unless biases are anchored (`anchor`).
        """
        return self.unit * self._numbers(self.bias, 0.0)

    def _numbers(self, weight: Tensor, default: float) -> np.ndarray:
        if not self._is_rating:
            raise ValueError("CrowdsourcedLayer: scales and biases are for a regression; use annotator_confusions()")
        self._check_built()
        if weight is None:
            return np.full(self.num_annotators, default)
        return ops.convert_to_numpy(weight).astype("float64")

    def default_loss(self) -> keras.losses.Loss:
        """Cross-entropy of the labels, for regression their squared error."""
        if not self._is_rating:
            return super().default_loss()
        return MaskedCrowdMeanSquaredError() if self.unit == 1 else RatingSquaredError(self.unit)

    # === For the recipe ===

    def anchor_biases(self, annotators: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Moves the mean of the biases to the estimate.

        Args:
            annotators: annotator of each rating, int `[A]`.
            weights: weight of each rating, `[A]`; None: each counts once.
        """
        bias = ops.convert_to_numpy(self.bias).astype("float64")
        common = np.average(bias[annotators], weights=weights)
        self.bias.assign(bias - common)
        self.shift.assign(float(ops.convert_to_numpy(self.shift)) + common)

    def _identity(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """`scale` times the identity for every annotator: matrices for MW, factors otherwise."""
        scale = self.scale
        if scale is None:
            scale = 1.0 if self._is_rating else self._safe_scale(self._num_classes or 1)
        if self.connection != "MW":
            return ops.full(shape, scale, dtype=dtype)
        return self._identities(shape, dtype, scale)
