"""JSON lines of spans: what reads, what is refused and how, and that what is written comes back."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tagged_rows import crowd_of_rows

from crowdzoo import Annotations
from crowdzoo.data.retokenized import retokenized
from crowdzoo.errors import DataError
from crowdzoo.sequences import (
    CrowdSequences,
    TagSet,
    allowed_tags,
    read_gold,
    read_spans,
    span_scores,
    split_tokens,
    tags_of,
    write_gold,
    write_spans,
)

pytestmark = pytest.mark.usefixtures("here")  # errors name files as they were passed: short names
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)

TEXT = "Anna (Oslo) 😀 met Bob."


def write(*lines, name="a.jsonl"):
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    with open(name, "w", encoding="utf-8") as file:
        file.write("\n".join(texts) + "\n")
    return name


def span(start, end, label):
    return {"start": start, "end": end, "label": label}


def line(*spans, task="s", annotator="ann", text=TEXT, **others):
    return {"task": task, "annotator": annotator, "text": text, "spans": list(spans), **others}


def message_of(*lines, **options):
    with pytest.raises(DataError) as error:
        read_spans(write(*lines), **options)
    return str(error.value)


# === What reads ===


def test_spans_of_a_text_without_spaces_are_what_was_marked():
    text = "昨日は山田さんが東京に着いた。"
    said = line(span(3, 5, "PER"), span(8, 10, "LOC"), text=text)
    crowd = read_spans(write(said))
    assert crowd.num_mended == 0
    assert crowd.tokens[0] == tuple(text)
    assert crowd.answers(0)["ann"] == ["O"] * 3 + ["B-PER", "I-PER"] + ["O"] * 3 + ["B-LOC", "I-LOC"] + ["O"] * 5
    assert json.loads(write_spans(crowd, "again.jsonl").read_text(encoding="utf-8")) == said


def test_spans_of_characters_become_tags_of_tokens():
    crowd = read_spans(write(line(span(18, 21, "PER"), span(0, 4, "PER"), span(6, 10, "LOC"))))
    assert crowd.tokens == (("Anna", "(", "Oslo", ")", "😀", "met", "Bob", "."),)
    assert crowd.answers(0) == {"ann": ["B-PER", "O", "B-LOC", "O", "O", "O", "B-PER", "O"]}
    assert crowd.texts == (TEXT,)
    assert crowd.offsets[0][2].tolist() == [6, 10]
    assert crowd.classes == ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]


def test_a_span_that_ends_inside_a_token_is_widened_when_asked_and_counted():
    # "nn" of Anna, "Osl" with the bracket before it, " m" before and in met, and a span that is right
    cut = line(span(1, 3, "PER"), span(5, 9, "LOC"), span(13, 15, "X"), span(18, 21, "PER"))
    crowd = read_spans(write(cut), on_bad_tags="mend")
    assert crowd.answers(0) == {"ann": ["B-PER", "B-LOC", "I-LOC", "O", "O", "B-X", "B-PER", "O"]}
    assert crowd.num_mended == 3
    assert crowd.offsets[0][0].tolist() == [0, 4]
    nowhere = line(span(4, 5, "PER"))
    assert "4 is not a place where a token begins" in message_of(nowhere, on_bad_tags="mend")


def test_a_widened_span_that_meets_another_is_kept_beside_the_tags():
    path = write({"task": "s", "text": "Rome", "annotator": "ann", "spans": [span(0, 2, "LOC"), span(2, 4, "PER")]})
    with pytest.warns(UserWarning, match="of 2 spans, 1 lie inside longer ones or overlap them"):
        crowd = read_spans(path, on_bad_tags="mend")
    assert crowd.answers(0) == {"ann": ["B-LOC"]}
    assert [each.label for each in crowd.drawn[0, 0]] == ["LOC", "PER"]


def test_gold_has_lines_of_its_own_and_a_task_may_have_none_at_all():
    crowd = read_spans(
        write(
            line(span(0, 4, "PER")),
            {"task": "s", "text": TEXT, "gold": True, "spans": [span(0, 4, "ORG")]},
            {"task": "t", "text": "No one", "gold": True, "spans": []},
            "",
            {"task": "t", "text": "No one"},
        )
    )
    assert crowd.gold_tags()[0][0] == "B-ORG"
    assert crowd.answers(1) == {}
    assert crowd.annotations.redundancy.tolist() == [1, 0]


def test_gold_may_be_known_of_some_sentences_which_are_those_that_scores_count(tmp_path):
    crowd = read_spans(write(line(span(0, 4, "PER")), {"task": "t", "text": "No one", "gold": True, "spans": []}))
    assert crowd.gold_tags() == [None, ["O", "O"]]
    assert crowd.gold_spans() == [None, []]
    assert "gold of 1" in repr(crowd)
    again = read_spans(write_spans(crowd, tmp_path / "again.jsonl"))
    assert again == crowd
    assert retokenized(crowd).gold_tags() == crowd.gold_tags()
    assert crowd.select([1]).gold_tags() == [["O", "O"]]
    assert crowd.select([0]).gold is None
    scores = span_scores(crowd.gold_tags(), [["B-PER"], ["O", "B-PER"]])
    assert (scores.num_tokens, scores.num_predicted, scores.num_correct_tokens) == (2, 1, 1)
    with pytest.raises(DataError, match="sentence 1 has 2 tokens in gold and 1 in predicted"):
        span_scores(crowd.gold_tags(), [["O"], ["O"]])
    assert read_gold(write_gold(crowd, tmp_path / "gold.txt")).gold_tags() == crowd.gold_tags()


# === What is refused ===

BAD = {
    "a broken line": (
        '{"task": ',
        "row 1: '{\"task\": ' is not JSON: Expecting value at character 10; it may be cut off.",
    ),
    "no object": ("[1]", "is not a JSON object."),
    "an unknown key": (line(anotator="x"), "column 'anotator': 'x' is under an unknown key"),
    "an unknown key of a span": (line({"start": 0, "stop": 4, "label": "X"}), "column 'spans[0].stop': 4 is under an"),
    "a key missing in a span": (
        line({"start": 0, "end": 4}),
        "column 'spans[0]': \"{'start': 0, 'end': 4}\" has no la",
    ),
    "no task": ({"annotator": "a", "text": "b", "spans": []}, "column 'task': None is missing."),
    "a task that is not an id": (line(task=[1]), "column 'task': '[1]' is not a string or an integer."),
    "a task that is true": (line(task=True), "column 'task': True is not a string or an integer."),
    "an empty annotator": (line(annotator=" "), "column 'annotator': ' ' is empty."),
    "neither text nor tokens": ({"task": 1, "annotator": 2, "spans": []}, "column 'text': None is missing."),
    "a text that is a number": (line(text=5), "column 'text': 5 is not a string"),
    "a text of white space": (line(text=" \n"), "column 'text': ' \\n' has no tokens."),
    "no tokens": ({"task": 1, "annotator": 2, "tokens": [], "spans": []}, "column 'tokens': '[]' has no tokens."),
    "tokens that are none": ({"task": 1, "annotator": 2, "tokens": ["a", ""], "spans": []}, "is not a list of strings"),
    "tokens of another text": (line(tokens=["Anna", "Oslo"]), "token 1, 'Oslo', is not at character 5."),
    "tokens of half the text": (line(text="a b c", tokens=["a"]), "do not cover the text, which goes on with 'b c'."),
    "spans missing": ({"task": 1, "annotator": 2, "text": "a"}, "column 'spans': None is missing. Write []"),
    "spans that are not a list": (line() | {"spans": {}}, "column 'spans': '{}' is not a list."),
    "a span that is not an object": (line([0, 4, "X"]), "column 'spans[0]': \"[0, 4, 'X']\" is not an object"),
    "spans of nobody": ({"task": 1, "text": "a", "spans": [span(0, 1, "X")]}, "belong to nobody"),
    "gold of somebody": (line(gold=True), 'is next to "gold": true.'),
    "gold that is a word": (line(gold="yes"), "column 'gold': 'yes' is neither true nor false."),
    "an offset that is not an integer": (line(span(0.0, 4, "X")), "column 'spans[0].start': 0.0 is not an integer."),
    "outside the text": (line(span(18, 30, "X")), "column 'spans[0].end': 30 is outside the sentence"),
    "before the text": (line(span(-1, 4, "X")), "column 'spans[0].start': -1 is outside the sentence"),
    "an empty span": (line(span(4, 4, "X")), "column 'spans[0].end': 4 is not after the start"),
    "an edge inside a token": (line(span(1, 4, "X")), "column 'spans[0].start': 1 is inside the token 'Anna'"),
    "an end inside a token": (line(span(0, 3, "X")), "column 'spans[0].end': 3 is inside the token 'Anna'"),
    "an edge at white space": (line(span(0, 5, "X")), "5 is not a place where a token ends. Did you mean 4?"),
    "pieces that are none": (line(span(0, 4, "X") | {"fragments": [0, 4]}), "column 'spans[0].fragments'"),
    "pieces of another span": (line(span(0, 4, "X") | {"fragments": [[0, 4], [6, 10]]}), "from the start of the span"),
    "pieces in another order": (line(span(6, 4, "X") | {"fragments": [[6, 10], [0, 4]]}), "one after the other"),
    "an empty label": (line(span(0, 4, "")), "column 'spans[0].label': '' is empty."),
    "a label of two words": (line(span(0, 4, "A B")), "holds white space"),
    "a label that is a number": (line(span(0, 4, 1)), "column 'spans[0].label': 1 is not text."),
}


@pytest.mark.parametrize(("bad", "message"), BAD.values(), ids=BAD)
def test_a_bad_line_is_named_with_its_key_and_value(bad, message):
    found = message_of(bad)
    assert "a.jsonl, row 1" in found
    assert message in found


SECOND = {
    "another text": (line(annotator="bob", text="Anna"), "row 2, column 'text': 'Anna' differs from what line 1 says"),
    "tokens where there were none": (line(annotator="bob", tokens=split_tokens(TEXT)[0]), "row 2, column 'tokens'"),
    "the annotator again": (line(), "row 2, column 'annotator': 'ann' labelled task 's' before, in line 1."),
    "tokens without a text": (
        {"task": 2, "annotator": "a", "tokens": ["a"], "spans": []},
        "which has a text. All lines have one, or none.",
    ),
}


@pytest.mark.parametrize(("second", "message"), SECOND.values(), ids=SECOND)
def test_a_line_that_contradicts_an_earlier_one_is_named(second, message):
    assert message in message_of(line(), second)


def test_given_names_and_types_are_binding():
    crowd = read_spans(write(line()), annotators=["zoe", "ann"], types=["X"])
    assert crowd.annotations.annotators.tolist() == ["zoe", "ann"]
    assert crowd.classes == ["O", "B-X", "I-X"]
    assert "'ann' is not one of the annotators. Did you mean 'anne'?" in message_of(line(), annotators=["anne"])
    assert "'PRE' is not one of the types ['PER']. Did you mean 'PER'?" in message_of(
        line(span(0, 4, "PRE")), types=["PER"]
    )


# === There and back ===

WORDS = st.text("abé漢😀\u0301\u200d.,'$", min_size=1, max_size=4)


@st.composite
def crowds(draw):
    """Small crowds, with texts or without; every annotator and type is used."""
    with_texts, scheme = draw(st.booleans()), draw(st.sampled_from(["BIO", "IOBES"]))
    tag_set = TagSet(allowed_tags(["X", "Y"], scheme), scheme)
    texts = draw(st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=3))
    own_tokens = draw(st.booleans())
    tokens, offsets, rows, gold = [], [], [], []

    def codes(length):
        edges = sorted(draw(st.sets(st.integers(0, length), max_size=4)))
        spans = [(draw(st.sampled_from("XY")), *pair) for pair in zip(edges[::2], edges[1::2], strict=False)]
        return tag_set.codes(tags_of(spans, length, scheme))

    for task, words in enumerate(texts):
        text = " ".join(words)
        cut, places = split_tokens(text)
        if own_tokens or not with_texts:
            cut, lengths = words, np.array([len(word) for word in words])
            ends = np.cumsum(lengths + 1) - 1
            places = np.stack([ends - lengths, ends], axis=1)
        tokens.append(cut)
        offsets.append(places)
        gold.append(codes(len(cut)) if draw(st.booleans()) else None)
        rows += [(task, who, codes(len(cut))) for who in range(2) if draw(st.booleans())]
    parts = ([" ".join(words) for words in texts], offsets) if with_texts else (None, None)
    known = gold if draw(st.booleans()) else None
    names, people = [f"task {task}" for task in range(len(texts))], np.array(["ann", "böb"], object)
    return crowd_of_rows(rows, people, tag_set.classes, tokens, known, *parts, tasks=names, scheme=scheme)


@in_one_folder
@given(crowds(), st.sampled_from(["", ".gz"]))
def test_what_is_written_reads_back(crowd, suffix):
    write_spans(crowd, f"a.jsonl{suffix}")
    back = read_spans(f"a.jsonl{suffix}", scheme=crowd.scheme, annotators=["ann", "böb"], types=["X", "Y"])
    assert back == crowd


def sentences_of(annotators, tasks=("s",), classes=("O", "B-PER", "I-PER"), said=None):
    """Each annotator in turn labels the one token of a task."""
    said = range(len(annotators)) if said is None else said
    names = np.empty(len(annotators), object if isinstance(annotators[0], str) else np.int64)
    names[:] = annotators
    tasks = np.array(tasks, object)
    crowd = Annotations(
        "sequence", [0] * len(said), said, [1] * len(said), tasks, names, np.array(classes, object),
        positions=[0] * len(said),
    )  # fmt: skip
    return CrowdSequences([["Anna"]] * len(tasks), crowd)


@pytest.mark.parametrize(
    ("sentences", "head"),
    [
        (sentences_of([1, 2, 10]), {"tasks": None}),
        (sentences_of([10, 2]), {"annotators": [10, 2]}),
        (sentences_of(["2", "10"]), {"annotators": ["2", "10"]}),
        (sentences_of(["ann", "bob"], said=[1]), {"annotators": ["ann", "bob"]}),
        (sentences_of(["ann"], tasks=["7"]), {"tasks": ["7"]}),
        (sentences_of(["ann"], classes=("I-PER", "O", "B-PER")), {"classes": ["I-PER", "O", "B-PER"]}),
        (sentences_of(["ann"], classes=("O", "B-LOC", "B-PER", "I-LOC", "I-PER")), {"classes": [
            "O", "B-LOC", "B-PER", "I-LOC", "I-PER"]}),
    ],
)  # fmt: skip
def test_names_that_reading_would_not_find_stand_in_a_first_line(sentences, head, tmp_path):
    path = write_spans(sentences, tmp_path / "s.jsonl")
    first = json.loads(path.read_text().splitlines()[0])
    assert first == head if None not in head.values() else "spans" in first
    assert read_spans(path) == sentences


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"annotators": "abc"}', "column 'annotators': 'abc' is not a list of names"),
        ('{"classes": "abcdefgh"}', "column 'classes': 'abcdefgh' is not a list of names"),
        ('{"annotators": ["a", "a"]}', "cannot be taken: annotators holds 'a' twice"),
        ('{"classes": ["O", "B-X"]}', "cannot be taken"),
        ('{"tasks": ["other"]}', "the tasks are not those that the first line names"),
        ('{"annotators": ["bob"]}', "'ann' is not one of the annotators"),
        ('{"task": 1, "task": 2}', "holds the key 'task' twice"),
        ("[" * 10_000, "is nested deeper than 100 levels"),
    ],
)
def test_a_broken_first_line_is_named(line, reason, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(line + '\n{"task": "s", "annotator": "ann", "tokens": ["Anna"], "spans": []}\n')
    with pytest.raises(DataError, match=reason):
        read_spans(path)
