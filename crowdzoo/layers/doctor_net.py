"""Doctor Net: one softmax head per annotator, and the mean of all heads as the truth."""

from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import FLAG, checked
from crowdzoo.layers.crowd_layer import CrowdLayer, LayerTraits
from crowdzoo.layers.ranges import BATCH, CLASSES, PHASE

# Far below every logit and every logarithm of a weight, and finite, so that no gradient becomes NaN.
LOWEST = -1e30


@keras.saving.register_keras_serializable(package="crowdzoo")
class VoteShareCrossentropy(keras.losses.Loss):
    """Cross-entropy between the shares of a task's votes and the weighted mean of the voters' heads.

    With `w_r` the weights and S_i the annotators who labelled task i,
    `-sum_k q_i(k) log(sum_(r in S_i) w_r p_ir(k) / sum_(r in S_i) w_r)`, `q_i(k)` the share of votes for k.

    Call arguments:
        y_true: labels int `[B, M]` (sequences `[B, T, M]`), negative where missing.
        y_pred: `log w_r + log p_ir(k)`, `[B, M, K]` (`[B, T, M, K]`), as `DoctorNet` with weights returns them. A
            common factor of all weights changes nothing.

    Returns:
        One number per task (for sequences the sum over its tokens), `[B]`, 0 for tasks without labels; the loss is
        their mean.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """See the class."""
        labels = ops.cast(y_true, "int32")
        labelled = ops.expand_dims(labels >= 0, axis=-1)
        logs = ops.where(labelled, y_pred, LOWEST)
        # over K, heads sum to one
        mean = ops.logsumexp(logs, axis=-2) - ops.logsumexp(logs, axis=(-2, -1))[..., None]
        votes = ops.sum(ops.one_hot(labels, y_pred.shape[-1], dtype=y_pred.dtype), axis=-2)  # -1 is a row of zeros
        shares = votes / ops.maximum(ops.sum(votes, axis=-1, keepdims=True), 1)
        costs = -ops.sum(shares * mean, axis=-1)
        return costs if len(costs.shape) == 1 else ops.sum(costs, axis=-1)


@keras.saving.register_keras_serializable(package="crowdzoo")
class DoctorNet(CrowdLayer):
    """A softmax head for every annotator on a shared hidden layer; the truth is the heads' mean.

    With h the last hidden layer's output, `P(r says l | x) = softmax(h W_r + b_r)[l]`, trained on r's own labels. The
    truth is estimated as `sum_r w_r softmax(h W_r + b_r)` over all annotators who labelled anything in training (the
    head of an annotator without labels is still at its random start): Doctor Net (DN) with equal weights, weighted
    Doctor Net (WDN) with learnt ones. This averages distributions. With `vote=True` every head casts its most probable
    label as a vote of weight w_r, and the truth is the shares of the votes: a (weighted) majority vote of annotators'
    models. Training is the same.

    The layer sits on a base without a softmax, such as `FeatureClassifier(num_features, None)`, and cannot be removed:
    it makes the prediction. A head depends on the instance and not on the truth, so there are no confusion matrices and
    no posteriors; use `confusions_on` instead.

    `CrowdModel.fit` trains WDN in two phases: first the base and the heads as in DN, then, with those frozen, the
    weights alone (`VoteShareCrossentropy`) with a new optimizer of the same settings. The history lists the losses of
    both phases one after the other; they are not comparable. Dropout stays on in the second phase.

    A training step gathers the heads of the annotations in the batch, `4 B M D K` bytes; a prediction goes through all
    R heads, `heads_at_once` at a time.

    Args:
        num_annotators: R, number of annotators.
        num_classes: K, number of classes.
        weighted: whether the weights are learnt (WDN).
        weight_epochs: epochs of the second phase; None is as many as `fit` gets for the first.
        heads_at_once: number of heads that a prediction evaluates at a time.
        kind: "classification" or "sequence", where every token has its own answers.
        vote: whether heads vote in the estimate of the truth; False averages their distributions. Training is the same.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: the last hidden layer's output `[B, D]` (sequences `[B, T, D]`).
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators. Outputs at padding are
            meaningless.

    Returns:
        Logits `[B, M, K]` (`[B, R, K]`); for sequences `[B, T, M, K]` (`[B, T, R, K]`). With weights they are
        `log w_r + log P(r says l | x)` up to a common constant: their softmax is the head's answer, without the weight.

    Raises:
        ValueError: invalid values, or an input of the wrong shape.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import DoctorNet
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> base = FeatureClassifier(num_features=20, num_classes=None)  # ends in its hidden layer
        >>> model = CrowdModel(base, DoctorNet(num_annotators=5, num_classes=3, weighted=True))
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)

    Source:
        M. Guan, V. Gulshan, A. Dai, G. Hinton: Who Said What: Modeling Individual Labelers Improves Classification.
        AAAI 2018; as a baseline in F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section 5. The
        latter's code differs: it applies the softmax twice, sums over untrained heads too, and learns the weights from
        the mean of all heads for every task; here the mean is only over annotators who labelled the task, so that the
        cost grows with the number of annotations. Its prediction is a mean as well. Guan et al. can also be read as
        voting (`vote=True`); their abstract speaks of "averaging weights".

    Needs:
        Instances, and a base without a softmax; annotators with many labels each.
    """

    traits = LayerTraits(
        kinds=("classification", "sequence"),
        needs_hidden_layer=True,
        returns_logits=True,
        extra_training="fit records which heads get labels, and trains the weights in a second phase",
        why_no_confusions=(
            "heads depend on the instance, not on the truth, so there are no confusion matrices and no posteriors; "
            "confusions_on(model.base.predict(x)) gives the heads' mean answers on given instances"
        ),
    )
    log_weight: Any = None  # [R] where weights are learnt

    @checked(
        num_classes=CLASSES,
        weighted=FLAG,
        weight_epochs=replace(PHASE, optional=True),
        heads_at_once=BATCH,
        vote=FLAG,
    )
    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        weighted: bool = False,
        weight_epochs: int | None = None,
        heads_at_once: int = 64,
        kind: str = "classification",
        vote: bool = False,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, kind, **kwargs)
        self.vote = vote
        self._num_classes = num_classes
        self.weighted = weighted
        self.weight_epochs = weight_epochs
        self.heads_at_once = heads_at_once

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """Creates the heads.

        Args:
            inputs_shape: `[B, D]` (sequences `[B, T, D]`) of the hidden layer; D must be known.
        """
        size, outputs = self._check_hidden(inputs_shape), self._num_classes or 1
        # Glorot's range of one head; Keras' own would count the annotators' axis as inputs
        limit = np.sqrt(6 / (size + outputs))
        start = keras.initializers.RandomUniform(-limit, limit)
        self.kernel = self._weight("kernel", (self.num_annotators, size, outputs), start)
        self.bias = self._weight("bias", (self.num_annotators, outputs))
        if self.weighted:
            self.log_weight = self._weight("log_weight", (self.num_annotators,))
            self.log_weight.trainable = False  # until the second phase
        self.seen = self._weight("seen", (self.num_annotators,), trainable=False)
        super().build(inputs_shape)

    def annotator_weights(self) -> np.ndarray:
        """Weight of each annotator's head in the estimate of the truth.

        Returns:
            float64 `[R]`, sums to one; 0 for annotators without labels in training. Before training all are equal.

        Raises:
            ValueError: the layer has no weights yet.
        """
        self._check_built()
        weights = ops.convert_to_numpy(self._weights()).astype("float64")
        return weights / weights.sum()

    # === Answers ===

    def call(self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False) -> Tensor:
        """Logits of the labels; see the class."""
        self.check_training(training)
        self._check_hidden(inputs.shape)
        hidden = self._cast(inputs)
        if annotators is None:
            logits = self._logits(hidden, 0, self.num_annotators)
        else:
            kernel, bias = self.rows_of(self.kernel, annotators), self.rows_of(self.bias, annotators)
            if self.label_kind.has_positions:
                logits = ops.einsum("btd,bmdk->btmk", hidden, kernel) + bias[:, None]
            else:
                logits = ops.matmul(hidden[:, None, None, :], kernel)[:, :, 0] + bias
        if not self.weighted:
            return logits
        log_weight = self.rows_of(self.log_weight, annotators)
        if annotators is not None:
            log_weight = self._over_places(log_weight)
        return ops.log_softmax(logits, axis=-1) + log_weight[..., None]

    def truth(self, bottleneck: Tensor) -> Tensor:
        """Weighted mean of all heads' label distributions, or of their votes.

        Args:
            bottleneck: the last hidden layer's output `[B, D]` (sequences `[B, T, D]`).

        Returns:
            Class probabilities `[B, K]` (`[B, T, K]`), rows sum to one.
        """
        hidden = self._cast(bottleneck)
        weights = self._weights()
        parts = [
            ops.einsum(
                f"{self._axes}rk,r->{self._axes}k",
                self._opinions(self._logits(hidden, start, stop)),
                weights[start:stop],
            )
            for start, stop in self._chunks()
        ]
        return sum(parts[1:], parts[0])

    def _opinions(self, logits: Any) -> Any:
        """What each head contributes to the estimate of the truth: its distribution, or a one-hot vote."""
        if self.vote:
            return ops.one_hot(ops.argmax(logits, axis=-1), logits.shape[-1], dtype=logits.dtype)
        return ops.softmax(logits, axis=-1)

    def confusions_on(self, hidden: np.ndarray) -> np.ndarray:
        """Mean answers of the heads for each class that the layer estimates.

        `sum_i truth_i(k) P(r says l | x_i) / sum_i truth_i(k)`: a description of given instances, not a parameter.
        Heads of annotators without training labels are meaningless.

        Args:
            hidden: the base's output for N instances, `[N, D]`, such as `model.base.predict(x)`; for sequences for N
                tokens.

        Returns:
            float64 `[R, K, K]`, `confusions[r, k, l]`; rows sum to one.
        """
        self._check_built()
        classes = self._num_classes or 1
        hidden = ops.convert_to_tensor(hidden, dtype=self._computing_dtype())
        hidden = hidden[None] if self.label_kind.has_positions else hidden
        truth = ops.convert_to_numpy(self.truth(hidden)).astype("float64").reshape(-1, classes)
        confusions = np.empty((self.num_annotators, classes, classes))
        for start, stop in self._chunks():
            probabilities = ops.convert_to_numpy(ops.softmax(self._logits(hidden, start, stop), axis=-1))
            probabilities = probabilities.reshape(len(truth), -1, classes)
            confusions[start:stop] = np.einsum("ik,irl->rkl", truth, probabilities)
        return confusions / confusions.sum(axis=-1, keepdims=True)

    # === For the recipe ===

    def count_labels(self, counts: np.ndarray) -> None:
        """Records whose heads are trained; `counts` are the annotators' numbers of labels, int `[R]`."""
        self.seen.assign(np.maximum(ops.convert_to_numpy(self.seen), (counts > 0).astype("float32")))

    # === Keras and helpers ===

    def _logits(self, hidden: np.ndarray, start: int, stop: int) -> Any:
        """Logits of the annotators start to stop - 1, `[B, stop - start, K]` (`[B, T, stop - start, K]`)."""
        kernel, bias = (ops.cast(weight[start:stop], hidden.dtype) for weight in (self.kernel, self.bias))
        return ops.einsum(f"{self._axes}d,rdk->{self._axes}rk", hidden, kernel) + bias

    def _chunks(self) -> list[tuple[int, int]]:
        """Ranges of annotators whose heads are evaluated at a time."""
        starts = range(0, self.num_annotators, self.heads_at_once)
        return [(start, min(start + self.heads_at_once, self.num_annotators)) for start in starts]

    def _weights(self) -> Any:
        """Weights of all heads, `[R]`; equal before training."""
        seen = self._cast(self.seen)
        logs = ops.zeros_like(seen) if self.log_weight is None else self._cast(self.log_weight)
        return ops.softmax(ops.where(seen > 0, logs, LOWEST))

    def _check_hidden(self, shape: tuple[int | None, ...]) -> int:
        """Checks the input's shape and returns the units of the hidden layer."""
        name = type(self).__name__
        written = f"[{', '.join(('batch', *self.label_kind.places, 'units'))}]"
        if len(shape) != 1 + self.label_kind.axes or shape[-1] is None:
            raise ValueError(f"{name}: the input must have shape {written}, units known, got {tuple(shape)}")
        if self.built and shape[-1] != self.kernel.shape[1]:
            raise ValueError(f"{name}: built for {self.kernel.shape[1]} units, got {tuple(shape)}")
        return shape[-1]
