"""Exports of Argilla, in each of their forms."""

import pytest
from csv_files import read_csv

from crowdzoo import Annotations
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError
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


def test_nested_records_are_read(write, rows_of):
    path = write("records.json", [nested(1, mood=[(ANN, "glad"), (BOB, "sad")]), nested(2, mood=[(BOB, "sad")])])
    assert rows_of(path, "argilla") == [("r1", ANN, "glad"), ("r1", BOB, "sad"), ("r2", BOB, "sad")]


def test_flat_records_are_read_as_a_list_and_as_lines_and_discarded_responses_are_left_out(write, rows_of):
    records = [
        flat(1, ["glad", "sad"], [ANN, BOB], ["submitted", "discarded"]),
        flat(2, ["sad"], [BOB], ["submitted"]),
        flat(3, None, None, None),
    ]
    for name in ("records.json", "records.jsonl"):
        with pytest.warns(UserWarning, match="discarded responses: 1; .* without a response to 'mood': 1"):
            assert rows_of(write(name, records), "argilla") == [("r1", ANN, "glad"), ("r2", BOB, "sad")]


def test_feedback_datasets_are_read(write, rows_of):
    path = write("records.json", [
        feedback(1, (ANN, "submitted", {"mood": "glad", "stars": 4}), (BOB, "draft", {"mood": "sad"})),
        feedback(2, (BOB, "submitted", {"mood": ["sad"], "stars": 2})),
    ])  # fmt: skip
    with pytest.warns(UserWarning, match="draft responses: 1"):
        assert rows_of(path, "argilla") == [("r1", ANN, "glad"), ("r2", BOB, "sad")]
    assert Annotations.read(path, platform="argilla", kind="regression").labels.tolist() == [4.0, 2.0]


def test_older_datasets_name_one_annotator_a_record(write, rows_of):
    old = {"text": "a", "inputs": {"text": "a"}, "prediction": [["sad", 0.9]], "prediction_agent": "m", "id": 1,
           "annotation": "glad", "annotation_agent": "ann", "multi_label": False, "status": "Validated"}  # fmt: skip
    path = write("records.json", [old, old | {"id": 2, "status": "Discarded"}])
    with pytest.warns(UserWarning, match="discarded responses: 1"):
        assert rows_of(path, "argilla") == [(1, "ann", "glad")]


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
            r"'responses.mood\[0\]': 'glad' is not a resp",
        ),
        (feedback(2) | {"responses": ["glad"]}, r"'responses\[0\]': 'glad' is not a response with values"),
        (flat(2, ["glad", "sad"], [ANN], None), "'mood.responses.users'.*has not one user for each of 2 responses"),
        (nested(None, mood=[(ANN, "glad")]) | {"id": None}, "'id': None is missing"),
        (feedback(2, (None, "submitted", {"mood": "sad"})), "mood .user.'.*Export the responses with their users"),
    ],
)
def test_a_broken_record_is_named_with_its_number(write, rows_of, record, says):
    path = write("records.json", [feedback(1, (ANN, "submitted", {"mood": "glad"})), record])
    with pytest.raises(DataError, match=f"records.json, row 2, column .*{says}"):
        rows_of(path, "argilla")


def columns(text, users, values, statuses, **more):
    """A record of a feedback dataset of Argilla 1 as a table, with a list for each key of the responses."""
    return {"text": text, "mood": {"user_id": users, "value": values, "status": statuses}, **more}


def test_a_table_of_argilla_1_is_read(write, rows_of):
    path = write("old.jsonl", [
        columns("b", [], [], [], external_id="e1"),
        columns("a", ["u1", "u2"], ["glad", "sad"], ["submitted", "discarded"], external_id="e0"),
    ])  # fmt: skip
    with pytest.warns(UserWarning, match="discarded responses: 1"):
        assert rows_of(path, "argilla") == [("e0", "u1", "glad")]
    path = write("uneven.jsonl", [columns("a", ["u1", "u2"], ["glad"], ["submitted"], external_id="e0")])
    with pytest.raises(DataError, match=r"column 'mood'.*is not a list of responses"):
        rows_of(path, "argilla")
    path = write("none.jsonl", [columns("a", ["u1"], ["glad"], ["submitted"], external_id=None)])
    with pytest.raises(DataError, match=r"column 'id': None is missing\. Give records an external_id."):
        rows_of(path, "argilla")


def ranked(*rankings, name="order"):
    users = [f"u{number}" for number in range(len(rankings))]
    return {"id": "r", f"{name}.responses": [*rankings], f"{name}.responses.users": users}


def test_rankings_are_refused_and_sets_of_labels_are_not(write, rows_of):
    """What was said of them was that each annotator had answered three times."""
    rank = {"user_id": "u", "value": [{"value": "b", "rank": 1}, {"value": "a", "rank": 2}]}
    for records in (
        [ranked(["b", "a", "c"], ["b", "c", "a"])],
        [ranked(["a", "b"]), ranked(["b", "a"])],
        [{"id": "r", "fields": {"text": "a"}, "responses": {"order": [rank]}}],
    ):
        for field in (None, "order"):
            with pytest.raises(DataError, match=r"the answers are rankings\. Read them with kind='preference'"):
                rows_of(write("a.json", records), "argilla", field=field)
    sets = [ranked(["a", "b"], ["b", "a"]), {**ranked(["a"], ["c", "b"]), "id": "s"}]
    labels = [label for *_, label in rows_of(write("b.json", sets), "argilla", on_duplicate="all")]
    assert labels == ["a", "b", "b", "a", "a", "c", "b"]
    both = ranked(["b", "a"], ["a", "b"]) | ranked("x", "y", name="mood")
    assert [label for *_, label in rows_of(write("b.json", [both]), "argilla")] == ["x", "y"]


