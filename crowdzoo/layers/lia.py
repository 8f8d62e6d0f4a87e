"""LIA: an annotator's errors depend on their competence and on the task's difficulty, both learnt."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import FLAG, Choice, checked
from crowdzoo.errors import bad_setting
from crowdzoo.layers.crowd_layer import SMALLEST, CrowdLayer, LayerTraits
from crowdzoo.layers.ranges import EPOCHS, HIDDEN, PHASE, STRENGTH, UNITS, feature_table
from crowdzoo.losses import MaskedCrowdEvidence

FORMS = ("additive", "product")
NUM_TYPICAL = 64  # tasks of each class that represent all of them in `annotator_confusions`


@keras.saving.register_keras_serializable(package="crowdzoo")
class LIA(CrowdLayer):
    """A confusion matrix for every annotator on every task, from the task's difficulty and the annotator's competence.

    The difficulty `D_i = d(features of task i)` and the competence `C_r = c(embedding of annotator r)` are tensors
    `[K, K, L]`, `[true, said, latent]`. For a task i whose truth is k, annotator r's label distribution is:

        | form     | log Q_ir[k, l], normalised over l            |
        |----------|----------------------------------------------|
        | additive | log softmax_l (log sum_m exp(D_i + C_r)[m])   |
        | product  | log softmax_l (sum_m (D_i * C_r)[m])          |

    The additive form is the paper's equation 1 for any L: equations 4, 7 and 9 divide the sum over m of D C by its sum
    over l, and here D and C are exponentials, which keeps them positive: `sum_m e^d e^c`. The product form, a softmax
    of the sums of products, is this project's variant, a different model; on Blue Birds it is worse than the votes from
    five annotations per task on (benchmarks/reproduce/lia.py).

    `CrowdModel.fit(epochs=E)` trains in two phases:

    1. E epochs of EM. The posteriors `q_i` start as shares of the votes; otherwise classes may be swapped. For
       `epochs_per_round` epochs base and layer ascend on `sum_i sum_k q_i(k) (log p_i(k) + sum_r log Q_ir[k, y_ir])`
       (M), then `q_i(k) ~ p_i(k) prod_r Q_ir[k, y_ir]` (E), and so on.
    2. `marginal_epochs` further epochs on the model's compiled loss; by default `-log sum_k p_i(k) Q_ir[k, y_ir]`,
       averaged over the labels.

    The history holds both phases, one after the other: `loss` changes its meaning between them, and only EM has
    `log_likelihood` (of the last E-step, in nats). Metrics and `validation_data` are used in the second phase only. A
    callback that stops EM stops the training.

    The features are the instances, or the output of the layer that `CrowdModel(features=...)` names. They should be of
    about unit size: with a `FeatureClassifier` that standardises, name its layer "standardize". With task numbers as
    instances and an `Embedding` as the base's first layer, whose name is given as `features`, a task has a learnt
    embedding in place of features (the paper's LIA-E); such a model cannot predict new tasks.

    Args:
        num_annotators: R, number of annotators.
        hidden: units of each hidden layer of d.
        annotator_embedding: length of an annotator's embedding, on which c is linear.
        latent: L.
        form: `"additive"` (the paper's) or `"product"`.
        activation: of the hidden layers.
        annotator_features: features of the annotators, numbers `[R, F]` of about unit size, saved in the configuration.
            A network (`hidden`, `annotator_embedding`) then computes the embeddings from them, and `confusions_of`
            predicts confusion matrices of annotators who never labelled.
        epochs_per_round: epochs of an M-step.
        marginal_epochs: epochs of the second phase.
        ridge: gamma >= 0 of the penalty `alpha / 2 sum_r |C_r|^2 + beta / 2 sum_i |D_i|^2` on the log-likelihood
            (nats), `alpha = gamma (K L)^2` and `beta = alpha * (labels per annotator) / (labels per task)`. Zero is the
            paper's; where annotators have few labels, .01 to 1 keeps networks from memorising them.
        confidence: whether the column `confidence` of the annotations is used as the probability of the label; the rest
            is spread evenly over the other classes. EM then starts from the mean answers (the paper's equation 8). In
            the EM steps, which the paper leaves open, and in the second phase an answer s has the likelihood
            `sum_l s(l) Q_ir[k, l]` in place of `Q_ir[k, y_ir]`. Only with annotations in memory; evaluation ignores
            confidences.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators. Outputs at padding are
            meaningless.
        features: `[B, D]`.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`).

    Raises:
        ValueError: invalid values, or an input of the wrong rank.
        DataError: (in `fit`) with `confidence=True`, an annotation has no confidence, or one outside 0 to 1.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import LIA
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> base = FeatureClassifier(num_features=20, num_classes=3)
        >>> model = CrowdModel(base, LIA(num_annotators=5), features="standardize")
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)

    Source:
        E. A. Platanios, M. Al-Shedivat, E. Xing, T. Mitchell: Learning from Imperfect Annotations. arXiv:2004.03473,
        2020, sections 2 and 3. Exponentials, SELU and ridge are in the authors' code only; the code leaves `p_i` out of
        the E-step and counts `log p_i` once per label; here both are as in the paper.

    Needs:
        Instances with features of unit size, and many labels per task.
    """

    traits = LayerTraits(uses_features=True, extra_training="EM estimates the truth between the epochs")

    @checked(
        hidden=HIDDEN,
        annotator_embedding=UNITS,
        latent=UNITS,
        form=Choice(FORMS),
        epochs_per_round=EPOCHS,
        marginal_epochs=replace(PHASE, least=0),
        ridge=STRENGTH,
        confidence=FLAG,
    )
    def __init__(
        self,
        num_annotators: int,
        hidden: Sequence[int] = (16, 16, 16, 16),
        annotator_embedding: int = 16,
        latent: int = 1,
        form: str = "additive",
        activation: str = "selu",
        annotator_features: ArrayLike | None = None,
        epochs_per_round: int = 10,
        marginal_epochs: int = 10,
        ridge: float = 0.0,
        confidence: bool = False,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, **kwargs)
        self.hidden = list(hidden)
        self.annotator_embedding = annotator_embedding
        self.latent = latent
        self.form = form
        self.activation = _activation(activation)
        self.epochs_per_round = epochs_per_round
        self.marginal_epochs = marginal_epochs
        self.ridge = ridge
        self.confidence = confidence
        self.annotator_features = feature_table("LIA", annotator_features, (self.num_annotators, None))
        self._tensor: tuple[int, int, int] = (0, 0, 0)  # K, K, L

    def build(self, inputs_shape: tuple[int | None, ...], features_shape: tuple[int | None, ...] | None = None) -> None:
        """Creates the networks.

        Args:
            inputs_shape: shape of the bottleneck; its last axis (K) must be known.
            features_shape: shape of the features `[B, D]`; D must be known.
        """
        classes = self._num_classes = self._check_shape(inputs_shape)
        features_shape = self._check_features(features_shape)
        self._tensor = (classes, classes, self.latent)
        cells = int(np.prod(self._tensor))
        # the networks: one each for the two tensors, and one table or network of embeddings
        self._difficulty = self._dense((features_shape[-1], *self.hidden, cells), "difficulty")
        self._competence = self._dense((self.annotator_embedding, cells), "competence")
        if self.annotator_features is None:
            self.embedding = self._weight("embedding", (self.num_annotators, self.annotator_embedding), "uniform")
        else:
            known = len(self.annotator_features[0])
            self._embedding = self._dense((known, *self.hidden, self.annotator_embedding), "embedding")
        # set by `fit` from the data
        self.typical_difficulties = self._weight("typical_difficulties", (NUM_TYPICAL, *self._tensor), trainable=False)
        if self.ridge:
            self.competence_penalty = self._weight("competence_penalty", (self.num_annotators,), trainable=False)
            self.difficulty_penalty = self._weight("difficulty_penalty", (), trainable=False)
        super().build(inputs_shape)

    def _dense(self, sizes: Sequence[Any], name: str) -> list[keras.layers.Dense]:
        """Dense layers from the first size to the last, without an activation at the end."""
        activations = [self.activation] * (len(sizes) - 2) + [None]
        return [
            self._linear(units, width, f"{name}_{number}", activation)
            for number, (width, units, activation) in enumerate(zip(sizes, sizes[1:], activations, strict=False))
        ]

    def default_loss(self) -> keras.losses.Loss:
        """See `CrowdLayer.default_loss`."""
        return MaskedCrowdEvidence() if self.confidence else super().default_loss()

    # === Answers ===

    def call(
        self, inputs: Tensor, annotators: Tensor | None = None, features: Tensor | None = None, training: bool = False
    ) -> Tensor:
        """Log-probabilities of the labels; see the class for shapes."""
        self._check_features(getattr(features, "shape", None))
        annotators = self._everybody(inputs) if annotators is None else annotators
        if self.ridge:
            observed = ops.sum(self._cast(ops.cast(annotators, "int32") >= 0))
            self.add_loss(self._penalty(annotators, features) / ops.maximum(observed, 1))
        return super().call(inputs, annotators, features, training)

    def log_confusions(self, annotators: Tensor, features: Tensor | None = None) -> Tensor:
        """See `CrowdLayer.log_confusions`."""
        difficulties = self.difficulties(features)[:, None]
        return self._log_confusions(difficulties, self._competences(self._embeddings(annotators)))

    def log_joint(self, inputs: Tensor, annotators: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """See `CrowdLayer.log_joint`; `labels` may also be answers `[B, M, K]`, rows of zeros where missing."""
        if len(labels.shape) == len(annotators.shape):
            joint = super().log_joint(inputs, annotators, labels, features)
        else:
            logs = self.log_confusions(annotators, features)
            shares = ops.cast(labels, logs.dtype)
            evidence = ops.log(ops.maximum(ops.einsum("bml,bmkl->bmk", shares, ops.exp(logs)), SMALLEST))
            labelled = ops.sum(shares, axis=-1, keepdims=True) > 0
            joint = ops.cast(self._log_prior(inputs), logs.dtype) + ops.sum(ops.where(labelled, evidence, 0.0), axis=1)
        if self.ridge:
            self.add_loss(self._penalty(annotators, features) / ops.cast(ops.shape(joint)[0], joint.dtype))
        return joint

    def difficulties(self, features: Tensor) -> Tensor:
        """Difficulty tensors of tasks.

        Args:
            features: `[B, D]`.

        Returns:
            `[B, K, K, L]`, `[task, true, said, latent]`.

        Raises:
            ValueError: the layer has no weights yet, or there are no features.
        """
        self._check_built()
        if features is None:
            raise ValueError("LIA: features are needed, because an annotator's labels depend on the task")
        cells = _through(self._difficulty, self._cast(features))
        return ops.reshape(cells, (-1, *self._tensor))

    def _embeddings(self, annotators: Tensor) -> Any:
        """`[B, M, E]` of annotators `[B, M]`; at padding another annotator of the task."""
        self._check_built()
        if self.annotator_features is None:
            return self.rows_of(self.embedding, annotators)
        return _through(self._embedding, self.rows_of(np.asarray(self.annotator_features), annotators))

    def _competences(self, embeddings: Any) -> Any:
        """Competence tensors `[..., K, K, L]` of embeddings `[..., E]`."""
        return ops.reshape(_through(self._competence, embeddings), (*ops.shape(embeddings)[:-1], *self._tensor))

    def _log_confusions(self, difficulties: Any, competences: Any) -> Any:
        """Log Q `[..., K, K]` of tensors `[..., K, K, L]`."""
        if self.form == "additive":
            logits = ops.logsumexp(difficulties + competences, axis=-1)
        else:
            logits = ops.sum(difficulties * competences, axis=-1)
        return ops.log_softmax(logits, axis=-1)

    def _penalty(self, annotators: Tensor, features: Tensor) -> Any:
        """The ridge on the tensors of a batch, in nats.

        An annotator's share is spread over the labels that they gave, so that the batches of an epoch add up to one
        penalty for each annotator and each task.
        """
        by_task = ops.sum(ops.square(self.difficulties(features)))
        by_label = ops.sum(ops.square(self._competences(self._embeddings(annotators))), axis=(-3, -2, -1))
        share = self.rows_of(self.competence_penalty, annotators) * self._cast(ops.cast(annotators, "int32") >= 0)
        return 0.5 * (self._cast(self.difficulty_penalty) * by_task + ops.sum(share * by_label))

    # === Annotators ===

    def annotator_confusions(self) -> np.ndarray:
        """Mean confusion matrix of each annotator on typical tasks.

        Row k is the mean of `Q_ir[k, :]` over 64 training tasks, which `fit` draws at its end in proportion to their
        posterior of class k. (The networks are not trained on a task as if it were of another class.) Before `fit`,
        difficulties are zero.

        Returns:
            float64 `[R, K, K]`, `[annotator, true, said]`; rows sum to one.

        Raises:
            ValueError: the layer has no weights yet.
        """
        self._check_built()
        return self._typical_confusions(self._embeddings(np.arange(self.num_annotators, dtype="int32")[:, None])[:, 0])

    def confusions_of(self, annotator_features: np.ndarray) -> np.ndarray:
        """Confusion matrices of annotators without labels, predicted from their features.

        Args:
            annotator_features: numbers `[A, F]`, columns as in the constructor's argument.

        Returns:
            float64 `[A, K, K]`, as in `annotator_confusions`.

        Raises:
            ValueError: no weights yet, a layer made without annotator_features, or features of the wrong shape.
        """
        self._check_built()
        if self.annotator_features is None:
            raise ValueError("LIA: made without annotator_features, so it knows only annotators who labelled")
        table = feature_table("LIA", annotator_features, (None, len(self.annotator_features[0])))
        return self._typical_confusions(_through(self._embedding, np.array(table, self._computing_dtype())))

    def _typical_confusions(self, embeddings: Any) -> np.ndarray:
        """Mean confusion matrices over the typical tasks, of annotators with these embeddings `[A, E]`."""
        confusions = np.empty((len(embeddings), *self._tensor[:2]))
        difficulties = self._cast(self.typical_difficulties)
        step = max(1, 2**22 // int(np.prod(difficulties.shape)))  # annotators at a time: 16 MiB of tensors
        for start in range(0, len(embeddings), step):
            logs = self._log_confusions(difficulties, self._competences(embeddings[start : start + step])[:, None])
            confusions[start : start + step] = np.exp(ops.convert_to_numpy(logs).astype("float64")).mean(axis=1)
        return confusions / confusions.sum(axis=-1, keepdims=True)

    # === Training ===

    def weigh_penalties(self, tasks: np.ndarray, annotators: np.ndarray) -> None:
        """Weights of the ridge for the annotations at hand, int `[A]` each: alpha / (labels of r) [R], and beta."""
        counts = np.bincount(annotators, minlength=self.num_annotators)
        alpha = self.ridge * int(np.prod(self._tensor[1:])) ** 2
        beta = alpha * counts[counts > 0].mean() / (len(tasks) / len(np.unique(tasks)))
        self.competence_penalty.assign(alpha / np.maximum(counts, 1))
        self.difficulty_penalty.assign(beta)


def _activation(activation: Any) -> Any:
    """An activation that Keras knows."""
    try:
        keras.activations.get(activation)
    except (ValueError, TypeError) as error:
        raise bad_setting("activation", "must be one that Keras knows, such as 'selu'", activation, "LIA") from error
    return activation


def _through(layers: list[keras.layers.Dense], x: Tensor) -> Any:
    for layer in layers:
        x = layer(x)
    return x
