"""Deep EM whose E-step hears only networks that have not seen the task."""

from dataclasses import replace
from typing import Any

import keras
import numpy as np

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.layers.deep_em import DeepEM

FOLDS = Number(2, 100, whole=True)  # each is a copy of the base


@keras.saving.register_keras_serializable(package="crowdzoo")
class CrossFittedEM(DeepEM):
    """Deep EM in which a network's word about a task comes from a copy that was not trained on that task.

    In deep EM the base soon repeats what it was trained on: its estimate of a task is the task's last posterior, so the
    E-step counts the same labels twice, and what the posterior got wrong at first stays wrong. Here the tasks are dealt
    into F folds. Beside the base, F copies of it train on the same posteriors, copy f on all folds but f:

    | step | what happens |
    |------|--------------|
    | first | `q_i(k)` = shares of the votes |
    | M | matrices as in `DeepEM`; base and copies descend on `-sum_ik q_i(k) log p_i(k)`, each on its tasks |
    | E | `q_i(k) ~ p_i^(copy of i's fold)(k) prod_r pi[r, k, y_ir]`, normalised, in log-space |

    The base learns from all tasks and is what predicts; the copies go when `fit` ends. They cost F times the base's
    own step in time and F times its weights and optimizer in memory, so a large frozen backbone is better run once
    and its features kept.

    Args:
        num_annotators: R, number of annotators.
        prior: as in `DeepEM`.
        diagonal: as in `DeepEM`.
        epochs_per_round: as in `DeepEM`.
        folds: F, at least 2.
        confidence: as in `DeepEM`; `task_posteriors` follow it.
        **kwargs: `keras.layers.Layer`'s own (`name`, `dtype`).

    Attributes:
        task_posteriors: after `fit`, the last E-step's q of the tasks that were trained on, float32 `[N, K]`, zeros
            where nobody labelled; None before, and in a model that was loaded. `CrowdModel.posteriors` asks the base
            instead, which knows these tasks already, and is less often right about them.

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`).

    Raises:
        ValueError: impossible values, an input of the wrong rank, or (`fit`) a base that cannot be made again from its
            configuration.
        DataError: (`fit`) fewer tasks than folds, or as in `DeepEM`.

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
        Deep EM: see `DeepEM`. Estimates of nuisance parts on other rows than those they are used for: V. Chernozhukov
        et al.: Double/Debiased Machine Learning for Treatment and Structural Parameters. Econometrics Journal, 2018.
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
