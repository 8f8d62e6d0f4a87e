"""Crowds that are drawn, for comparisons and for tests.

Points on concentric circles with annotators whose mistakes depend on where a point lies, and annotators who share
confusions, or have confusion matrices that are given.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo import Annotations

__all__ = [
    "CommonConfusions", "ask_annotators", "make_circles", "neighbour_annotators", "simulate_annotations",
    "simulate_common_confusions",
]  # fmt: skip

# labels int [n] of points [n, 2]
Annotator = Callable[[np.ndarray], np.ndarray]


def make_circles(
    num_circles: int = 3, per_class: int = 250, noise: float = 0.12, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Points near concentric circles; the class is the circle.

    Circle c of C has radius (c + 1) / C. Points are spread evenly over the angles at random and moved by normal noise
    in both directions, so that neighbouring circles run into each other: those points are truly ambiguous.

    Args:
        num_circles: C, at least 2.
        per_class: points of each circle, at least 1.
        noise: standard deviation, where the radius of the outer circle is 1; not negative.
        seed: seed of all draws.

    Returns:
        Points float32 [C * per_class, 2] in random order, and their classes int64 [C * per_class].

    Source:
        Made after the "three circles" of T. Lefort, B. Charlier, A. Joly, J. Salmon: Identify Ambiguous Tasks Combining
        Crowdsourced Labels by Weighting Areas Under the Margin. TMLR 2024. Radii and noise are this function's own.
    """
    rng = np.random.default_rng(seed)
    gold = rng.permutation(np.repeat(np.arange(num_circles), per_class))
    angle = rng.uniform(0, 2 * np.pi, len(gold))
    on_circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) * ((gold + 1) / num_circles)[:, None]
    return (on_circle + rng.normal(0, noise, on_circle.shape)).astype("float32"), gold


def neighbour_annotators(
    x: np.ndarray, gold: np.ndarray, num_annotators: int, known: int | Sequence[int], seed: int = 0
) -> list[Annotator]:
    """Annotators who have seen a few points with their classes, and say the class of the nearest one.

    They are wrong where classes meet and where they have seen nothing: mistakes depend on the point, which no confusion
    matrix says.

    Args:
        x: points [N, D].
        gold: their classes, int [N].
        num_annotators: R, at least 1.
        known: how many points each has seen, drawn from x; one number, or one an annotator.
        seed: seed of the draws.

    Returns:
        R functions from points [n, D] to labels int64 [n].
    """
    counts = np.broadcast_to(np.asarray(known), (num_annotators,))
    rng = np.random.default_rng(seed)

    def annotator(seen: np.ndarray) -> Annotator:
        def answer(points: np.ndarray) -> np.ndarray:
            away = np.square(points[:, None].astype("float64") - x[seen].astype("float64")).sum(axis=2)
            return np.asarray(gold)[seen][away.argmin(axis=1)]

        return answer

    return [annotator(rng.choice(len(x), size=count, replace=False)) for count in counts]


def ask_annotators(
    x: np.ndarray, annotators: Sequence[Annotator], num_classes: int, redundancy: int | None = None, seed: int = 0
) -> Annotations:
    """What annotators say of points.

    Args:
        x: points [N, D].
        annotators: R functions from points to class codes, such as `neighbour_annotators`, or a fitted classifier's
            `predict`.
        num_classes: K.
        redundancy: number of annotators, drawn at random, who answer each point, 0 to R; None is all of them.
        seed: seed of the draw.

    Returns:
        Annotations with tasks 0 ... N-1 (the rows of x), annotators 0 ... R-1 and classes 0 ... K-1.
    """
    labels = np.stack([np.asarray(annotator(x)) for annotator in annotators])
    wanted = len(annotators) if redundancy is None else redundancy
    # who drew the smallest numbers answers: each group of that size is equally likely
    rank = np.random.default_rng(seed).random((len(x), len(annotators))).argsort(axis=1).argsort(axis=1)
    tasks, who = np.nonzero(rank < wanted)
    answers, classes = labels[who, tasks], np.arange(num_classes)
    return Annotations("classification", tasks, who, answers, np.arange(len(x)), np.arange(len(annotators)), classes)


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

    Source:
        Z. Chu, J. Ma, H. Wang: Learning from Crowds by Modeling Common Confusions. AAAI 2021, section 5.1 (synthetic
        data); the defaults are theirs unless said above.
    """
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
    classes = np.arange(num_classes)
    names = (np.arange(len(gold)), np.arange(num_annotators), classes)
    annotations = Annotations("classification", tasks, annotators, labels, *names)
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


def simulate_annotations(gold: ArrayLike, confusions: ArrayLike, redundancy: int | ArrayLike, seed: int) -> Annotations:
    """Draws labels from annotators whose confusion matrices are known.

    Each task is given to `redundancy` different annotators, all equally likely; annotator r answers a task of class k
    with class l with probability `confusions[r, k, l]`, independently of everything else (the model of Dawid and Skene,
    "Maximum likelihood estimation of observer error-rates", Applied Statistics 28(1), 1979).

    Args:
        gold: true class codes, int [N].
        confusions: P(annotator says l | truth k), `[annotator, true, said]`, [R, K, K], rows sum to one.
        redundancy: annotations of every task, 0 to R; or one number a task, int [N].
        seed: seed of all draws.

    Returns:
        Annotations with tasks 0 ... N-1, annotators 0 ... R-1 and classes 0 ... K-1, ordered by task, then annotator.
    """
    truth = np.asarray(gold)
    matrices = np.asarray(confusions, dtype=np.float64)
    num_annotators, num_classes, _ = matrices.shape
    wanted = np.broadcast_to(np.asarray(redundancy), truth.shape)
    rng = np.random.default_rng(seed)
    # the annotators with a task's smallest random numbers get it: each subset of that size is equally likely
    rank = rng.random((len(truth), num_annotators)).argsort(axis=1).argsort(axis=1)
    task, annotator = np.nonzero(rank < wanted[:, None])
    cumulative = matrices[annotator, truth[task]].cumsum(axis=1)
    # the last class takes what rounding leaves between its cumulative sum and 1
    label = (rng.random(len(task))[:, None] >= cumulative[:, :-1]).sum(axis=1)
    classes = np.arange(num_classes)
    return Annotations(
        "classification", task, annotator, label, np.arange(len(truth)), np.arange(num_annotators), classes
    )
