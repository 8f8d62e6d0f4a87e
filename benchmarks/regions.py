"""Regions of images: time and Dice coefficient next to SimpleITK and Crowd-Kit, and objects by method of existence.

    python benchmarks/regions.py            # what the results do not have
    python benchmarks/regions.py --parts points --again
    python benchmarks/regions.py --print    # the tables of the saved results

Needs `crowdzoo[regions]`, scikit-learn for its image of a flower, and SimpleITK and crowd-kit to compare with; what is
absent is left out. The flower is found by its colour; five annotators are made of it: their edges wander, one marks too
much, one too little, one is shifted, and one is careless. Every library gets one image at a time, each of which is the
photograph (427 x 640 pixels) turned round. Times are of `fit` with what each library takes, COCO's masks and arrays;
the first image is left out, as it compiles and imports. Dice is against the flower.

Objects are boxes in 60 images, generated: three to six things an image, which six annotators miss and invent each at a
rate of their own. F1 counts boxes found with an intersection over union of a half or more.

The overlap that makes regions one object was chosen on other simulated crowds, those of planted_answers.py with seeds 0
and 1 and no bad majority, as they are and with boxes that may touch; the table has seeds 10 and 11, F1 of boxes one by
one.

Points are generated on images of 600 x 800 pixels, half of them next to another one (15 pixels away or more); five
annotators mark them with a standard deviation of 6 pixels in x and in y, miss and invent some, and call some by another
class. F1 counts points found within 15 pixels, by the distance of one object.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

sys.path.append(str(Path(__file__).parent / "reproduce"))
import planted_answers
from rows import Parts, run

from crowdzoo.aggregation import STAPLE, MatchedObjects, PixelVote
from crowdzoo.data.regions import MarkedImage, mask_of_pixels, mask_tools
from crowdzoo.kinds.regions.scoring import RegionScoring
from crowdzoo.tables import Annotations

RESULTS = Path(__file__).parent / "results" / "regions.json"
REPEATS, SEEDS, IMAGES = 5, 5, 60
LEAST = (0.2, 0.3, 0.4, 0.5)
EXISTS = ("majority-vote", "one-coin", "dawid-skene", "robust")
DISTANCES = (12, 20, 30, 60)  # 1.2, 2, 3 and 6 % of the diagonal


@cache
def flower() -> np.ndarray:
    """Where the flower of scikit-learn's sample image is, bool [height, width]."""
    from scipy.ndimage import binary_fill_holes, binary_opening, label
    from sklearn.datasets import load_sample_image

    red, green, blue = np.moveaxis(load_sample_image("flower.jpg").astype(float), -1, 0)
    parts, _ = label(binary_opening((red > 1.3 * green) & (red > 120) & (red > 1.2 * blue), iterations=2))
    return binary_fill_holes(parts == np.bincount(parts.ravel())[1:].argmax() + 1)


def annotators_of(true: np.ndarray, seed: int) -> np.ndarray:
    """What five annotators mark, bool [5, height, width]."""
    from scipy.ndimage import distance_transform_edt, gaussian_filter, shift

    rng = np.random.default_rng(seed)
    inside = distance_transform_edt(true) - distance_transform_edt(~true)  # pixels from the edge
    masks = []
    for bias, wander, moved in ((0, 3, 0), (0, 6, 0), (9, 4, 0), (-9, 4, 0), (0, 25, 14)):
        field = gaussian_filter(rng.standard_normal(true.shape), 12)
        edge = shift(inside, (moved, moved), order=0, mode="nearest") + bias + wander * field / field.std()
        masks.append(edge > 0)
    return np.array(masks)


def table_of(images: dict[int, list[MarkedImage]]) -> Annotations:
    """Annotations of what each annotator marked on each image."""
    rows = [(task, f"w{who}", image) for task, of in images.items() for who, image in enumerate(of)]
    return Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="region")


