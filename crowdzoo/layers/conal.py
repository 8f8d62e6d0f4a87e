"""CoNAL: confusions that all annotators share, and each annotator's own."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops
from scipy.special import softmax

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import FLAG, Choice, checked
from crowdzoo.layers.crowd_layer import SMALLEST, CrowdLayer, LayerTraits
from crowdzoo.layers.ranges import SCALE, STRENGTH, UNITS, feature_table

MIXINGS = ("logits", "probabilities")
# weight of a batch in the running mean of the instances, which covers about the last 20 batches
RATE = 0.1


@keras.saving.register_keras_serializable(package="crowdzoo")
class CoNAL(CrowdLayer):
    """A shared confusion matrix and one per annotator, mixed for each annotation.

    Annotators make the same errors on confusing tasks, and errors of their own elsewhere. With `p` the bottleneck, `x`
    the features of the instance and `W_g`, `W_r` the common and the annotator's own kernel, `[true, said]`:

        u_r = embedding of annotator r, v_i = embedding of instance i, both of length one
        omega_ir = sigmoid(u_r . v_i)                   how far r follows the common confusion at i

        | mixing        | the annotator's label distribution                                    |
        |---------------|-----------------------------------------------------------------------|
        | logits        | softmax(omega p W_g + (1 - omega) p W_r)                              |
        | probabilities | omega softmax(p W_g) + (1 - omega) softmax(p W_r)                     |

    The authors' code mixes logits, the paper's text probabilities. The loss is the cross-entropy of the labels less
    `separation * sum_r ||W_g - W_r||_F`, which keeps the common kernel from repeating the annotators' own; the sum is
    over the distinct annotators of a batch. The term has no upper bound: a large `separation` drives the kernels apart
    indefinitely.

    As both embeddings have length one, omega is between .27 and .73, so neither part is ever switched off.

    Args:
        num_annotators: R, number of annotators.
        embedding_size: length of the embeddings.
        separation: weight of the distances between common and own kernels, per batch; 0 leaves them out.
        mixing: `"logits"` or `"probabilities"`.
        scale: factor of the identity that initializes all kernels. The authors' code uses 2, which for few classes is
            far from annotators who are often wrong: accuracy fell from 92 to 77 (docs/papers/conal.md). With 1 the base
            may lose classes. None is log(13/7 (K - 1)), at least 1, with which P(right label) starts at .65.
        normalize_instances: whether the instances' embeddings have length one; if not, omega can reach 0 and 1 (as in
            the authors' code for music).
        instance_hidden: units of an additional linear map, without a nonlinearity, before the instances' embedding, or
            None. The authors' code has 128, which allows the same functions but trains differently.
        annotator_features: one row of numbers of about unit size per annotator; the embeddings are a linear map of
            them. None learns an embedding for each annotator.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators. Outputs at padding are
            meaningless.
        features: features of the instances, `[B, D]`, of about unit size; `CrowdModel(..., features=...)` passes them.
        training: True updates the running mean of the instances' embeddings.

    Returns:
        `[B, M, K]` (`[B, R, K]`): logits, or log-probabilities if probabilities are mixed.

    Raises:
        ValueError: invalid values, an input of the wrong rank, or no features.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import CoNAL
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> base = FeatureClassifier(num_features=20, num_classes=3)
        >>> model = CrowdModel(base, CoNAL(num_annotators=5), features="standardize")  # features of about unit size
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)
        >>> model.crowd.common_confusion().shape
        (3, 3)

    Source:
        Z. Chu, J. Ma, H. Wang: Learning from Crowds by Modeling Common Confusions. AAAI 2021, section 4.

    Needs:
        Instances with features of unit size that predict where annotators make the same errors.
    """

    traits = LayerTraits(uses_features=True, returns_logits=True, starts_from_votes=True, initial_accuracy=0.65)

    @checked(
        embedding_size=UNITS,
        separation=STRENGTH,
        mixing=Choice(MIXINGS),
        scale=replace(SCALE, optional=True),
        normalize_instances=FLAG,
        instance_hidden=replace(UNITS, optional=True),
    )
    def __init__(
        self,
        num_annotators: int,
        embedding_size: int = 20,
        separation: float = 1e-5,
        mixing: str = "logits",
        scale: float | None = None,
        normalize_instances: bool = True,
        instance_hidden: int | None = None,
        annotator_features: Sequence[Sequence[float]] | None = None,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, **kwargs)
        self.embedding_size = embedding_size
        self.separation = separation
        self.mixing = mixing
        self.scale = scale
        self.normalize_instances = normalize_instances
        self.instance_hidden = instance_hidden
        self.annotator_features = feature_table("CoNAL", annotator_features, (self.num_annotators, None))

    # === Weights ===

    def build(self, inputs_shape: tuple[int | None, ...], features_shape: tuple[int | None, ...] | None = None) -> None:
        """Creates kernels and embeddings.

        Args:
            inputs_shape: shape of the bottleneck; its last axis (K) must be known.
            features_shape: shape of the features; its last axis (D) must be known.
        """
        classes = self._num_classes = self._check_shape(inputs_shape)
        features_shape = self._check_features(features_shape)
        size = self.embedding_size
        # === Confusions ===
        start: Any = partial(self._identities, scale=self.scale)
        self.common = self._weight("common", (classes, classes), start)
        self.kernel = self._weight("kernel", (self.num_annotators, classes, classes), start)
        # === Embeddings of the annotators ===
        if self.annotator_features is None:
            # vectors of about length one, whatever the number of annotators
            start = keras.initializers.RandomNormal(stddev=size**-0.5)
            self.annotators = self._weight("annotators", (self.num_annotators, size), start)
        else:
            table = np.asarray(self.annotator_features)
            self.annotators = self._weight("annotators", table.shape, "zeros", trainable=False)
            self.annotators.assign(table)
            self.annotator_map = self._linear(size, table.shape[1], "annotator_map")
        # === Embeddings of the instances ===
        self.hidden_map, width = None, features_shape[-1]
        if self.instance_hidden is not None:
            self.hidden_map, width = self._linear(self.instance_hidden, width, "hidden_map"), self.instance_hidden
        self.instance_map = self._linear(size, width, "instance_map")
        self.mean_instance = self._weight("mean_instance", (size,), "zeros", trainable=False)
        super().build(inputs_shape)

    # === Embeddings ===

    def _annotator_embeddings(self, annotators: Tensor) -> Any:
        """Unit-length embeddings u of the given annotators, `[B, M, e]`; for None of all annotators, `[1, R, e]`."""
        rows = self.rows_of(self.annotators, annotators)
        rows = rows[None] if annotators is None else rows
        return _normalize(rows if self.annotator_features is None else self.annotator_map(rows))

    def _instance_embeddings(self, features: Tensor) -> Any:
        """Embeddings v of the instances, `[B, e]`."""
        hidden = self._cast(features)
        if self.hidden_map is not None:
            hidden = self.hidden_map(hidden)
        embeddings = self.instance_map(hidden)
        return _normalize(embeddings) if self.normalize_instances else embeddings

    def _log_odds(self, annotators: Tensor, instances: Any) -> Any:
        """`u_r . v_i`, the log-odds of omega, `[B, M]`; instances are embeddings `[B, e]` or `[1, e]`."""
        return ops.sum(self._annotator_embeddings(annotators) * instances[:, None], axis=-1)

    # === Answers ===

    def call(
        self, inputs: Tensor, annotators: Tensor | None = None, features: Tensor | None = None, training: bool = False
    ) -> Tensor:
        """Returns the answers of all annotators, or of the given ones; see the class for shapes."""
        self._check_call(inputs, training)
        self._check_features(getattr(features, "shape", None))
        p, common, kernel = self._cast(inputs), self._cast(self.common), self.rows_of(self.kernel, annotators)
        own_logits = ops.einsum("bk,rkl->brl" if annotators is None else "bk,bmkl->bml", p, kernel)
        if self.separation:
            distances = _norms(common - kernel)
            total = ops.sum(distances) if annotators is None else self._distinct_sum(distances, annotators)
            self.add_loss(-self.separation * total)
        instances = self._instance_embeddings(features)
        if training:
            mean = ops.cast(ops.mean(ops.stop_gradient(instances), axis=0), self.mean_instance.dtype)
            self.mean_instance.assign(self.mean_instance + RATE * (mean - self.mean_instance))
        return self._mix(ops.matmul(p, common)[:, None], own_logits, self._log_odds(annotators, instances)[..., None])

    def _mix(self, common_logits: Any, own_logits: Any, log_odds: Any) -> Any:
        """Mixes common and own logits `[..., K]`; returns log-probabilities if probabilities are mixed."""
        if self.mixing == "logits":
            omega = ops.sigmoid(log_odds)
            return omega * common_logits + (1 - omega) * own_logits
        return ops.logaddexp(
            ops.log_sigmoid(log_odds) + ops.log_softmax(common_logits, axis=-1),
            ops.log_sigmoid(-log_odds) + ops.log_softmax(own_logits, axis=-1),
        )

    def log_confusions(self, annotators: Tensor, features: Tensor | None = None) -> Tensor:
        """See `CrowdLayer.log_confusions`; omega depends on the instance.

        Without features, omega is taken at the mean of the training instances' embeddings.
        """
        self._check_built()
        instances = self._cast(self.mean_instance)[None] if features is None else self._instance_embeddings(features)
        log_odds = self._log_odds(annotators, instances)[..., None, None]
        return ops.log_softmax(
            self._mix(self._cast(self.common), self.rows_of(self.kernel, annotators), log_odds), axis=-1
        )

    # === Results ===

    def annotator_confusions(self) -> np.ndarray:
        """Confusion matrix of each annotator at the mean training instance.

        Confusion matrices depend on the instance here. These take omega at the running mean of the instances'
        embeddings over about the last 20 training batches, which is saved with the model; before training omega is .5.

        Returns:
            float64 `[R, K, K]`, `confusions[r, k, l]` = P(r says l | truth k); rows sum to one.

        Raises:
            ValueError: the layer has no weights yet.
        """
        return super().annotator_confusions()

    def common_confusion(self) -> np.ndarray:
        """The confusion matrix that annotators share: the label distribution for each true class with omega = 1.

        Returns:
            float64 `[K, K]`, `[true, said]`; rows sum to one.

        Raises:
            ValueError: the layer has no weights yet.
        """
        self._check_built()
        return softmax(ops.convert_to_numpy(self.common).astype("float64"), axis=-1)

    def common_shares(self) -> np.ndarray:
        """Weight of the common confusion for each annotator: omega at the mean training instance.

        Returns:
            float64 `[R]`, above 0 and below 1.

        Raises:
            ValueError: the layer has no weights yet.
        """
        self._check_built()
        log_odds = self._log_odds(None, self._cast(self.mean_instance)[None])
        return ops.convert_to_numpy(ops.sigmoid(log_odds))[0].astype("float64")


def _normalize(vectors: Any) -> Any:
    """Divides vectors `[..., e]` by their lengths; zero vectors are unchanged."""
    return vectors / ops.sqrt(ops.maximum(ops.sum(ops.square(vectors), axis=-1, keepdims=True), SMALLEST))


def _norms(matrices: Any) -> Any:
    """Frobenius norms of `[..., K, K]`, with gradient 0 where the norm is 0."""
    squares = ops.sum(ops.square(matrices), axis=(-2, -1))
    differs = squares > 0
    # the gradient of sqrt at 0 is infinite, and infinity times 0 is NaN: keep zeros out of sqrt
    return ops.where(differs, ops.sqrt(ops.where(differs, squares, ops.ones_like(squares))), ops.zeros_like(squares))
