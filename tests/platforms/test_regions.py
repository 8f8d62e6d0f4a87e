"""Regions in Label Studio's JSON and in CVAT's XML: each shape, who marked it, and what cannot be a shape."""

import copy
import json

import numpy as np
import pytest
import studio_exports
from coco_files import coco_file
from studio_exports import annotation

from crowdzoo.commands.main import main
from crowdzoo.data.regions import MarkedImage
from crowdzoo.errors import DataError
from crowdzoo.tables import Annotations

tools = pytest.importorskip("pycocotools.mask")
SIZE = (6, 8)
MASK = np.zeros(SIZE, bool)
MASK[1:4, 2:7], MASK[4, 3] = True, True
# what label-studio-sdk 2.1.2's mask2rle and cvat-sdk 2.80's encode_mask make of MASK
RLE = [0, 0, 0, 192, 57, 27, 254, 39, 0, 194, 127, 246, 192, 48, 159, 253, 176, 12, 39, 255, 124, 2, 63, 252, 94, 0]
RUNS = "0, 15, 1, 1, 3"


def rows_of(path, platform, **options):
    """{(task, annotator): regions}, and the annotations."""
    crowd = Annotations.read(path, kind="region", platform=platform, **options)
    rows = zip(crowd.tasks[crowd.task_ids], crowd.annotators[crowd.annotator_ids], crowd.labels, strict=True)
    return {(task, who): crowd.values[code] for task, who, code in rows}, crowd


def check(image, expected):
    """An image has one region: a box, pixels, or those of a slice."""
    if isinstance(expected, tuple) and not isinstance(expected[0], slice):
        assert image.regions[0].shape == expected
        return
    wanted = np.zeros(SIZE, bool)
    wanted[expected] = True
    np.testing.assert_array_equal(tools.decode(image.masks[0]) > 0, wanted)


# === Label Studio ===


def marked(kind, name="tag", more=None, **value):
    return {"id": "r", "type": kind, "from_name": name, "to_name": "image", "original_width": 8, "original_height": 6,
            "image_rotation": 0, "value": {kind: ["cat"], **value}, **(more or {})}  # fmt: skip


def task(*annotations, number=1):
    """An entry of an export; annotations are (annotator, results)."""
    answers = (annotation({"id": 4, "email": who}, *results, lead_time=2.5) for who, results in annotations)
    return studio_exports.task(number, *answers, data={"image": f"/data/upload/1/{number}-a.jpg"})


BOX = {"x": 25, "y": 50, "width": 50, "height": 25, "rotation": 0}  # per cent of 8 x 6: 2, 3, 4, 1.5
SHAPES = {
    "a box": (marked("rectanglelabels", **BOX), (2, 3, 4, 1.5)),
    "a box of Labels": (marked("labels", **BOX), (2, 3, 4, 1.5)),
    # corners by label-studio-sdk's convert_annotation_to_yolo_obb: (4, 1) (4, 5) (2, 5) (2, 1)
    "a box turned by 90 degrees": (
        marked("rectanglelabels", x=50, y=100 / 6, width=50, height=100 / 3, rotation=90), np.s_[1:5, 2:4]
    ),
    "a box turned out of the image": (
        marked("rectanglelabels", x=50, y=50, width=50, height=100 / 3, rotation=90), np.s_[3:6, 2:4]
    ),
    "a polygon": (
        marked("polygonlabels", points=[[25, 50], [75, 50], [75, 100], [25, 100]], closed=True), np.s_[3:6, 2:6]
    ),
    "a mask": (marked("brushlabels", format="rle", rle=RLE), MASK),
}  # fmt: skip


@pytest.mark.parametrize("what", SHAPES)
def test_label_studio_has_shapes_in_per_cent(write, what):
    result, expected = SHAPES[what]
    bare = {**result, "type": "rectangle", "value": BOX}  # next to Labels stands the shape alone
    path = write("a.json", [task(("ann@x.org", [result, bare] if what.endswith("Labels") else [result]))])
    found, crowd = rows_of(path, "label-studio")
    ((key, image),) = found.items()
    assert key == (1, "ann@x.org")
    assert crowd.seconds.tolist() == [2.5]
    assert [region.label for region in image.regions] == ["cat"]
    check(image, expected)


def test_an_ellipse_of_label_studio_has_its_area(write):
    ellipse = marked("ellipselabels", x=50, y=50, radiusX=25, radiusY=100 / 3, rotation=0)
    ellipse |= {"original_width": 80, "original_height": 60}
    found, _ = rows_of(write("a.json", [task(("ann", [ellipse]))]), "label-studio")
    image = found[1, "ann"]
    assert tools.area(image.masks[0]) == pytest.approx(np.pi * 20 * 20, rel=0.02)
    assert image.boxes[0].tolist() == pytest.approx([20, 10, 40, 40], abs=1)


