"""Exports of Label Studio."""

import pytest
from studio_exports import annotation, choice, task

from crowdzoo import Annotations
from crowdzoo.errors import ConfigError, DataError


def test_each_annotation_of_a_task_is_a_row(write, rows_of):
    path = write("export.json", [
        task(7, annotation(1, choice("mood", "glad")), annotation(2, choice("mood", "sad"))),
        task(8, annotation(2, choice("mood", "sad"))),
    ])  # fmt: skip
    assert rows_of(path, "label-studio") == [(7, 1, "glad"), (7, 2, "sad"), (8, 2, "sad")]


def test_cancelled_annotations_and_those_without_an_answer_are_left_out_and_counted(write, rows_of):
    path = write("export.json", [
        task(1, annotation(1, choice("mood", "sad")), annotation(2, was_cancelled=True)),
        task(2, annotation(1), annotation(2, choice("mood", "glad")), annotation(3, choice("mood"))),
    ])  # fmt: skip
    with pytest.warns(UserWarning, match="cancelled annotations: 1; .* an answer to 'mood': 2"):
        assert rows_of(path, "label-studio") == [(1, 1, "sad"), (2, 2, "glad")]


def test_a_ground_truth_is_no_annotation(write, rows_of):
    path = write("export.json", [
        task(1, annotation(9, choice("mood", "glad"), ground_truth=True), annotation(1, choice("mood", "sad"))),
    ])  # fmt: skip
    assert rows_of(path, "label-studio") == [(1, 1, "sad")]


def test_several_choices_are_second_labels_which_on_duplicate_decides_about(write, rows_of):
    path = write("export.json", [task(1, annotation(1, choice("mood", "sad", "tired")))])
    with pytest.raises(DataError, match=r"row 1: 1 has labelled task 1 before.*on_duplicate"):
        rows_of(path, "label-studio")
    with pytest.warns(UserWarning, match="1 row was left out"):
        assert rows_of(path, "label-studio", on_duplicate="last") == [(1, 1, "tired")]


def test_ratings_and_numbers_are_numbers(write):
    stars = {"from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": 4}}
    grade = {"from_name": "grade", "to_name": "text", "type": "number", "value": {"number": 2.5}}
    path = write("export.json", [task(1, annotation(1, choice("mood", "sad"), stars), annotation(2, stars))])
    assert Annotations.read(path, platform="label-studio", kind="regression").labels.tolist() == [4.0, 4.0]
    path = write("export.json", [task(1, annotation(1, choice("mood", "sad"), grade))])
    assert Annotations.read(path, platform="label-studio", kind="regression").labels.tolist() == [2.5]


def test_paths_of_a_taxonomy_and_sides_of_a_pair_are_labels(write, rows_of):
    tree = {"from_name": "kind", "type": "taxonomy", "value": {"taxonomy": [["animal", "dog"]]}}
    pair = {"from_name": "better", "type": "pairwise", "value": {"selected": "left"}}
    path = write("export.json", [task(1, annotation(1, tree, pair))])
    assert rows_of(path, "label-studio", field="kind") == [(1, 1, "animal / dog")]
    assert rows_of(path, "label-studio", field="better") == [(1, 1, "left")]


def test_a_box_on_an_image_is_no_label(write, rows_of):
    box = {"from_name": "box", "type": "rectanglelabels", "value": {"x": 1, "rectanglelabels": ["dog"]}}
    path = write("export.json", [task(1, annotation(1, box))])
    with pytest.raises(DataError, match=r"no question .*: 'box' \(regions, for kind='region'\)"):
        rows_of(path, "label-studio")
    with pytest.raises(ConfigError, match=r"field='box' is answered with regions, for kind='region'"):
        rows_of(path, "label-studio", field="box")


def test_json_min_is_read_too(write, rows_of):
    path = write("min.json", [
        {"text": "a", "id": 1, "mood": "sad", "annotator": 3, "annotation_id": 5, "created_at": "2024-01-01",
         "updated_at": "2024-01-01", "lead_time": 3.5},
        {"text": "a", "id": 1, "mood": {"choices": ["glad"]}, "annotator": "bob@example.org", "annotation_id": 6},
    ])  # fmt: skip
    assert rows_of(path, "label-studio") == [(1, "3", "sad"), (1, "bob@example.org", "glad")]
    path = write("min.json", [{"id": 1, "stars": [{"rating": 3}], "annotator": 3, "annotation_id": 5}])
    assert Annotations.read(path, platform="label-studio", kind="regression").labels.tolist() == [3.0]


def test_each_file_of_a_folder_has_to_be_of_the_platform(write, rows_of, tmp_path):
    write("all/1.json", [task(1, annotation(1, choice("mood", "sad")))])
    write("all/settings.json", {"theme": "dark"})
    with pytest.raises(DataError, match=r"settings.json: does not look like an export of Label Studio"):
        rows_of(tmp_path / "all", "label-studio")


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (task(2, {"result": []}), r"'annotations\[0\].completed_by'.*without 'Remove user details'"),
        (task(2, annotation(1, {"from_name": "mood", "type": "choices", "value": "sad"})), r"value'.*is not an object"),
        (task(2, annotation(1, choice("mood", {"a": "sad"}))), "is not a label"),
        (task(2, [1]), r"'annotations\[0\]'.*is not an annotation"),
        (task(None, annotation(1, choice("mood", "sad"))), "column 'id': None is missing"),
        (task(2) | {"data": None}, "column 'data'"),
        (task(2) | {"annotations": 4}, "column 'annotations': 4 is not a list"),
        ("hello", "'hello' is not a JSON object"),
    ],
)
def test_a_broken_entry_is_named_with_its_file_and_number(write, rows_of, broken, says):
    path = write("export.json", [task(1, annotation(1, choice("mood", "sad"))), broken])
    with pytest.raises(DataError, match=rf"export.json, row 2.*{says}"):
        rows_of(path, "label-studio")
    with pytest.warns(UserWarning, match="1 row was left out"):
        assert rows_of(path, "label-studio", on_bad_rows="reject") == [(1, 1, "sad")]


def test_rejected_entries_are_kept_as_they_were(write, rows_of, tmp_path):
    path = write(
        "export.json", [task(1, annotation(1, choice("mood", "sad"))), task(2, annotation(1, choice("mood", "odd")))]
    )
    options = {"classes": ["glad", "sad"], "on_bad_rows": "reject", "rejects": tmp_path / "rejects.csv"}
    assert rows_of(path, "label-studio", **options) == [(1, 1, "sad")]
    kept = (tmp_path / "rejects.csv").read_text()
    assert "odd" in kept
    assert "text 2" in kept
    assert "text 1" not in kept


def test_an_annotation_that_a_review_rejected_is_left_out(write, rows_of):
    days = [{"accepted": day != 2, "created_at": f"2026-03-0{day}T10:00:00Z"} for day in (1, 2, 3)]
    path = write("export.json", [
        task(1, annotation(1, choice("mood", "sad"), reviews=[days[1], days[0]]),
             annotation(2, choice("mood", "glad"), reviews=days), annotation(3, choice("mood", "glad"), reviews=[])),
    ])  # fmt: skip
    with pytest.warns(UserWarning, match="left out: annotations that a review rejected: 1"):
        assert rows_of(path, "label-studio") == [(1, 2, "glad"), (1, 3, "glad")]
