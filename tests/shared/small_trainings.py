"""What small trainings of every deep method learn from, and settings that keep them short."""

import numpy as np
from drawn_crowds import simulate_annotations

from crowdzoo.data.annotations import Annotations

D, K, R = 4, 3, 5
# short phases, and settings that keep more than weights
ARGUMENTS = {
    "lia": {"hidden": [8], "epochs_per_round": 2, "marginal_epochs": 2},
    "doctor-net": {"weight_epochs": 3},
    "waum": {"margin_epochs": 2},
    "deep-em": {"epochs_per_round": 2},
    "cross-fitted-em": {"folds": 2, "epochs_per_round": 2},
    "rating-em": {"epochs_per_round": 2},
}


def learned_from(num_tasks):
    """Features, the true classes, labels of three of five annotators a task, and ratings of as many."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_tasks, D)).astype("float32")
    truth = x[:, :K].argmax(axis=1)
    confusions = np.stack([np.full((K, K), 0.1) + 0.7 * np.eye(K)] * R)
    rated = [(i, r) for i in range(num_tasks) for r in rng.choice(R, 3, replace=False)]
    ratings = Annotations.from_arrays(
        *np.array(rated).T, [float(x[i, 0] + 0.1 * r + rng.normal(0, 0.2)) for i, r in rated], kind="regression",
        tasks=np.arange(num_tasks), annotators=np.arange(R),
    )  # fmt: skip
    return x, truth, simulate_annotations(truth, confusions, redundancy=3, seed=1), ratings
