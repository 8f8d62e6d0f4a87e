"""Classifications of Zooniverse, in the form in which Panoptes exports them."""

import csv
import io
import json

import numpy as np
import pytest
from csv_files import read_csv
from refusals import bad_row

from crowdzoo import Annotations
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError

# of Formatter::Csv::Classification in lib/formatter/csv/classification.rb of Panoptes
HEAD = ["classification_id", "user_name", "user_id", "user_ip", "workflow_id", "workflow_name", "workflow_version",
        "created_at", "gold_standard", "expert", "metadata", "annotations", "subject_data", "subject_ids"]  # fmt: skip
SIZE = {"clientWidth": 320, "clientHeight": 240, "naturalWidth": 8, "naturalHeight": 6}


def row(subject, user, *tasks, workflow=(10, "16.55"), about=None, **cells):
    metadata = {"started_at": "2026-03-01T10:00:00.000Z", "finished_at": "2026-03-01T10:00:04.500Z",
             "subject_dimensions": [SIZE, SIZE], "classifier_version": "2.0"} | (about or {})  # fmt: skip
    data = {str(subject): {"retired": None, "Filename": f"{subject}.jpg", "site": "A 1"}}
    anonymous = user.startswith("not-logged-in")
    return {"classification_id": 1, "user_name": user, "user_id": "" if anonymous else 7, "user_ip": user[-20:],
            "workflow_id": workflow[0], "workflow_name": "w", "workflow_version": workflow[1],
            "created_at": "2026-03-01 10:00:05 UTC", "gold_standard": "", "expert": "",
            "metadata": json.dumps(metadata), "annotations": json.dumps(tasks), "subject_data": json.dumps(data),
            "subject_ids": subject} | cells  # fmt: skip


def task(name, value):
    return {"task": name, "task_label": f"question of {name}", "value": value}


@pytest.fixture
def classifications(write):
    """Writes an export."""

    def written(*rows, head=HEAD, name="classifications.csv"):
        stream = io.StringIO()
        lines = csv.DictWriter(stream, head, extrasaction="ignore")
        lines.writeheader()
        lines.writerows(rows)
        return write(name, stream.getvalue())

    return written


def test_answers_have_their_annotator_time_and_seconds(classifications):
    path = classifications(row(1, "ann", task("T0", "Yes")), row(1, "not-logged-in-b644753d0e", task("T0", "No")))
    crowd = Annotations.read(path, platform="panoptes")
    assert crowd.annotators.tolist() == ["ann", "not-logged-in-b644753d0e"]
    assert crowd.classes[crowd.labels].tolist() == ["Yes", "No"]
    assert crowd.seconds.tolist() == [4.5, 4.5]
    assert crowd.timestamp.tolist() == [1772359205.0] * 2  # date -u -d '2026-03-01 10:00:05' +%s


def test_volunteers_without_a_name_are_kept_apart_by_their_hashed_address(classifications, rows_of):
    rows = [row(1, "", task("T0", "Yes"), user_ip="aa11"), row(1, "not-logged-in", task("T0", "No"), user_ip="bb22")]
    expected = [(1, "not-logged-in-aa11", "Yes"), (1, "not-logged-in-bb22", "No")]
    assert rows_of(classifications(*rows), "panoptes") == expected
    path = classifications(*rows, head=[name for name in HEAD if name != "user_ip"])
    with pytest.raises(DataError, match="and so is user_ip", check=bad_row(2, "user_name", None)):
        rows_of(path, "panoptes")


SURVEY = [{"choice": "LION", "answers": {"HOWMANY": "2", "DOING": ["resting", "eating"]}, "filters": {}},
          {"choice": "GNU", "answers": {"HOWMANY": "1"}, "filters": {}}]  # fmt: skip
COMBINED = [task("T1", "glad"), task("T2", ["red", "blue"]), task("T3", "a word")]
MENUS = [{"select_label": "Country", "option": True, "value": "c6e0", "label": "Oceania"},
         {"select_label": "City", "option": False, "value": "Erewhon"}]  # fmt: skip
MENU = {"select_label": "Country", "option": True, "option_index": 2, "value": "3844fc24a3df7", "label": "US"}


