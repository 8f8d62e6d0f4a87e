"""Spans that do not lie side by side: what reads them, their agreement, their votes, and what tags have of them."""

import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.aggregation import SequenceAggregation, create
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.commands import main as cli
from crowdzoo.comparison.compare import compare
from crowdzoo.data.drawn_spans import GOLD, DrawnSpan, num_matched, outermost
from crowdzoo.data.retokenized import retokenized
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds.sentences.measure import SpanMeasure
from crowdzoo.quality import marked_spans
from crowdzoo.quality.span_differences import _with_drawn
from crowdzoo.reading.sentences.sentence_files import read_sentences
from crowdzoo.sequences import read_spans, write_spans

TEXT = "The University of Bonn and left and right arm hurt"
UNIVERSITY, BONN = (1, 4), (3, 4)
pytestmark = [pytest.mark.usefixtures("here")] + [
    pytest.mark.filterwarnings(f"ignore:.*{text}")
    for text in ("lie inside longer ones", "No span is of type", "is the label of no task", "labels differ")
]


def drawn(label, *pieces):
    return DrawnSpan(label, pieces)


def line(spans, who="ann", task="s", text=TEXT):
    """A line of a file, of labels and pieces in tokens."""
    words, ends = text.split(), np.cumsum([len(word) + 1 for word in text.split()]).tolist()
    edges = [[end - len(word) - 1, end - 1] for word, end in zip(words, ends, strict=True)]
    about = {"gold": True} if who is None else {"annotator": who}
    return {"task": task, "text": text, **about, "spans": [drawn(*span).entry(edges) for span in spans]}


