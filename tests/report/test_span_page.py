"""The page of `crowdzoo report` for sentences with marked spans."""

import json
from dataclasses import replace

import numpy as np
import pytest

from crowdzoo.aggregation import SpanMajorityVote
from crowdzoo.data.crowd_sequences import sentence_annotations
from crowdzoo.datasets import generated_ner
from crowdzoo.kinds.sentences.page import MOST_TOKENS
from crowdzoo.quality import marked_spans
from crowdzoo.report.page import VALUES, report_page
from crowdzoo.sequences import CrowdSequences, TagSet, allowed_tags, read_spans, tags_of


@pytest.fixture(scope="module")
def crowd():
    return generated_ner(120, 12, redundancy=4, seed=3)


@pytest.fixture(scope="module")
def page(crowd):
    return report_page(crowd, SpanMajorityVote().fit(crowd), bootstrap=20, title="sentences")


def small(said, tokens=None, length=6, names=("ann", "bob", "cem"), types=("LOC", "PER")) -> CrowdSequences:
    """Sentences; `said` has a list of spans, or None, for each sentence and annotator."""
    tag_set = TagSet(allowed_tags(types))
    rows = [
        (task, who, tag_set.codes(tags_of(spans, length)))
        for task, answers in enumerate(said) for who, spans in enumerate(answers) if spans is not None
    ]  # fmt: skip
    names = np.array(names, object)
    annotations = sentence_annotations(rows, np.arange(len(said)), names, tag_set.classes)
    return CrowdSequences(tokens or [[f"w{place}" for place in range(length)]] * len(said), annotations)


def test_the_numbers_are_those_of_the_spans(crowd, page):
    numbers = json.loads(page.to_json())
    found = marked_spans(crowd, SpanMajorityVote().fit(crowd))
    assert numbers["kind"] == "sequence"
    assert set(numbers["values"]) == set(VALUES["sequence"])
    assert numbers["values"]["span_agreement"] == pytest.approx(found.overall, abs=1e-4)
    assert numbers["values"]["annotations"] == 480
    annotators = numbers["tables"]["annotators"]["values"]
    f1 = 2 * found.right.sum(1) / (found.marks.sum(1) + found.expected.sum(1))
    assert annotators["reliability"] == pytest.approx(f1, abs=1e-4)
    for low, value, high in zip(*(annotators[f"reliability{end}"] for end in ("_low", "", "_high")), strict=True):
        assert 0 <= low <= value <= high <= 1
    shares = np.array([annotators[name] for name in ("missed", "wrong_edges", "wrong_type")])
    right = found.right.sum(1) / found.expected.sum(1)
    np.testing.assert_allclose(shares.sum(0) + right, 1, atol=3e-4)  # every aggregated span is one of the four
    types = numbers["tables"]["classes"]["values"]
    assert types["aggregated"] == found.expected.sum(0).tolist()
    assert types["missed"] == pytest.approx(found.missed.sum(0) / found.expected.sum(0), abs=1e-4)
    assert numbers["classes"] == ["DATE", "LOC", "ORG", "PER", "no span"]
    assert len(page.numbers.verdict) == 3
    assert "F1 of 0." in page.numbers.verdict[0]


def test_who_marks_at_random_is_noted_and_the_others_are_not(page):
    notes = page.numbers.tables["annotators"].values["notes"]
    assert [number for number, found in enumerate(notes) if found] == [9]  # by its recipe: marks tokens at random
    assert notes[9] == ["apart"]


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")  # a vote drops rare spans
def test_silence_and_exchanged_types_are_noted():
    spans = [("LOC", 0, 2), ("PER", 3, 4)]
    other = [("PER", 0, 2), ("PER", 3, 4)]
    crowd = small([[spans, spans, other, []]] * 15, names=("ann", "bob", "cem", "dan"))
    page = report_page(crowd, SpanMajorityVote(0.4).fit(crowd), bootstrap=0)
    assert page.numbers.tables["annotators"].values["notes"] == [[], [], ["exchange"], ["silent"]]
    assert page.values["noted_annotators"] == 2
    assert page.values["noted_share"] == 0.25, "exchanged types are kept"
    warned = {each.about: each.finding for each in page.numbers.warnings}
    assert "LOC / PER" not in warned, "one annotator makes all of the confusion"


