"""Deep EM whose E-step uses only networks that were not trained on the task."""

from dataclasses import replace
from typing import Any

import keras
import numpy as np

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.layers.deep_em import DeepEM

FOLDS = Number(2, 100, whole=True)  # each is a copy of the base


@keras.saving.register_keras_serializable(package="crowdzoo")
class CrossFittedEM(DeepEM):
    """Deep EM whose E-step takes estimates for each task from a copy of the base that was not trained on it.

    In deep EM the base soon reproduces its targets: its estimate for a task is the task's last posterior. The E-step
    then counts the same labels twice, and early errors of the posterior persist. Here the tasks are split into F folds.
    In addition to the base, F copies of it train on the same posteriors, copy f on all folds but f:

    | step | what happens |
    |------|--------------|
    | first | `q_i(k)` = shares of the votes |
    | M | matrices as in `DeepEM`; base and copies descend on `-sum_ik q_i(k) log p_i(k)`, each on its tasks |
    | E | `q_i(k) ~ p_i^(copy of i's fold)(k) prod_r pi[r, k, y_ir]`, normalised, in log-space |

    The base learns from all tasks and makes the predictions; the copies are discarded when `fit` ends. They need F
    times the base's training time, and memory for F times its weights and optimizer. With a large frozen backbone,
    compute its features once and train on them.

    Args:
        num_annotators: R, number of annotators.
        prior: as in `DeepEM`.
        diagonal: as in `DeepEM`.
        epochs_per_round: as in `DeepEM`.
        folds: F, number of folds, at least 2.
        confidence: as in `DeepEM`; it affects `task_posteriors`.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`).

    Attributes:
        task_posteriors: after `fit`, posteriors q of the training tasks from the last E-step, float32 `[N, K]`, zeros
            for tasks without labels; None before `fit` and in a loaded model. `CrowdModel.posteriors` uses the base
            instead, which was trained on these tasks and is less accurate on them.

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`).

    Raises:
        ValueError: invalid values, an input of the wrong rank, or (in `fit`) a base that cannot be rebuilt from its
            configuration.
        DataError: (in `fit`) fewer tasks than folds, or as in `DeepEM`.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import CrossFittedEM
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> layer = CrossFittedEM(num_annotators=5, folds=4)
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), layer)
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)

    Source:
        Deep EM: see `DeepEM`. Nuisance parts estimated on rows other than those they are used for: V. Chernozhukov et
        al.: Double/Debiased Machine Learning for Treatment and Structural Parameters. Econometrics Journal, 2018.
        Out-of-sample predictions combined with crowd labels: H. W. Goh, U. Tkachenko, J. Mueller: CROWDLAB, 2022. Using
        them in the E-step, between epochs, is this project's.

    Needs:
        Instances; time for several copies of the base model.
    """

    traits = replace(DeepEM.traits, kinds=("classification",))

    @checked(folds=FOLDS)
    def __init__(
        self,
        num_annotators: int,
        prior: float = 1.0,
        diagonal: float = 0.8,
        epochs_per_round: int = 1,
        folds: int = 5,
        confidence: bool = False,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, prior, diagonal, epochs_per_round, confidence=confidence, **kwargs)
        self.folds = folds
        self.task_posteriors: np.ndarray | None = None
