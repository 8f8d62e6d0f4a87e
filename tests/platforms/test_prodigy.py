"""Exports of Prodigy."""

import pytest

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.sequences import read_spans


def example(number, who, **more):
    return {"text": f"text {number}", "_input_hash": number, "_task_hash": -number, "_view_id": "choice",
            "answer": "accept", "_annotator_id": who, "_session_id": who, "_timestamp": 1700000000, **more}  # fmt: skip


OPTIONS = [{"id": "GLAD", "text": "glad"}, {"id": "SAD", "text": "sad"}]


def test_a_chosen_option_is_the_label(write, rows_of):
    path = write("export.jsonl", [
        example(5, "films-ann", options=OPTIONS, accept=["GLAD"]),
        example(5, "films-bob", options=OPTIONS, accept=["SAD"]),
        example(-7, "films-bob", options=OPTIONS, accept=["SAD"]),
    ])  # fmt: skip
    assert rows_of(path, "prodigy") == [(5, "films-ann", "GLAD"), (5, "films-bob", "SAD"), (-7, "films-bob", "SAD")]


def test_rejected_ignored_and_empty_examples_are_left_out_and_counted(write, rows_of):
    path = write("export.jsonl", [
        example(1, "ann", options=OPTIONS, accept=["GLAD"]),
        example(2, "ann", options=OPTIONS, accept=["GLAD"], answer="reject"),
        example(3, "ann", options=OPTIONS, accept=[], answer="ignore"),
        example(4, "ann", options=OPTIONS, accept=[]),
    ])  # fmt: skip
    counts = "rejected examples: 1; ignored examples: 1; examples without an answer to 'accept': 1"
    with pytest.warns(UserWarning, match=counts):
        assert rows_of(path, "prodigy") == [(1, "ann", "GLAD")]


def test_a_binary_question_is_answered_with_accept_or_reject(write, rows_of):
    path = write("export.jsonl", [
        example(1, "ann", label="SPAM"), example(1, "bob", label="SPAM", answer="reject"),
        example(1, "ann", label="AD"),
    ])  # fmt: skip
    with pytest.raises(ConfigError, match="several questions: 'SPAM', 'AD'"):
        rows_of(path, "prodigy")
    assert rows_of(path, "prodigy", field="SPAM") == [(1, "ann", "accept"), (1, "bob", "reject")]


def test_the_session_or_else_the_file_names_the_annotator(write, rows_of, tmp_path):
    ann = example(1, None, options=OPTIONS, accept=["GLAD"])
    write("all/ann.jsonl", [ann])
    write("all/bob.jsonl", [ann | {"_session_id": "films-2024"}])
    assert rows_of(tmp_path / "all", "prodigy") == [(1, "ann", "GLAD"), (1, "films-2024", "GLAD")]


def test_reviewed_examples_are_gold(write, rows_of):
    path = write("export.jsonl", [
        example(1, "ann", options=OPTIONS, accept=["GLAD"]),
        example(1, "review", options=OPTIONS, accept=["SAD"], versions=[{"accept": ["GLAD"]}]),
    ])  # fmt: skip
    assert rows_of(path, "prodigy") == [(1, "ann", "GLAD")]


TOKENS = [{"text": "Zoë", "start": 0, "end": 3, "id": 0}, {"text": "-", "start": 3, "end": 4, "id": 1},
          {"text": "who", "start": 4, "end": 7, "id": 2}, {"text": "?", "start": 7, "end": 8, "id": 3},
          {"text": "\n", "start": 8, "end": 9, "id": 4}]  # fmt: skip


def test_spans_become_tags_of_the_tokens_that_annotators_saw(write):
    name = {"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}
    path = write("export.jsonl", [
        example(1, "ann", text="Zoë-who?\n", tokens=TOKENS, spans=[name, name]),
        example(1, "bob", text="Zoë-who?\n", tokens=TOKENS, spans=[]),
        example(2, "bob", text="Zoë-who?\n", tokens=TOKENS, spans=[], answer="ignore"),
    ])  # fmt: skip
    with pytest.warns(UserWarning, match="ignored examples: 1"):
        crowd = read_spans(path, platform="prodigy")
    assert crowd.tokens == (("Zoë", "-", "who", "?"),) * 2
    assert crowd.answers(0) == {"ann": ["B-PER", "O", "O", "O"], "bob": ["O"] * 4}
    assert crowd.answers(1) == {}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"answer": "maybe"}, "column 'answer': 'maybe' is not one of accept, reject, ignore"),
        ({"accept": [["GLAD"]]}, r"column 'accept': .*is not a label"),
        ({"_input_hash": 1.5}, "column '_input_hash': 1.5 is not an id"),
    ],
)
def test_a_broken_example_is_named_with_its_line(write, rows_of, more, says):
    good = example(1, "ann", options=OPTIONS, accept=["GLAD"])
    with pytest.raises(DataError, match=f"export.jsonl, row 2, {says}"):
        rows_of(write("export.jsonl", [good, good | more]), "prodigy")


def test_a_line_that_is_not_json_is_named_and_the_others_are_read(write, rows_of):
    path = write("export.jsonl", [example(1, "ann", options=OPTIONS, accept=["GLAD"])])
    path.write_text('{"text": }\n\n' + path.read_text())
    with pytest.raises(DataError, match=r"row 1: .* is not JSON: Expecting value at character 10"):
        rows_of(path, "prodigy")
    with pytest.warns(UserWarning, match="1 row was left out"):
        assert rows_of(path, "prodigy", on_bad_rows="reject") == [(1, "ann", "GLAD")]


def test_a_key_named_after_an_encoding_is_not_taken_for_a_wrong_encoding(write, rows_of):
    path = write("export.jsonl", [example(1, "ann", options=OPTIONS, accept=["GLAD"])])
    path.write_text('{"UTF-8": 1, "UTF-8": 2}\n' + path.read_text())
    with pytest.raises(DataError, match=r"export.jsonl, row 1: .* holds the key 'UTF-8' twice. Export it again"):
        rows_of(path, "prodigy")


@pytest.mark.parametrize("name", ["2026-03-02_10-11-12", "news-2026-03-02_10-11-12"])
def test_a_session_that_is_named_by_its_time_is_no_annotator(write, rows_of, name):
    entries = [
        {"text": text, "_input_hash": number, "accept": ["x"], "answer": "accept", "_session_id": session}
        for number, (text, session) in enumerate([("a", name), ("b", name.replace("-03-02", "-03-03"))])
    ]
    assert rows_of(write("ann.jsonl", entries), "prodigy") == [(0, "ann", "x"), (1, "ann", "x")]