def test_label_studio_says_who_saw_an_image_and_what_is_left_out(write):
    cat, dot = marked("rectanglelabels", **BOX), marked("vectorlabels", vertices=[{"id": "p", "x": 1, "y": 1}])
    alone = {**marked("rectangle", **BOX), "id": "s", "value": BOX}
    mood = marked("choices", "mood", **BOX) | {"value": {**BOX, "choices": ["glad"]}}
    gold = {"completed_by": 7, "ground_truth": True, "result": [cat]}
    first = task(("ann", [cat, dot, alone, mood]), ("bob", []))
    first["annotations"].append(gold)
    path = write("a.json", [first, task(("ann", []), number=2)])
    with pytest.warns(
        UserWarning,
        match="label: 1; .* of type 'vectorlabels', .*: 1; images without",
    ):
        found, _ = rows_of(path, "label-studio", image="image")
    assert {key: len(image.regions) for key, image in found.items()} == {("1-a", "ann"): 1, ("1-a", "bob"): 0}
    with pytest.warns(UserWarning, match="images without"):
        found, _ = rows_of(path, "label-studio", field="mood")
    assert [region.label for region in found[1, "ann"].regions] == ["glad"]


BAD = {
    "lies outside of the image, 8 x 6 pixels": {"x": 75},
    "is not a shape": {"width": "wide"},
    "has no area": {"height": 0, "rotation": 30},
    "lies far outside of the image": {"x": 900, "rotation": 30},
    "or has a number that is not finite": {"x": float("nan"), "rotation": 30},
    "has image_rotation 90": {"image_rotation": 90},
    "the image is of size [6, None]": {"original_width": None},
}


@pytest.mark.parametrize("words", BAD)
def test_bad_geometry_of_label_studio_is_named(write, words):
    good = marked("rectanglelabels", **BOX)
    bad = copy.deepcopy(good)
    for key, value in BAD[words].items():
        (bad["value"] if key in BOX else bad)[key] = value
    others = [] if "size" in words else [("cid", [good])]
    path = write("a.json", [task(("ann", [good]), number=7), task(("bob", [bad]), *others, number=8)])
    with pytest.raises(DataError) as caught:
        rows_of(path, "label-studio")
    for part in ("a.json, row 2", "'8'", "of annotator 'bob'", words):
        assert part in str(caught.value)
    with pytest.warns(UserWarning, match="1 row"):
        found, _ = rows_of(path, "label-studio", on_bad_rows="reject")
    assert [*found] == [(7, "ann"), *((8, who) for who, _ in others)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda result: result["value"]["rle"].__delitem__(slice(9, None)), "is not a shape"),
        (lambda result: result["value"].update(rle="rle"), "is not a shape"),
        (lambda result: result.update(original_width=9), "has 192 numbers, and four for each of 9 x 6 pixels"),
        (lambda result: result["value"].pop("rle"), "is not a shape"),
    ],
)
def test_bad_masks_of_label_studio_are_named(write, change, words):
    result = copy.deepcopy(marked("brushlabels", format="rle", rle=RLE))
    change(result)
    with pytest.raises(DataError, match=f"of annotator 'ann': region .cat.: .*{words}"):
        rows_of(write("a.json", [task(("ann", [result]))]), "label-studio")


def test_regions_of_two_sizes_and_of_json_min_are_refused(write):
    two = [marked("rectanglelabels", **BOX), marked("rectanglelabels", more={"original_width": 9}, **BOX)]
    with pytest.raises(DataError, match=r"has regions of images of the sizes \[6, 8\] and others"):
        rows_of(write("a.json", [task(("ann", two))]), "label-studio")
    short = {"id": 1, "image": "a.jpg", "tag": [BOX], "annotator": 1, "annotation_id": 2}
    with pytest.raises(DataError, match=r"is of JSON-MIN\. Choose the export format JSON"):
        rows_of(write("a.json", [short]), "label-studio")


# === CVAT ===


def cvat(shapes, size='width="8" height="6"'):
    images = f'<image id="0" name="a.jpg" {size}>{shapes}</image><image id="1" name="b.jpg" {size}></image>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n{images}\n</annotations>\n'


ELEMENTS = {
    '<box label="cat" xtl="2" ytl="3" xbr="6" ybr="4.5" z_order="0"></box>': (2, 3, 4, 1.5),
    '<box label="cat" xtl="1" ytl="2" xbr="5" ybr="4" rotation="90"></box>': np.s_[1:5, 2:4],
    '<polygon label="cat" points="2,3;6,3;6,6;2,6"></polygon>': np.s_[3:6, 2:6],
    f'<mask label="cat" rle="{RUNS}" left="2" top="1" width="5" height="4"></mask>': MASK,
}


@pytest.mark.parametrize("element", ELEMENTS)
def test_cvat_has_boxes_polygons_and_masks(write, element):
    expected = ELEMENTS[element]
    path = write("ann.xml", cvat(element + '<polyline label="cat" points="1,1;2,3"></polyline>'))
    with pytest.warns(UserWarning, match="regions of type 'polyline', which are not read: 1"):
        found, _ = rows_of(path, "cvat")
    assert {key: len(image.regions) for key, image in found.items()} == {("a.jpg", "ann"): 1, ("b.jpg", "ann"): 0}
    check(found["a.jpg", "ann"], expected)