def write(*lines, name="a.jsonl"):
    with open(name, "w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in lines)
    return name


def said(path):
    return Path(path).read_text(encoding="utf-8")


NESTED = [("ORG", UNIVERSITY), ("LOC", BONN), ("BODY", (5, 6), (8, 9)), ("BODY", (7, 9))]


def test_spans_are_kept_as_they_were_drawn_and_tags_have_the_outermost():
    path = write(line(NESTED), line([("ORG", UNIVERSITY)], "bob"), line([("LOC", BONN)], None), line([], "cid"))
    with pytest.warns(UserWarning, match="of 6 spans, 2 lie inside longer ones .*; 1 are in pieces"):
        crowd = read_spans(path)
    assert crowd.drawn == {
        (0, 0): tuple(drawn(*each) for each in NESTED[:2] + NESTED[2:]),
        (0, 1): (drawn("ORG", UNIVERSITY),),
        (0, 2): (),  # saw the text, and marked nothing
        (0, GOLD): (drawn("LOC", BONN),),
    }
    body = ["B-BODY", "I-BODY", "I-BODY", "I-BODY"]
    assert crowd.answers(0)["ann"] == ["O", "B-ORG", "I-ORG", "I-ORG", "O", *body, "O"]
    assert "B-LOC" in crowd.classes  # a label that no annotator's tags have
    assert read_spans(write_spans(crowd, "again.jsonl")) == crowd
    cut = retokenized(crowd)
    assert cut.drawn == crowd.drawn  # no token is cut further


BRAT = "T1\tORG 4 22\tUniversity of Bonn\nT2\tLOC 18 22\tBonn\nT3\tBODY 27 31;42 45\tleft arm\n"
BRAT += "T4\tX 42 45;46 50\tarm hurt\n"  # with no token between
LINKED = "R1\tin Arg1:T1 Arg2:T2\nA1\tNegated T3\n"
STUDIO = {"completed_by": 1, "result": [
    {"value": {"start": start, "end": end, "labels": [label]}, "from_name": "ner", "type": "labels"}
    for start, end, label in ((4, 22, "ORG"), (18, 22, "LOC"))
] + [{"type": "relation", "from_id": "a", "to_id": "b"}]}  # fmt: skip
FILES = {
    "brat": ({"c/ann/d.ann": BRAT + LINKED, "c/ann/d.txt": TEXT, "c/bob/d.ann": "", "c/bob/d.txt": TEXT}, "c", 4),
    "label-studio": (
        {"e.json": json.dumps([{"id": 1, "data": {"text": TEXT}, "annotations": [STUDIO]}])},
        "e.json",
        2,
    ),
    "doccano": ({"ann.jsonl": json.dumps({"id": 1, "text": TEXT, "label": [[4, 22, "ORG"], [18, 22, "LOC"]]})},
                "ann.jsonl", 2),
}  # fmt: skip


@pytest.mark.parametrize("platform", FILES)
def test_exports_keep_them(platform, tmp_path):
    files, path, number = FILES[platform]
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    told = {"brat": "relations, events, attributes and notes: 2", "label-studio": "left out: relations: 1"}
    with pytest.warns(UserWarning, match=told.get(platform, "inside longer ones")):
        found = read_sentences(path, platform=platform).drawn[0, 0]
    every = [("ORG", UNIVERSITY), ("LOC", BONN), ("BODY", (5, 6), (8, 9)), ("X", (8, 10))]
    assert found == tuple(drawn(*each) for each in every[:number])


WRONG = {
    "brat": (
        {"c/ann/d.ann": "T1\tORG 4 22\tUniversity of Bonn\nT2\tLOC 17 21\tBonn\n", "c/bob/d.ann": BRAT},
        r"c/ann/d.ann, row 1, column 'line 2': 'Bonn' is what was marked, and the text has ' Bon' there \(",
    ),
    "brat, pieces": (
        {"c/ann/d.ann": "T1\tBODY 27 31;42 44\tleft arm\n", "c/bob/d.ann": BRAT},
        r"ann/d.ann.*'left arm' is what was marked, and the text has 'left ar' there \(characters 27 to 31, 42 to 44",
    ),
    "brat, tokens": (
        {"c/ann/d.ann": "T1\tORG 4 12\tUniversi\n", "c/bob/d.ann": BRAT},
        r"c/ann/d.ann, row 1, column 'spans\[0\].end': 12 is inside the token 'University'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_span_whose_text_stands_elsewhere_is_refused_with_its_file_and_line(name, tmp_path):
    files, message = WRONG[name]
    for place, content in {**files, "c/ann/d.txt": TEXT, "c/bob/d.txt": TEXT}.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_sentences("c", platform="brat")
    left = read_sentences("c", platform="brat", on_bad_rows="reject", rejects="r.csv").annotations
    assert (left.annotators.tolist(), left.num_rejected) == (["bob"], 1)


def test_pieces_of_a_span_do_not_overlap():
    crossing = {"start": 4, "end": 22, "label": "A", "fragments": [[4, 17], [15, 22]]}
    with pytest.raises(DataError, match=r"fragments.*is not a list of pieces \[start, end\]"):
        read_spans(write({"task": "s", "annotator": "a", "text": TEXT, "spans": [crossing]}))


def test_a_file_of_spans_side_by_side_has_tags_alone():
    crowd = read_spans(write(line([("LOC", BONN), ("ORG", (1, 3))]), line([("LOC", BONN)] * 2, "bob")))
    assert crowd.drawn is None
    assert crowd.answers(0)["bob"][3] == "B-LOC"  # twice the same is once


def test_a_layer_is_the_spans_of_some_labels():
    path = write(line(NESTED), line([("ORG", UNIVERSITY)], "bob"))
    crowd = read_spans(path, layer="LOC,ORG")
    assert crowd.drawn[0, 0] == (drawn("ORG", UNIVERSITY), drawn("LOC", BONN))
    crowd = read_spans(path, layer=["LOC"])
    assert crowd.drawn is None
    assert crowd.answers(0) == {"ann": ["O", "O", "O", "B-LOC", *"OOOOOO"], "bob": ["O"] * 10}
    with pytest.raises(DataError, match="nobody marked a span of layer='PER'"):
        read_spans(path, layer="PER")


def test_sentences_and_annotators_that_are_left_out_take_their_spans_with_them():
    lines = [line(NESTED, who, task) for task in ("s", "t") for who in ("ann", "bob")]
    crowd = read_sentences(write(*lines, line([("LOC", BONN)], "bob", "t")), exclude=["ann"], on_duplicate="last",
                           on_bad_rows="reject", rejects="r.csv")  # fmt: skip
    assert crowd.drawn == {(0, 0): tuple(drawn(*each) for each in NESTED), (1, 0): (drawn("LOC", BONN),)}
    assert crowd.select([1]).drawn == {(0, 0): (drawn("LOC", BONN),)}
    found = create("span-votes", kind="sequence").fit(crowd.select([1]))
    assert [(each["task"], each["label"]) for each in found.spans] == [("t", "LOC")]


# === Agreement ===


def random_spans(rng, number, labels="AB"):
    found = set()
    while len(found) < number:
        cuts = np.sort(rng.choice(9, 4, replace=False)).tolist()
        pieces = [cuts[:2], cuts[2:]] if rng.random() < 0.3 else [cuts[:2]]
        found.add(drawn(str(rng.choice(list(labels))), *map(tuple, pieces)))
    return sorted(found)


def tokens(span):
    return {token for piece in span.fragments for token in range(*piece)}


def most_matched(one, other):
    """By trying all ways of matching."""
    short, long = sorted((one, other), key=len)
    ways = itertools.permutations(long, len(short))
    return max(
        (
            sum(a.label == b.label and bool(tokens(a) & tokens(b)) for a, b in zip(short, way, strict=True))
            for way in ways
        ),
        default=0,
    )


def test_matches_are_those_that_trying_all_ways_finds():
    rng = np.random.default_rng(0)
    for _ in range(60):
        one, other = (random_spans(rng, rng.integers(0, 6)) for _ in range(2))
        assert num_matched(one, other) == (len(set(one) & set(other)), most_matched(one, other))


def test_agreement_of_nested_spans_is_the_f1_of_their_pairs():
    ann, bob = NESTED, [("ORG", UNIVERSITY), ("LOC", BONN), ("BODY", (8, 9))]
    crowd = read_spans(write(line(ann), line(bob, "bob"), line([("ORG", (1, 3))], "cid"), line(ann, task="t")))
    marked = marked_spans(crowd, create("span-votes", kind="sequence").fit(crowd))
    # the same: ann and bob 2 of 4 + 3, with cid none of 4 + 1 and 3 + 1; with other edges 3, 1 and 1
    assert marked.same.tolist() == [2, 2, 0]
    assert marked.near.tolist() == [4, 4, 2]
    assert marked.compared.tolist() == [7 + 5, 7 + 4, 5 + 4]
    assert marked.overall == 2 * 2 / (7 + 5 + 4)
    np.testing.assert_allclose(marked.agreement_of_tasks, [2 * 2 / (7 + 5 + 4), np.nan])


def test_on_spans_side_by_side_both_ways_of_counting_agree():
    crowd = generated_ner(num_sentences=60)
    marked = marked_spans(crowd, create("span-majority-vote", kind="sequence").fit(crowd))
    again = _with_drawn(marked, SequenceTable.of(crowd, "").drawn_by_task())
    for name in ("same", "same_positions", "compared", "same_of_tasks", "spans_of_tasks"):
        np.testing.assert_array_equal(getattr(again, name), getattr(marked, name), err_msg=name)
    assert (again.near >= again.same).all()


def test_positions_of_nested_spans_meet_once_each_whatever_their_labels():
    """Ann marks the university as ORG and Bonn as LOC; bob the university as LOC twice over, and Bonn as PER."""
    spans = [("ORG", UNIVERSITY), ("LOC", BONN)], [("LOC", UNIVERSITY), ("ORG", UNIVERSITY), ("PER", BONN)]
    crowd = read_spans(write(line(spans[0], "ann"), line(spans[1], "bob")))
    marked = marked_spans(crowd, create("span-majority-vote", kind="sequence").fit(crowd))
    assert marked.overall == pytest.approx(2 * 1 / 5)
    assert marked.position_agreement == pytest.approx(2 * 2 / 5)


# === Votes ===


def votes(*answers, **settings):
    crowd = read_spans(write(*(line(spans, who) for who, spans in zip("abcdefg", answers, strict=False))))
    found = create("span-votes", kind="sequence", **settings).fit(crowd)
    return [
        (each["label"], each["text"], round(each["share"], 2), round(each["label_share"], 2)) for each in found.spans
    ]


U, B = "University of Bonn", "Bonn"
CASES = {
    "nested ones are two": (
        [[("ORG", UNIVERSITY), ("LOC", BONN)]] * 2 + [[]], {}, [("ORG", U, 0.67, 1), ("LOC", B, 0.67, 1)]
    ),
    "half is not enough": ([[("ORG", UNIVERSITY)], []], {}, []),
    "half is more than .4": ([[("ORG", UNIVERSITY)], []], {"share": 0.4}, [("ORG", U, 0.5, 1)]),
    "the label of most": ([[("ORG", UNIVERSITY)], *[[("LOC", UNIVERSITY)]] * 2], {}, [("LOC", U, 1, 0.67)]),
    "other labels apart": ([[("ORG", UNIVERSITY)], [("LOC", UNIVERSITY)]], {"overlap": 1.0}, []),
    "the edges that have most in common": (
        [[("ORG", UNIVERSITY)], [("ORG", (0, 4))], [("ORG", (1, 5))]], {}, [("ORG", U, 1, 1)]
    ),
    "stacked ones are two": ([[("ORG", BONN), ("LOC", BONN)]] * 3, {}, [("LOC", B, 1, 1), ("ORG", B, 1, 1)]),
    "stacked ones that some half mark": (
        [[("ORG", BONN), ("LOC", BONN)], [("LOC", BONN)], [("LOC", BONN)]], {}, [("LOC", B, 1, 1)]
    ),
    "pieces": ([[("BODY", (5, 6), (8, 9))]] * 2, {}, [("BODY", "left … arm", 1, 1)]),
    "too far apart": ([[("ORG", (1, 2))], [("ORG", UNIVERSITY)]], {}, []),
    "near enough": ([[("ORG", (1, 2))], [("ORG", UNIVERSITY)]], {"overlap": 0.3}, [("ORG", U, 1, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_votes_by_hand(name):
    answers, settings, expected = CASES[name]
    assert votes(*answers, **settings) == expected


def test_with_equal_edges_they_are_those_of_the_vote_on_whole_spans():
    crowd = generated_ner(num_sentences=80)
    whole = create("span-majority-vote", kind="sequence").fit(crowd)
    for source in (crowd, crowd.annotations):
        found = create("span-votes", kind="sequence", overlap=1.0).fit(source)
        np.testing.assert_array_equal(found.labels, whole.labels)
        np.testing.assert_allclose(found.skills, whole.skills)
        assert (found.spans is None) == (source is crowd.annotations)
    texts = [each["text"] for each in create("span-votes", kind="sequence", overlap=1.0).fit(crowd).spans]
    assert texts == [" ".join(crowd.tokens[task][span.start : span.end])
                     for task in range(80) for span in whole.spans_of(task)]  # fmt: skip


def test_a_result_is_read_again_and_its_spans_are_a_table():
    crowd = read_spans(write(line(NESTED), line(NESTED, "bob")))
    found = create("span-votes", kind="sequence").fit(crowd)
    assert SequenceAggregation.from_parquet(found.to_parquet("out", crowd)).spans == found.spans
    rows = [json.loads(text) for text in said("out/spans.jsonl").splitlines()]
    assert [(row["start"], row["end"], row["label"], row["fragments"]) for row in rows] == [
        (4, 22, "ORG", None), (18, 22, "LOC", None), (27, 45, "BODY", [[27, 31], [42, 45]]), (36, 45, "BODY", None),
    ]  # fmt: skip
    assert found.tags()[0].count("B-BODY") == 1
    found.write("out2", "csv")
    assert said("out2/spans.csv").startswith('"task","start","end","label","share"')


def test_tokens_that_are_cut_further_keep_the_spans_as_they_were_drawn():
    words = ["the", "U.S.", "left-right", "arm"]
    spans = [{"start": 1, "end": 4, "label": "A"}, {"start": 1, "end": 2, "label": "B"}]
    spans += [{"start": 0, "end": 4, "label": "C", "fragments": [[0, 1], [3, 4]]}]
    crowd = retokenized(read_spans(write({"task": "s", "annotator": "a", "tokens": words, "spans": spans})))
    assert crowd.tokens == (("the", "U", ".", "S", ".", "left", "-", "right", "arm"),)
    assert set(crowd.drawn[0, 0]) == {drawn("A", (1, 9)), drawn("B", (1, 5)), drawn("C", (0, 1), (8, 9))}


# === Gold ===


def scored(tmp_path):
    """24 sentences: gold has four spans, two of which are nested; ann and bob find them, cid none, dan two wrong."""
    wrong = [("ORG", (0, 4)), ("LOC", (2, 3))]
    lines = [line(spans, who, f"s{task}") for task in range(24)
             for who, spans in ((None, NESTED), ("ann", NESTED), ("bob", NESTED), ("cid", []))]  # fmt: skip
    lines += [line(wrong, who, "s0") for who in ("dan", "eve", "fay", "gus")]
    return write(*lines)


def test_f1_against_gold_is_of_spans_as_drawn(tmp_path, capsys):
    path = scored(tmp_path)
    # span-votes: 23 sentences with all four, one with two wrong ones and no more than 2 of 7 votes for the others
    expected = 2 * 92 / (96 + 94)
    words = [path, "--kind", "sequence", "--method"]
    assert cli.main(["aggregate", *words, "span-votes", "--out", "a"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"F1 of spans as drawn {expected:.4f} (precision {92 / 94:.4f}, recall {92 / 96:.4f})" in shown
    # tags have two of four, of which the one in pieces is none; in the first sentence they have one wrong one
    assert cli.main(["aggregate", *words, "span-majority-vote", "--out", "b"]) == 0
    assert f"F1 of spans as drawn {2 * 23 / (96 + 47):.4f}" in " ".join(capsys.readouterr().out.split())


def test_compare_chooses_by_the_spans_as_drawn(tmp_path, capsys):
    path = scored(tmp_path)
    crowd = read_sentences(path)
    found = compare(crowd, methods=["span-votes", "span-majority-vote"], folder="runs")
    assert (found.measure, found.best.name) == ("F1 of spans as drawn", "span-votes")
    assert found.frame["score"][0] == pytest.approx(2 * 92 / (96 + 94))
    assert found.frame["precision"][0] == pytest.approx(92 / 94)
    assert cli.main(["compare", path, "--kind", "sequence", "--methods", "span-votes", "--out", "c"]) == 0
    assert "F1 of spans as drawn" in capsys.readouterr().out
    # gold of another source has its own spans; the runs' scores are of another gold
    tags = [crowd.tag_set.tags(codes) for codes in crowd.gold]
    other = [["O"] * 10, *tags[1:]]
    with pytest.raises(ConfigError, match=r"its runs are of other gold\. Name another folder"):
        compare(crowd, gold=other, methods=["span-votes"], folder="runs")
    assert compare(crowd, gold=other, methods=["span-votes"]).frame["score"][0] == pytest.approx(2 * 92 / (92 + 94))


def test_comparing_finds_the_spans_of_all_sentences_once(tmp_path, monkeypatch):
    crowd, calls, find = read_sentences(scored(tmp_path)), [], SequenceAggregation.drawn
    result = create("span-votes", kind="sequence").fit(crowd)
    monkeypatch.setattr(SequenceAggregation, "drawn", lambda *arguments: calls.append(1) or find(*arguments))
    answers = SpanMeasure(crowd).answers(result, np.array([0, 2, 5]), None)
    assert answers.tolist() == [[0, 4, 2], [4, 4, 4], [4, 4, 4]]  # right, of gold, found
    assert len(calls) == 1


@pytest.mark.filterwarnings("ignore:.*The trained model predicts class")
def test_training_says_how_many_spans_tags_lack(tmp_path, capsys):
    words = ["--kind", "sequence", "--method", "span-votes", "--epochs", "1"]
    assert cli.main(["train", scored(tmp_path), *words, "--out", "m.keras"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    # of 24 sentences ann and bob lose two spans each, the four others in the first sentence one each
    assert "spans that are not learnt, as tags lack them 100 of 200" in shown
    assert "F1 of spans as drawn in the sentences trained on" in shown


def test_outermost_takes_the_longest_first():
    every = [drawn("B", (0, 2)), drawn("A", (1, 4)), drawn("A", (4, 5)), drawn("C", (3, 4), (5, 6)), drawn("D", (1, 4))]
    assert outermost(every) == [drawn("A", (1, 4)), drawn("A", (4, 5))]


def test_from_a_folder_of_brat_to_spans_and_a_page(tmp_path, capsys, refusal_of):
    for who, lines in (("ann", BRAT), ("bob", BRAT), ("cid", BRAT.splitlines()[0])):
        (tmp_path / f"c/{who}").mkdir(parents=True)
        (tmp_path / f"c/{who}/d.ann").write_text(lines, encoding="utf-8")
        (tmp_path / f"c/{who}/d.txt").write_text(TEXT, encoding="utf-8")
    words = ["c", "--platform", "brat", "--kind", "sequence", "--method"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert cli.main(["aggregate", *words, "span-votes", "--out", "found.csv"]) == 0
    shown = capsys.readouterr().err
    assert "of 9 spans, 4 lie inside longer ones" in shown
    assert "--layer LABEL reads one label" in shown
    assert cli.main(["aggregate", *words, "span-votes", "--out", "found.csv", "--force"]) == 0
    assert said("found.csv").count("\n") == 5
    assert cli.main(["aggregate", *words, "majority-vote", "--layer", "LOC", "--out", "tags"]) == 0
    assert "B-LOC" in said("tags/tags.txt")
    assert cli.main(["report", *words, "span-votes", "--bootstrap", "0", "--out", "page.html"]) == 0
    page = json.loads(said("page.json"))
    assert (
        page["tables"]["annotators"]["values"]["near_agreement"] == page["tables"]["annotators"]["values"]["agreement"]
    )
    assert "lie inside longer ones or overlap them" in json.dumps(page["warnings"])
    assert "--layer LOC: is for --kind sequence" in refusal_of("aggregate", "c.csv", "--layer", "LOC", "--out", "o")
