"""Regions of images: the value, three methods against SimpleITK, Crowd-Kit and numbers by hand, and what is refused."""

import json
import sys

import numpy as np
import pytest

from crowdzoo.aggregation import REGION_METHODS, STAPLE, MatchedObjects, PixelVote, RegionAggregation, create
from crowdzoo.aggregation.base import VotesWarning
from crowdzoo.data.regions import MarkedImage, dice, mask_of_pixels, mask_of_runs, run_lengths
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.tables import Annotations

tools = pytest.importorskip("pycocotools.mask")
SIZE = (24, 32)


def crowd_of(answers, size=SIZE):
    """Annotations of {image: {annotator: [(class, box or pixels), ...]}}."""
    rows = []
    for task, of_image in answers.items():
        for who, regions in of_image.items():
            entries = [
                {"category": label, "counts": mask_of_pixels(shape)} if isinstance(shape, np.ndarray)
                else {"category": label, "bbox": list(shape)}
                for label, shape in regions
            ]  # fmt: skip
            rows.append((task, who, MarkedImage.of(size, entries)))
    return Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="region")


def noisy(seed, errors=(0.05, 0.1, 0.2, 0.3), size=SIZE):
    """A disc, and what annotators mark of it; bool [R, height, width]."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: size[0], : size[1]]
    true = (x - 14 + seed) ** 2 + (y - 11) ** 2 < 50
    return np.array([true ^ (rng.random(size) < error) for error in errors])


def pixels_of(image, label="cat"):
    masks = [mask for region, mask in zip(image.regions, image.masks, strict=True) if region.label == label]
    return np.any([tools.decode(mask) for mask in masks], axis=0) if masks else np.zeros(SIZE, bool)


# === The value ===


def test_runs_are_those_of_the_pixels_and_come_back():
    rng = np.random.default_rng(0)
    for share in (0.02, 0.5, 0.9, 1.0):
        pixels = rng.random(SIZE) < share
        counts = mask_of_pixels(pixels)
        runs = run_lengths(counts)
        np.testing.assert_array_equal(np.repeat(np.arange(len(runs)) % 2 == 1, runs), pixels.ravel(order="F"))
        assert mask_of_runs(runs, *SIZE) == counts
    large = np.zeros((1500, 2000), bool)
    large[1400:, 1900:] = True
    assert run_lengths(mask_of_pixels(large)).sum() == large.size


def test_polygons_runs_and_boxes_of_one_square_are_one_mask():
    square = [[4, 2, 10, 2, 10, 8, 4, 8]]
    runs = [4 * 24 + 2] + [6, 18] * 5 + [6, 24 * 32 - 10 * 24 + 16]
    images = [MarkedImage.of(SIZE, [{"category": "cat", **shape}])
              for shape in ({"polygons": square}, {"counts": runs}, {"bbox": [4, 2, 6, 6]})]  # fmt: skip
    assert len({tools.merge(image.masks)["counts"] for image in images}) == 1
    assert [image.boxes.tolist() for image in images] == [[[4, 2, 6, 6]]] * 3
    assert dice(*images[:2]) == 1
    assert MarkedImage.parse(images[0].text).regions == images[0].regions


def test_dice_by_hand():
    one = MarkedImage.of(SIZE, [{"category": "cat", "bbox": [0, 0, 4, 4]}, {"category": "dog", "bbox": [9, 9, 2, 2]}])
    other = MarkedImage.of(SIZE, [{"category": "cat", "bbox": [2, 0, 4, 4]}, {"category": "cat", "bbox": [9, 9, 2, 2]}])
    assert dice(one, other) == pytest.approx(2 * 8 / (20 + 20))
    assert dice(MarkedImage(*SIZE), MarkedImage(*SIZE)) == 1
    assert dice(MarkedImage(*SIZE), one) == 0


BAD = {
    "bbox [30, 2, 9, 2] lies outside of the image, 32 x 24 pixels": {"bbox": [30, 2, 9, 2]},
    "bbox [3, 2, 0, 2] has no area": {"bbox": [3, 2, 0, 2]},
    "not left, top, width and height": {"bbox": [3, 2, 5]},
    "has a number that is not finite": {"bbox": [3, 2, float("nan"), 2]},
    "is not made of numbers": {"bbox": [3, 2, "wide", 2]},
    "polygon of fewer than three points": {"polygons": [[1, 2, 3, 4]]},
    "lies outside of the image": {"polygons": [[1, 2, 3, 4, 5, 60]]},
    "sum to 700 pixels, but the image has 24 x 32 = 768": {"counts": [500, 200]},
    "sum to 768": {"counts": [800, -32]},
    "is not a mask of COCO": {"counts": "\xe9"},
    "covers no pixel": {"counts": [768]},
    "is of size [4, 4], and the image (24, 32)": {"counts": [768], "size": [4, 4]},
    "give it a category and one of": {"bbox": [1, 2, 3, 4], "counts": [768]},
}


@pytest.mark.parametrize("words", BAD)
def test_shapes_that_cannot_be_are_refused(words):
    words, entry = ("the image has", BAD[words]) if words == "sum to 768" else (words, BAD[words])
    with pytest.raises(DataError) as caught:
        MarkedImage.of(SIZE, [{"category": "cat", "bbox": [1, 1, 2, 2]}, {"category": "dog", **entry}])
    assert words in str(caught.value)
    assert "region 2 (dog)" in str(caught.value)


@pytest.mark.parametrize("size", [(0, 4), (4,), (4, 4.0), ("4", 4), (1 << 20, 1 << 20)])
def test_sizes_that_cannot_be_are_refused(size):
    with pytest.raises(DataError, match=r"the image is of size .* Write height and width in pixels"):
        MarkedImage.of(size, [])


def test_edges_a_little_outside_are_moved_to_the_edge():
    found = MarkedImage.of(SIZE, [{"category": "cat", "bbox": [-0.5, 20, 4.5, 4.9]}])
    assert found.regions[0].shape == (0, 20, 4, 4)


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    with pytest.raises(ConfigError, match=r"pip install 'crowdzoo\[regions\]'"):
        mask_of_pixels(np.ones(SIZE, bool))


# === The methods ===

# of SimpleITK 2.5.7's STAPLEImageFilter on `noisy(0)`: sensitivity, specificity
SENSITIVITY = [0.83664352, 0.848739264, 0.674567243, 0.660112285]
SPECIFICITY = [0.975979634, 0.901545029, 0.802719949, 0.716813497]


def one_image(seed=0, **how):
    masks = noisy(seed, **how)
    return masks, crowd_of({1: {f"w{who}": [("cat", mask)] for who, mask in enumerate(masks)}})


def test_staple_has_the_saved_numbers_of_simpleitk():
    _, crowd = one_image()
    found = STAPLE().fit(crowd)
    assert found.sensitivity.ravel().tolist() == pytest.approx(SENSITIVITY, abs=1e-6)
    assert found.specificity.ravel().tolist() == pytest.approx(SPECIFICITY, abs=1e-6)
    assert found.converged


def test_several_images_share_what_is_learnt_of_an_annotator():
    """Of images of one size that all annotators saw, with equal priors: as one image beside the other."""
    masks = noisy(0)
    apart = crowd_of({task: {f"w{who}": [("cat", mask)] for who, mask in enumerate(masks)} for task in (1, 2)})
    beside = np.concatenate([masks, masks], axis=2)
    together = crowd_of({1: {f"w{who}": [("cat", mask)] for who, mask in enumerate(beside)}}, (24, 64))
    np.testing.assert_allclose(STAPLE().fit(apart).sensitivity, STAPLE().fit(together).sensitivity, atol=1e-9)


def test_classes_are_decided_each_for_itself():
    masks, others = noisy(0), noisy(3)
    both = {
        f"w{who}": [("cat", mask), ("dog", other)] for who, (mask, other) in enumerate(zip(masks, others, strict=True))
    }
    found = STAPLE().fit(crowd_of({1: both}))
    alone = [STAPLE().fit(crowd_of({1: {who: [regions[place]] for who, regions in both.items()}})) for place in (0, 1)]
    for place, each in enumerate(alone):
        np.testing.assert_allclose(found.sensitivity[:, place], each.sensitivity[:, 0], atol=1e-12)
    assert found.classes.tolist() == ["cat", "dog"]


@pytest.mark.parametrize("number", [3, 4])
def test_the_pixel_vote_equals_crowd_kit_with_ties(number):
    kit, pandas = pytest.importorskip("crowdkit.aggregation"), pytest.importorskip("pandas")
    masks = noisy(0, errors=(0.2,) * number)
    frame = pandas.DataFrame({"task": 1, "worker": range(number), "segmentation": list(masks)})
    expected = kit.SegmentationMajorityVote().fit_predict(frame)[1]
    found = PixelVote().fit(crowd_of({1: {f"w{who}": [("cat", mask)] for who, mask in enumerate(masks)}}))
    np.testing.assert_array_equal(pixels_of(found.marked[0]), expected)
    assert found.confidence[0] == pytest.approx(np.maximum(masks.mean(0), 1 - masks.mean(0))[masks.any(0)].mean())


BOXES = {
    1: {"ann": [("cat", (2, 2, 10, 10)), ("dog", (20, 4, 8, 8))],
        "bob": [("cat", (3, 2, 10, 10))],
        "cem": [("cat", (2, 4, 10, 10)), ("dog", (20, 5, 8, 8)), ("dog", (0, 18, 4, 4))]},
    2: {"ann": [], "bob": [], "cem": [("cat", (1, 1, 5, 5))]},
}  # fmt: skip


def test_boxes_are_matched_and_have_median_edges():
    found = MatchedObjects(exists="majority-vote").fit(crowd_of(BOXES))
    first = {region.label: region for region in found.marked[0].regions}
    assert first["cat"].shape == (2, 2, 10, 10)  # medians of 2 3 2, 2 2 4, 12 13 12, 12 12 14
    assert first["dog"].shape == (20, 4.5, 8, 8)  # of two: their mean
    assert (first["cat"].score, first["dog"].score) == (1, pytest.approx(2 / 3))
    assert found.marked[1].regions == ()
    assert found.confidence.tolist() == pytest.approx([(1 + 2 / 3 + 2 / 3) / 3, 2 / 3])
    assert found.agreement[1] < 1


def test_an_object_has_one_region_of_an_annotator():
    twice = {
        "ann": [("cat", (2, 2, 10, 10)), ("cat", (3, 2, 10, 10))],
        "bob": [("cat", (2, 2, 10, 10)), ("cat", (3, 2, 10, 10))],
    }
    found = MatchedObjects().fit(crowd_of({1: twice}))
    assert sorted(region.shape for region in found.marked[0].regions) == [(2, 2, 10, 10), (3, 2, 10, 10)]


@pytest.mark.filterwarnings("ignore:dawid-skene. Class 'dog' is the label of no task")
def test_the_class_of_an_object_is_decided_with_its_existence():
    said = {who: [(label, (2, 2, 10, 10))] for who, label in (("ann", "cat"), ("bob", "cat"), ("cem", "dog"))}
    with pytest.warns(VotesWarning, match="Class 'dog' is that of no object"):
        found = MatchedObjects().fit(crowd_of(dict.fromkeys(range(5), said)))
    assert {region.label for image in found.marked for region in image.regions} == {"cat"}
    assert found.num_iterations > 1


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_edges_are_those_of_annotators_with_more_skill():
    right, wrong = [("cat", (2, 2, 10, 10))], [("dog", (2, 2, 10, 10))]
    said = {task: {"ann": right, "bob": wrong, "cem": wrong, "dan": right, "eve": right} for task in range(9)}
    said[9] = {who: [("cat", (place, place, 10, 10))] for who, place in (("ann", 2), ("bob", 4), ("cem", 4))}
    for exists, place in (("wawa", 2), ("majority-vote", 4)):
        assert MatchedObjects(exists=exists).fit(crowd_of(said)).marked[9].regions[0].shape == (place, place, 10, 10)


def test_masks_of_an_object_are_voted_on():
    masks = noisy(0, errors=(0, 0.02, 0.02))
    found = MatchedObjects().fit(crowd_of({1: {f"w{who}": [("cat", mask)] for who, mask in enumerate(masks)}}))
    np.testing.assert_array_equal(pixels_of(found.marked[0]), masks.mean(axis=0) > 0.5)


@pytest.mark.parametrize("method", REGION_METHODS)
def test_every_method_has_numbers_for_every_annotator_and_is_read_again(method, tmp_path):
    """One annotator saw one image, one never a dog, one image is empty for all, one class is marked by one alone."""
    answers = {**BOXES, 3: {"ann": [], "bob": [], "dan": [("bird", (2, 2, 3, 3))]}, 4: {"ann": [], "bob": []}}
    crowd = crowd_of(answers)
    found = create(method, kind="region").fit(crowd)
    for values in (found.confidence, found.agreement, found.sensitivity, found.specificity):
        assert values is None or np.isfinite(values).all()
    assert found.confidence[3] == 1
    assert found.marked[3].regions == ()
    again = RegionAggregation.from_parquet(found.to_parquet(tmp_path / "out"))
    assert again.marked.tolist() == found.marked.tolist()
    assert again.classes.tolist() == found.classes.tolist() == ["bird", "cat", "dog"]
    assert (again.sensitivity is None) == (found.sensitivity is None)
    coco = json.loads((tmp_path / "out" / "regions.json").read_text())
    assert [image["file_name"] for image in coco["images"]] == ["1", "2", "3", "4"]
    names = {each["id"]: each["name"] for each in coco["categories"]}
    regions = [(each["image_id"], names[each["category_id"]], each["score"]) for each in coco["annotations"]]
    assert (1, "cat", pytest.approx(1, abs=0.35)) in regions
    assert found.to_frame()["regions"].tolist() == [image.text for image in found.marked]


@pytest.mark.parametrize("method", REGION_METHODS)
def test_images_that_nobody_saw_have_no_regions(method):
    crowd = crowd_of({"a": {"ann": [("cat", (2, 2, 10, 10))]}})
    more = Annotations.from_arrays(["a"], ["ann"], [crowd.values[0]], kind="region", tasks=["a", "b"])
    found = create(method, kind="region").fit(more)
    assert found.confidence.tolist() == pytest.approx([1, 0], abs=1e-3)
    assert found.marked[1] is None
    assert found.to_coco()["images"] == [{"id": 1, "file_name": "a", "height": 24, "width": 32}]


def test_what_is_no_table_of_regions_is_refused():
    with pytest.raises(DataError, match="'region'"):
        PixelVote().fit(Annotations.from_arrays([1, 1], ["ann", "bob"], ["a", "b"]))
    two = [MarkedImage(4, 4), MarkedImage(4, 5)]
    with pytest.raises(DataError, match=r"image 1 .* 4 x 5 .*'bob', and 4 x 4 by 'ann'"):
        STAPLE().fit(Annotations.from_arrays([1, 1], ["ann", "bob"], two, kind="region"))
    with pytest.raises(ConfigError, match="exists"):
        MatchedObjects(exists="nearest")
    nobody = crowd_of({1: {"ann": []}}).select_rows(np.array([False]))
    with pytest.raises(DataError, match="needs at least one answer"):
        MatchedObjects().fit(nobody)


@pytest.mark.parametrize("method", ["majority-vote", "staple"])
def test_whole_images_and_answers_that_contradict_each_other_give_numbers(method):
    full = np.ones(SIZE, bool)
    left, right = full.copy(), full.copy()
    left[:, 16:], right[:, :16] = False, False
    answers = {1: (full, full), 2: (left, right)}
    crowd = {task: {f"w{who}": [("cat", each)] for who, each in enumerate(both)} for task, both in answers.items()}
    found = create(method, kind="region").fit(crowd_of(crowd))
    assert pixels_of(found.marked[0]).all()
    assert np.isfinite(found.confidence).all()
    assert np.isfinite(found.agreement).all()
    assert found.sensitivity is None or (np.isfinite(found.sensitivity) & np.isfinite(found.specificity)).all()
