"""The parent of all crowd layers: answers of annotators, and what a label says about the truth."""

import inspect
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops
from scipy.special import softmax

from crowdzoo.backend import Config, Tensor, activation_of, concrete, fail_if, take_rows
from crowdzoo.checks.constraints import Choice, checked
from crowdzoo.data.label_kinds import LAYER_KINDS, label_kind
from crowdzoo.errors import ConfigError
from crowdzoo.layers.ranges import ANNOTATORS, MORE_EPOCHS
from crowdzoo.losses import MaskedCrowdCrossentropy
from crowdzoo.plugins import package_of


@dataclass(frozen=True)
class LayerTraits:
    """Properties of a `CrowdLayer` that training, export and comparison read from its class attribute `traits`.

    A custom layer sets those that differ from the defaults; a subclass of another layer changes its parent's with
    `dataclasses.replace(Parent.traits, ...)`.

    Attributes:
        kinds: kinds of labels that the layer is for; the first is the default.
        uses_features: whether `call` and `log_confusions` take features of the instances `[B, D]` in addition to the
            class probabilities.
        needs_hidden_layer: whether the layer takes the last hidden layer's output `[B, D]` in place of class
            probabilities.
        returns_logits: whether answers are logits, whose probabilities need not sum to one; other layers return
            log-probabilities.
        starts_from_votes: whether the base may be trained on the votes first, so that the layer takes
            `majority_epochs`.
        accepts_sample_weight: whether tasks can be weighted, `CrowdModel.fit(..., sample_weight=...)`.
        accepts_confidence: whether training can count annotations by their confidence (`confidence=True`).
        unseen_are_average: whether an annotator without training labels answers like the average annotator, because
            individual weights start at zero.
        initial_accuracy: P(right label) that annotators start with by default (benchmarks/reproduce/starts.py).
        extra_training: what training does beyond gradient descent on the layer's answers, as a clause for messages;
            None: nothing.
        why_no_confusions: why there are no confusion matrices, and what to use instead, for messages; None: there are
            some.

    Example:
        >>> from dataclasses import replace
        >>> from crowdzoo.layers import ConfusionMatrices, LayerTraits
        >>> LayerTraits(kinds=("regression",), why_no_confusions="ratings have no confusion matrices").returns_logits
        False
        >>> replace(ConfusionMatrices.traits, kinds=("classification",)).starts_from_votes
        True
    """

    kinds: tuple[str, ...] = ("classification",)
    uses_features: bool = False
    needs_hidden_layer: bool = False
    returns_logits: bool = False
    starts_from_votes: bool = False
    accepts_sample_weight: bool = True
    accepts_confidence: bool = False
    unseen_are_average: bool = False
    initial_accuracy: float = 0.5
    extra_training: str | None = None
    why_no_confusions: str | None = None


# Lower bound of probabilities before their logarithm: float32 can represent it, and the gradient stays finite.
SMALLEST = 1e-30
SUM_ERROR = 0.05  # tolerance for sums of probabilities in half precision
UNBOUNDED = ("linear", "relu", "sigmoid", "tanh")  # activations whose values do not sum to one
# The crowd layer's authors' protocol for CoNLL-2003. Without it F1 falls from 65 to 22 (benchmarks/reproduce/ner.py):
# most tokens are O, and the base learns to predict O while the annotators' matrices explain the rest
SEQUENCE_MAJORITY_EPOCHS = 5


