"""Exports of CVAT, in its own XML and as COCO."""

import io
import zipfile

import pytest

from crowdzoo import Annotations
from crowdzoo.errors import DataError

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n<version>1.1</version>\n<meta><job></job></meta>\n'


def image(name, *tags, shapes=""):
    inside = "".join(
        f'<tag label="{label}" source="manual"><attribute name="sure">{sure}</attribute></tag>' for label, sure in tags
    )
    return f'<image id="0" name="{name}" width="9" height="9">{inside}{shapes}</image>\n'


def job(*images):
    return HEAD + "".join(images) + "</annotations>\n"


BOX = '<box label="dog" xtl="1" ytl="1" xbr="2" ybr="2"><attribute name="sure">no</attribute></box>'
ANN = job(image("a.jpg", ("cat", "yes")), image("b.jpg", ("dog", "no")), image("c.jpg"))
BOB = job(image("a.jpg", ("dog", "no")), image("b.jpg", ("dog", "yes"), ("dog", "yes"), shapes=BOX))


def archive(name, content):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as files:
        files.writestr(name, content)
        files.writestr("images/a.jpg", b"")
    return made.getvalue()


def test_each_file_of_a_folder_is_an_annotator(write, said, tmp_path):
    write("jobs/ann.xml", ANN)
    write("jobs/bob.xml", BOB)
    with pytest.warns(UserWarning, match="boxes, polygons and other shapes: 1; images without a tag: 1"):
        assert said(tmp_path / "jobs", "cvat") == [
            ("a.jpg", "ann", "cat"), ("b.jpg", "ann", "dog"), ("a.jpg", "bob", "dog"), ("b.jpg", "bob", "dog"),
        ]  # fmt: skip


def test_archives_and_folders_name_the_annotator_where_all_files_have_one_name(write, said, tmp_path):
    write("jobs/ann.zip", archive("annotations.xml", ANN))
    write("jobs/bob/annotations.xml", BOB)
    with pytest.warns(UserWarning, match="left out"):
        assert {who for _, who, _ in said(tmp_path / "jobs", "cvat")} == {"ann", "bob"}


def test_an_attribute_of_a_tag_is_chosen_by_name(write, said):
    path = write("ann.xml", ANN)
    with pytest.warns(UserWarning, match="images without 'sure': 1"):
        assert said(path, "cvat", field="sure") == [("a.jpg", "ann", "yes"), ("b.jpg", "ann", "no")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (ANN[:-15], "row 8: is not XML: no element found"),
        (HEAD + "<image></annotations>", "row 5: is not XML: mismatched tag"),
        (HEAD + '<track id="0" label="cat"></track></annotations>', "holds tracks of a video. Export each annotator"),
        ('<!DOCTYPE a [<!ENTITY b "ha">]>' + ANN[39:], "has a document type"),
        (job(image("", ("cat", "yes"))), "row 5, column 'image': None is missing"),
        (job(), "holds no entries of CVAT"),
        ("hello", "row 1: is not XML"),
    ],
)
def test_a_broken_document_is_refused(write, said, content, says):
    with pytest.raises(DataError, match=f"ann.xml.*{says}"):
        said(write("ann.xml", content), "cvat")


def coco(*annotations):
    return {
        "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
        "categories": [{"id": 7, "name": "cat"}, {"id": 8, "name": "dog"}],
        "annotations": [
            {"id": n, "image_id": of, "category_id": what, "attributes": {"stars": 4}}
            for n, (of, what) in enumerate(annotations)
        ],
    }  # fmt: skip


def test_coco_names_images_and_categories_and_counts_a_category_once(write, said, tmp_path):
    write("jobs/ann/instances_default.json", coco((1, 7), (1, 7), (2, 8)))
    write("jobs/bob/instances_default.json", coco((1, 8)))
    with pytest.warns(UserWarning, match="images without a tag: 1"):
        assert said(tmp_path / "jobs", "coco") == [
            ("a.jpg", "ann", "cat"), ("b.jpg", "ann", "dog"), ("a.jpg", "bob", "dog"),
        ]  # fmt: skip
    with pytest.warns(UserWarning, match="images without 'stars': 1"):
        ratings = Annotations.read(tmp_path / "jobs", platform="coco", kind="regression", field="stars")
    assert ratings.labels.tolist() == [4.0] * 3


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (coco((1, 7), (3, 7)), r"row 2, column 'annotations.image_id': 3 is the id of no image"),
        (coco((1, 7), (1, 9)), r"row 2, column 'annotations.category_id': 9 is the id of no category"),
        (coco((1, 7)) | {"images": [1]}, "column 'images': 1 is not an object with id and file_name"),
        (coco((1, 7)) | {"categories": {}}, "does not look like an export of COCO. Export each annotator's job"),
        ("[]", "holds no entries of COCO"),
    ],
)
def test_broken_coco_is_refused(write, said, content, says):
    with pytest.raises(DataError, match=says):
        said(write("ann.json", content), "coco")


def test_entities_do_not_grow(write, said):
    """The billion laughs: each entity is ten of the one before."""
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    content = f'<!DOCTYPE a [<!ENTITY e0 "ha">{entities}]><annotations><image name="&e9;"/></annotations>'
    with pytest.raises(DataError, match="has a document type"):
        said(write("ann.xml", content), "cvat")
