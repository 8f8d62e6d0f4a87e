"""Points and keypoints in exports of Label Studio, CVAT and COCO, and the shapes that are named as left out."""

import json

import pytest
import studio_exports
from coco_files import coco_file
from studio_exports import annotation

from crowdzoo.commands.main import main
from crowdzoo.errors import DataError
from crowdzoo.kinds import kind_of
from crowdzoo.reading.platforms.label_config import read_label_config
from crowdzoo.reading.platforms.shapes import point_of
from crowdzoo.tables import Annotations

pytest.importorskip("pycocotools")


def points_of(path, platform, **options):
    """{(task, annotator): [(class, shape), ...]}."""
    crowd = Annotations.read(path, kind="region", platform=platform, **options)
    rows = zip(crowd.tasks[crowd.task_ids], crowd.annotators[crowd.annotator_ids], crowd.labels, strict=True)
    return {
        (task, who): [(region.label, region.shape) for region in crowd.values[code].regions] for task, who, code in rows
    }


def test_what_platforms_share_makes_a_point_of_numbers_or_texts():
    assert point_of("3", 4.5, "nest") == {"category": "nest", "point": [3.0, 4.5]}
    for x in (None, "left", [1]):
        with pytest.raises(DataError, match=r"region \(nest\): .* is not a shape"):
            point_of(x, 4, "nest")


# === Label Studio ===


def result(kind, name="tag", **value):
    return {"id": "r", "type": kind, "from_name": name, "to_name": "image", "original_width": 200,
            "original_height": 100, "image_rotation": 0, "value": value}  # fmt: skip


def task(*annotations):
    """An entry of an export; annotations are (annotator, results)."""
    answers = (annotation({"id": 4, "email": who}, *results) for who, results in annotations)
    return [studio_exports.task(5, *answers, data={"image": "/data/upload/1/a.jpg"})]


def test_label_studio_has_points_in_per_cent(write):
    place = {"x": 25, "y": 10, "width": 0.5}
    nose = result("keypointlabels", **place, keypointlabels=["nose"])
    in_labels = [result("labels", **place, labels=["ear"]), result("keypoint", **place)]
    path = write("a.json", task(("ann", [nose]), ("bob", in_labels), ("cem", [])))
    assert points_of(path, "label-studio") == {
        (5, "ann"): [("nose", (50, 10))],
        (5, "bob"): [("ear", (50, 10))],
        (5, "cem"): [],
    }


def test_points_of_label_studio_outside_of_the_image_are_named(write):
    nose = result("keypointlabels", x=25, y=120, width=0.5, keypointlabels=["nose"])
    with pytest.raises(DataError, match=r"row 1.*of annotator 'ann': region 1 .*: point .* lies out"):
        points_of(write("a.json", task(("ann", [nose | {"value": {**nose["value"], "keypointlabels": ["nest"]}}]))),
                  "label-studio")  # fmt: skip
    bad = result("keypointlabels", x="left", y=1, keypointlabels=["nose"])
    with pytest.raises(DataError, match=r"of annotator 'ann': region \(nose\): .* is not a shape"):
        points_of(write("a.json", task(("ann", [bad]))), "label-studio")


def test_a_control_for_points_asks_for_regions():
    image = '<Image name="image" value="$image"/>'
    tags = '<KeyPointLabels name="tag" toName="image"><Label value="nose"/></KeyPointLabels>'
    (control,) = read_label_config(f"<View>{image}{tags}</View>")
    assert (control.kind, control.classes) == ("region", ("nose",))
    labels = '<Labels name="tag" toName="image"><Label value="nose"/></Labels><KeyPoint name="p" toName="image"/>'
    assert read_label_config(f"<View>{image}{labels}</View>")[0].kind == "region"


# === CVAT ===


def cvat(shapes):
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n<version>1.1</version>\n'
        f'<image id="0" name="a.jpg" width="200" height="100">{shapes}</image>\n</annotations>\n'
    )


POINT = '<points label="{}" source="manual" outside="{}" occluded="0" points="{}"></points>'