def test_unclear_edges_are_warned_of_by_type():
    long, short = [("LOC", 0, 3), ("PER", 4, 5)], [("LOC", 1, 3), ("PER", 4, 5)]
    crowd = small([[long, long, short], [long, short, long], [short, long, long]] * 4)
    warned = {each.about: each.finding for each in report_page(crowd, SpanMajorityVote().fit(crowd)).numbers.warnings}
    assert [*warned] == ["LOC"]
    assert warned["LOC"].startswith("its edges are unclear; 67 % of its spans have other edges")


def test_a_sentence_opens_with_its_words_and_who_marked_what(crowd, page):
    tasks = page.numbers.tables["tasks"]
    result = SpanMajorityVote().fit(crowd)
    differing = [tasks.values["differing"][row] for row in tasks.rows]
    assert differing == sorted(differing, reverse=True)
    for row, detail in zip(tasks.rows, tasks.details, strict=True):
        ((first, words),) = detail["pieces"]
        assert first == 0
        assert "".join(words) == crowd.texts[row]
        assert [tuple(span) for span in detail["marks"][0]["spans"]] == [
            (crowd.types.index(span.type), span.start, span.end) for span in result.spans_of(row)
        ]
        said = {name: mark["spans"] for mark in detail["marks"][1:] for name in mark["who"]}
        assert set(said) == {str(name) for name in crowd.answers(row)}
    row = tasks.rows[0]
    assert all(" ".join(crowd.tokens[row][span.start : span.end]) in tasks.values["label"][row]
               for span in result.spans_of(row))  # fmt: skip


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")  # a vote drops rare spans
def test_of_a_long_document_the_page_shows_the_tokens_from_the_first_span_that_differs():
    said = [[("LOC", 700, 702)], [("LOC", 701, 702)], []]
    crowd = small([said], length=1000)
    (detail,) = report_page(crowd, SpanMajorityVote().fit(crowd), bootstrap=0).numbers.tables["tasks"].details
    assert [(first, len(words)) for first, words in detail["pieces"]] == [(692, 160)]
    many = [[("LOC", place, place + 1) for place in range(0, 1000, 2)], [], []]
    (detail,) = report_page(small([many], length=1000), SpanMajorityVote().fit(small([many], length=1000)),
                            bootstrap=0).numbers.tables["tasks"].details  # fmt: skip
    assert sum(len(words) for _, words in detail["pieces"]) == MOST_TOKENS


def test_what_changed_names_sentences_with_other_spans(crowd, page):
    fewer = crowd.select(np.arange(100))
    said = fewer.annotations.labels.copy()
    said[fewer.annotations.annotator_ids == 0] = fewer.tag_set.outside  # annotator 0 marks nothing now
    later = replace(fewer, annotations=replace(fewer.annotations, labels=said))
    then, now = SpanMajorityVote().fit(crowd), SpanMajorityVote().fit(later)
    changes = report_page(later, now, bootstrap=0, before=json.loads(page.to_json())).changes
    different = [task for task in range(100) if then.spans_of(task) != now.spans_of(task)]
    assert different
    assert changes["tasks"]["changed"] == len(different)
    assert [name for name, *_ in changes["tasks"]["listed"]] == [str(task) for task in different[:10]]
    assert changes["tasks"]["gone"] == 20
    assert changes["annotators"]["listed"][0][0] == "0"


def test_where_nobody_marks_anything_the_page_says_so(write):
    lines = [
        json.dumps({"task": f"s{task}", "text": f"Anna saw {task}", "annotator": who, "spans": []})
        for task in range(12) for who in ("ann", "bob")
    ]  # fmt: skip
    crowd = read_spans(write("none.jsonl", "\n".join(lines)))
    page = report_page(crowd, SpanMajorityVote().fit(crowd), bootstrap=0)
    (warned,) = [each for each in page.numbers.warnings if each.serious]
    assert warned.about == "spans"
    assert "nobody marked one" in warned.finding
    assert "second annotator" not in warned.fix