class CrowdLayer(keras.layers.Layer):
    """Parent of the layers that predict the answer of every annotator from a base model's output.

    `call` returns how likely each label is. A layer may also say how likely each label is for each possible truth
    (`log_confusions`); the posterior of the truth (`log_joint`) and the annotators' confusion matrices follow from
    that. A recipe (`crowdzoo.training.recipes`) trains the model: by gradient descent on the layer's loss, and by
    whatever else `traits.extra_training` names.

    The first axis of weights is the annotator, `[R, ...]`. Computation is in float32 (or wider), also under mixed
    precision.

    Args:
        num_annotators: R, number of annotators.
        kind: kind of label, one of `traits.kinds`; None is the first one.
        majority_epochs: epochs in which `CrowdModel.fit` first trains the base alone on the shares of the votes (for
            sequences on the majority's labels), before it trains the annotators' weights, which by themselves might
            swap classes. Only for layers with `traits.starts_from_votes`. None is 0, for sequences 5.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Attributes:
        traits: properties of the class, `LayerTraits`; a custom layer may set its own.
        label_kind: description of that kind of label, `crowdzoo.data.label_kinds.LabelKind`.
        is_fitted_now: whether a recipe is training the layer.

    Raises:
        ConfigError: num_annotators is not an integer above 0, the layer is not for that kind, or it does not take
            majority_epochs.

    Example:
        >>> from keras import ops
        >>> from crowdzoo.layers import CrowdLayer
        >>> class EveryoneIsRight(CrowdLayer):
        ...     def call(self, inputs, annotators=None, training=False):
        ...         number = self.num_annotators if annotators is None else annotators.shape[1]
        ...         return ops.repeat(ops.log(inputs)[:, None], number, axis=1)
        >>> tuple(EveryoneIsRight(num_annotators=5)(ops.full((4, 3), 1 / 3)).shape)  # tasks, annotators, classes
        (4, 5, 3)
    """

    traits: LayerTraits = LayerTraits()

    @checked(num_annotators=ANNOTATORS, majority_epochs=MORE_EPOCHS)
    def __init__(self, num_annotators: int, kind: str | None = None, majority_epochs: int | None = None, **kwargs: Any):
        kwargs.pop("package", None)  # from `get_config`; it tells users which package to install
        # Answers go through a logarithm: the layer casts itself, never below float32.
        super().__init__(autocast=False, **kwargs)
        self.num_annotators = num_annotators
        kinds = self.traits.kinds
        self.kind = Choice(kinds).checked(type(self).__name__, "kind", kinds[0] if kind is None else kind)
        self.label_kind = label_kind(self.kind, LAYER_KINDS)
        self.majority_epochs = majority_epochs
        has_majority = self.label_kind.has_classes
        if majority_epochs and not (self.traits.starts_from_votes and has_majority):
            why = "it does not start from votes" if has_majority else "ratings have no majority"
            raise ConfigError(f"{type(self).__name__}: does not take majority_epochs, as {why}. Leave it out.")
        # axes of labels without the annotators' one, for einsum
        self._axes = "bhw"[: self.label_kind.axes]
        self._num_classes: int | None = None
        self.is_fitted_now = False
        self._has_seen_probabilities = False
        self._refusal: str | None = None
        # Masks of padded tokens end here: the labels of padding are missing, and the loss ignores missing labels.
        self.supports_masking = True

    # === Answers ===

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """Stores the number of classes; subclasses create their weights in a `build` that ends with this one."""
        if self._num_classes is None and self.label_kind.has_classes:
            self._num_classes = self._check_shape(inputs_shape)
        super().build(inputs_shape)

    def _answers(
        self, inputs: Tensor, annotators: Tensor | None = None, features: Tensor | None = None, training: bool = False
    ) -> Any:
        """Log-probabilities of the labels, `log sum_k p_i(k) P(annotator m says l | truth k)`, by `log_confusions`.

        Args:
            inputs: class probabilities `[B, K]` (sequences `[B, T, K]`, masks `[B, H, W, K]`).
            annotators: int `[B, M]`, -1 for padding; None: all annotators.
            features: `[B, D]`, for layers whose `traits.uses_features`.
            training: whether the layer is called in training.

        Returns:
            `[B, M, K]` (`[B, T, M, K]`, `[B, H, W, M, K]`).
        """
        self._check_call(inputs, training)
        annotators = self._everybody(inputs) if annotators is None else annotators
        extra = (features,) if self.traits.uses_features else ()
        logs = self.log_confusions(annotators, *extra)
        return ops.logsumexp(self._log_prior(inputs)[..., None, :, None] + self._over_places(logs), axis=-2)

    call: Any = _answers  # layers with their own `call` choose its arguments

    @property
    def num_classes(self) -> int | None:
        """K, known once the layer is built."""
        return self._num_classes

    def log_confusions(self, annotators: Tensor, features: Tensor | None = None) -> Tensor:
        """Log-probabilities of every label for every possible truth.

        Args:
            annotators: int `[B, M]`, annotator codes, -1 for padding.
            features: `[B, D]`, for layers whose `traits.uses_features`.

        Returns:
            `[B, M, K, K]`, `[i, m, k, l]` = log P(annotator m of task i says l | truth k).

        Raises:
            NotImplementedError: the method does not model how labels depend on the truth.
            ValueError: the method has no confusion matrices.
        """
        if self.traits.why_no_confusions is not None:
            raise ValueError(f"{type(self).__name__}: {self.traits.why_no_confusions}")
        raise NotImplementedError(f"{type(self).__name__} does not say how labels depend on the truth")

    def log_joint(self, inputs: Tensor, annotators: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """Joint log-probability of the truth and the given labels; its softmax is the posterior.

        `log p_i(k) + sum_m log P(y_im | truth k)`.

        Args:
            inputs: bottleneck `[B, K]` (sequences `[B, T, K]`).
            annotators: int `[B, M]`, -1 for padding.
            labels: int `[B, M]` (sequences `[B, T, M]`), -1 where missing.
            features: `[B, D]`, for layers whose `traits.uses_features`.

        Returns:
            `[B, K]` (sequences `[B, T, K]`).
        """
        logs = self._log_given_truth(annotators, features)
        one_hot = ops.one_hot(ops.cast(labels, "int32"), logs.shape[-1], dtype=logs.dtype)  # a row of 0 for -1
        each = "b" if len(logs.shape) == 4 else self._axes  # one matrix for all places of a task, or one for each
        log_likelihood = ops.einsum(f"{self._axes}ml,{each}mkl->{self._axes}k", one_hot, logs)
        return ops.cast(self._log_prior(inputs), logs.dtype) + log_likelihood

    def _log_given_truth(self, annotators: Tensor, features: Tensor) -> Any:
        """What labels say about the truth, `[B, M, K, K]`: `log_confusions`, unless it also matters who labels."""
        return self.log_confusions(annotators, features)

    def with_labels(self, inputs: Tensor, annotators: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """Output of a model whose input includes labels, as its loss gets it; arguments as for `log_joint`.

        Returns:
            The log-joint `[B, K]` (sequences `[B, T, K]`); or, for losses that need its parts, `[B, V K]`: V summands,
            concatenated.
        """
        return self.log_joint(inputs, annotators, labels, features)

    def truth(self, bottleneck: Tensor) -> Tensor:
        """The model's estimate of the truth: the bottleneck itself, unless a method combines its annotators."""
        return bottleneck

    def annotator_confusions(self) -> np.ndarray:
        """Confusion matrix of each annotator: their label distribution for each true class.

        Returns:
            float64 `[R, K, K]`, `confusions[r, k, l]` = P(r says l | truth k); rows sum to one.

        Raises:
            ValueError: the layer has no weights yet, or no confusion matrices.
        """
        if self.traits.why_no_confusions is not None:
            return self.log_confusions(None)
        self._check_built()
        confusions = np.empty((self.num_annotators, self._num_classes or 1, self._num_classes or 1))
        step = max(1, 2**22 // confusions[0].size)  # annotators at a time, to save memory
        for start in range(0, self.num_annotators, step):
            codes = np.arange(start, min(start + step, self.num_annotators), dtype="int32")
            logs = ops.convert_to_numpy(self.log_confusions(ops.convert_to_tensor(codes[:, None])))[:, 0]
            confusions[codes] = softmax(logs.astype("float64"), axis=-1)
        return confusions

    # === How a model is trained ===

    def default_loss(self) -> keras.losses.Loss:
        """The loss that a model with this layer is trained on."""
        return MaskedCrowdCrossentropy()

    def check_training(self, training: bool | None = True) -> None:
        """Rejects training outside a recipe where that would skip a part of the method.

        Args:
            training: whether the layer is called in training.

        Raises:
            ValueError: the layer would be trained by gradient descent alone.
        """
        beyond = self.traits.extra_training
        if beyond is None and self.num_majority_epochs:
            beyond = (
                f"the base is first trained on the votes for {self.num_majority_epochs} epochs (majority_epochs=0 "
                "leaves them out)"
            )
        if training and self.trainable and not self.is_fitted_now and beyond is not None:
            name = type(self).__name__
            raise ValueError(
                f"{name}: {beyond}, which gradient descent alone does not do. Train it with "
                f"crowdzoo.CrowdModel(base, {name}(...)).fit(x, annotations), where base is the model below this layer"
            )

    @property
    def _takes_probabilities(self) -> bool:
        """Whether the inputs are class probabilities."""
        return self.label_kind.has_classes and not self.traits.needs_hidden_layer

    def check_probabilities(self, inputs: Tensor) -> None:
        """Rejects inputs that are not class probabilities, such as logits; rows of zeros are padding.

        For a symbolic tensor the activation that produced it is checked, and the error is raised only in training, so
        that a loaded model can still predict. In a compiled step, where neither activation nor values are known, the
        step fails when it runs (on TensorFlow, not if XLA compiles it).

        Args:
            inputs: inputs of the layer, `[..., K]`.

        Raises:
            ConfigError: a row has negative values or does not sum to one.
        """
        message = (
            f"{type(self).__name__}: the model below this layer gives {{}}, which are not probabilities of the "
            "classes. End that model in keras.layers.Dense(num_classes, activation='softmax')"
        )
        if not self._takes_probabilities:
            return
        if keras.backend.is_keras_tensor(inputs):
            activation = activation_of(inputs)
            unbounded = f"values of the activation {activation!r}"
            self._refusal = message.format(unbounded) if activation in UNBOUNDED else None
            self._has_seen_probabilities |= activation == "softmax"
            return
        rows = ops.stop_gradient(self._cast(inputs))  # JAX hides values that it differentiates
        sums = ops.sum(rows, axis=-1)
        wrong = ops.any(rows < 0, axis=-1) | ((ops.abs(sums - 1) > SUM_ERROR) & (sums != 0))
        where = concrete(wrong)
        if where is None:
            fail_if(ops.any(wrong), message.format("values that are negative or do not sum to one"))
        elif where.any():
            values = ops.convert_to_numpy(rows)[where][0]
            raise ConfigError(message.format(np.round(values.astype("float64"), 3).tolist()))
        else:
            self._has_seen_probabilities = True

    @property
    def num_majority_epochs(self) -> int:
        """Epochs that train the base alone on the votes."""
        if self.majority_epochs is None and self.traits.starts_from_votes and self.label_kind.has_tokens:
            return SEQUENCE_MAJORITY_EPOCHS
        return self.majority_epochs or 0

    # === For the layers themselves ===

    def compute_mask(self, inputs: Tensor, previous_mask: Tensor | None = None) -> None:
        """Returns None: missing labels, not masks, mark padding."""
        return None

    def compute_output_shape(
        self, inputs_shape: tuple[int | None, ...], annotators_shape: tuple[int | None, ...] | None = None, **_: Any
    ) -> tuple[int | None, ...]:
        """Shape of the answers for shapes of the bottleneck and, in the sparse form, of the annotators."""
        answers = self.num_annotators if annotators_shape is None else annotators_shape[1]
        if not self.label_kind.has_classes:
            return (inputs_shape[0], answers)
        return (*inputs_shape[:-1], answers, self._num_classes or inputs_shape[-1])

    def compute_output_spec(
        self,
        inputs: Tensor,
        annotators: Tensor | None = None,
        features: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """Symbolic answers: shape of `compute_output_shape`, dtype float32 or wider."""
        self.check_probabilities(inputs)
        shape = self.compute_output_shape(inputs.shape, None if annotators is None else annotators.shape)
        return keras.KerasTensor(shape, dtype=self._computing_dtype())

    def get_config(self) -> Config:
        """Every argument of the constructor; for a layer of another package also the package's name and version."""
        config = super().get_config()
        if package := package_of(type(self)):
            config["package"] = package
        for parent in reversed(type(self).__mro__):
            init = vars(parent).get("__init__")
            if init is not None and parent.__module__.startswith("crowdzoo."):  # custom layers add their own arguments
                names = inspect.signature(init).parameters
                config |= {name: getattr(self, name) for name in names if name not in (*config, "self", "kwargs")}
        return config

    def _weight(self, name: str, shape: tuple[int, ...], initializer: Any = "zeros", trainable: bool = True) -> Any:
        return self.add_weight(shape=shape, initializer=initializer, name=name, trainable=trainable, autocast=False)

    def _linear(self, units: int, width: Any, name: str, activation: Any = None) -> keras.layers.Dense:
        """A dense layer of inputs `[..., width]`, built, in the computing dtype."""
        layer = keras.layers.Dense(units, activation=activation, dtype=self._computing_dtype(), name=name)
        layer.build((None, width))
        return layer

    def _over_places(self, rows: Any) -> Any:
        """Annotators' weights `[B, M, ...]` with axes of length 1 inserted for tokens, or for rows and columns."""
        for _ in self._axes[1:]:
            rows = ops.expand_dims(rows, axis=1)
        return rows

    def _identities(
        self, shape: tuple[int, ...], dtype: Any = None, scale: float | None = None, diagonal: float | None = None
    ) -> Any:
        """Initializer of matrices `[..., K, K]`: the identity times `scale`, or as `diagonal` or `_safe_scale` say."""
        if diagonal is not None:
            scale = self._advantage(diagonal, shape[-1])
        elif scale is None:
            scale = self._safe_scale(shape[-1])
        # tile, not broadcast_to: PyTorch cannot assign to a view with stride 0
        return ops.tile(scale * ops.eye(shape[-1], dtype=dtype), (*shape[:-2], 1, 1))

    def _safe_scale(self, classes: int) -> float:
        """Factor of the identity with which P(right) after a softmax is `traits.initial_accuracy`.

        It is at least 1, which matters for few classes.

        With the papers' factor of 1, P(right) is only e / (e + K - 1). Such uninformative annotators let the base mix
        up classes in the first epochs, and whole classes are lost (benchmarks/reproduce/starts.py). For tokens it is 1:
        most are O, whatever the start.
        """
        return 1.0 if self.label_kind.has_tokens else max(1.0, self._advantage(self.traits.initial_accuracy, classes))

    def _advantage(self, diagonal: float, classes: int) -> float:
        """Logit of the right class minus that of each other class if P(right) is `diagonal`."""
        return float(np.log(diagonal) - np.log((1 - diagonal) / max(classes - 1, 1)))

    def _computing_dtype(self) -> str:
        return keras.backend.result_type(self.variable_dtype, "float32")

    def _codes(self, annotators: Tensor) -> Any:
        """Codes to gather with; padding (-1) gets the code of an annotator of the task, and the loss masks the result.

        Padding is not annotator 0, because an optimizer that updates the rows of the batch would move that row every
        time.
        """
        if len(annotators.shape) != 2:
            raise ValueError(
                f"{type(self).__name__}: annotators must have shape [batch, annotations per task], "
                f"got {tuple(annotators.shape)}"
            )
        codes = ops.cast(annotators, "int32")
        with_0 = ops.pad(codes, ((0, 0), (0, 1)))  # `ops.max(initial=0)` makes a tensor on the CPU under PyTorch
        return ops.where(codes < 0, ops.max(with_0, axis=1, keepdims=True), codes)

    def _cast(self, values: Any) -> Any:
        return ops.cast(values, self._computing_dtype())

    def rows_of(self, weight: Tensor, annotators: Tensor) -> Tensor:
        """Gathers the annotators' rows of a weight, with a gradient that every optimizer reads correctly.

        Args:
            weight: `[R, ...]`.
            annotators: int `[B, M]`, -1 for padding, which gets the row of another annotator of the task; None: all.

        Returns:
            `[B, M, ...]` (for None `[R, ...]`), float32 or wider.
        """
        return self._cast(weight if annotators is None else take_rows(weight, self._codes(annotators)))

    def _log_prior(self, inputs: Tensor) -> Any:
        """Logarithm of the bottleneck."""
        return ops.log(ops.maximum(self._cast(inputs), SMALLEST))

    def _everybody(self, inputs: Tensor) -> Any:
        """Codes of all annotators for every task, int32 `[B, R]`, which turn the dense form into the sparse one."""
        codes = ops.arange(self.num_annotators, dtype="int32")
        return ops.broadcast_to(codes[None], (ops.shape(inputs)[0], self.num_annotators))

    def _check_call(self, inputs: Tensor, training: bool | None) -> None:
        """Checks the input's shape, `check_training`, and that inputs are probabilities."""
        self.check_training(training)
        self._check_shape(inputs.shape)
        if training and self._takes_probabilities and not self._has_seen_probabilities:
            if self._refusal is not None:
                raise ConfigError(self._refusal)
            self.check_probabilities(inputs)

    def _check_shape(self, shape: tuple[int | None, ...]) -> int:
        """Checks the input's shape and returns the number of classes."""
        name = type(self).__name__
        has_classes = self.label_kind.has_classes
        last = "classes" if has_classes else "1"
        written = f"[{', '.join(('batch', *self.label_kind.places, last))}]"
        if len(shape) != 1 + self.label_kind.axes:
            raise ValueError(f"{name}: the input must have shape {written}, got {tuple(shape)}")
        if not has_classes and shape[-1] != 1:
            raise ValueError(f"{name}: the input must have shape {written}, one estimate per task, got {tuple(shape)}")
        if shape[-1] is None:
            raise ValueError(f"{name}: the number of classes (last axis of the input) must be known")
        if self.built and self._num_classes is not None and shape[-1] != self._num_classes:
            raise ValueError(f"{name}: built for {self._num_classes} classes (last axis of inputs), got {tuple(shape)}")
        return int(shape[-1])

    def _check_features(self, shape: tuple[int | None, ...] | None) -> tuple[int | None, ...]:
        """Checks the shape of the features `[B, D]` (masks `[B, H, W, D]`), for layers that use them."""
        if shape is None or len(shape) != 1 + self.label_kind.axes or shape[-1] is None:
            written = ", ".join(("batch", *self.label_kind.places, "features"))
            raise ValueError(
                f"{type(self).__name__}: the features must have shape [{written}], got {shape}. Call "
                "layer(probabilities, annotators=ids, features=h); CrowdModel(base, layer) does so itself"
            )
        return shape

    def _check_built(self) -> None:
        if not self.built:
            raise ValueError(f"{type(self).__name__}: no weights yet; call the layer, or fit its model, first")

    def _distinct_weights(self, annotators: Tensor) -> Any:
        """One over the number of times that each annotator occurs in the batch, 0 for padding; float `[B, M]`.

        Weighted sums then count each distinct annotator once. Computed by sorting, in time that grows with the
        annotations.
        """
        codes = ops.reshape(ops.cast(annotators, "int32"), (-1,))
        order = ops.sort(codes)
        times = ops.searchsorted(order, codes, side="right") - ops.searchsorted(order, codes, side="left")
        weights = self._cast(codes >= 0) / self._cast(ops.maximum(times, 1))
        return ops.reshape(weights, ops.shape(annotators))

    def _distinct_sum(self, values: Any, annotators: Tensor) -> Any:
        """Sum over a batch's distinct annotators; `values` `[B, M]` hold one number per annotator, -1 is padding."""
        return ops.sum(values * self._distinct_weights(annotators))
