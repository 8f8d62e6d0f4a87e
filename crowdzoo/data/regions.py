"""MarkedImage: the regions that one annotator marked on one image, as masks, boxes or points."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.errors import ConfigError, DataError, short_repr
from crowdzoo.files.json import JsonError, parse_json

OUTSIDE = 1.0  # pixels by which an edge may lie outside the image, as tools round; it is moved to the image's edge
RADIUS = 0.03  # default distance within which two points are one object, as a fraction of the image's diagonal

Box = tuple[float, float, float, float]
Point = tuple[float, float]
Covariance = tuple[tuple[float, ...], ...]
Codes = NDArray[np.int64]


class Mask(TypedDict):
    """A mask in the format of pycocotools."""

    size: list[int]  # height, width
    counts: bytes


def mask_tools() -> ModuleType:
    """Imports the module `pycocotools.mask`.

    Raises:
        ConfigError: pycocotools, or Pillow, which reads and writes PNG, is not installed.
    """
    try:
        import PIL  # noqa: F401
        from pycocotools import mask
    except ImportError:
        raise ConfigError("regions need pycocotools and Pillow: pip install 'crowdzoo[regions]'") from None
    module: ModuleType = mask
    return module


def run_lengths(counts: str) -> Codes:
    """Decodes COCO's compressed counts: lengths of a mask's runs, column by column, alternately outside and inside.

    Raises:
        DataError: invalid counts.
    """
    letters = np.frombuffer(counts.encode("latin-1", "replace"), np.uint8).astype(np.int64) - 48
    ends = np.flatnonzero(letters & 32 == 0)
    lengths = ends.copy()
    lengths[1:] -= ends[:-1]
    lengths[:1] += 1
    if not len(ends) or ends[-1] + 1 < len(letters) or lengths.max() > 7 or letters.min() < 0 or letters.max() > 63:
        raise DataError("is not a mask of COCO. Export it again.")
    starts = ends + 1 - lengths
    places = np.arange(len(letters)) - np.repeat(starts, lengths)
    runs = np.add.reduceat((letters & 31) << 5 * places, starts) - ((letters[ends] >> 4 & 1) << 5 * lengths)
    for first in (1, 2):  # from the fourth run on, counts are differences to the run two places before
        runs[first::2] = np.cumsum(runs[first::2])
    return runs


def mask_of_runs(runs: ArrayLike, height: int, width: int) -> str:
    """Encodes runs (see `run_lengths`) as COCO's compressed counts."""
    mask = {"size": [height, width], "counts": np.asarray(runs, np.int64).tolist()}
    return str(mask_tools().frPyObjects(mask, height, width)["counts"], "ascii")


def mask_of_pixels(pixels: NDArray[np.bool_]) -> str:
    """Encodes an image, bool [height, width], as COCO's compressed counts."""
    return str(mask_tools().encode(np.asfortranarray(pixels, np.uint8))["counts"], "ascii")


@dataclass(frozen=True)
class Region:
    """One region.

    Attributes:
        label: name of its class.
        shape: a box (left, top, width, height, in pixels), a point (x, y), or a mask in COCO's compressed counts.
        score: confidence, from 0 to 1; None for regions by an annotator.
        category_id: number of the class in a COCO file; None if unknown. Ignored in comparisons.
        marked_by: number of annotators who marked an aggregated point; None for regions by an annotator.
        covariance: covariance of the annotators' x and y, in square pixels, 2 x 2; None for fewer than two annotators.
    """

    label: str
    shape: Box | Point | str
    score: float | None = None
    category_id: int | None = field(default=None, compare=False)
    marked_by: int | None = None
    covariance: Covariance | None = None

    @property
    def is_point(self) -> bool:
        """Whether the shape is a point."""
        return len(self.shape) == 2 and not isinstance(self.shape, str)


