"""Exports whose entries hold several people's answers to forms: SageMaker Ground Truth, Labelbox and Potato."""

import json

import pytest

from crowdzoo import Annotations
from crowdzoo.errors import DataError

TIME = 1_777_629_609  # date -u -d 2026-05-01T10:00:09Z +%s


def worker(who, form, **more):
    return {"workerId": who, "answerContent": form, "timeSpentInSeconds": 9.1,
            "submissionTime": "2026-05-01T10:00:09Z", **more}  # fmt: skip


def stored(who, form):
    return {"workerId": who, "annotationData": {"content": json.dumps(form)}}


def label(who, *answers, **more):
    details = {"created_by": who, "created_at": "2026-05-01T10:00:09.000+00:00"}
    return {"label_kind": "Default", "label_details": details, "performance_details": {"seconds_to_create": 9.1},
            "annotations": {"objects": [], "classifications": list(answers)}, **more}  # fmt: skip


def data_row(number, *labels):
    row = {"id": f"c{number}", "external_id": "a.jpg", "row_data": "https://example.org/a.jpg"}
    return {"data_row": row, "projects": {"p1": {"name": "Pets", "labels": list(labels)}}}


def radio(name, answer):
    return {"name": name, "value": name.lower(), "radio_answer": {"name": answer, "value": answer.lower()}}


def check_times(crowd):
    assert set(crowd.seconds.tolist()) == {9.1}
    assert set(crowd.timestamp.tolist()) == {TIME}


def test_the_folder_worker_response_is_read(write, tmp_path, rows_of):
    image = [("crowd-image-classifier", "cat", "dog")]
    for task, (element, *labels) in enumerate(image * 2):
        answers = [worker(f"w{who}", {element: {"label": one}}) for who, one in enumerate(labels)]
        write(f"worker-response/iteration-1/{task}/2026-05-01_{task}.json", {"answers": answers})
    folder = tmp_path / "worker-response"
    assert rows_of(folder, "sagemaker") == [(0, "w0", "cat"), (0, "w1", "dog"), (1, "w0", "cat"), (1, "w1", "dog")]
    check_times(Annotations.read(folder, platform="sagemaker"))


def test_a_manifest_with_the_answers_of_workers_is_read(write, rows_of):
    forms = [{"pet": {"label": "cat"}}, {"pet": {"cat": False, "dog": True}}, {"pet": {}}]
    entries = [
        {
            shown: f"s3://b/{shown}.jpg",
            "pets": {"annotationsFromAllWorkers": [*map(stored, "abc", forms)]},
            "pets-metadata": {},
        }
        for shown in ("source-ref", "source")
    ]
    with pytest.warns(UserWarning, match="left out: answers without 'pet': 2"):
        found = rows_of(write("out.manifest", "\n".join(map(json.dumps, entries))), "sagemaker")
    images = ["s3://b/source-ref.jpg", "s3://b/source.jpg"]
    assert found == [(image, *answer) for image in images for answer in (("a", "cat"), ("b", "dog"))]
    with pytest.warns(UserWarning, match="left out"):
        assert rows_of(write("one.manifest", json.dumps(entries[0])), "sagemaker", image=True)[0][0] == "source-ref"


def test_classifications_of_labelbox_are_read(write, rows_of):
    colours = {"name": "Colours", "checklist_answers": [{"name": "red"}, {"name": "blue"}]}
    path = write("export.ndjson", "\n".join(map(json.dumps, [
        data_row(1, label("ann@x.org", radio("Pet", "Cat"), colours), label("bob@x.org", radio("Pet", "Dog"))),
        data_row(2, label("bob@x.org", {"name": "Pet", "text_answer": {"content": "Fish"}})),
    ])))  # fmt: skip
    with pytest.warns(UserWarning, match="answers without 'Colours': 2"):
        assert [one[2] for one in rows_of(path, "labelbox", field="Colours", on_duplicate="all")] == ["red", "blue"]
    assert rows_of(path, "labelbox", field="Pet") == [
        ("c1", "ann@x.org", "Cat"), ("c1", "bob@x.org", "Dog"), ("c2", "bob@x.org", "Fish")
    ]  # fmt: skip
    check_times(Annotations.read(path, platform="labelbox", field="Pet"))


