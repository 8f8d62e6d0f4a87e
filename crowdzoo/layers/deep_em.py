"""EM with a network inside (DL-EM, AggNet): soft targets for the base, confusion matrices in closed form."""

from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.checks.constraints import checked
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.ranges import DIAGONAL, EPOCHS, PSEUDO_COUNT
from crowdzoo.losses import ExpectedLogLikelihood


@keras.saving.register_keras_serializable(package="crowdzoo")
class DeepEM(ConfusionMatrices):
    """Annotators' confusion matrices by expectation maximisation; the base learns from the posteriors.

    | step | what happens |
    |------|--------------|
    | first | `q_i(k)` = shares of the votes |
    | M | `pi[r, k, l] ~ prior[k, l] + sum_i q_i(k) 1[y_ir = l]`; the base descends on `-sum_ik q_i(k) log p_i(k)` |
    | E | `q_i(k) ~ p_i(k) prod_r pi[r, k, y_ir]`, normalised, in log-space |

    There is one E-step every `epochs_per_round` epochs; the paper has one per epoch. The matrices are not trained by
    gradient descent, so the optimizer ignores them, and annotators who are not in a batch cost nothing.

    Args:
        num_annotators: R, number of annotators.
        prior: weight of the prior in labels, above 0: every row of a matrix gets this many additional labels,
            distributed as in a matrix with `diagonal` on its diagonal. A flat prior would dominate annotators with few
            labels.
        diagonal: P(right label) of the prior.
        epochs_per_round: epochs between two E-steps.
        kind: "classification", "sequence" or "segmentation". In the last two the posterior is a product over tokens or
            pixels; dependence on neighbours is left to the base.
        confidence: whether the column `confidence` of the annotations is used as the probability of the label; the rest
            is spread evenly over the other classes. The E-step then has `sum_l s_ir(l) pi[r, k, l]` in place of
            `pi[r, k, y_ir]`, and the M-step counts each label by its share of that sum. Only for classification with
            annotations in memory. `CrowdModel.posteriors` counts labels without a confidence fully.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`).

    Call arguments:
        inputs: class probabilities `[B, K]` (sequences `[B, T, K]`, masks `[B, H, W, K]`).
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`); for sequences `[B, T, M, K]` (`[B, T, R, K]`), for
        masks `[B, H, W, M, K]`.

    Raises:
        ValueError: invalid values, an input of the wrong rank, or `confidence` for sequences.
        DataError: (in `fit`) with `confidence=True`, an annotation has no confidence, or one outside 0 to 1.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import DeepEM
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), DeepEM(num_annotators=5))
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)
        >>> model.annotator_confusions()[0].round(2).tolist()  # before training
        [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]

    Source:
        F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section 3 (equations, not the authors' code,
        whose posteriors are not normalised). The same EM is AggNet's: S. Albarqouni et al.: AggNet. IEEE TMI 2016.

    Needs:
        Instances, and annotators with several labels each.
    """

    traits = replace(
        ConfusionMatrices.traits,
        starts_from_votes=False,
        extra_training="EM estimates the truth and the confusion matrices between the epochs",
    )

    @checked(diagonal=DIAGONAL, prior=PSEUDO_COUNT, epochs_per_round=EPOCHS)
    def __init__(
        self,
        num_annotators: int,
        prior: float = 1.0,
        diagonal: float = 0.8,
        epochs_per_round: int = 1,
        kind: str = "classification",
        confidence: bool = False,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, diagonal, kind, confidence, **kwargs)
        self.prior = prior
        self.epochs_per_round = epochs_per_round

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """See `ConfusionMatrices.build`; the matrices are not trained by gradients."""
        super().build(inputs_shape)
        self.kernel.trainable = False

    def default_loss(self) -> keras.losses.Loss:
        """The loss of the M-step."""
        return ExpectedLogLikelihood()

    def update(self, counts: np.ndarray) -> None:
        """The M-step of the matrices.

        Args:
            counts: `[R, K, K]`, expected labels `[annotator, true, said]`.
        """
        prior = ops.convert_to_numpy(ops.softmax(self._start((1, *counts.shape[1:])), axis=-1))
        counts = counts + self.prior * prior.astype("float64")
        self.set_confusions(counts / counts.sum(axis=-1, keepdims=True))
