"""A simulated crowd whose annotators share confusions."""

from dataclasses import dataclass

import numpy as np

from crowdzoo.checks.constraints import Choice, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError

__all__ = ["CommonConfusions", "simulate_common_confusions"]

PATTERNS = ("asymmetric", "symmetric")
SHARES = ("hidden", "fixed")
SHARE = Number(0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class CommonConfusions:
    """A simulated crowd, and everything that produced it. Row i of the arrays of tasks is task code i.

    With N tasks, A annotations, R annotators and K classes:

    Attributes:
        annotations: annotations of all N tasks; only those of the split "train" have any.
        instances: features, float32 [N, D].
        gold: true class codes, int64 [N].
        split: "train", "valid" or "test", str [N]; in this order.
        annotator_features: float32 [R, F].
        common_confusion: float64 [K, K], `[true, said]`.
        own_confusions: float64 [R, K, K], `[annotator, true, said]`.
        omegas: chance that an annotation followed the common confusion, float64 [A], in the order of the annotations.
        followed_common: whether it did, bool [A].
    """

    annotations: Annotations
    instances: np.ndarray
    gold: np.ndarray
    split: np.ndarray
    annotator_features: np.ndarray
    common_confusion: np.ndarray
    own_confusions: np.ndarray
    omegas: np.ndarray
    followed_common: np.ndarray

    def annotator_confusions(self) -> np.ndarray:
        """Each annotator's confusion matrix over all their tasks: both confusions, mixed by their mean omega.

        Returns:
            float64 [R, K, K], `[annotator, true, said]`; that of an annotator without annotations is their own.
        """
        annotators, count = self.annotations.annotator_ids, len(self.own_confusions)
        total = np.bincount(annotators, weights=self.omegas, minlength=count)
        omega = (total / np.maximum(np.bincount(annotators, minlength=count), 1))[:, None, None]
        return omega * self.common_confusion + (1 - omega) * self.own_confusions

    def __repr__(self) -> str:
        return f"<CommonConfusions {self.annotations!r}, {self.instances.shape[1]} features>"


@checked(
    num_classes=Number(2, whole=True),
    pattern=Choice(PATTERNS),
    common_strength=SHARE,
    own_strength=SHARE,
    common_share=SHARE,
    shares=Choice(SHARES),
    num_annotator_features=Number(1, whole=True),
    embedding_size=Number(1, whole=True),
)
def simulate_common_confusions(
    seed: int,
    *,
    num_tasks: tuple[int, int, int] = (8000, 1000, 1000),
    num_classes: int = 6,
    num_features: int = 20,
    class_distance: float = 4.2,
    num_annotators: int = 30,
    redundancy: int = 3,
    pattern: str = "asymmetric",
    common_strength: float = 0.7,
    own_strength: float = 0.7,
    common_share: float = 0.5,
    shares: str = "hidden",
    num_annotator_features: int = 20,
    embedding_size: int = 4,
) -> CommonConfusions:
    """Draws tasks and annotators who err alike in some annotations and each in an own way in the others.

    A task of class k is a point of the Gaussian around the centre of class k (variance one in every feature). Each
    annotation follows the common confusion with probability omega, else the annotator's own. A confusion of strength
    s answers one certain other class with probability s and the right one otherwise. The class that takes k's place is

        | confusion             | the other class                                             |
        |-----------------------|-------------------------------------------------------------|
        | common, "asymmetric"  | the next one in a random circle of all classes              |
        | common, "symmetric"   | k's partner; the classes are paired at random               |
        | an annotator's own    | drawn for every annotator and class                         |

    With `shares="hidden"` omega is CoNAL's: `sigmoid(b + u_r . v_i)`, u and v linear maps of the annotator's and the
    instance's features, divided by their lengths. Features and maps are normal; b makes the mean omega `common_share`.

    The paper leaves open how far the classes are apart and how large features and embeddings are. Here all centres
    have one distance, 4.2 standard deviations, at which the best classifier knows 93 % of the true classes with 6
    classes; and embeddings have 4 numbers, since with many u . v is near 0 everywhere.

    Strengths are errors: where `common_share * common_strength + (1 - common_share) * own_strength / (K - 1)`
    exceeds the share of right answers, most annotators call a class by the name of another, and nothing in the
    annotations tells the two apart.

    Args:
        seed: seed of all draws.
        num_tasks: tasks for training, validation and test.
        num_classes: K, at least 2; even for the pattern "symmetric".
        num_features: D, at least K.
        class_distance: between the centres of any two classes, in standard deviations.
        num_annotators: R.
        redundancy: annotations of every training task, by different annotators, all equally likely.
        pattern: pattern of the common confusion, "asymmetric" or "symmetric".
        common_strength: P(the other class) of the common confusion, 0 to 1.
        own_strength: P(the other class) of the annotators' own confusions, 0 to 1.
        common_share: share of the annotations that follow the common confusion, 0 to 1.
        shares: "hidden", or "fixed" for omega = `common_share` everywhere.
        num_annotator_features: F.
        embedding_size: length of u and v.

    Returns:
        The crowd with its truth.

    Raises:
        ConfigError: an argument that is out of range.

    Source:
        Z. Chu, J. Ma, H. Wang: Learning from Crowds by Modeling Common Confusions. AAAI 2021, section 5.1 (synthetic
        data); the defaults are theirs unless said above.
    """
    if len(num_tasks) != 3 or min(num_tasks) < 0 or num_tasks[0] < 1:
        raise ConfigError(f"num_tasks must be three numbers, the first at least 1. Received: {num_tasks!r}")
    if pattern == "symmetric" and num_classes % 2:
        raise ConfigError(f"num_classes must be even for pattern='symmetric'. Received: {num_classes!r}")
    if num_features < num_classes:
        raise ConfigError(f"num_features must be at least num_classes ({num_classes}). Received: {num_features!r}")
    Number(1, num_annotators, whole=True).checked("simulate_common_confusions", "redundancy", redundancy)

    rng = np.random.default_rng(seed)
    # === Tasks ===
    # orthogonal centres of one length: all distances are equal, so that every seed is equally hard
    directions, _ = np.linalg.qr(rng.normal(size=(num_features, num_classes)))
    centres = directions.T * class_distance / np.sqrt(2)
    gold = rng.integers(num_classes, size=sum(num_tasks))
    instances = (centres[gold] + rng.normal(size=(len(gold), num_features))).astype("float32")

    # === Annotators ===
    common = _confusion(_common_errors(pattern, num_classes, rng), common_strength)
    # a step of 1 to K-1 from every class to another
    steps = rng.integers(1, num_classes, size=(num_annotators, num_classes))
    own = _confusion((np.arange(num_classes) + steps) % num_classes, own_strength)
    annotator_features = rng.normal(size=(num_annotators, num_annotator_features)).astype("float32")

    # === Annotations ===
    training = num_tasks[0]
    annotators = np.sort(rng.random((training, num_annotators)).argsort(axis=1)[:, :redundancy], axis=1).ravel()
    tasks = np.repeat(np.arange(training), redundancy)
    agreement = np.zeros(len(tasks))
    if shares == "hidden":
        u = _of_length_one(annotator_features @ rng.normal(size=(num_annotator_features, embedding_size)))
        v = _of_length_one(instances[:training] @ rng.normal(size=(num_features, embedding_size)))
        agreement = (u[annotators] * v[tasks]).sum(axis=1)
    omegas = _with_mean(agreement, common_share)
    followed = rng.random(len(tasks)) < omegas
    truths = gold[tasks]
    chances = np.where(followed[:, None], common[truths], own[annotators, truths])
    # the last class takes what rounding leaves between its cumulative sum and 1
    labels = (rng.random(len(tasks))[:, None] >= chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
    annotations = Annotations(
        "classification",
        tasks,
        annotators,
        labels,
        np.arange(len(gold)),
        np.arange(num_annotators),
        np.arange(num_classes),
    )
    split = np.repeat(["train", "valid", "test"], num_tasks)
    return CommonConfusions(annotations, instances, gold, split, annotator_features, common, own, omegas, followed)


def _common_errors(pattern: str, num_classes: int, rng: np.random.Generator) -> np.ndarray:
    """The class that each class is confused with, int [K]."""
    order = rng.permutation(num_classes)
    errors = np.empty(num_classes, dtype="int64")
    if pattern == "asymmetric":
        errors[order] = np.roll(order, -1)
    else:
        errors[order] = order.reshape(-1, 2)[:, ::-1].ravel()
    return errors


def _confusion(errors: np.ndarray, strength: float) -> np.ndarray:
    """Confusion matrices `[..., K, K]` that say `errors` `[..., K]` with probability strength, else the truth."""
    identity = np.eye(errors.shape[-1])
    return strength * identity[errors] + (1 - strength) * identity


def _with_mean(log_odds: np.ndarray, share: float) -> np.ndarray:
    """Probabilities `sigmoid(log_odds + b)` with the b that makes their mean the share."""
    if share in (0, 1):
        return np.full(log_odds.shape, float(share))
    # the right b is within the spread of the log-odds around the share's own; halving finds it to 1e-12 and better
    centre = np.log(share) - np.log1p(-share)
    low, high = centre - log_odds.max(), centre - log_odds.min()
    for _ in range(60):
        middle = (low + high) / 2
        if _sigmoid(log_odds + middle).mean() < share:
            low = middle
        else:
            high = middle
    return _sigmoid(log_odds + high)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def _of_length_one(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