@pytest.mark.parametrize(
    ("value", "field", "labels"),
    [
        ("Yes", "T0", ["Yes"]),
        (["red", "blue"], "T0", ["red", "blue"]),
        (SURVEY, "T0", ["LION", "GNU"]),
        (SURVEY, "T0.LION.HOWMANY", [2]),
        (SURVEY, "T0.LION.DOING", ["resting", "eating"]),
        (COMBINED, "T1", ["glad"]),
        (COMBINED, "T2", ["red", "blue"]),
        (MENUS, "T0.Country", ["Oceania"]),
        (MENUS, "T0.City", ["Erewhon"]),
        (MENU, "T0", ["US"]),  # of a classifier from 2.0 on
        (["unknown answer label", "red"], "T0", ["red"]),
        ([None, "red"], "T0", ["red"]),
        ([*COMBINED, {"error": "combo tasks cannot be nested"}], "T1", ["glad"]),
        ([MENU | {"label": None}], "T0", ["3844fc24a3df7"]),  # an option that the workflow no longer has a word for
    ],
)
def test_each_sort_of_task_is_read(classifications, rows_of, value, field, labels):
    path = classifications(row(1, "ann", task("T0", value)))
    assert rows_of(path, "panoptes", field=field, on_duplicate="all") == [(1, "ann", label) for label in labels]


def test_sliders_and_texts_are_read_as_such(classifications):
    answers = [("ann", 3, "two cats"), ("bob", 4.5, "2 cats")]
    path = classifications(*(row(1, who, task("T0", number), task("T1", text)) for who, number, text in answers))
    ratings = Annotations.read(path, platform="panoptes", kind="regression")
    assert ratings.labels.tolist() == [3.0, 4.5]
    texts = Annotations.read(path, platform="panoptes", kind="free-text", field="T1")
    assert [texts.values[code] for code in texts.labels] == ["two cats", "2 cats"]


def test_a_slider_may_be_numbers_and_their_texts(classifications):
    path = classifications(
        *(row(1, who, task("T0", value)) for who, value in (("ann", "3"), ("bob", 4), ("cid", None)))
    )
    with pytest.warns(UserWarning, match="without an answer to 'T0': 1"):
        assert Annotations.read(path, platform="panoptes", kind="regression").labels.tolist() == [3.0, 4.0]


def test_early_exports_have_the_subjects_in_their_data_alone(classifications, rows_of):
    pair = json.dumps({"2": {"retired": None}, "3": {"retired": None}})
    rows = row(1, "ann", task("T0", "Yes")), row("", "ann", task("T0", "No"), subject_data=pair)
    head = [name for name in HEAD if name != "subject_ids"]
    assert rows_of(classifications(*rows, head=head), "panoptes") == [("1", "ann", "Yes"), ("2;3", "ann", "No")]


def test_who_was_not_asked_and_who_gave_no_answer_are_left_out(classifications, rows_of):
    path = classifications(row(1, "ann", task("T0", "Yes")), row(1, "bob", task("T0", None)),
                           row(1, "cid", task("T1", "red")))  # fmt: skip
    counts = "classifications that were not asked 'T0': 1; classifications without an answer to 'T0': 1"
    with pytest.warns(UserWarning, match=counts):
        assert rows_of(path, "panoptes", field="T0") == [(1, "ann", "Yes")]


@pytest.mark.filterwarnings("default")
def test_with_several_labels_who_was_not_asked_said_nothing(classifications, tmp_path, capsys):
    rows = [row(1, who, task("T0", ["red"])) for who in ("ann", "bob")]
    path = classifications(*rows, row(1, "cid", task("T0", [])), row(1, "dan", task("T1", "x")))
    words = ["aggregate", str(path), "--platform", "panoptes", "--field", "T0", "--multi-label", "--method"]
    assert main([*words, "majority-vote", "--out", str(tmp_path / "o.csv")]) == 0
    assert "left out: classifications that were not asked 'T0': 1" in capsys.readouterr().err
    (answer,) = read_csv(tmp_path / "o.csv")
    assert answer["annotations"] == "3"


def test_a_task_without_answers_names_the_others(classifications, rows_of):
    path = classifications(row(1, "ann", task("T0", "Yes"), task("T1", "No")))
    with pytest.raises(ConfigError, match=r"field='T9' is not a question .*: 'T0', 'T1'"):
        rows_of(path, "panoptes", field="T9")
    with pytest.raises(ConfigError, match=r"questions: 'T0', 'T1'\. .* such as field='T0'\.$"):
        rows_of(path, "panoptes")
    many = [{"choice": f"C{n}", "answers": {"Q": "1"}} for n in range(50)]
    with pytest.raises(ConfigError, match=r"there are: 'T0'(, 'T0\.C\d+\.Q'){19}, \.\.\.\."):
        rows_of(classifications(row(1, "ann", task("T0", many))), "panoptes", field="T9")


