"""Exports of CVAT, in its own XML and as COCO."""

import io
import zipfile

import pytest
from coco_files import coco_file

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


def test_each_file_of_a_folder_is_an_annotator(write, rows_of, tmp_path):
    write("jobs/ann.xml", ANN)
    write("jobs/bob.xml", BOB)
    with pytest.warns(UserWarning, match="boxes, polygons and other shapes: 1; .* a tag: 1"):
        assert rows_of(tmp_path / "jobs", "cvat") == [
            ("a.jpg", "ann", "cat"), ("b.jpg", "ann", "dog"), ("a.jpg", "bob", "dog"), ("b.jpg", "bob", "dog"),
        ]  # fmt: skip


def test_archives_and_folders_name_the_annotator_where_all_files_have_one_name(write, rows_of, tmp_path):
    write("jobs/ann.zip", archive("annotations.xml", ANN))
    write("jobs/bob/annotations.xml", BOB)
    with pytest.warns(UserWarning, match="left out"):
        assert {who for _, who, _ in rows_of(tmp_path / "jobs", "cvat")} == {"ann", "bob"}


def test_an_attribute_of_a_tag_is_chosen_by_name(write, rows_of):
    path = write("ann.xml", ANN)
    with pytest.warns(UserWarning, match="images without 'sure': 1"):
        assert rows_of(path, "cvat", field="sure") == [("a.jpg", "ann", "yes"), ("b.jpg", "ann", "no")]


def fruit(state, name="a.jpg"):
    return image(name, ("fruit", state)).replace('name="sure"', 'name="state"')


def test_an_attribute_of_a_label_is_chosen_and_named_where_it_is_left_out(write, rows_of, tmp_path):
    for who, state in (("ann", "ripe"), ("bob", "raw")):
        write(f"jobs/{who}.xml", job(fruit(state)))
    with pytest.warns(UserWarning, match=r"attributes of tags, .* with field='fruit\.state': 2"):
        assert rows_of(tmp_path / "jobs", "cvat") == [("a.jpg", "ann", "fruit"), ("a.jpg", "bob", "fruit")]
    expected = [("a.jpg", "ann", "ripe"), ("a.jpg", "bob", "raw")]
    assert rows_of(tmp_path / "jobs", "cvat", field="fruit.state") == expected
    assert rows_of(tmp_path / "jobs", "cvat", field="state") == expected


def test_attributes_of_shapes_are_named_where_they_are_left_out(write):
    path = write("ann.xml", job(image("a.jpg", ("cat", "yes"), shapes=BOX)))
    with pytest.warns(UserWarning, match="left out: attributes: 2"):
        assert len(Annotations.read(path, platform="cvat", kind="region")) == 1


def assigned(*images, **parts):
    """A document with meta data: job, task: id and assignee, as CVAT nests them."""
    meta = "".join(
        f"<{part}><id>{number}</id><segments><segment><id>9</id></segment></segments><owner><username>boss</username>"
        f"</owner><assignee>{f'<username>{who}</username>' if who else ''}</assignee></{part}>"
        for part, (number, who) in parts.items()
    )  # fmt: skip
    return HEAD.replace("<job></job>", meta) + "".join(images) + "</annotations>\n"


def test_the_assignee_of_a_job_or_a_task_is_the_annotator(write, rows_of, tmp_path):
    a, b = image("a.jpg", ("cat", "yes")), image("b.jpg", ("dog", "no"))
    write("jobs/job_7.xml", assigned(a, job=(7, "dora")))
    write("jobs/job_8.xml", assigned(a, b, task=(3, "emil"), job=(8, "")))
    write("jobs/job_9.xml", assigned(b, job=(9, "dora")))
    write("jobs/fay.xml", assigned(a, job=(10, "")))
    with pytest.warns(UserWarning, match="attributes of tags"):
        assert set(rows_of(tmp_path / "jobs", "cvat")) == {
            ("a.jpg", "dora", "cat"), ("a.jpg", "emil", "cat"), ("b.jpg", "emil", "dog"), ("b.jpg", "dora", "dog"),
            ("a.jpg", "fay", "cat"),
        }  # fmt: skip
    project = assigned(a.replace("<image", '<image task_id="4"'), a.replace("<image", '<image task_id="5"'),
                       project=(1, "boss"), tasks=("", ""))  # fmt: skip
    tasks = "".join(f"<task><id>{number}</id><assignee><username>{who}</username></assignee></task>"
                    for number, who in ((4, "dora"), (5, "emil")))  # fmt: skip
    path = write("project.xml", project.replace("<tasks>", f"<tasks>{tasks}"))
    with pytest.warns(UserWarning, match="attributes of tags"), pytest.warns(UserWarning, match="have one name"):
        assert rows_of(path, "cvat") == [("4/a.jpg", "dora", "cat"), ("5/a.jpg", "emil", "cat")]


