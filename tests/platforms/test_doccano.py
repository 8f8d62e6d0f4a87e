"""Exports of doccano."""

import io
import json
import zipfile

import pytest
from refusals import bad_row

from crowdzoo import Annotations
from crowdzoo.errors import DataError, DataWarning
from crowdzoo.files import regular
from crowdzoo.reading.platforms import export_file
from crowdzoo.sequences import read_spans

ANN = [{"id": 1, "text": "Zoë met Bob", "label": ["glad"], "Comments": []}, {"id": 2, "text": "No", "label": ["sad"]}]
BOB = [{"id": 1, "text": "Zoë met Bob", "label": ["sad"], "Comments": []}, {"id": 2, "text": "No", "label": []}]


def archive(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        for name, entries in files.items():
            made.writestr(f"{name}.jsonl", "".join(json.dumps(entry) + "\n" for entry in entries))
    return content.getvalue()


def test_each_file_of_the_archive_is_an_annotator(write, rows_of):
    path = write("export.zip", archive(ann=ANN, bob=BOB))
    with pytest.warns(UserWarning, match="examples without a label: 1"):
        assert rows_of(path, "doccano") == [(1, "ann", "glad"), (2, "ann", "sad"), (1, "bob", "sad")]


def test_images_are_known_by_their_number(write, rows_of):
    path = write("ann.jsonl", [{"id": 4, "filename": "4.png", "label": ["cat"]}])
    assert rows_of(path, "doccano") == [(4, "ann", "cat")]


def test_old_exports_name_users_and_labels_by_number(write, rows_of):
    entry = {"id": 1, "text": "a", "annotations": [{"label": 2, "user": 7}, {"label": 3, "user": 8}], "meta": {}}
    assert rows_of(write("all.jsonl", [entry]), "doccano") == [(1, 7, 2), (1, 8, 3)]


@pytest.mark.parametrize(
    "answer",
    [
        {"label": [[0, 3, "PER"], [8, 11, "PER"]]},
        {"entities": [{"id": 1, "label": "PER", "start_offset": s, "end_offset": s + 3} for s in (0, 8)]},
        {"cats": ["greeting"], "entities": [[0, 3, "PER"], [8, 11, "PER"]]},
    ],
)
def test_spans_become_tags(write, answer):
    path = write(
        "export.zip", archive(ann=[ANN[0] | {"label": []} | answer], bob=[BOB[0] | {"label": [[8, 11, "PER"]]}])
    )
    if "entities" in answer:
        path = write("export.zip", archive(ann=[{"id": 1, "text": "Zoë met Bob"} | answer]))
    crowd = read_spans(path, platform="doccano")
    assert crowd.tokens == (("Zoë", "met", "Bob"),)
    assert crowd.answers(0)["ann"] == ["B-PER", "O", "B-PER"]


def test_a_broken_span_is_named_with_its_file_and_line(write):
    for span in ([1], [2, 3, "PER", 1]):
        path = write("spans.jsonl", [{"id": 1, "text": "a b", "label": [[0, 1, "PER"], span]}])
        with pytest.raises(
            DataError, match=r"is not a span \[start, end, label\]", check=bad_row(1, "label[1]", str(span))
        ):
            read_spans(path, platform="doccano")
    path = write("spans.jsonl", [{"id": 1, "text": "a b", "label": [[0, 9, "PER"]]}])
    with pytest.raises(DataError, match="is outside", check=bad_row(1, "spans[0].end", 9)):
        read_spans(path, platform="doccano")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"PK nothing more", "not a sound zip archive"),
        (archive(ann=ANN)[:-30], "not a sound zip archive"),
        (archive(), r"exports of doccano end in .jsonl or .json. In Dataset choose Actions"),
    ],
)
def test_a_broken_archive_is_refused(write, rows_of, content, says):
    with pytest.raises(DataError, match=f"export.zip.*{says}"):
        rows_of(write("export.zip", content), "doccano")


@pytest.mark.parametrize("place", ["unknown", "project/unknown"])
def test_the_file_unknown_is_no_annotator(write, rows_of, place):
    other = place.replace("unknown", "ann")
    path = write("export.zip", archive(**{other: ANN[:1], place: [ANN[1] | {"label": []}]}))
    with pytest.warns(UserWarning, match="left out: examples that nobody annotated: 1"):
        assert rows_of(path, "doccano", no_label="(none)") == [(1, "ann", "glad")]
    marked = [ANN[0] | {"label": [[0, 3, "PER"]]}]
    path = write("export.zip", archive(**{other: marked, place: [ANN[0] | {"label": []}, ANN[1] | {"label": []}]}))
    with pytest.warns(UserWarning, match="examples that nobody annotated: 2"):
        crowd = read_spans(path, platform="doccano")
    assert crowd.annotations.annotators.tolist() == ["ann"]
    assert list(crowd.answers(0)) == ["ann"]
    # somebody may be called so
    assert rows_of(write("export.zip", archive(ann=ANN, unknown=ANN)), "doccano")[-1] == (2, "unknown", "sad")


def test_an_archive_of_many_files_is_opened_once(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(50):
            archive.writestr(f"{number:02}.jsonl", json.dumps({"id": 1, "text": "x", "label": ["a"]}))
    opened = []
    monkeypatch.setattr(export_file, "zip_archive", lambda *words: opened.append(words) or regular.zip_archive(*words))
    crowd = Annotations.read(tmp_path / "a.zip", platform="doccano")
    assert crowd.num_annotators == 50
    assert len(opened) == 1


def test_members_that_are_bombs_together_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.jsonl", b" " * (30 << 20))
    with pytest.raises(DataError, match=r"a\.zip: .* bytes would become 94,371,840, as in a zip bomb"):
        Annotations.read(tmp_path / "a.zip", platform="doccano")


def test_files_without_a_common_task_are_told(write, tmp_path, rows_of):
    for who, number in (("ann", 1), ("bob", 7)):  # ids of two projects
        write(f"users/{who}.jsonl", [{"id": number, "text": "x", "label": ["a"]}])
    with pytest.warns(DataWarning, match="no task has the answers of two annotators"):
        assert len(rows_of(tmp_path / "users", "doccano")) == 2


def test_a_byte_order_mark_inside_joined_files_is_passed_over(write, rows_of):
    lines = [json.dumps({"id": number, "text": "x", "label": ["a"]}) for number in (1, 2)]
    path = write("ann.jsonl", "\n\ufeff".join(lines) + "\n")
    assert rows_of(path, "doccano") == [(1, "ann", "a"), (2, "ann", "a")]