@dataclass(frozen=True, eq=False)
class MarkedImage:
    """The regions that one annotator marked on one image; without regions, the annotator saw it and marked nothing.

    They are the `Annotations.values` of kind "region"; files contain their `text`. Images with equal text are equal.

    Attributes:
        height: height of the image, in pixels.
        width: width of the image, in pixels.
        regions: the regions in the order in which they were marked.
        image_id: number of the image in a COCO file; None if unknown.

    Examples:
        >>> from crowdzoo.data.regions import MarkedImage
        >>> image = MarkedImage.of((4, 6), [{"category": "cat", "bbox": [1, 1, 2, 3]}])
        >>> image.text
        '{"size": [4, 6], "regions": [{"category": "cat", "bbox": [1.0, 1.0, 2.0, 3.0]}]}'
        >>> MarkedImage.parse(image.text).regions == image.regions
        True
    """

    height: int
    width: int
    regions: tuple[Region, ...] = ()
    image_id: int | None = None

    @classmethod
    def of(cls, size: Sequence[int], entries: Iterable[Mapping[str, Any]], image_id: object = None) -> MarkedImage:
        """Creates an image from its regions and checks them.

        Args:
            size: height and width of the image.
            entries: one mapping per region, with `category` and one of `bbox` ([left, top, width, height]), `polygons`
                (lists of alternating x and y), `counts` (of a mask: a list, or COCO's compressed counts) and `point`
                ([x, y]); optionally `score` and `category_id`, for an aggregated point also `marked_by` and
                `covariance`.
            image_id: see the class. Ids of images and categories that are not integers are dropped.

        Raises:
            DataError: an invalid size, category or shape; the message names the entry, the value and the fix.
        """
        if [*map(type, size)] != [int, int] or min(size) < 1 or size[0] * size[1] >= 1 << 31:
            raise DataError(f"the image is of size {short_repr(size)}. Write height and width in pixels.")
        regions = []
        for place, entry in enumerate(entries, start=1):
            label, forms = entry.get("category"), [form for form in _CHECKED if entry.get(form) is not None]
            where = f"region {place} ({label})"
            if not isinstance(label, str) or not label.strip() or len(forms) != 1:
                raise DataError(f"{where}: give it a category and one of {', '.join(_CHECKED)}.")
            if entry.get("size", size) != size:
                raise DataError(f"{where} is of size {entry['size']}, and the image {size}. Correct one of them.")
            try:
                shape = _CHECKED[forms[0]](entry[forms[0]], *size)
                category_id, marked_by = _number(entry.get("category_id")), _number(entry.get("marked_by"))
                spread = _covariance(entry.get("covariance"))
                regions.append(Region(label, shape, entry.get("score"), category_id, marked_by, spread))
            except (DataError, TypeError, ValueError, OverflowError, AttributeError) as error:
                why = error if isinstance(error, DataError) else "is not made of numbers. Mark it again."
                raise DataError(f"{where}: {forms[0]} {short_repr(entry[forms[0]])} {why}") from None
        return cls(size[0], size[1], tuple(regions), _number(image_id))

    @classmethod
    def parse(cls, text: str) -> MarkedImage:
        """Parses a `text`; raises as `of`, and for text of another form."""
        try:
            value = parse_json(text)
            size, entries = [*value["size"]], [dict(entry) for entry in value["regions"]]
        except (JsonError, TypeError, KeyError, ValueError):
            form = '{"size": [height, width], "regions": [{"category": ..., "bbox": [...]}, ...]}'
            raise DataError(f"{short_repr(text)} holds no regions. Write {form}.") from None
        image = cls.of(size, entries, value.get("image_id"))
        image.__dict__["text"] = text  # unchanged, so that an image equals the one that was saved
        return image

    def rename(self, names: Mapping[str, str]) -> MarkedImage:
        """Renames classes, old -> new."""
        regions = (
            replace(region, label=names[region.label], category_id=None) if region.label in names else region
            for region in self.regions
        )
        return replace(self, regions=tuple(regions))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MarkedImage) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.height, self.width

    @property
    def distinct(self) -> MarkedImage:
        """The image without duplicate regions; itself if all differ."""
        regions = tuple(dict.fromkeys(self.regions))
        return self if len(regions) == len(self.regions) else replace(self, regions=regions)

    @cached_property
    def text(self) -> str:
        """The image as JSON for `parse`; `str(image)` is the same."""
        ids = {} if self.image_id is None else {"image_id": self.image_id}
        return json.dumps({"size": self.size, **ids, "regions": [*map(_entry, self.regions)]})

    @cached_property
    def masks(self) -> list[Mask]:
        """The regions as masks; boxes are filled, and a point is one pixel."""
        size, fill = [*self.size], mask_tools().frPyObjects
        shapes = [region.shape for region in self.regions]
        return [
            {"size": size, "counts": shape.encode()} if isinstance(shape, str) else fill(self._box(shape), *size)[0]
            for shape in shapes
        ]

    def _box(self, shape: Box | Point) -> NDArray[np.float64]:
        """A box in the format of pycocotools, [1, 4]; for a point its pixel."""
        pixel = np.minimum(np.floor(shape[:2]), (self.width - 1, self.height - 1))
        return np.array([shape if len(shape) == 4 else (*pixel, 1, 1)], np.float64)

    @cached_property
    def boxes(self) -> NDArray[np.float64]:
        """Left, top, width and height of the regions, [n, 4]; for points width and height are 0."""
        shapes = zip((region.shape for region in self.regions), self.masks, strict=True)
        boxes = [mask_tools().toBbox(mask) if isinstance(shape, str) else (*shape, 0, 0)[:4] for shape, mask in shapes]
        return np.array(boxes, np.float64).reshape(-1, 4)

    @cached_property
    def points(self) -> dict[str, NDArray[np.float64]]:
        """Class -> x and y of its points, [n, 2]."""
        places: dict[str, list[Any]] = {}
        for region in self.regions:
            if region.is_point:
                places.setdefault(region.label, []).append(region.shape)
        return {label: np.array(of_class, np.float64) for label, of_class in places.items()}

    @property
    def num_points(self) -> int:
        """Number of regions that are points."""
        return sum(map(len, self.points.values()))

    @cached_property
    def of_classes(self) -> dict[str, Mask]:
        """Class -> the mask of all its regions that are not points."""
        masks: dict[str, list[Mask]] = {}
        if not all(region.is_point for region in self.regions):
            for region, mask in zip(self.regions, self.masks, strict=True):
                if not region.is_point:
                    masks.setdefault(region.label, []).append(mask)
        return {label: mask_tools().merge(parts) for label, parts in masks.items()}

    @cached_property
    def ends(self) -> dict[str, Codes]:
        """Class -> where the runs of its mask end (see `run_lengths`)."""
        return {label: np.cumsum(run_lengths(str(mask["counts"], "ascii"))) for label, mask in self.of_classes.items()}


