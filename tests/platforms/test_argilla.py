"""Exports of Argilla, in each of their forms."""

import re
from pathlib import Path

import pytest
from csv_files import read_csv

from crowdzoo import Annotations
from crowdzoo.commands.main import main
from crowdzoo.errors import DataError
from crowdzoo.sequences import read_spans

ANN, BOB = "4c1a0f0e-0000-4000-8000-000000000001", "4c1a0f0e-0000-4000-8000-000000000002"


def nested(number, **responses):
    """A record of Argilla 2, as records.to_json writes it."""
    return {"id": f"r{number}", "fields": {"text": f"text {number}"}, "metadata": {}, "suggestions": {},
            "responses": {name: [{"value": value, "user_id": who} for who, value in values]
                          for name, values in responses.items()}, "vectors": {}, "_server_id": None}  # fmt: skip


def flat(number, labels, users, statuses):
    """A record of Argilla 2, as records.to_datasets writes it."""
    return {"id": f"r{number}", "status": "completed", "_server_id": "s", "text": f"text {number}",
            "mood.responses": labels, "mood.responses.users": users, "mood.responses.status": statuses,
            "mood.suggestion": "glad", "mood.suggestion.score": None, "mood.suggestion.agent": None}  # fmt: skip


def feedback(number, *responses):
    """A record of a feedback dataset of Argilla 1."""
    return {"id": f"r{number}", "fields": {"text": f"text {number}"}, "external_id": None, "responses": [
        {"user_id": who, "status": status, "values": {name: {"value": value} for name, value in values.items()}}
        for who, status, values in responses
    ]}  # fmt: skip


def test_nested_records_are_read(write, said):
    path = write("records.json", [nested(1, mood=[(ANN, "glad"), (BOB, "sad")]), nested(2, mood=[(BOB, "sad")])])
    assert said(path, "argilla") == [("r1", ANN, "glad"), ("r1", BOB, "sad"), ("r2", BOB, "sad")]


def test_flat_records_are_read_as_a_list_and_as_lines_and_discarded_responses_are_left_out(write, said):
    records = [
        flat(1, ["glad", "sad"], [ANN, BOB], ["submitted", "discarded"]),
        flat(2, ["sad"], [BOB], ["submitted"]),
        flat(3, None, None, None),
    ]
    for name in ("records.json", "records.jsonl"):
        with pytest.warns(UserWarning, match="discarded responses: 1; records without a response to 'mood': 1"):
            assert said(write(name, records), "argilla") == [("r1", ANN, "glad"), ("r2", BOB, "sad")]


def test_feedback_datasets_are_read(write, said):
    path = write("records.json", [
        feedback(1, (ANN, "submitted", {"mood": "glad", "stars": 4}), (BOB, "draft", {"mood": "sad"})),
        feedback(2, (BOB, "submitted", {"mood": ["sad"], "stars": 2})),
    ])  # fmt: skip
    with pytest.warns(UserWarning, match="draft responses: 1"):
        assert said(path, "argilla") == [("r1", ANN, "glad"), ("r2", BOB, "sad")]
    assert Annotations.read(path, platform="argilla", kind="regression").labels.tolist() == [4.0, 2.0]


def test_older_datasets_name_one_annotator_a_record(write, said):
    old = {"text": "a", "inputs": {"text": "a"}, "prediction": [["sad", 0.9]], "prediction_agent": "m", "id": 1,
           "annotation": "glad", "annotation_agent": "ann", "multi_label": False, "status": "Validated"}  # fmt: skip
    path = write("records.json", [old, old | {"id": 2, "status": "Discarded"}])
    with pytest.warns(UserWarning, match="discarded responses: 1"):
        assert said(path, "argilla") == [(1, "ann", "glad")]