def potato(number, **questions):
    return {"id": f"t{number}", "displayed_text": "x", "label_annotations": questions, "span_annotations": [],
            "behavioral_data": {"time_string": "Time spent: 0d 0h 0m 9s "}}  # fmt: skip


def test_answers_of_potato_are_read(write, tmp_path, rows_of):
    write("annotation_output/ann/annotated_instances.jsonl", [
        potato(1, mood={"glad": "1"}, stars={"scale_4": "4"}, why={"text_box": "nice"}), potato(2, mood={"sad": "2"}),
    ])  # fmt: skip
    write("annotation_output/bob/annotated_instances.jsonl", [potato(1, mood={"glad": False, "sad": True})])
    folder = tmp_path / "annotation_output"
    found = rows_of(folder, "potato", field="mood")
    assert found == [("t1", "ann", "glad"), ("t2", "ann", "sad"), ("t1", "bob", "sad")]
    with pytest.warns(UserWarning, match="answers without 'stars': 2"):
        stars = Annotations.read(folder, platform="potato", kind="regression", field="stars")
    assert stars.labels.tolist() == [4.0]
    one = write("one.jsonl", [{**potato(1, mood={"glad": "glad", "sad": ""}), "user_id": "cid"}])
    assert rows_of(one, "potato") == [("t1", "cid", "glad")]


@pytest.mark.parametrize(
    ("platform", "entry", "says"),
    [
        ("sagemaker", {"answers": [worker("", {"a": "b"})]}, r"'answers\[0\]': None has no annotator"),
        ("sagemaker", {"answers": [worker("w", "{")]}, r"'answers\[0\]': '\{' is not JSON"),
        ("sagemaker", {"answers": [{"workerId": "w"}]}, "has neither answerContent nor annotationData.content"),
        ("sagemaker", {"answers": [3]}, r"'answers\[0\]': 3 has neither"),
        ("labelbox", data_row(1, label(None, radio("a", "b"))), r"'projects.p1.labels\[0\]': None has no annotator"),
        ("labelbox", data_row(1, {}), r"column 'projects.*has no labels with label_details"),
        ("labelbox", data_row(1) | {"projects": []}, "column 'projects'.*has no labels with"),
        ("labelbox", data_row(1, label("w", radio("a", "b"))) | {"data_row": 3}, "'data_row.id': None is missing"),
        ("potato", potato(1, mood="glad"), "'label_annotations.mood': 'glad' is not an object of options"),
        ("potato", potato(1) | {"label_annotations": []}, "is not an object of options"),
    ],
)
def test_a_broken_answer_is_named_with_its_place(write, rows_of, platform, entry, says):
    good = {"sagemaker": {"answers": [worker("w", {"a": "b"})]}, "labelbox": data_row(0, label("w", radio("a", "b"))),
            "potato": potato(0, a={"b": "1"})}[platform]  # fmt: skip
    name = {"sagemaker": "a.manifest", "labelbox": "a.ndjson", "potato": "a.jsonl"}[platform]
    with pytest.raises(
        DataError, match=f"row 2, column {says}" if says.startswith("'") else f"row 2, {says}|row 2, .*{says}"
    ):
        rows_of(write(name, "\n".join(map(json.dumps, [good, entry]))), platform)


def test_skipped_labels_of_labelbox_are_no_answers(write, rows_of):
    skipped = label("ann", radio("pet", "dog"), performance_details={"skipped": True, "seconds_to_create": 1.0})
    path = write("export.ndjson", json.dumps(data_row(1, label("bob", radio("pet", "cat")), skipped)))
    for options in ({}, {"no_label": "(none)"}):  # also where an answer without a label counts
        with pytest.warns(UserWarning, match="left out: skipped answers: 1"):
            assert rows_of(path, "labelbox", **options) == [("c1", "bob", "cat")]


def test_nested_and_repeated_questions_of_labelbox_are_read(write, rows_of):
    nested = radio("pet", "dog")
    nested["radio_answer"]["classifications"] = [radio("breed", "pug")]
    path = write("export.ndjson", json.dumps(data_row(1, label("ann", nested))))
    assert rows_of(path, "labelbox", field="breed") == [("c1", "ann", "pug")]
    path = write("export.ndjson", json.dumps(data_row(1, label("ann", radio("pet", "dog"), radio("pet", "cat")))))
    with pytest.raises(DataError, match="'ann' has labelled task 'c1' before"):
        rows_of(path, "labelbox")