def dice(first: MarkedImage, second: MarkedImage, radius: float | None = None) -> float:
    """Dice coefficient: twice the pixels that both give the same class, over the pixels of both; 1 if both are empty.

    A pixel with two classes counts twice. Intersection over union is d / (2 - d). For points the coefficient is their
    F1, the share of points that `matched_points` pairs. With both masks and points it is the mean of the two.

    Args:
        first: regions of an image.
        second: other regions, of an image of the same size.
        radius: matching radius of points, in pixels; None: `RADIUS` times the diagonal.

    Raises:
        DataError: the images differ in size.
    """
    if first.size != second.size:
        sizes = f"{first.height} x {first.width} and {second.height} x {second.width}"
        raise DataError(f"regions of images of {sizes} pixels cannot be compared. Correct the size of one of them.")
    tools, left, right = mask_tools(), first.of_classes, second.of_classes
    shared = [tools.merge([mask, right[label]], intersect=True) for label, mask in left.items() if label in right]
    total = float(sum(map(tools.area, (*left.values(), *right.values()))))
    shares = [2 * float(sum(map(tools.area, shared))) / total] if total else []
    if number := first.num_points + second.num_points:
        shares.append(2 * len(matched_points(first, second, radius)) / number)
    return sum(shares) / len(shares) if shares else 1.0


