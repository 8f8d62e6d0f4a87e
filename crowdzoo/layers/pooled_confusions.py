"""Annotators as deviations from a common annotator: for many classes, and for annotators with few labels."""

from dataclasses import replace
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import FLAG, Choice, checked
from crowdzoo.layers.crowd_layer import SMALLEST, CrowdLayer, LayerTraits
from crowdzoo.layers.ranges import DIAGONAL, STRENGTH, UNITS

FORMS = ("full", "diagonal", "low-rank")
OTHER_DIAGONAL = 0.8  # P(right label) that the diagonal and the low-rank form start with


@keras.saving.register_keras_serializable(package="crowdzoo")
class PooledConfusions(CrowdLayer):
    """Confusion matrices as deviations from a common annotator, in three forms of different size.

    `P(r says l | x) = sum_k p(k) pi[r, k, l]` as in `ConfusionMatrices`, but every annotator is a common annotator
    plus a deviation of their own, and the matrices come in three forms:

        | form     | pi[r, k, l]                                      | shared numbers     | per annotator   |
        |----------|--------------------------------------------------|--------------------|-----------------|
        | full     | softmax over l of C[k, l] + D_r[k, l]            | K K                | K K             |
        | diagonal | a_r(k) if k = l, (1 - a_r(k)) / (K - 1) if not   | K                  | K, or 1         |
        | low-rank | a_r(k) [k = l] + (1 - a_r(k)) sum_j U_r[k, j] V[j, l] | K + 2 J K     | K + J, or 1 + J |

    with `a_r(k) = sigmoid(c(k) + d_r(k))`, `U_r[k, :] = softmax(U[k, :] + u_r)` and rows of `V` that sum to one: errors
    fall into J common kinds (`rank`), and annotators differ in how often they make each. The diagonal and low-rank
    forms never build a K by K matrix in training: a label costs O(K) or O(K J), so that a thousand classes can be
    trained.

    For annotators with few labels, `ridge` pulls the deviations `delta_r` (all of r's numbers) to zero. The objective
    is `sum over labels of -log P(label) + ridge / 2 sum_r |delta_r|^2`, with each annotator counted once and not once
    per label: one label moves an annotator only a little from the common one, five hundred determine the annotator. (It
    is the posterior mode under `delta_r ~ N(0, 1 / ridge)`.) In a batch every label adds its annotator's share,
    `ridge / (2 n_r) |delta_r|^2` with n_r the number of r's labels, which `fit` counts.

    Args:
        num_annotators: R, number of annotators.
        form: `"full"`, `"diagonal"` or `"low-rank"`.
        ridge: strength of the penalty, 0 or more, roughly in labels.
        rank: J, kinds of errors of the low-rank form.
        per_class: whether a_r depends on the class k; False has one number per annotator (one coin).
        diagonal: P(right label) that all annotators start with, above 0 and below 1. None is 1/2 for the full form (at
            least e / (e + K - 1)), and .8 for the others.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators. Outputs at padding are
            meaningless.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`).

    Raises:
        ValueError: unknown form, invalid values, or an input of the wrong rank.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import PooledConfusions
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> layer = PooledConfusions(num_annotators=5, form="low-rank", rank=2)
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), layer)
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)
        >>> layer.annotator_accuracies().round(2)[0].tolist()  # of each class, before training
        [0.8, 0.8, 0.8]

    Source:
        One coin and one accuracy per class, errors spread evenly: H. Li, B. Yu: Error Rate Bounds and Iterative
        Weighted Majority Voting for Crowdsourcing, 2014 (homogeneous and class-conditional Dawid-Skene). A common
        annotator in addition to each one: Z. Chu, J. Ma, H. Wang: Learning from Crowds by Modeling Common Confusions,
        AAAI 2021. The Gaussian prior on the deviations and the low-rank errors are this project's.

    Needs:
        Instances; one or two labels per annotator are enough.
    """

    traits = LayerTraits(starts_from_votes=True, unseen_are_average=True)

    @checked(form=Choice(FORMS), ridge=STRENGTH, rank=UNITS, per_class=FLAG, diagonal=replace(DIAGONAL, optional=True))
    def __init__(
        self,
        num_annotators: int,
        form: str = "full",
        ridge: float = 1.0,
        rank: int = 8,
        per_class: bool = True,
        diagonal: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, **kwargs)
        self.form = form
        self.ridge = ridge
        self.rank = rank
        self.per_class = per_class
        self.diagonal = diagonal
        self.kernel = self.right = self.mix = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """Creates the weights: shared ones, the annotators' deviations (all zero at first), their numbers of labels.

        Args:
            inputs_shape: shape of the bottleneck; its last axis (K) must be known.
        """
        classes = self._num_classes = self._check_shape(inputs_shape)
        everybody = self.num_annotators
        if self.form == "full":
            start: Any = partial(self._identities, diagonal=self.diagonal)
            self.common_kernel = self._weight("common_kernel", (classes, classes), start)
            self.kernel = self._weight("kernel", (everybody, classes, classes))
        else:
            start = keras.initializers.Constant(self._advantage(self.diagonal or OTHER_DIAGONAL, 2))
            self.common_right = self._weight("common_right", (classes,), start)
            self.right = self._weight("right", (everybody, classes if self.per_class else 1))
        if self.form == "low-rank":
            # random, because kinds of errors that start alike would stay alike
            chance = keras.initializers.RandomNormal(stddev=0.5)
            self.common_mix = self._weight("common_mix", (classes, self.rank), chance)
            self.mix = self._weight("mix", (everybody, self.rank))
            self.errors = self._weight("errors", (self.rank, classes), chance)
        self.counts = self._weight("counts", (everybody,), "ones", trainable=False)
        super().build(inputs_shape)

    # === Answers ===

    def call(self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False) -> Tensor:
        """Log-probabilities of the labels; see the class for shapes."""
        self._check_call(inputs, training)
        p = self._cast(inputs)
        codes = self._everybody(inputs) if annotators is None else annotators
        deviations = self._deviations(codes)
        if self.ridge:
            self.add_loss(self._penalty(deviations, annotators))
        if self.form == "full":
            probabilities = ops.einsum(
                "bk,bmkl->bml", p, ops.softmax(self._cast(self.common_kernel) + deviations["kernel"], axis=-1)
            )
            return ops.log(ops.maximum(probabilities, SMALLEST))
        logit = self._cast(self.common_right) + deviations["right"]
        p = ops.expand_dims(p, axis=1)  # [B, 1, K]
        right, wrong = p * ops.sigmoid(logit), p * ops.sigmoid(-logit)  # [B, M, K]
        if self.form == "diagonal":
            # an error is one of the other classes: subtract the class itself from all errors
            errors = ops.maximum(ops.sum(wrong, axis=-1, keepdims=True) - wrong, 0.0) / self._num_wrong
        else:
            kinds = ops.einsum("bmk,bmkj->bmj", wrong, ops.softmax(self._mix_logits(deviations), axis=-1))
            errors = ops.matmul(kinds, ops.softmax(self._cast(self.errors), axis=-1))
        return ops.log(ops.maximum(right + errors, SMALLEST))

    def log_confusions(self, annotators: Tensor, features: Tensor | None = None) -> Tensor:
        """See `CrowdLayer.log_confusions`; builds `[B, M, K, K]`, so not for a thousand classes."""
        self._check_built()
        deviations = self._deviations(annotators)
        if self.form == "full":
            return ops.log_softmax(self._cast(self.common_kernel) + deviations["kernel"], axis=-1)
        classes = ops.arange(self._num_classes, dtype="int32")
        return ops.swapaxes(self._log_likelihoods(deviations, ops.broadcast_to(classes, (1, 1, len(classes)))), -1, -2)

    def log_joint(self, inputs: Tensor, annotators: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """See `CrowdLayer.log_joint`; without K by K matrices unless the form is full."""
        if self.form == "full":
            return super().log_joint(inputs, annotators, labels)
        self._check_built()
        labels = ops.cast(labels, "int32")
        codes = ops.maximum(labels, 0)[..., None]
        log_likelihoods = self._log_likelihoods(self._deviations(annotators), codes)[..., 0, :]
        observed = ops.cast(labels >= 0, log_likelihoods.dtype)[..., None]
        return self._log_prior(inputs) + ops.sum(observed * log_likelihoods, axis=1)

    def _log_likelihoods(self, deviations: dict[str, Any], labels: Tensor) -> Any:
        """Log-likelihood of labels int `[B, M, L]` (or `[1, 1, L]`) per truth, `[B, M, L, K]`; not in the full form."""
        logit = (self._cast(self.common_right) + deviations["right"])[..., None, :]  # [B, M, 1, K or 1]
        right, wrong = ops.log_sigmoid(logit), ops.log_sigmoid(-logit)
        matches = labels[..., None] == ops.arange(self._num_classes, dtype="int32")
        if self.form == "diagonal":
            return ops.where(matches, right, wrong - np.log(self._num_wrong))
        errors = ops.transpose(ops.log_softmax(self._cast(self.errors), axis=-1))  # [K, J]
        kinds = ops.take(errors, labels, axis=0)[..., None, :]  # [B, M, L, 1, J]
        mix = ops.log_softmax(self._mix_logits(deviations), axis=-1)[..., None, :, :]  # [B, M, 1, K, J]
        wrong = wrong + ops.logsumexp(kinds + mix, axis=-1)
        return ops.where(matches, ops.logaddexp(right, wrong), wrong)

    def _deviations(self, annotators: Tensor) -> dict[str, Any]:
        """The annotators' own numbers by weight, `[B, M, ...]`."""
        weights = {"kernel": self.kernel, "right": self.right, "mix": self.mix}
        return {name: self.rows_of(weight, annotators) for name, weight in weights.items() if weight is not None}

    def _mix_logits(self, deviations: dict[str, Any]) -> Any:
        """Logits of each kind of error, `[B, M, K, J]`."""
        return self._cast(self.common_mix) + deviations["mix"][..., None, :]

    @property
    def _num_wrong(self) -> int:
        """Number of classes that are wrong for a truth."""
        return max((self._num_classes or 1) - 1, 1)

    # === Annotators with few labels ===

    def _penalty(self, deviations: dict[str, Any], annotators: Tensor) -> Any:
        """The batch's share of the ridge, divided by the batch's labels as the loss is."""
        squares: Any = sum(
            ops.sum(ops.square(values), axis=tuple(range(2, len(values.shape)))) for values in deviations.values()
        )  # [B, M]
        if annotators is None:  # not known who labelled: all annotators and all their labels
            return self.ridge / 2 * ops.sum(ops.mean(squares, axis=0)) / ops.sum(self._cast(self.counts))
        mask = ops.cast(annotators >= 0, squares.dtype)
        labels = ops.maximum(self.rows_of(self.counts, annotators), 1)  # n_r
        return self.ridge / 2 * ops.sum(mask * squares / labels) / ops.maximum(ops.sum(mask), 1)

    def set_counts(self, counts: np.ndarray) -> None:
        """Sets the number of labels of each annotator; `CrowdModel.fit` does so itself when it gets annotations.

        Args:
            counts: labels per annotator, `[R]`.

        Raises:
            ValueError: the wrong shape, or the layer has no weights yet.
        """
        self._check_built()
        if np.shape(counts) != (self.num_annotators,):
            raise ValueError(f"PooledConfusions: counts have shape [{self.num_annotators}], got {np.shape(counts)}")
        self.counts.assign(np.asarray(counts, "float32"))

    def annotator_accuracies(self) -> np.ndarray:
        """The parameters `a_r(k)`, float64 `[R, K]`; in the low-rank form an error may also be right by chance.

        Raises:
            ValueError: the form is full, or the layer has no weights yet.
        """
        self._check_built()
        if self.form == "full":
            raise ValueError("PooledConfusions: the full form has confusion matrices; use annotator_confusions()")
        logits = ops.convert_to_numpy(self.common_right).astype("float64") + ops.convert_to_numpy(self.right)
        return 1 / (1 + np.exp(-logits))