def test_images_of_one_name_in_two_tasks_are_two_unless_tasks_are_named_after_them(write, tmp_path):
    for who, number in (("ann", 220), ("bob", 221)):
        write(f"jobs/{who}.xml", assigned(image("f.png", shapes=BOX), image(f"{who}.png"), task=(number, "")))
    options = {"platform": "cvat", "kind": "region"}
    with (
        pytest.warns(UserWarning, match="attributes: 2"),
        pytest.warns(UserWarning, match=r"such as 'f.png' with the ids 220 and 221.*image='im"),
    ):
        crowd = Annotations.read(tmp_path / "jobs", **options)
    assert crowd.tasks.tolist() == ["220/f.png", "221/f.png", "ann.png", "bob.png"]
    with pytest.warns(UserWarning, match="attributes"), pytest.warns(UserWarning, match="have one name"):
        joined = Annotations.read(tmp_path / "jobs", image="image", **options)
    assert dict(zip(joined.tasks.tolist(), joined.redundancy.tolist(), strict=True)) == {"ann": 1, "bob": 1, "f": 2}


def test_images_of_coco_of_one_name_are_told_apart_by_their_ids(write, rows_of, tmp_path):
    write(
        "jobs/ann.json", coco((1, 7), (2, 8)) | {"images": [{"id": 1, "file_name": "f"}, {"id": 2, "file_name": "f"}]}
    )
    write("jobs/bob.json", coco((1, 8)) | {"images": [{"id": 1, "file_name": "f"}]})
    with pytest.warns(UserWarning, match="attributes"), pytest.warns(UserWarning, match="'f' with the ids 1 and 2"):
        found = rows_of(tmp_path / "jobs", "coco")
    assert found == [("1/f", "ann", "cat"), ("2/f", "ann", "dog"), ("1/f", "bob", "dog")]


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
def test_a_broken_document_is_refused(write, rows_of, content, says):
    with pytest.raises(DataError, match=f"ann.xml.*{says}"):
        rows_of(write("ann.xml", content), "cvat")


def coco(*annotations):
    tags = [{"image_id": of, "category_id": what, "attributes": {"stars": 4}} for of, what in annotations]
    return coco_file({1: "a.jpg", 2: "b.jpg"}, {7: "cat", 8: "dog"}, tags)


def test_coco_names_images_and_categories_and_counts_a_category_once(write, rows_of, tmp_path):
    write("jobs/ann/instances_default.json", coco((1, 7), (1, 7), (2, 8)))
    write("jobs/bob/instances_default.json", coco((1, 8)))
    with pytest.warns(UserWarning, match="images without a tag: 1"):
        assert rows_of(tmp_path / "jobs", "coco") == [
            ("a.jpg", "ann", "cat"), ("b.jpg", "ann", "dog"), ("a.jpg", "bob", "dog"),
        ]  # fmt: skip
    with pytest.warns(UserWarning, match="images without 'stars': 1"):
        ratings = Annotations.read(tmp_path / "jobs", platform="coco", kind="regression", field="stars")
    assert ratings.labels.tolist() == [4.0] * 3


def test_tags_of_one_file_belong_to_its_annotators(write, rows_of):
    """They were all of one annotator, who was named after the file."""
    content = coco((1, 7), (1, 8), (2, 8))
    for annotation, who in zip(content["annotations"], ("ann", "bob", "bob"), strict=True):
        annotation |= {"annotator": who, "attributes": {"occluded": False}}
    for image in content["images"]:
        image["annotators"] = ["ann", "bob"]
    with pytest.warns(UserWarning, match="left out: images without a tag: 1"):
        found = rows_of(write("all.json", content), "coco")
    assert found == [("a.jpg", "ann", "cat"), ("a.jpg", "bob", "dog"), ("b.jpg", "bob", "dog")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (coco((1, 7), (3, 7)), r"row 2, column 'annotations.image_id': 3 is the id of no image"),
        (coco((1, 7), (1, 9)), r"row 2, column 'annotations.category_id': 9 is the id of no category"),
        (coco((1, 7)) | {"images": [1]}, "column 'images': 1 is not an object with id .an integer. and file_name"),
        (coco((1, 7)) | {"categories": {}}, "does not look like an export of COCO. Export each annotator's job"),
        ("[]", "holds no entries of COCO"),
    ],
)
def test_broken_coco_is_refused(write, rows_of, content, says):
    with pytest.raises(DataError, match=says):
        rows_of(write("ann.json", content), "coco")


def test_entities_do_not_grow(write, rows_of):
    """The billion laughs: each entity is ten of the one before."""
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    content = f'<!DOCTYPE a [<!ENTITY e0 "ha">{entities}]><annotations><image name="&e9;"/></annotations>'
    with pytest.raises(DataError, match="has a document type"):
        rows_of(write("ann.xml", content), "cvat")


def test_a_video_is_refused_in_one_sentence(write):
    path = write("a.xml", '<annotations><meta/><track id="0" label="cat"></track></annotations>')
    with pytest.raises(DataError) as refused:
        Annotations.read(path, platform="cvat")
    assert str(refused.value).count("a.xml") == 1
    assert "tracks of a video" in str(refused.value)