def test_cvat_has_points_several_in_a_shape_and_those_of_skeletons(write):
    shapes = '<points label="nest" source="manual" occluded="0" points="1.00,2.50;30.00,40.00" z_order="0"></points>'
    joints = POINT.format("left", 0, "5.00,6.00") + POINT.format("right", 1, "7.00,8.00")
    shapes += f'<skeleton label="bird" source="manual" z_order="0">{joints}</skeleton>'
    shapes += '<polyline label="road" points="1.0,1.0;3.0,4.0"></polyline><cuboid label="box" xtl1="1"></cuboid>'
    shapes += '<points label="nest" points="9.00,9.00"></points>'
    not_read = ["skeletons, whose points are read without their edges"]
    not_read += [f"regions of type '{shape}', which are not read" for shape in ("polyline", "cuboid")]
    with pytest.warns(UserWarning, match="left out: " + "; ".join(f"{words}: 1" for words in not_read)):
        marked = points_of(write("ann.xml", cvat(shapes)), "cvat")
    nests = [("nest", (1, 2.5)), ("nest", (30, 40))]
    assert marked == {("a.jpg", "ann"): [*nests, ("bird.left", (5, 6)), ("nest", (9, 9))]}


@pytest.mark.parametrize("points", ["", "1.0", "1.0,2.0,3.0", "1.0,two"])
def test_points_of_cvat_that_are_none_are_named(write, points):
    path = write("ann.xml", cvat(f'<points label="nest" points="{points}"></points>'))
    with pytest.raises(DataError, match=r"row 4.*of annotator 'ann': region .nest.: .* not a shape"):
        points_of(path, "cvat")


# === COCO ===

SQUARE = [[10, 10, 20, 10, 20, 20, 10, 20]]


def coco(*annotations, keypoints=("nose", "tail")):
    marked = [{"image_id": 7, "category_id": 1, "iscrowd": 0, **each} for each in annotations]
    file = coco_file({7: "a.jpg"}, {1: "dog"}, marked, size=(100, 200))
    if keypoints:
        file["categories"][0] |= {"keypoints": [*keypoints], "skeleton": [[1, 2]]}
    return file


def test_coco_has_keypoints_which_were_marked(write):
    """A keypoint that is seen, one that is covered, and one that is not there."""
    both = {"keypoints": [5, 6, 2, 7, 8, 1], "num_keypoints": 2, "bbox": [5, 6, 2, 2], "segmentation": []}
    one = {"keypoints": [9, 9, 2, 0, 0, 0], "num_keypoints": 1, "bbox": [9, 9, 0, 0], "segmentation": []}
    of_two = "skeletons, whose points are read without their edges: 1; boxes of keypoints: 1"
    with pytest.warns(UserWarning, match=f"left out: {of_two}"):
        marked = points_of(write("ann.json", coco(both, one)), "coco")
    assert marked == {("a.jpg", "ann"): [("dog.nose", (5, 6)), ("dog.tail", (7, 8)), ("dog.nose", (9, 9))]}


def test_coco_may_have_keypoints_and_a_polygon_or_neither(write):
    shaped = {"keypoints": [9, 9, 2, 0, 0, 0], "num_keypoints": 1, "bbox": [10, 10, 10, 10], "segmentation": SQUARE}
    unmarked = {"keypoints": [0] * 6, "num_keypoints": 0, "bbox": [40, 40, 10, 10], "segmentation": []}
    ((point, polygon, box),) = points_of(write("ann.json", coco(shaped, unmarked)), "coco").values()
    assert (point, polygon[0], box) == (("dog.nose", (9, 9)), "dog", ("dog", (40, 40, 10, 10)))
    assert isinstance(polygon[1], str)


def test_an_annotation_of_coco_without_a_marked_keypoint_is_left_out(write):
    """As CVAT writes a skeleton that is outside; with a box it is one, also where the polygon is an empty list."""
    none = {"keypoints": [0] * 6, "num_keypoints": 0, "bbox": [0, 0, 0, 0], "segmentation": []}
    boxed = {"keypoints": [0] * 6, "num_keypoints": 0, "bbox": [40, 40, 10, 10], "segmentation": [[]]}
    with pytest.warns(UserWarning, match="left out: annotations without a marked keypoint: 2$"):
        marked = points_of(write("ann.json", coco(none, {**none, "bbox": []}, boxed)), "coco")
    assert marked == {("a.jpg", "ann"): [("dog", (40, 40, 10, 10))]}