def crowd_kit(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """A method of Crowd-Kit, from masks to a mask."""
    import crowdkit.aggregation
    import pandas as pd

    def fit(masks: np.ndarray) -> np.ndarray:
        frame = pd.DataFrame({"task": 0, "worker": range(len(masks)), "segmentation": list(masks)})
        return np.asarray(getattr(crowdkit.aggregation, name)().fit_predict(frame)[0])

    return fit


def simple_itk(masks: np.ndarray) -> np.ndarray:
    """SimpleITK's STAPLE, from masks to a mask."""
    import SimpleITK as sitk  # noqa: N813

    method = sitk.STAPLEImageFilter()
    method.SetForegroundValue(1)
    return (
        sitk.GetArrayFromImage(method.Execute([sitk.GetImageFromArray(mask.astype(np.uint8)) for mask in masks])) >= 0.5
    )


# method -> module that it needs, and what makes it
METHODS: dict[str, tuple[str, Callable[[], Any]]] = {
    "one annotator": ("crowdzoo", lambda: lambda drawn: drawn),
    "majority-vote": ("crowdzoo", PixelVote),
    "staple": ("crowdzoo", STAPLE),
    "objects": ("crowdzoo", MatchedObjects),
    "SimpleITK STAPLE": ("SimpleITK", lambda: simple_itk),
    "Crowd-Kit MajorityVote": ("crowdkit", lambda: crowd_kit("SegmentationMajorityVote")),
    "Crowd-Kit EM": ("crowdkit", lambda: crowd_kit("SegmentationEM")),
}


def masks(name: str) -> Iterator[dict[str, float]]:
    """Median seconds and mean Dice coefficient of a method."""
    module, make = METHODS[name]
    if find_spec(module) is None:
        return
    method, true, seconds, scores = make(), flower(), list[float](), list[float]()
    for repeat in range(REPEATS + 1):
        turned = np.ascontiguousarray(np.roll(true[:, :: 1 - 2 * (repeat % 2)], 20 * repeat, axis=1))
        drawn = annotators_of(turned, repeat)
        marked = [
            MarkedImage.of(true.shape, [{"category": "flower", "counts": mask_of_pixels(mask)}]) for mask in drawn
        ]
        crowd = table_of({repeat: marked})
        start = time.perf_counter()
        result = method.fit(crowd) if hasattr(method, "fit") else method(drawn)
        seconds.append(time.perf_counter() - start)
        if not isinstance(result, np.ndarray):
            result = mask_tools().decode(result.marked[0].masks[0]).astype(bool)
        scores += [dice(mask, turned) for mask in np.reshape(result, (-1, *true.shape))]
    yield {"seconds": float(np.median(seconds[1:])), "dice": float(np.mean(scores))}


def dice(mask: np.ndarray, other_mask: np.ndarray) -> float:
    """Of two masks."""
    return float(2 * (mask & other_mask).sum() / (mask.sum() + other_mask.sum()))


def objects(exists: str) -> Iterator[dict[str, Any]]:
    """F1 of a method of existence, for each seed."""
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        misses, invents = rng.uniform(0.05, 0.6, 6), rng.uniform(0, 1.5, 6)
        images, true = {}, {}
        for task in range(IMAGES):
            corners, sides = rng.uniform(0, 400, (rng.integers(3, 7), 2)), rng.uniform(40, 100, (6, 2))
            true[task] = np.c_[corners, sides[: len(corners)]]
            images[task] = [
                MarkedImage.of((512, 512), [{"category": "thing", "bbox": box.tolist()} for box in np.r_[
                    (true[task] + rng.normal(0, 3, true[task].shape))[rng.random(len(corners)) > misses[who]],
                    np.c_[rng.uniform(0, 400, (count, 2)), rng.uniform(40, 100, (count, 2))],
                ].clip(0)])
                for who, count in enumerate(rng.poisson(invents))
            ]  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = MatchedObjects(exists=exists).fit(table_of(images))
        right = sum(
            int((mask_tools().iou(image.boxes, true[task], [0] * len(true[task])) >= 0.5).any(axis=0).sum())
            for task, image in zip(result.tasks.tolist(), result.marked, strict=True) if image.regions
        )  # fmt: skip
        number = sum(len(image.regions) for image in result.marked) + sum(map(len, true.values()))
        yield {"seed": str(seed), "F1": 2 * right / number}


def simulated(least: float) -> Iterator[dict[str, float]]:
    """Level of errors, and whether boxes touch -> F1, with this mean overlap of an object."""
    scores: dict[str, list[float]] = {}
    for touch, how in (("", {}), (", touching", {"apart": 14, "number": (6, 16)})):
        for seed in (10, 11):
            for name, crowd, planted, true in planted_answers.regions(seed, **how):
                if "majority" not in name:
                    level = ("planted" if planted else name.rpartition(", ")[2]) + touch
                    marked = MatchedObjects(least=least).fit(crowd).marked
                    scores.setdefault(level, []).append(f1_of_boxes(marked, true))
    yield {level: float(np.mean(values)) for level, values in scores.items()}


def f1_of_boxes(answers: list[MarkedImage], true: list[MarkedImage]) -> float:
    """F1, one box found for each true one."""
    right = 0
    for answer, truth in zip(answers, true, strict=True):
        if answer.regions and truth.regions:
            overlap = mask_tools().iou(answer.boxes, truth.boxes, [0] * len(truth.regions))
            right += int((overlap[linear_sum_assignment(-overlap)] >= 0.5).sum())
    return 2 * right / sum(len(image.regions) for image in [*answers, *true])


def image_of_points(places: np.ndarray, labels: np.ndarray) -> MarkedImage:
    """An image with points of two classes."""
    inside = np.clip(places, 0, (800, 600)).tolist()
    entries = ({"category": "ab"[label], "point": place} for place, label in zip(inside, labels, strict=True))
    return MarkedImage.of((600, 800), entries)


def points(exists: str) -> Iterator[dict[str, Any]]:
    """Distance of one object -> F1 of points, for each seed."""
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        misses, invents = rng.uniform(0.05, 0.25, 5), rng.uniform(0, 1, 5)
        images, true = {}, {}
        for task in range(IMAGES):
            places: list[Any] = []
            while len(places) < 12:
                near = bool(places) and rng.random() < 0.5
                place = places[-1] + rng.normal(0, 25, 2) if near else rng.uniform(20, (780, 580))
                if (
                    all(np.hypot(*(place - other)) > 15 for other in places)
                    and (place == np.clip(place, 0, (800, 600))).all()
                ):
                    places.append(place)
            labels = rng.integers(2, size=12)
            true[task], images[task] = image_of_points(np.array(places), labels), []
            for who in range(5):
                seen, more = rng.random(12) > misses[who], rng.poisson(invents[who])
                marked = np.r_[(places + rng.normal(0, 6, (12, 2)))[seen], rng.uniform(0, (800, 600), (more, 2))]
                named = np.r_[np.where(rng.random(12) < 0.05, 1 - labels, labels)[seen], rng.integers(2, size=more)]
                images[task].append(image_of_points(marked, named))
        crowd, figures = table_of(images), {"seed": str(seed)}
        for distance in DISTANCES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = MatchedObjects(exists=exists, distance=distance).fit(crowd)
            gold = np.array([true[task] for task in result.tasks.tolist()], object)
            figures[f"{distance}"] = RegionScoring(15).score(gold, result.marked)["F1"]
        yield figures


PARTS: Parts = {
    "masks": {name: partial(masks, name) for name in METHODS},
    "objects": {name: partial(objects, name) for name in EXISTS},
    "simulated": {f"{least}": partial(simulated, least) for least in LEAST},
    "points": {name: partial(points, name) for name in EXISTS},
}

if __name__ == "__main__":
    run(RESULTS, PARTS, __doc__, keras=False)