@pytest.mark.parametrize(
    "record",
    [
        {"id": 1, "fields": {"words": "Zoë met Bob"},
         "responses": {"names": [{"user_id": "ann", "value": [{"label": "PER", "start": 0, "end": 3}]}]}},
        {"id": 1, "text": "Zoë met Bob", "tokens": ["Zoë", "met", "Bob"], "annotation": [["PER", 0, 3]],
         "annotation_agent": "ann", "status": "Validated"},
    ],
)  # fmt: skip
def test_spans_become_tags(write, record):
    crowd = read_spans(write("records.json", [record]), platform="argilla")
    assert crowd.answers(0) == {"ann": ["B-PER", "O", "O"]}


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (
            nested(2, mood=[(None, "glad")]) | {"responses": {"mood": ["glad"]}},
            r"'responses.mood\[0\]': 'glad' is no resp",
        ),
        (feedback(2) | {"responses": ["glad"]}, r"'responses\[0\]': 'glad' is no response with values"),
        (flat(2, ["glad", "sad"], [ANN], None), "'mood.responses.users'.*has not one user for each of 2 responses"),
        (nested(None, mood=[(ANN, "glad")]) | {"id": None}, "'id': None is missing"),
        (feedback(2, (None, "submitted", {"mood": "sad"})), "mood .user.'.*Export the responses with their users"),
    ],
)
def test_a_broken_record_is_named_with_its_number(write, said, record, says):
    path = write("records.json", [feedback(1, (ANN, "submitted", {"mood": "glad"})), record])
    with pytest.raises(DataError, match=f"records.json, row 2, column .*{says}"):
        said(path, "argilla")


def columns(text, users, values, statuses, **more):
    """A record of a feedback dataset of Argilla 1 as a table, with a list for each key of the responses."""
    return {"text": text, "mood": {"user_id": users, "value": values, "status": statuses}, **more}


def test_a_table_of_argilla_1_is_read(write, said):
    path = write("old.jsonl", [
        columns("b", [], [], [], external_id="e1"),
        columns("a", ["u1", "u2"], ["glad", "sad"], ["submitted", "discarded"], external_id="e0"),
    ])  # fmt: skip
    with pytest.warns(UserWarning, match="discarded responses: 1"):
        assert said(path, "argilla") == [("e0", "u1", "glad")]
    path = write("uneven.jsonl", [columns("a", ["u1", "u2"], ["glad"], ["submitted"], external_id="e0")])
    with pytest.raises(DataError, match=r"column 'mood'.*is not a list of responses"):
        said(path, "argilla")
    path = write("none.jsonl", [columns("a", ["u1"], ["glad"], ["submitted"], external_id=None)])
    with pytest.raises(DataError, match=r"column 'id': None is missing\. Give records an external_id."):
        said(path, "argilla")


def ranked(*rankings, name="order"):
    users = [f"u{number}" for number in range(len(rankings))]
    return {"id": "r", f"{name}.responses": [*rankings], f"{name}.responses.users": users}


def test_rankings_are_refused_and_sets_of_labels_are_not(write, said):
    """What was said of them was that each annotator had answered three times."""
    rank = {"user_id": "u", "value": [{"value": "b", "rank": 1}, {"value": "a", "rank": 2}]}
    for records in (
        [ranked(["b", "a", "c"], ["b", "c", "a"])],
        [ranked(["a", "b"]), ranked(["b", "a"])],
        [{"id": "r", "fields": {"text": "a"}, "responses": {"order": [rank]}}],
    ):
        for field in (None, "order"):
            with pytest.raises(DataError, match=r"the answers are rankings\..*kind='preference'"):
                said(write("a.json", records), "argilla", field=field)
    sets = [ranked(["a", "b"], ["b", "a"]), {**ranked(["a"], ["c", "b"]), "id": "s"}]
    labels = [label for *_, label in said(write("b.json", sets), "argilla", on_duplicate="all")]
    assert labels == ["a", "b", "b", "a", "a", "c", "b"]
    both = ranked(["b", "a"], ["a", "b"]) | ranked("x", "y", name="mood")
    assert [label for *_, label in said(write("b.json", [both]), "argilla")] == ["x", "y"]


def test_the_code_of_the_page_makes_pairs_of_rankings(write, here, capsys):
    page = (Path(__file__).resolve().parents[2] / "docs" / "platforms.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "combinations" in block]
    write("rank.jsonl", [ranked(["b", "a", "c"], ["b", "c", "a"])])
    exec(code, {})
    assert read_csv("pairs.csv")[0] == {"winner": "r/b", "loser": "r/a", "annotator": "u0"}
    assert main(["aggregate", "pairs.csv", "--kind", "preference", "--out", "order.csv"]) == 0
    assert max(read_csv("order.csv"), key=lambda row: float(row["score"]))["task"] == "r/b"


def test_responses_with_fewer_status_are_refused(write, said):
    record = {"id": "r", "text": "a", "q.responses": ["x", "y"], "q.responses.users": ["u", "v"]}
    path = write("export.jsonl", [{**record, "q.responses.status": ["submitted"]}])
    with pytest.raises(DataError, match=r"row 1, column 'q.responses.status'.*has not one status for each of 2"):
        said(path, "argilla")
    assert len(said(write("export.jsonl", [record]), "argilla")) == 2  # none is said