def test_an_ellipse_of_cvat_has_its_area(write):
    element = '<ellipse label="cat" cx="40" cy="30" rx="30" ry="10" rotation="90"></ellipse>'
    found, _ = rows_of(write("ann.xml", cvat(element, 'width="80" height="60"')), "cvat")
    image = found["a.jpg", "ann"]
    assert tools.area(image.masks[0]) == pytest.approx(np.pi * 30 * 10, rel=0.02)
    assert image.boxes[0].tolist() == pytest.approx([30, 0, 20, 60], abs=1)


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ('<box label="cat" xtl="2" ytl="3" xbr="12" ybr="4"></box>', r"bbox \[2.0, 3.0, 10.0, 1.0\] lies outside"),
        ('<box label="cat" xtl="2" ytl="3" xbr="x" ybr="4"></box>', "'xbr': 'x'.* is not a shape"),
        ('<box label="cat" xtl="2" ytl="3"></box>', "is not a shape"),
        ('<box xtl="2" ytl="3" xbr="4" ybr="4"></box>', "give it a category"),
        ('<polygon label="cat" points="2,3;6,3"></polygon>', "fewer than three points"),
        (
            '<mask label="cat" rle="1,2" left="0" top="0" width="2" height="2"></mask>',
            "has runs of 3 pixels, and a part",
        ),
        (
            '<mask label="cat" rle="0,4" left="7" top="0" width="2" height="2"></mask>',
            "lies outside of the image, 8 x 6",
        ),
        ('<mask label="cat" rle="0,-4" left="0" top="0" width="2" height="2"></mask>', "has runs of -4 pixels"),
    ],
)
def test_bad_geometry_of_cvat_is_named(write, element, words):
    path = write("ann.xml", cvat(element))
    with pytest.raises(DataError, match=rf"ann.xml, row 3.*'a.jpg'.*of annotator 'ann': region .*{words}"):
        rows_of(path, "cvat")
    with pytest.warns(UserWarning, match="1 row"):
        found, _ = rows_of(path, "cvat", on_bad_rows="reject")
    assert [*found] == [("b.jpg", "ann")]


def test_an_image_of_cvat_without_its_size_is_refused(write):
    with pytest.raises(DataError, match=r"the image is of size .*Write height and width in pixels"):
        rows_of(write("ann.xml", cvat("", "")), "cvat")


# === COCO ===


def coco(images, categories):
    """Images: id -> file; categories: id -> name; each image has a region of each category."""
    shapes = [{"image_id": image, "category_id": number, "bbox": [1, 1, 2 + number % 5, 2]}
              for image in images for number in categories]  # fmt: skip
    return coco_file(images, categories, shapes, SIZE)


def written(path, out):
    """Ids of images and categories in the file of COCO that `crowdzoo aggregate` writes."""
    words = ["aggregate", str(path), "--kind", "region", "--method", "majority-vote", "--out", str(out)]
    assert main(words + (["--platform", "coco"] if path.is_dir() else [])) == 0
    found = json.loads((out / "regions.json").read_text())
    ids = [
        {each["id"]: each[key] for each in found[part]}
        for part, key in (("images", "file_name"), ("categories", "name"))
    ]
    marked = {(each["image_id"], each["category_id"]) for each in found["annotations"]}
    assert marked == {(image, category) for image in ids[0] for category in ids[1]}
    return ids


def test_a_written_coco_file_keeps_the_ids_of_images_and_categories(write, tmp_path):
    """They were numbered again by name, so that other tools scored them as wrong."""
    images, categories = {17: "z.jpg", 4: "b.jpg"}, {90: "dog", 0: "cat"}
    for who in ("ann", "bob"):
        write(f"crowd/{who}.json", coco(images, categories))
    assert written(tmp_path / "crowd", tmp_path / "o") == [images, categories]
    words = ["convert", str(tmp_path / "crowd"), "--platform", "coco", "--kind", "region", "--out", str(tmp_path / "d")]
    assert main(words) == 0
    assert written(tmp_path / "d" / "annotations.csv", tmp_path / "p") == [images, categories]


@pytest.mark.filterwarnings("ignore:2 of 2 images have one answer")
def test_ids_that_are_not_unique_are_given_anew(write, tmp_path):
    for who, name in (("ann", "a.jpg"), ("bob", "b.jpg")):
        write(f"crowd/{who}.json", coco({1: name}, {3: "cat", 7: "dog"}))
    assert written(tmp_path / "crowd", tmp_path / "o") == [{1: "a.jpg", 2: "b.jpg"}, {3: "cat", 7: "dog"}]


def test_a_renamed_class_does_not_keep_its_id(write):
    crowd = Annotations.read(write("a.json", coco({5: "a"}, {3: "cat", 7: "dog"})), kind="region", platform="coco",
                             rename="cat=dog")  # fmt: skip
    (image,) = crowd.values
    assert [(region.label, region.category_id) for region in image.regions] == [("dog", None), ("dog", 7)]
    assert image.image_id == 5
    assert MarkedImage.of((6, 8), [{"category": "a", "bbox": [1, 1, 2, 2], "category_id": "x"}], [1]).image_id is None