def test_a_drawing_is_not_read_as_classes_nor_classes_as_a_drawing(classifications, rows_of):
    drawn = classifications(row(1, "ann", task("T0", [{"x": 1, "y": 1, "width": 2, "height": 2, "tool": 0}])))
    with pytest.raises(ConfigError, match=r"field='T0' is answered with regions, for kind='region'"):
        rows_of(drawn, "panoptes", field="T0")
    asked = classifications(row(1, "ann", task("T0", ["Yes"])))
    with pytest.raises(DataError, match=r"'annotations.T0': .* is not a drawing\. Choose a"):
        rows_of(asked, "panoptes", kind="region", field="T0")
    with pytest.raises(DataError, match="answered with regions; the questions are: 'T0'"):
        rows_of(asked, "panoptes", kind="region")


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"annotations": '[{"task":"T0",'}, r"column 'annotations': '\[{\"task\":\"T0\",' is not JSON"),
        ({"annotations": '{"T0": "Yes"}'}, "column 'annotations': .* is not a list of tasks"),
        ({"annotations": '["Yes"]'}, r"column 'annotations\[0\]': 'Yes' is not an object with a task"),
        ({"metadata": "{"}, "column 'metadata': '{' is not JSON"),
        ({"subject_data": "["}, r"column 'subject_data': '\[' is not JSON"),
        ({"subject_data": "[1]"}, r"column 'subject_data': '\[1\]' is not an object for each subject"),
        ({"subject_ids": ""}, "column 'subject_ids': None is missing"),
        ({"annotations": json.dumps([task("T0", [{"odd": 1}, "Yes"])])}, r"column 'annotations.T0': .* not a label"),
    ],
)
def test_a_broken_row_is_named_with_its_column_and_value(classifications, rows_of, cells, says):
    path = classifications(row(1, "ann", task("T0", "Yes")), row(2, "ann", task("T0", "Yes"), **cells))
    with pytest.raises(DataError, match=f"classifications.csv, row 3, {says}"):
        rows_of(path, "panoptes")
    with pytest.warns(UserWarning, match="1 row was left out"):
        assert rows_of(path, "panoptes", on_bad_rows="reject") == [(1, "ann", "Yes")]


def test_a_workflow_is_chosen_where_there_are_several(classifications, rows_of):
    path = classifications(row(1, "ann", task("T0", "Yes")), row(1, "ann", task("T0", "cat"), workflow=(12, "3.1")),
                           row(1, "bob", task("T5", "dog"), workflow=(12, "3.1")))  # fmt: skip
    for options in ({}, {"field": "T0"}, {"field": "99/T0"}, {"field": "T9"}):
        with pytest.raises(ConfigError, match=r"answers of the workflows 10 and 12\. Choose.* field='10/T0'"):
            rows_of(path, "panoptes", **options)
    with pytest.warns(UserWarning, match="left out: answers of other workflows or versions: 2"):
        assert rows_of(path, "panoptes", field="10/T0") == [(1, "ann", "Yes")]
    with pytest.warns(UserWarning, match="other workflows or versions: 1; .*not asked 'T5': 1"):
        assert rows_of(path, "panoptes", field="T5") == [(1, "bob", "dog")]  # which one workflow alone asks


def test_versions_are_read_together_or_one_is_chosen(classifications, rows_of):
    path = classifications(row(1, "ann", task("T0", "Yes"), workflow=(10, "9.1")), row(1, "bob", task("T0", "No")),
                           row(1, "cid", task("T0", "No"), workflow=(10, "16.60")))  # fmt: skip
    advice = r"'T0' was asked in 2 versions of its workflow: 10\.9, 10\.16\. .* such as field='10\.16/T0'"
    with pytest.warns(UserWarning, match=advice):
        assert len(rows_of(path, "panoptes")) == 3
    with pytest.warns(UserWarning, match="left out: answers of other workflows or versions: 1"):
        assert [who for _, who, _ in rows_of(path, "panoptes", field="10.16/T0")] == ["bob", "cid"]


