"""Points on images: the value, their objects, and numbers against SciPy, brute force and a simulated crowd."""

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from point_crowds import SIZE, image_of, simulated
from refusals import about
from scipy.cluster.hierarchy import fcluster, linkage

from crowdzoo.aggregation import MatchedObjects, PixelVote, RegionAggregation
from crowdzoo.aggregation.regions.objects import Objects
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.data.regions import MarkedImage, Region, dice, matched_points, radius_of
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.regions.scoring import RegionScoring
from crowdzoo.tables import Annotations

pytest.importorskip("pycocotools")


def crowd_of(marked, task=1):
    """Annotations of one image: {annotator: image}."""
    return Annotations.from_arrays([task] * len(marked), [*marked], [*marked.values()], kind="region")


# === The value ===


def test_a_point_is_written_and_read_again():
    entry = {"category": "nest", "point": [3, 4.5], "score": 0.5, "marked_by": 3, "covariance": [[1, 0.5], [0.5, 2]]}
    image = MarkedImage.of((10, 20), [entry])
    assert image.regions == (Region("nest", (3.0, 4.5), 0.5, None, 3, ((1.0, 0.5), (0.5, 2.0))),)
    again = MarkedImage.parse(image.text)
    assert again.regions == image.regions
    assert (again.regions[0].is_point, again.num_points, again.boxes.tolist()) == (True, 1, [[3, 4.5, 0, 0]])
    assert not MarkedImage.of((10, 20), [{"category": "nest", "bbox": [1, 1, 2, 2]}]).regions[0].is_point


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ([21.5, 4], "lies outside of the image, 20 x 10 pixels"),
        ([3, float("nan")], "has a number that is not finite"),
        ([3, 4, 5], "is not x and y. Write two numbers"),
        ("near the tree", "is not made of numbers"),
    ],
)
def test_points_that_cannot_be_are_refused(point, words):
    with pytest.raises(DataError, match=rf"region 1 \(nest\): point .*{words}"):
        MarkedImage.of((10, 20), [{"category": "nest", "point": point}])


# === Distances, against brute force ===


def most_pairs(first, second, radius):
    """Most pairs within a radius, and their least total distance, of all ways to pair."""
    best = (0, 0.0)
    if len(first) > len(second):
        first, second = second, first
    for order in permutations(range(len(second)), len(first)):
        apart = [np.hypot(*(first[left] - second[right])) for left, right in enumerate(order)]
        near = [distance for distance in apart if distance <= radius]
        best = max(best, (len(near), -sum(near)))
    return best[0], -best[1]


@pytest.mark.parametrize("seed", range(12))
def test_as_many_points_as_can_be_are_matched_as_near_as_can_be(seed):
    rng = np.random.default_rng(seed)
    first, second = (rng.uniform(0, 60, (rng.integers(1, 6), 2)) for _ in range(2))
    one, other = image_of(*first), image_of(*second)
    apart = matched_points(one, other, 20)
    count, total = most_pairs(first, second, 20)
    assert (len(apart), apart.sum()) == (count, pytest.approx(total))
    assert dice(one, other, 20) == pytest.approx(2 * count / (len(first) + len(second)))


def test_points_of_two_classes_are_not_matched_and_the_radius_has_a_default():
    one, other = image_of((100, 100)), image_of((100, 100), label="egg")
    assert dice(one, other) == 0
    assert radius_of(one) == pytest.approx(0.03 * 1000)  # of the diagonal of 600 x 800
    assert [dice(one, image_of((100 + far, 100))) for far in (29.9, 30.1)] == [1, 0]
    box = MarkedImage.of(SIZE, [{"category": "nest", "bbox": [0, 0, 4, 4]}, {"category": "nest", "point": [9, 9]}])
    shifted = MarkedImage.of(SIZE, [{"category": "nest", "bbox": [2, 0, 4, 4]}, {"category": "nest", "point": [9, 9]}])
    assert dice(box, shifted) == pytest.approx((0.5 + 1) / 2)  # the mean of pixels and points


# === Objects ===


def test_an_object_has_the_median_the_count_and_the_covariance_of_its_points():
    places = np.array([(100, 200), (104, 198), (99, 207), (103, 203)])
    marked = {f"w{place}": image_of(point, (400, 300)) for place, point in enumerate(places)}
    result = MatchedObjects(exists="majority-vote").fit(crowd_of({**marked, "w4": image_of((400, 300))}))
    first, second = sorted(result.marked[0].regions, key=lambda region: region.shape)
    assert first.shape == (np.median(places[:, 0]), np.median(places[:, 1]))
    np.testing.assert_allclose(first.covariance, np.cov(places.T))
    assert (first.marked_by, first.score) == (4, pytest.approx(4 / 5))
    assert (second.marked_by, second.covariance) == (5, ((0, 0), (0, 0)))


def test_an_object_has_one_point_of_an_annotator_and_one_alone_has_no_covariance():
    marked = {
        "ann": image_of((100, 100), (104, 100)),
        "bob": image_of((101, 100), (105, 100)),
        "cem": image_of((300, 9)),
    }
    result = MatchedObjects(exists="one-coin", distance=30).fit(crowd_of(dict(marked)))
    counts = {region.shape: region.marked_by for region in result.marked[0].regions}
    assert {(100.5, 100): 2, (104.5, 100): 2}.items() <= counts.items()
    alone = MatchedObjects().fit(crowd_of({"cem": marked["cem"]})).marked[0].regions[0]
    assert (alone.shape, alone.marked_by, alone.covariance) == ((300, 9), 1, None)


