"""Generated feature vectors with true scores, and annotators with individual rating styles."""

import numpy as np

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets.crowd_dataset import CrowdDataset

NUM_FEATURES = 12
HIGH = 10.0
BIAS = 1.5  # standard deviation of the annotators' biases
NOISE = (0.5, 1.0, 1.0, 0.5, 2.5)  # standard deviations of their errors, in turn
SCALES = (0.7, 1.1)  # smallest and largest use of the scale
TASTE = 1.0  # influence of features that do not affect the score on who rates
TASTES = [7, 8]
DESCRIPTION = (
    "Generated tasks with twelve features, seven of which predict the true score from 0 to 10. Annotators give "
    "half points from 0 to 10: each is harsh or mild (bias), uses more or less of the scale, and is careful or "
    "careless, and each has a taste that decides what they rate. Everything is drawn from a seed."
)


@checked(num_tasks=Number(4, whole=True), num_annotators=Number(1, whole=True))
def generated_ratings(
    num_tasks: int = 1200, num_annotators: int = 40, *, redundancy: int = 3, seed: int = 0
) -> CrowdDataset:
    """Generates feature vectors with true scores from 0 to 10, and ratings by annotators of individual styles.

    The score is a smooth function of seven of twelve standard normal features, two of them multiplied, plus noise that
    no feature explains: `s = clip(5 + 2.2 (f(x) + 0.3 e), 0, 10)`, f of variance one. Annotator r gives
    `5 + a_r (s - 5) + b_r + c_r e`, cut to 0 to 10 and rounded to halves, with `b_r ~ N(0, 1.5^2)`, `a_r` from 0.7 to
    1.1 and `c_r` 0.5 (two of five annotators), 1 (two) or 2.5 (one).

    Annotators are not assigned at random: who rates which task depends on diligence (a factor from 1 to 5) and on a
    taste for two further features, which do not affect the score.

    Args:
        num_tasks: N, at least 4.
        num_annotators: R, at least 1.
        redundancy: number of annotators per task, 1 to R.
        seed: seed of all draws.

    Returns:
        Annotations of kind regression by annotators "rater 0", ..., of tasks 0 ... N-1; features float32 [N, 12]; gold
        float64 [N]; the last quarter of the tasks is the split "eval".

    Raises:
        ConfigError: invalid sizes.
    """
    Number(1, num_annotators, whole=True).checked("generated_ratings", "redundancy", redundancy)
    rng, crowd_rng = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    features = rng.normal(size=(num_tasks, NUM_FEATURES))
    gold = _scores(features, rng.normal(size=num_tasks))
    bias = crowd_rng.normal(size=num_annotators) * BIAS
    scale = crowd_rng.uniform(*SCALES, num_annotators)
    noise = np.array(NOISE)[np.arange(num_annotators) % len(NOISE)]
    # keys of an exponential race: the smallest of each row are a draw without replacement, weighted by diligence
    diligence = crowd_rng.uniform(1, 5, num_annotators)
    likes = crowd_rng.normal(size=(num_annotators, len(TASTES))) * TASTE
    pull = np.exp(features[:, TASTES] @ likes.T) * diligence
    race = crowd_rng.exponential(size=(num_tasks, num_annotators)) / pull
    chosen = np.sort(np.argsort(race, axis=1)[:, :redundancy], axis=1)
    tasks, annotators = np.repeat(np.arange(num_tasks), redundancy), chosen.ravel()
    centered = HIGH / 2 + scale[annotators] * (gold[tasks] - HIGH / 2)
    ratings = centered + bias[annotators] + noise[annotators] * crowd_rng.normal(size=len(tasks))
    labels = np.round(2 * np.clip(ratings, 0, HIGH)) / 2
    names = np.array([f"rater {number}" for number in range(num_annotators)], object)
    annotations = Annotations("regression", tasks, annotators, labels, np.arange(num_tasks), names)
    num_train = num_tasks - num_tasks // 4
    return CrowdDataset(
        name="generated-ratings",
        annotations=annotations,
        instances=features.astype(np.float32),
        gold=gold,
        split=np.where(np.arange(num_tasks) < num_train, "train", "eval"),
        licence="generated, free for any use",
        citation="crowdzoo",
        description=DESCRIPTION,
    )


def _scores(features: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """True scores [N], from 0 to 10, rounded to hundredths."""
    a, b, c, d, e, f, g = features.T[:7]
    score = a + 0.5 * b + 0.9 * np.sin(2 * c) + 0.6 * d * e + 0.35 * (f**2 - 1) + 0.5 * g
    # the terms' variances: 1, 0.25, 0.81 (1 - e^-8) / 2, 0.36, 0.245, 0.25
    return np.round(np.clip(HIGH / 2 + 2.2 * (score / np.sqrt(2.51) + 0.3 * unseen), 0, HIGH), 2)