def test_gold_and_what_is_known_of_subjects_become_instances(classifications, tmp_path):
    pair = {"2": {"retired": {"id": 5}, "Filename": "2.jpg"}, "3": {"Filename": "3.jpg"}}
    path = classifications(
        row(1, "ann", task("T0", "Yes")), row(1, "expert", task("T0", "No"), gold_standard="true"),
        row("2;3", "ann", task("T0", "Yes"), subject_data=json.dumps(pair)),
    )  # fmt: skip
    words = ["convert", str(path), "--platform", "panoptes", "--out", str(tmp_path / "o")]
    assert main([*words, "--image", "Filename", "--keep", "site,Filename2"]) == 0
    assert [line["annotator"] for line in read_csv(tmp_path / "o" / "annotations.csv")] == ["ann", "ann"]
    assert read_csv(tmp_path / "o" / "instances.csv") == [
        {"task": "1", "image": "1.jpg", "site": "A 1", "Filename2": "", "gold": "No"},
        {"task": "2;3", "image": "2.jpg", "site": "", "Filename2": "3.jpg", "gold": ""},
    ]


def test_a_table_reader_points_to_the_platform(classifications):
    with pytest.raises(DataError, match="export of Zooniverse: write platform='panoptes'"):
        Annotations.read(classifications(row(1, "ann", task("T0", "Yes"))), kind="classification")


# === Drawings, on images of 8 x 6 pixels ===


def mark(tool=0, **place):
    return {"frame": 0, "details": [], "tool": tool, "tool_label": "cat", **place}


def mark2(**place):
    return {"frame": 0, "details": [], "toolType": "x", "toolIndex": 0, "tool_label": None, **place}


CORNERS = [{"x": 2, "y": 3}, {"x": 6, "y": 3}, {"x": 6, "y": 6}, {"x": 2, "y": 6}]
SHAPES = {
    "a rectangle": (mark(x=2, y=3, width=4, height=1.5), "cat", (2, 3, 4, 1.5)),
    "a rectangle that leaves the image": (mark(x=-3, y=3, width=5, height=9), "cat", (0, 3, 2, 3)),
    "a rectangle of the second classifier": (
        mark2(x_center=4, y_center=3.75, width=4, height=1.5), "tool 0", (2, 3, 4, 1.5)
    ),
    # a box of 4 x 2 about (4, 3), by a quarter of a turn
    "a turned rectangle": (mark(x=2, y=2, width=4, height=2, angle=90), "cat", np.s_[1:5, 3:5]),
    "a polygon": (mark(points=CORNERS, closed=True), "cat", np.s_[3:6, 2:6]),
    "a polygon that leaves the image": (
        mark(points=[{"x": -2, "y": 3}, {"x": 2, "y": 3}, {"x": 2, "y": 9}, {"x": -2, "y": 9}]), "cat", np.s_[3:6, 0:2]
    ),
    "a freehand line": (mark2(pathX=[2, 6, 6, 2], pathY=[3, 3, 6, 6]), "tool 0", np.s_[3:6, 2:6]),
}  # fmt: skip


def drawn(path, **options):
    pytest.importorskip("pycocotools.mask")
    crowd = Annotations.read(path, kind="region", platform="panoptes", **options)
    rows = zip(crowd.tasks[crowd.task_ids], crowd.annotators[crowd.annotator_ids], crowd.labels, strict=True)
    return {(subject, who): crowd.values[code] for subject, who, code in rows}


@pytest.mark.parametrize("what", SHAPES)
def test_marks_are_regions_in_pixels(classifications, what):
    given, label, expected = SHAPES[what]
    image = drawn(classifications(row(1, "ann", task("T0", [given]))))[1, "ann"]
    assert image.size == (6, 8)
    (region,) = image.regions
    assert region.label == label
    if isinstance(expected[0], slice):
        from pycocotools.mask import decode

        wanted = np.zeros((6, 8), bool)
        wanted[expected] = True
        np.testing.assert_array_equal(decode(image.masks[0]) > 0, wanted)
    else:
        assert region.shape == expected


def test_the_second_classifier_turns_ellipses_the_other_way_round(classifications):
    from crowdzoo.data.regions import mask_tools

    size = {"subject_dimensions": [{"naturalWidth": 80, "naturalHeight": 80}]}
    first = mark(x=40, y=40, rx=30, ry=5, angle=30)
    second = mark2(x_center=40, y_center=40, rx=30, ry=5, angle=-30)
    path = classifications(*(row(1, who, task("T0", [it]), about=size) for who, it in (("a", first), ("b", second))))
    images = drawn(path)
    (one,), (other,) = (mask_tools().decode(images[1, who].masks).transpose(2, 0, 1) for who in "ab")
    np.testing.assert_array_equal(one, other)
    rows, columns = np.nonzero(one)
    # against the clock on a screen, where y grows downwards: what is on the right is above; area pi 30 5 = 471
    assert np.polyfit(columns, rows, 1)[0] == pytest.approx(-np.tan(np.pi / 6), abs=0.05)
    assert one.sum() == pytest.approx(471, rel=0.05)