def pairs_of(path, **options):
    crowd = Annotations.read(path, platform="argilla", kind="preference", **options)
    return list(crowd.to_frame()[["left", "right", "annotator", "label"]].itertuples(index=False, name=None))


def test_rankings_are_preferences_of_the_options_of_their_record(write):
    """By hand; which side an option is on depends on the names alone."""
    ties = [{"value": "b", "rank": 1}, {"value": "a", "rank": 2}, {"value": "c", "rank": 2}]
    expected = [("r/b", "r/a", "u0", "left"), ("r/a", "r/c", "u0", "equal"), ("r/c", "r/b", "u0", "right")]
    users = [{"user_id": "u0", "value": ties}, {"user_id": "u1", "value": None, "status": "draft"}]
    with pytest.warns(UserWarning, match="left out: draft responses: 1"):
        assert pairs_of(write("a.json", [{"id": "r", "fields": {"t": "a"}, "responses": {"order": users}}])) == expected
    old = feedback(1, ("u0", "submitted", {"order": ties})) | {"id": "r"}
    assert pairs_of(write("b.json", [old])) == expected
    flat_record = ranked(["b", "a"], ["a", "b"])
    both = [("r/b", "r/a", "u0", "left"), ("r/b", "r/a", "u1", "right")]
    assert pairs_of(write("c.json", [flat_record])) == both
    also_labels = flat_record | ranked("x", "y", name="mood")
    assert pairs_of(write("d.json", [also_labels])) == both


def test_rankings_of_the_library_datasets_have_a_list_for_each_key(write):
    """As Sequence({"rank": ..., "value": ...}) of Argilla 1 is written; the ranks may be in any order."""
    orders = [{"rank": [2, 1], "value": ["a", "b"]}, {"rank": [1, 1], "value": ["a", "b"]}]
    users = [{"user_id": f"u{n}", "value": value, "status": "submitted"} for n, value in enumerate(orders)]
    expected = [("r/b", "r/a", "u0", "left"), ("r/b", "r/a", "u1", "equal")]
    rows = {key: [user[key] for user in users] for key in users[0]}
    flat = {"order.responses": orders, "order.responses.users": ["u0", "u1"]}
    for record in ({"order": users}, {"order": rows}, flat):
        assert pairs_of(write("a.jsonl", [{"external_id": "r", "t": "x", **record}])) == expected
    with pytest.raises(DataError, match=r"the answers are rankings\. Read them with kind='preference'"):
        Annotations.read(write("a.jsonl", [{"external_id": "r", "t": "x", "order": users}]), platform="argilla")


def test_a_response_that_was_discarded_at_once_has_no_values(write, rows_of):
    record = feedback(1, ("u0", "submitted", {"mood": "glad"}), ("u1", "discarded", {}), ("u2", "draft", {}))
    for response in record["responses"][1:]:
        response["values"] = None
    assert [row[1:] for row in rows_of(write("a.json", [record]), "argilla")] == [("u0", "glad")]


def test_options_of_all_records_are_compared_where_they_name_the_tasks(write, tmp_path):
    path = write("a.json", [ranked(["b", "a"], ["b", "a"]), ranked(["b", "a"], ["a", "b"]) | {"id": "s"}])
    words = ["aggregate", str(path), "--platform", "argilla", "--kind", "preference", "--columns", "task=value"]
    assert main([*words, "--on-duplicate", "all", "--out", str(tmp_path / "o.csv")]) == 0
    assert {row["task"]: row["rank"] for row in read_csv(tmp_path / "o.csv")} == {"b": "1", "a": "2"}
    with pytest.raises(ConfigError, match=r"no such name\. Write columns={'task': 'value'}"):
        pairs_of(path, columns={"task": "id"})


def test_a_response_that_is_no_ranking_is_named(write):
    bad = nested(1, order=[(ANN, [{"value": "b", "rank": 1}, {"value": "a"}])])
    with pytest.raises(DataError, match=r"row 1, column 'responses.order\[0\]': .* is not a ranking"):
        pairs_of(write("a.json", [bad]), field="order")


def test_responses_with_fewer_status_are_refused(write, rows_of):
    record = {"id": "r", "text": "a", "q.responses": ["x", "y"], "q.responses.users": ["u", "v"]}
    path = write("export.jsonl", [{**record, "q.responses.status": ["submitted"]}])
    with pytest.raises(DataError, match=r"'q.responses.status'.*has not one status for each of 2"):
        rows_of(path, "argilla")
    assert len(rows_of(write("export.jsonl", [record]), "argilla")) == 2  # none is said
