"""Points on concentric circles, and annotators whose mistakes depend on where a point lies."""

from collections.abc import Callable, Sequence

import numpy as np

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.annotations import Annotations

__all__ = ["ask_annotators", "make_circles", "neighbour_annotators"]

# labels int [n] of points [n, 2]
Annotator = Callable[[np.ndarray], np.ndarray]


@checked(num_circles=Number(2, whole=True), per_class=Number(1, whole=True), noise=Number(0))
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

    Raises:
        ConfigError: impossible sizes.

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

    Raises:
        ValueError: more points known than there are, or none.
    """
    counts = np.broadcast_to(np.asarray(known), (num_annotators,))
    if (counts < 1).any() or (counts > len(x)).any():
        raise ValueError(f"neighbour_annotators: known must be from 1 to {len(x)}, the number of points, got {known!r}")
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

    Raises:
        ValueError: redundancy out of range, or an annotator gave something other than one class code a point.
    """
    labels = np.stack([np.asarray(annotator(x)) for annotator in annotators])
    if (
        labels.shape[1:] != (len(x),)
        or labels.dtype.kind not in "iu"
        or not 0 <= labels.min() <= labels.max() < num_classes
    ):
        raise ValueError(f"ask_annotators: annotators must give one code of {num_classes} for each point")
    rule = Number(0, len(annotators), whole=True, optional=True)
    wanted = rule.checked("ask_annotators", "redundancy", redundancy)
    if wanted is None:
        wanted = len(annotators)
    # who drew the smallest numbers answers: each group of that size is equally likely
    rank = np.random.default_rng(seed).random((len(x), len(annotators))).argsort(axis=1).argsort(axis=1)
    tasks, who = np.nonzero(rank < wanted)
    said, classes = labels[who, tasks], np.arange(num_classes)
    return Annotations("classification", tasks, who, said, np.arange(len(x)), np.arange(len(annotators)), classes)