def results_of(write, categories, points):
    """A crowd that marked keypoints, and results of COCO at the same places, as the report reads them."""
    crowd = Annotations.read(write("ann.json", coco(points, keypoints=categories)), kind="region", platform="coco")
    results = [{"image_id": 7, "category_id": 1, "keypoints": points["keypoints"], "score": 0.9}]
    return crowd, kind_of("region").reading.predictions_of(crowd, write("results.json", results), "")


def test_keypoints_of_results_of_coco_are_those_of_the_crowd_where_a_category_has_one(write):
    crowd, (image,) = results_of(write, ["dog"], {"keypoints": [9, 9, 2], "num_keypoints": 1})
    assert image.regions[0].label == crowd.values[0].regions[0].label == "dog"
    with pytest.raises(DataError, match=r"has keypoints, .* Give a whole file of COCO"):
        results_of(write, ["nose"], {"keypoints": [9, 9, 2], "num_keypoints": 1})


def test_a_keypoint_that_is_called_as_its_category_or_has_no_name(write):
    one = {"keypoints": [9, 9, 2], "num_keypoints": 1}
    for names, label in ((["dog"], "dog"), ([], "dog.1")):
        assert points_of(write("ann.json", coco(one, keypoints=names)), "coco") == {("a.jpg", "ann"): [(label, (9, 9))]}


@pytest.mark.parametrize("keypoints", [[1, 2], [1, "two", 2], [1], [300, 9, 2]])
def test_keypoints_that_cannot_be_are_named(write, keypoints):
    fits = [{"keypoints": keypoints, "num_keypoints": 1}]
    if len(keypoints) == 2:  # without a visibility they are read
        assert points_of(write("ann.json", coco(*fits)), "coco") == {("a.jpg", "ann"): [("dog.nose", (1, 2))]}
        return
    with pytest.raises(DataError, match=r"of annotator 'ann': region 1 \(dog.nose\): point"):
        points_of(write("ann.json", coco(*fits)), "coco")


# === All the way ===


@pytest.mark.parametrize("platform", ["label-studio", "cvat", "coco"])
def test_points_of_every_platform_are_aggregated_converted_and_written(write, tmp_path, platform):
    places = {"ann": (50, 10), "bob": (53, 10), "cem": (51, 13)}
    if platform == "label-studio":
        form = [
            (who, [result("keypointlabels", x=x / 2, y=y, keypointlabels=["nest"])]) for who, (x, y) in places.items()
        ]
        path = write("in/a.json", task(*form))
    for who, (x, y) in places.items():
        if platform == "cvat":
            path = write(f"in/{who}.xml", cvat(f'<points label="nest" points="{x}.00,{y}.00"></points>')).parent
        elif platform == "coco":
            point = {"keypoints": [x, y, 2], "num_keypoints": 1, "bbox": [x, y, 0, 0]}
            file = coco(point, keypoints=["nest"])
            file["categories"][0]["name"] = "nest"
            path = write(f"in/{who}.json", file).parent
    words = [str(path), "--kind", "region", "--platform", platform]
    assert main(["aggregate", *words, "--out", str(tmp_path / "out")]) == 0
    (region,) = json.loads((tmp_path / "out" / "regions.json").read_text())["annotations"]
    assert (region["keypoints"], region["marked_by"]) == ([51, 10, 2], 3)
    assert main(["convert", *words, "--out", str(tmp_path / "tables")]) == 0
    table = str(tmp_path / "tables" / "annotations.csv")
    assert main(["aggregate", table, "--kind", "region", "--out", str(tmp_path / "again")]) == 0
    assert json.loads((tmp_path / "again" / "regions.json").read_text())["annotations"] == [region]
