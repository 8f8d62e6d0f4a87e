"""Regions of images: time and Dice coefficient next to SimpleITK and Crowd-Kit, and objects by method of existence.

    python benchmarks/regions.py            # about a minute
    python benchmarks/regions.py --only points
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

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(Path(__file__).parent))
import planted_answers

from crowdzoo.aggregation import STAPLE, MatchedObjects, PixelVote
from crowdzoo.data.regions import MarkedImage, mask_of_pixels, mask_tools
from crowdzoo.kinds.regions.scoring import RegionScoring
from crowdzoo.report.tables import print_table
from crowdzoo.tables import Annotations

RESULTS = Path(__file__).parent / "results" / "regions.json"
REPEATS, SEEDS, IMAGES = 5, 5, 60
LEAST = (0.2, 0.3, 0.4, 0.5)
EXISTS = ("majority-vote", "one-coin", "dawid-skene", "robust")
DISTANCES = (12, 20, 30, 60)  # 1.2, 2, 3 and 6 % of the diagonal


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


def masks() -> dict[str, dict[str, Any]]:
    """Median seconds and mean Dice coefficient of each method."""
    true = flower()
    peers = {"SimpleITK STAPLE": ("SimpleITK", lambda: simple_itk)} | {
        f"Crowd-Kit {name}": ("crowdkit", lambda name=name: crowd_kit(f"Segmentation{name}"))
        for name in ("MajorityVote", "EM")
    }
    methods: dict[str, Any] = {"majority-vote": PixelVote(), "staple": STAPLE(), "objects": MatchedObjects()}
    methods |= {name: method_class() for name, (module, method_class) in peers.items() if find_spec(module)}
    times: dict[str, list[float]] = {name: [] for name in ("one annotator", *methods)}
    dices: dict[str, list[float]] = {name: [] for name in times}
    for repeat in range(REPEATS + 1):
        turned = np.ascontiguousarray(np.roll(true[:, :: 1 - 2 * (repeat % 2)], 20 * repeat, axis=1))
        drawn = annotators_of(turned, repeat)
        marked = [
            MarkedImage.of(true.shape, [{"category": "flower", "counts": mask_of_pixels(mask)}]) for mask in drawn
        ]
        crowd = table_of({repeat: marked})
        dices["one annotator"] += [dice(mask, turned) for mask in drawn]
        for name, method in methods.items():
            start = time.perf_counter()
            result = method.fit(crowd) if hasattr(method, "fit") else method(drawn)
            times[name].append(time.perf_counter() - start)
            if not isinstance(result, np.ndarray):
                result = mask_tools().decode(result.marked[0].masks[0]).astype(bool)
            dices[name].append(dice(result, turned))
    return {
        name: {
            "seconds": float(np.median(times[name][1:])) if times[name] else None,
            "dice": float(np.mean(dices[name])),
        }
        for name in times
    }


def dice(mask: np.ndarray, other_mask: np.ndarray) -> float:
    """Of two masks."""
    return float(2 * (mask & other_mask).sum() / (mask.sum() + other_mask.sum()))


def objects() -> dict[str, list[float]]:
    """F1 of each method of existence, for each seed."""
    scores: dict[str, list[float]] = {name: [] for name in EXISTS}
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
        crowd = table_of(images)
        for name in EXISTS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = MatchedObjects(exists=name).fit(crowd)
            right = sum(
                int((mask_tools().iou(image.boxes, true[task], [0] * len(true[task])) >= 0.5).any(axis=0).sum())
                for task, image in zip(result.tasks.tolist(), result.marked, strict=True) if image.regions
            )  # fmt: skip
            number = sum(len(image.regions) for image in result.marked) + sum(map(len, true.values()))
            scores[name].append(2 * right / number)
    return scores


def simulated() -> dict[str, dict[str, float]]:
    """Level of errors, and whether boxes touch -> mean overlap of an object -> F1."""
    scores: dict[str, dict[str, list[float]]] = {}
    for touch, how in (("", {}), (", touching", {"apart": 14, "number": (6, 16)})):
        for seed in (10, 11):
            for name, crowd, planted, true in planted_answers.regions(seed, **how):
                if "majority" in name:
                    continue
                level = ("planted" if planted else name.rpartition(", ")[2]) + touch
                for least in LEAST:
                    marked = MatchedObjects(least=least).fit(crowd).marked
                    scores.setdefault(level, {}).setdefault(f"{least}", []).append(f1_of_boxes(marked, true))
    return {level: {least: float(np.mean(values)) for least, values in rows.items()} for level, rows in scores.items()}


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


def points() -> dict[str, dict[str, float]]:
    """Method of existence -> distance of one object -> F1 of points, the mean of the seeds."""
    scores: dict[str, dict[str, list[float]]] = {name: {} for name in EXISTS}
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
        crowd = table_of(images)
        for name in EXISTS:
            for distance in DISTANCES:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    result = MatchedObjects(exists=name, distance=distance).fit(crowd)
                gold = np.array([true[task] for task in result.tasks.tolist()], object)
                scores[name].setdefault(f"{distance}", []).append(RegionScoring(15).score(gold, result.marked)["F1"])
    return {name: {each: float(np.mean(values)) for each, values in rows.items()} for name, rows in scores.items()}


def main() -> None:
    """Runs, saves and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the saved results")
    parts = {part.__name__: part for part in (masks, objects, simulated, points)}
    parser.add_argument("--only", choices=[*parts], help="the part to make again; the others stay as saved")
    arguments = parser.parse_args()
    if not arguments.print:
        saved = json.loads(RESULTS.read_text(encoding="utf-8")) if arguments.only else {}
        saved |= {name: part() for name, part in parts.items() if arguments.only in (None, name)}
        RESULTS.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
    saved = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = [(name, "-" if values["seconds"] is None else f"{values['seconds']:.4f}", f"{values['dice']:.4f}")
            for name, values in saved["masks"].items()]  # fmt: skip
    print_table("an image, 427 x 640, five annotators", ("", "seconds", "Dice"), rows)
    rows = [
        (name, f"{np.mean(values):.4f}", f"{np.std(values, ddof=1):.4f}") for name, values in saved["objects"].items()
    ]
    print_table("objects by method of existence", ("", "F1", "spread of seeds"), rows)
    rows = [(level, *(f"{value:.4f}" for value in values.values())) for level, values in saved["simulated"].items()]
    print_table("F1 by the mean overlap of an object, simulated crowds", ("", *map(str, LEAST)), rows)
    rows = [(name, *(f"{value:.4f}" for value in values.values())) for name, values in saved["points"].items()]
    print_table("F1 of points by the distance of one object, pixels", ("", *map(str, DISTANCES)), rows)


if __name__ == "__main__":
    main()