def matched_points(first: MarkedImage, second: MarkedImage, radius: float | None = None) -> NDArray[np.float64]:
    """Matches points of the same class within a radius, as many and as close as possible, and returns their distances.

    Args:
        first: regions of an image.
        second: other regions, of an image of the same size.
        radius: radius in pixels; None: `RADIUS` times the diagonal.

    Returns:
        Distance of each pair, in pixels; a point is in at most one pair.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    radius, distances = radius_of(first, radius), [np.empty(0)]
    for label in first.points.keys() & second.points.keys():
        apart = cdist(first.points[label], second.points[label])
        # a pair within the radius outweighs any saving in distance
        pairs = linear_sum_assignment(np.where(apart <= radius, apart - radius * (1 + min(apart.shape)), 0))
        distances.append(apart[pairs][apart[pairs] <= radius])
    return np.concatenate(distances)


def radius_of(image: MarkedImage, radius: float | None = None) -> float:
    """The radius in pixels within which two points of an image are one; None: `RADIUS` times the diagonal."""
    return float(RADIUS * np.hypot(*image.size)) if radius is None else radius


def _entry(region: Region) -> dict[str, Any]:
    known: dict[str, Any] = {} if region.category_id is None else {"category_id": region.category_id}
    known |= {"counts" if isinstance(region.shape, str) else "point" if region.is_point else "bbox": region.shape}
    score = None if region.score is None else round(region.score, 6)
    more = {"score": score, "marked_by": region.marked_by, "covariance": region.covariance}
    return {"category": region.label, **known, **{name: value for name, value in more.items() if value is not None}}


def _number(value: object) -> int | None:
    return value if type(value) is int else None


def _covariance(value: ArrayLike | None) -> Covariance | None:
    return None if value is None else tuple(map(tuple, np.array(value, np.float64).reshape(2, 2).tolist()))


def _inside(points: NDArray[np.float64], height: int, width: int) -> NDArray[np.float64]:
    """Moves points [n, 2] of x and y that lie slightly outside to the image's edge."""
    if not np.isfinite(points).all():
        raise DataError("has a number that is not finite. Mark it again, or leave it out.")
    inside = np.minimum(np.maximum(points, 0), (width, height))
    if (np.abs(points - inside) > OUTSIDE).any():
        raise DataError(f"lies outside of the image, {width} x {height} pixels. Correct it, or the size of the image.")
    return inside


def _box(value: ArrayLike, height: int, width: int) -> Box:
    box = np.array(value, np.float64)
    if box.shape != (4,):
        raise DataError("is not left, top, width and height. Write four numbers.")
    left, top, box_width, box_height = box.tolist()
    right, bottom = left + box_width, top + box_height
    if not (min(left, top) >= 0 and right <= width and bottom <= height):
        (left, top), (right, bottom) = _inside(np.array([[left, top], [right, bottom]]), height, width).tolist()
    if right <= left or bottom <= top:
        raise DataError("has no area. Mark it again, or leave it out.")
    return left, top, right - left, bottom - top


def _point(value: ArrayLike, height: int, width: int) -> Point:
    point = np.array(value, np.float64)
    if point.shape != (2,):
        raise DataError("is not x and y. Write two numbers.")
    x, y = _inside(point[None], height, width)[0].tolist()
    return x, y


def _polygons(value: Iterable[ArrayLike], height: int, width: int) -> str:
    parts = [np.array(part, np.float64) for part in value]
    if not parts or any(part.ndim != 1 or len(part) % 2 or len(part) < 6 for part in parts):
        raise DataError("has a polygon of fewer than three points. Mark it again, or leave it out.")
    inside = [_inside(part.reshape(-1, 2), height, width).ravel().tolist() for part in parts]
    merged = mask_tools().merge(mask_tools().frPyObjects(inside, height, width))
    return _counts(str(merged["counts"], "ascii"), height, width)


def _counts(value: str | list[int], height: int, width: int) -> str:
    runs = np.array(value, np.int64) if isinstance(value, list) else run_lengths(value)
    if ((runs < 0) | (runs > height * width)).any() or runs.sum() != height * width:
        total = f"{height} x {width} = {height * width:,}"
        raise DataError(f"sum to {runs.sum():,} pixels, but the image has {total}. Correct them, or the size.")
    if len(runs) < 2:
        raise DataError("covers no pixel. Mark it again, or leave it out.")
    return mask_of_runs(runs, height, width) if isinstance(value, list) else value


_CHECKED: dict[str, Callable[[Any, int, int], Box | Point | str]] = {
    "bbox": _box,
    "polygons": _polygons,
    "counts": _counts,
    "point": _point,
}