def test_a_circle_has_its_area(classifications):
    size = {"subject_dimensions": [{"naturalWidth": 80, "naturalHeight": 80}]}
    image = drawn(classifications(row(1, "ann", task("T0", [mark(x=40, y=40, r=20)]), about=size)))[1, "ann"]
    from crowdzoo.data.regions import mask_tools

    assert mask_tools().area(image.masks[0]) == pytest.approx(np.pi * 20**2, rel=0.02)


def test_who_drew_nothing_saw_the_image_and_who_was_not_asked_did_not(classifications):
    box = mark(x=1, y=1, width=2, height=2)
    path = classifications(
        row(1, "ann", task("T0", [box])), row(1, "bob", task("T0", [])), row(1, "cid", task("T1", "no")),
        row(2, "ann", task("T0", [box]), about={"subject_dimensions": [None]}),
    )  # fmt: skip
    counts = "classifications that were not asked 'T0': 1; drawings on images whose size the export does not say: 1"
    with pytest.warns(UserWarning, match=counts):
        images = drawn(path)
    assert {who: len(image.regions) for (_, who), image in images.items()} == {"ann": 1, "bob": 0}


def test_other_marks_are_counted_and_other_frames_are_chosen(classifications):
    line, box = mark(x1=1, y1=1, x2=2, y2=2), mark(x=1, y=1, width=2, height=2, details=[{"value": 0}])
    path = classifications(row(1, "ann", task("T0", [line, box, {**box, "x": 3, "frame": 1}])),
                           row(1, "bob", task("T0", [])))  # fmt: skip
    with pytest.raises(ConfigError, match=r"several questions: 'T0', 'T0\.frame1'"):
        drawn(path)
    with pytest.warns(UserWarning, match="marks that are not regions: 1; answers about marks: 1"):
        assert len(drawn(path, field="T0")[1, "ann"].regions) == 1
    with pytest.warns(UserWarning, match="answers about marks: 1"):
        images = drawn(path, field="T0.frame1")
    assert images[1, "ann"].regions[0].shape == (3, 1, 2, 2)
    assert images[1, "bob"].regions == ()


def test_marks_of_clicks_by_mistake_are_left_out_and_counted(classifications):
    nothing = [mark(x=3, y=3, r=0), mark(x=3, y=3, width=0, height=0), mark(x=-40, y=2), mark(x=2, y=2, rx=0, ry=0),
               mark(points=[{"x": n, "y": n} for n in (1, 3, 5)])]  # fmt: skip
    others = [mark(x=None, y=3), mark(points=CORNERS[:2]), mark2(pathX=[3], pathY=[4])]
    path = classifications(row(1, "ann", task("T0", [None, *nothing, *others, mark(x=8.5, y=3)])))
    counts = "lines and other marks that are not regions: 3; marks that cover nothing of the image: 5"
    with pytest.warns(UserWarning, match=counts):
        assert [region.shape for region in drawn(path)[1, "ann"].regions] == [(8, 3)]


def test_the_first_marks_of_the_second_classifier_have_their_tool_under_another_name(classifications):
    given = {"frame": 0, "toolType": "point", "tool_index": 2, "x": 1, "y": 2}
    assert drawn(classifications(row(1, "ann", task("T0", [given]))))[1, "ann"].regions[0].label == "tool 2"


def test_a_mark_that_is_no_region_is_named_with_its_place(classifications):
    box = mark(x=1, y="left", width=2, height=2)
    path = classifications(row(1, "ann", task("T0", [mark(x=1, y=1, width=2, height=2)])),
                           row(2, "bob", task("T0", [box])))  # fmt: skip
    with pytest.raises(DataError, match=r"row 3.* of annotator 'bob'"):
        drawn(path)


def test_a_damaged_drawing_is_one_bad_row(classifications):
    path = classifications(row(1, "ann", task("T0", [mark(x=1, y=1)])), row(2, "bob", task("T0", [0])))
    with pytest.raises(DataError, match=r"row 3, column 'annotations.T0': .* is not a drawing"):
        drawn(path)
    with pytest.warns(UserWarning, match="1 row was left out"):
        assert [*drawn(path, on_bad_rows="reject")] == [(1, "ann")]


def test_points_are_read(classifications):
    path = classifications(row(1, "ann", task("T0", [mark(x=3, y=4), mark(x=1, y=1, width=2, height=2)])))
    assert [region.shape for region in drawn(path)[1, "ann"].regions] == [(3, 4), (1, 1, 2, 2)]
