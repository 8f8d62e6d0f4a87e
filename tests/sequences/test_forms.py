"""Sentences as annotation tools and people keep them: folders, brat, regions with choices; what can be left out."""

import json

import pytest
from csv_files import read_csv
from refusals import bad_row

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds import kind_of
from crowdzoo.reading.sentences.sentence_files import read_sentences
from crowdzoo.sequences import read_conll, read_spans

pytestmark = pytest.mark.usefixtures("here")


def test_a_folder_of_columns_has_a_file_an_annotator(write):
    write("crowd/ann.conll", "Anna X B-PER\nmet X O\n\nRome X B-LOC\n")
    write("crowd/bob.conll", "Anna O\nmet O\n\nRome ?\n")
    write("gold.txt", "Anna B-PER\nmet O\n\nRome B-LOC\n")
    crowd = read_sentences("crowd", gold="gold.txt")
    assert crowd.annotations.annotators.tolist() == ["ann", "bob"]
    assert crowd.answers(0) == {"ann": ["B-PER", "O"], "bob": ["O", "O"]}  # bob saw it and marked nothing
    assert crowd.answers(1) == {"ann": ["B-LOC"]}  # and did not see this one
    assert crowd.gold_tags() == [["B-PER", "O"], ["B-LOC"]]
    write("crowd/cid.conll", "Anna O\nleft O\n\nRome O\n")
    with pytest.raises(DataError, check=bad_row(2, "token", "left")):
        read_conll("crowd")
    write("empty/.x", "")
    with pytest.raises(DataError, match="empty holds no files"):
        read_conll("empty")


ANN = "T1\tPER 0 4\tAnna\nT2\tPER 9 12\tBob\n#1\tAnnotatorNotes T1\tsure?\nR1\tMet Arg1:T1 Arg2:T2\nA1\tSure T1\n"


def test_brat_has_a_folder_an_annotator(write):
    for who, found in (("ann", ANN), ("bob", "T1\tPER 0 4\tAnna\n")):
        write(f"corpus/{who}/d1.txt", "Anna met Bob.\n")
        write(f"corpus/{who}/d1.ann", found)
    write("corpus/ann/more/d2.txt", "Rome.\n")
    write("corpus/ann/more/d2.ann", "")
    with pytest.warns(UserWarning, match="left out: relations, events, attributes and notes: 3"):
        crowd = read_sentences("corpus", platform="brat")
    assert crowd.annotations.tasks.tolist() == ["d1", "more/d2"]
    assert crowd.tokens == (("Anna", "met", "Bob", "."), ("Rome", "."))
    assert crowd.answers(0) == {"ann": ["B-PER", "O", "B-PER", "O"], "bob": ["B-PER", "O", "O", "O"]}
    assert crowd.answers(1) == {"ann": ["O", "O"]}  # who marked nothing; bob never saw it


def test_what_brat_cannot_say_is_refused(write):
    write("a/ann/d1.txt", "Anna met Bob.\n")
    write("a/ann/d1.ann", "T1\tPER 0 4;9\tAnna Bob\n")
    write("a/bob/d1.txt", "Anna met Bob.\n")
    write("a/bob/d1.ann", "T1\tPER 0 4\tAnna\n")
    with pytest.raises(DataError, match=r"ann.d1.ann, row 1, column 'line 1': .*is not a span"):
        read_sentences("a", platform="brat")
    with pytest.warns(UserWarning, match="rows left out: 1, e.g. .*is not a span, such as"):
        assert read_sentences("a", platform="brat", on_bad_rows="reject").answers(0) == {"bob": ["B-PER", *"OOO"]}
    with pytest.raises(DataError, match=r"is in no folder of its annotator. Make one for each"):
        read_sentences("a/ann", platform="brat")
    (write("a/bob/d1.txt", "").parent / "d1.txt").unlink()
    with pytest.raises(DataError, match=r"d1.txt does not exist"):
        read_sentences("a", platform="brat")


REGION = '{"from_name": "%s", "type": "%s", "value": {"start": %d, "end": %d, "%s": ["%s"]}}'
DONE = '{"completed_by": %d, "result": [%s]}'
NER = ["ner", "labels", 0, 4, "labels", "PER"]
EXPORT = '[{"id": 1, "data": {"text": "Anna met Bob."}, "annotations": [%s]}]'


def region(name, kind, start, end, key, label):
    return REGION % (name, kind, start, end, key, label)


def test_choices_of_a_region_are_spans(write):
    regions = [region(*NER), region("mood", "choices", 0, 4, "choices", "glad")]
    write("a.json", EXPORT % ",".join([DONE % (1, ",".join(regions)), DONE % (2, "")]))
    crowd = read_sentences("a.json", platform="label-studio", field="mood")
    assert crowd.answers(0) == {1: ["B-glad", "O", "O", "O"], 2: ["O"] * 4}
    assert read_sentences("a.json", platform="label-studio", field="ner").answers(0)[1][0] == "B-PER"