@pytest.mark.parametrize("seed", range(3))
def test_objects_are_the_clusters_of_scipy(seed):
    """Of annotators with one point each, so that it does not matter that an object has one of each."""
    places = np.random.default_rng(seed).uniform(0, 100, (30, 2))
    crowd = crowd_of({f"w{who:02}": image_of(place) for who, place in enumerate(places)})
    expected = fcluster(linkage(places, "average"), 25, "distance")
    objects = Objects.of(RegionTable.of(crowd, "test"), distance=25)
    clusters = {frozenset(row for row, _ in members) for members in objects.members}
    assert clusters == {frozenset(np.flatnonzero(expected == each).tolist()) for each in expected}
    assert 1 < len(clusters) < 30


def test_the_distance_decides_what_is_one_object():
    marked = crowd_of({"ann": image_of((100, 100)), "bob": image_of((110, 100))})
    counts = [MatchedObjects(distance=each).fit(marked).marked[0].regions[0].marked_by for each in (9, 11)]
    assert counts == [1, 2]
    for wrong in (0, -1, "near", float("nan")):
        with pytest.raises(ConfigError, check=about("distance")):
            MatchedObjects(distance=wrong)


def test_a_point_and_a_box_are_two_objects():
    entries = [{"category": "cat", "bbox": [10, 10, 20, 20]}, {"category": "cat.eye", "point": [20, 20]}]
    marked = {who: MarkedImage.of(SIZE, entries) for who in ("ann", "bob", "cem")}
    (image,) = MatchedObjects().fit(crowd_of(marked)).marked
    assert [region.shape for region in image.regions] == [(10, 10, 20, 20), (20, 20)]


def test_methods_for_pixels_refuse_points():
    with pytest.raises(DataError, match=r"Pixel vote decides pixels, but annotator 'bob' marked"):
        PixelVote().fit(crowd_of({"ann": image_of(), "bob": image_of((3, 4))}))


def test_a_result_with_points_is_written_and_read_again(tmp_path):
    crowd, _ = simulated(num_images=3)
    result = MatchedObjects(distance=25).fit(crowd)
    again = RegionAggregation.from_parquet(result.to_parquet(tmp_path / "out"))
    assert [image.regions for image in again.marked] == [image.regions for image in result.marked]
    assert again.distance == 25
    coco = json.loads((tmp_path / "out" / "regions.json").read_text())
    assert coco["categories"] == [{"id": 1, "name": "nest", "keypoints": ["nest"], "skeleton": []}]
    for each, region in zip(
        coco["annotations"], (each for image in result.marked for each in image.regions), strict=True
    ):
        assert each["keypoints"] == [*region.shape, 2]
        assert (each["marked_by"], each["num_keypoints"], each["area"]) == (region.marked_by, 1, 0)
    as_gold = Annotations.read(tmp_path / "out" / "regions.json", kind="region", platform="coco")
    assert [[region.shape for region in image.regions] for image in as_gold.values] == [
        [region.shape for region in image.regions] for image in result.marked
    ]


# === A simulated crowd ===


def test_points_of_a_simulated_crowd_are_found_and_those_who_err_are_named():
    """Of seven nests an image; the median of five annotators within 6 pixels is near 6 * 1.25 * 1.25 / sqrt(5) = 4."""
    crowd, truth = simulated()
    result = MatchedObjects().fit(crowd)
    gold = np.array([image_of(*truth[task]) for task in result.tasks], object)
    scores = RegionScoring(15).score(gold, result.marked)
    assert scores["F1"] > 0.97
    assert scores["distance"] < 6
    assert np.mean([len(image.regions) for image in result.marked]) == pytest.approx(7, abs=0.3)
    spread = [
        np.trace(region.covariance) for image in result.marked for region in image.regions if region.marked_by > 2
    ]
    # 6 ** 2 of x and of y, and of one in six who is 12 away (12 ** 2 * 5 / 6) / 5
    assert np.median(spread) == pytest.approx(2 * (36 + 24), rel=0.2)
    agreement = dict(zip(result.annotators.tolist(), result.agreement.tolist(), strict=True))
    assert max(agreement["misses"], agreement["invents"]) < min(agreement[who] for who in ("ann", "bob", "cem")) - 0.1


def test_scores_of_points_are_those_of_brute_force():
    crowd, truth = simulated(num_images=4)
    scoring, radius = RegionScoring(9), 9
    one = {who: row for row, who in enumerate(crowd.annotators.tolist())}["ann"]
    answers = [crowd.values[label] for label in crowd.labels[crowd.annotator_ids == one]]
    gold = [image_of(*truth[task]) for task in crowd.tasks]
    places = [image.points["nest"] for image in answers]
    right = sum(most_pairs(places[task], truth[task], radius)[0] for task in range(4))
    scores = scoring.score(np.array(gold, object), np.array(answers, object))
    marked, true = sum(map(len, places)), 28
    assert scores["precision"] == pytest.approx(right / marked)
    assert scores["recall"] == pytest.approx(right / true)
    assert scores["F1"] == pytest.approx(2 * right / (marked + true))
    nothing = np.array([replace(image, regions=()) for image in gold], object)
    empty = kind_of("region").scoring.score(np.array(gold, object), nothing)
    assert (empty["precision"], empty["recall"], empty["F1"], empty["dice"]) == (0, 0, 0, 0)