def test_a_bad_region_and_a_second_answer_are_left_out_with_their_reasons(write):
    bad, late = region("ner", "labels", 1, 4, "labels", "PER"), region("ner", "labels", 9, 12, "labels", "PER")
    answers = [(1, region(*NER)), (2, bad), (1, late)]
    write("a.json", EXPORT % ",".join(DONE % one for one in answers))
    options = {"platform": "label-studio", "on_bad_rows": "reject"}
    for policy, first in (("first", "B-PER"), ("last", "O")):
        crowd = read_sentences("a.json", **options, on_duplicate=policy, rejects="bad.csv")
        assert crowd.annotations.annotators.tolist() == [1]
        assert crowd.answers(0)[1][0] == first
        assert crowd.annotations.num_rejected == 2
        rows = [(row["column"], row["reason"].split(".")[0]) for row in read_csv("bad.csv")]
        assert rows == [
            ("spans[0].start", "is inside the token 'Anna' (characters 0 to 4)"),
            ("annotator", f"labelled task '1' before, in line 1; the {policy} one is kept"),
        ]
    with pytest.warns(UserWarning, match="rows left out: 2"):
        assert read_spans("a.json", **options).answers(0)[1][0] == "B-PER"
    with pytest.raises(DataError, match=r"on_bad_rows='reject'[\s\S]*='first' or on_duplicate='last'"):
        read_spans("a.json", platform="label-studio")


def test_files_of_columns_have_no_rows_to_leave_out(write):
    write("a.txt", "Anna O\n")
    with pytest.raises(ConfigError, match="on_bad_rows is for spans"):
        kind_of("sequence").reading.read("a.txt", on_bad_rows="reject")


def test_a_pipeline_leaves_them_out_and_keeps_them_in_its_file(write, tmp_path):
    from crowdzoo.kinds.sentences.records import SpanRecords

    lines = [
        '{"task": 1, "annotator": "a", "text": "Anna", "spans": [{"start": 0, "end": 4, "label": "PER"}]}',
        '{"task": 1, "annotator": "b", "text": "Anna", "spans": [{"start": 0, "end": 9, "label": "PER"}]}',
    ]
    file = write("a.jsonl", "\n".join(lines) + "\n")
    options = {"annotations": str(file), "eval_fraction": 0.5, "seed": 0, "on_bad_rows": "reject"}
    found = SpanRecords().read(options, str(tmp_path / "rejects.csv"), str(tmp_path))
    assert found.annotations.num_rejected == 1
    assert "is outside the sentence" in (tmp_path / "rejects.csv").read_text(encoding="utf-8")


PAGE = "<div><p>Zo\u00eb &amp; <b>Bob</b></p><br/>\U0001f600 in <i>New</i> York</div>"


def hypertext(start, end, text, what="hypertextlabels"):
    """What Label Studio says of marked HTML: paths of elements, and places in what is shown."""
    ends = {"start": "/div[1]/p[1]/text()[1]", "end": "/div[1]/p[1]/b[1]/text()[1]", "startOffset": 0, "endOffset": 3}
    offsets = {} if start is None else {"globalOffsets": {"start": start, "end": end}}
    return {"from_name": "ner", "type": what, "value": {**ends, **offsets, "text": text, what: ["PER"]}}


@pytest.mark.parametrize("what", ["hypertextlabels", "labels", "choices"])
def test_spans_of_hypertext_stand_in_what_its_page_shows(write, what):
    # the emoji counts once or, in older releases, twice
    ann = [hypertext(6, 9, "Bob", what), hypertext(15, 23, "New York", what), hypertext(16, 24, "New York", what)]
    entry = {"id": 1, "data": {"html": PAGE}, "annotations": [
        {"completed_by": who, "result": said} for who, said in (("ann", ann), ("bob", []))
    ]}  # fmt: skip
    crowd = read_sentences(write("e.json", json.dumps([entry, {**entry, "id": 2, "annotations": [
        {"completed_by": "ann", "result": []}]}])), platform="label-studio", field="ner")  # fmt: skip
    assert crowd.texts == ("Zo\u00eb & Bob\n\U0001f600 in New York",) * 2
    assert crowd.answers(0)["ann"] == ["O", "O", "B-PER", "O", "O", "B-PER", "I-PER"]
    assert crowd.answers(0)["bob"] == ["O"] * 7


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (hypertext(7, 10, "Bob"), r"result\[0\].value.text': 'Bob' is what was marked, and the text has 'ob"),
        (hypertext(None, None, "Bob"), r"has no globalOffsets. Export again from a newer Label Studio"),
    ],
)
def test_a_bad_span_of_an_export_leaves_out_its_annotator_and_no_one_else(write, bad, words):
    good = [hypertext(6, 9, "Bob")]
    entry = {"id": 1, "data": {"html": PAGE}, "annotations": [
        {"completed_by": who, "result": said} for who, said in (("ann", [bad]), ("bob", good))
    ]}  # fmt: skip
    path = write("e/a.json", json.dumps([entry]))
    write("e/b.json", json.dumps([{**entry, "id": 2}]))
    with pytest.raises(DataError, match=rf"e/a.json, row 1, column '.*{words}") as caught:
        read_sentences(path.parent, platform="label-studio")
    assert "e/b.json, row 1, " in str(caught.value)
    with pytest.warns(UserWarning, match="rows left out: 2"):
        crowd = read_sentences(path.parent, platform="label-studio", on_bad_rows="reject")
    assert crowd.annotations.annotators.tolist() == ["bob"]
