"""Files whose shape is that of public bug reports: those below CROWDZOO_DATA/reports, and invented ones like them."""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import bad_row
from table_files import texts_of

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.errors import CrowdzooError, DataError
from crowdzoo.quality import krippendorff_alpha
from crowdzoo.reading.instances.gold import read_gold_labels, read_gold_ratings
from crowdzoo.sequences import read_conll


@pytest.fixture(params=["of the report", "invented"])
def report(request, tmp_path):
    """A function from the name of a report's file and the content of a like one to a path."""

    def path(name, content):
        if request.param == "invented":
            file = tmp_path / Path(name).name
            file.write_text(content)
            return file
        file = Path(os.environ.get("CROWDZOO_DATA", "nowhere"), "reports", name)
        if not file.exists():
            pytest.skip("CROWDZOO_DATA names no folder with reports")
        return file

    return path


ZOO = """subject_ids,user_name,annotations
7,a,"[{""task"":""T0"",""value"":""Yes""},{""task"":""T1"",""value"":[""fox"",""deer""]}]"
7,b,"[{""task"":""T0"",""value"":""Yes""},{""task"":""T1"",""value"":[""deer"",""fox""]}]"
7,c,"[{""task"":""T0"",""value"":""Yes""},{""task"":""T1"",""value"":[""fox""]}]"
8,a,"[{""task"":""T0"",""value"":""No""}]"
8,b,"[{""task"":""T0"",""value"":""No""}]"
8,c,"[{""task"":""T0"",""value"":""No""}]"
"""
ZOO_COLUMNS = "task=subject_ids,annotator=user_name,label=annotations"


def test_cells_of_json_objects_are_asked_for_one_question(report, here, refusal_of):
    file = report("F2/zoo.csv", ZOO)
    words = ["aggregate", str(file), "--method", "majority-vote", "--columns", ZOO_COLUMNS, "--out", "o.csv", "--force"]
    assert "to the questions ['T0', 'T1']. Choose one: --field T0." in refusal_of(*words, code=3)
    assert cli.main([*words, "--field", "T0"]) == 0
    assert pd.read_csv("o.csv")["label"].tolist() == ["Yes", "No"]
    assert "unknown field 'T2': choose one of T0, T1" in refusal_of(*words, "--field", "T2", code=3)
    assert "--label-separator ','" in refusal_of(*words, "--field", "T1", code=3)  # which takes lists apart


def test_the_order_of_a_list_in_json_does_not_matter(report):
    file = report("F2/zoo.csv", ZOO)
    crowd = Annotations.read(file, columns=ZOO_COLUMNS, field="T1", label_separator=",", on_duplicate="all")
    assert texts_of(crowd) == [("7", who, label) for who in "ab" for label in ("deer", "fox")] + [("7", "c", "fox")]
    named = Annotations.read(file, columns=ZOO_COLUMNS, field="T1", classes=['["deer", "fox"]', '["fox"]'])
    assert named.labels.tolist() == [0, 0, 1]


def test_objects_of_json_in_cells_come_in_further_forms(write):
    file = write("a.csv", 'task,annotator,label\n1,a,"{""mood"": 4, ""ok"": true}"\n1,b,"{""mood"": 2.5}"\n')
    assert Annotations.read(file, kind="regression", field="mood").labels.tolist() == [4, 2.5]
    assert texts_of(Annotations.read(file, field="ok")) == [("1", "a", "true")]
    file.write_text('task,ann,bob\n1,"{""q"": ""x""}",\n2,"{""q"": ""y""}","[{""q"": ""x""}]"\n')
    wide = [("1", "ann", "x"), ("2", "ann", "y"), ("2", "bob", "x")]
    assert texts_of(Annotations.read(file, wide=True, field="q")) == wide
    file.write_text("task,annotator,label\n1,a,{x}\n1,b,[y]\n")  # classes in brackets
    assert Annotations.read(file).classes.tolist() == ["[y]", "{x}"]


RATERS = "rater,i1,i2,i3,i4,i5\nann,1,2,3,3,2\nbob,1,2,3,3,2\ncem,1,3,3,3,2\n"


def test_a_row_of_a_wide_table_may_be_an_annotator(report, capsys):
    file = report("F6/rows.csv", RATERS)
    crowd = Annotations.read(file, wide=True, columns="annotator=rater")
    assert texts_of(crowd)[:4] == [("i1", "ann", "1"), ("i1", "bob", "1"), ("i1", "cem", "1"), ("i2", "ann", "2")]
    assert (crowd.num_tasks, crowd.num_annotators, len(crowd)) == (5, 3, 15)
    # sums of coincidences times squared ordinal distances, by hand: 72 observed, 7,200 of all pairs of 15 labels
    assert krippendorff_alpha(crowd, "ordinal").value == pytest.approx(1 - (72 / 15) / (7200 / (15 * 14)))
    words = ["quality", str(file), "--wide", "--columns", "annotator=rater", "--metric", "ordinal", "--bootstrap", "0"]
    assert cli.main(words) == 0
    assert "Krippendorff's alpha, ordinal                 0.860" in capsys.readouterr().out
    some = Annotations.read(file, wide=True, columns="annotator=rater,task=i1,i4")
    assert some.tasks.tolist() == ["i1", "i4"]
    assert Annotations.read(file, wide=True, columns="annotator=rater,task=i*") == crowd


def test_a_table_with_a_row_for_each_annotator_comes_in_every_form(tmp_path, write):
    plain = Annotations.read(write("a.csv", "1,x,y\n2,,x\n"), wide=True, header=False, columns="annotator=1")
    assert texts_of(plain) == [("2", "1", "x"), ("3", "1", "y"), ("3", "2", "x")]
    pd.DataFrame({"who": ["ann", "bob"], "q1": [4.5, 2.0], "q2": [None, 3.0]}).to_parquet(tmp_path / "a.parquet")
    ratings = Annotations.read(tmp_path / "a.parquet", kind="regression", wide=True, columns="annotator=who")
    assert texts_of(ratings) == [("q1", "ann", "4.5"), ("q1", "bob", "2.0"), ("q2", "bob", "3.0")]
    (tmp_path / "b.csv").write_text("task,ann,bob\n1,x,y\n")  # one annotator of several, as ever
    one = Annotations.read(tmp_path / "b.csv", wide=True, columns="annotator=ann")
    assert texts_of(one) == [("1", "ann", "x")]
    with pytest.raises(DataError, match=r"'date' does not look.*{'annotator': 'rater', 'task': 'q1'}"):
        Annotations.read(write("c.csv", "rater,date,q1\nann,x,y\n"), wide=True, columns="annotator=rater")


NONE = "task,annotator,label\nt1,a,None|artist\nt1,b,artist\nt1,c,None\nt2,a,None\nt2,b,None\nt2,c,artist\n"


def test_an_answer_of_no_label_and_a_label_is_a_bad_row(report, here, capsys, refusal_of):
    file = report("F3/none.csv", NONE)
    words = ["aggregate", str(file), "--multi-label", "--label-separator", "|", "--no-label", "None", "--out", "o.csv"]
    said = refusal_of(*words, code=3)
    assert "1 bad row" in said
    assert "row 2, column 'label': 'None' is of an answer of 'a'" in said
    assert cli.main([*words, "--on-bad-rows", "reject", "--rejects", "r.csv", "--method", "majority-vote"]) == 0
    assert "answers        5\n" in capsys.readouterr().out
    assert pd.read_csv("o.csv")["probability_artist"].tolist() == [0.5, pytest.approx(1 / 3)]
    assert pd.read_csv("r.csv")["row"].tolist() == [2, 2]  # both labels


def test_an_answer_in_rows_of_its_own_may_not_be_no_label_and_a_label(tmp_path):
    (tmp_path / "a.csv").write_text("task,annotator,label\n1,a,x\n1,b,(none)\n1,a,(none)\n2,a,(none)\n")
    how = {"on_duplicate": "all", "no_label": "(none)"}
    with pytest.raises(DataError, check=bad_row(2, "label", "x")):
        Annotations.read(tmp_path / "a.csv", **how)
    with pytest.warns(UserWarning, match="2 rows were left out"):
        kept = Annotations.read(tmp_path / "a.csv", **how, on_bad_rows="reject")
    assert texts_of(kept) == [("1", "b", "(none)"), ("2", "a", "(none)")]


GOLD = "w1,1,a,a\nw2,1,b,a\nw3,1,a,a\nw1,2,b,b\nw2,2,b,b\nw3,2,a,b\n"


def test_gold_that_repeats_is_read_once_and_different_gold_is_an_error(report, here, capsys, refusal_of):
    file = report("F5/cf.csv", GOLD)
    words = ["aggregate", str(file), "--no-header", "--columns", "annotator=1,task=2,label=3", "--gold", str(file)]
    words += ["--method", "majority-vote", "--out", "out", "--force"]
    assert cli.main([*words, "--gold-columns", "task=2,gold=4"]) == 0
    assert "1.0000 (on 2 tasks with gold" in capsys.readouterr().out
    said = refusal_of(*words, "--gold-columns", "task=2,gold=3", code=3)
    assert "row 2, column '3': 'b' is another value of task '1' than" in said
    assert "row 6, column '3': 'a' is another value of task '2' than" in said


def test_gold_of_every_kind_may_repeat(tmp_path):
    file, tasks = tmp_path / "gold.csv", np.array(["1", "2"], object)
    file.write_text("task,gold\n1,\n1,2.5\n2,3\n1,2.50\n")
    assert read_gold_ratings(file, tasks).tolist() == [2.5, 3]
    file.write_text("task,gold\n1,x|y\n2,(none)\n1,y | x\n")
    assert {name: holds.tolist() for name, holds in read_gold_labels(file, tasks, ["x", "y"]).items()} == {
        "x": [1, 0], "y": [1, 0]}  # fmt: skip
    file.write_text("task,gold\n1,x|y\n1,y\n")
    with pytest.raises(DataError, check=bad_row(3, "gold", "y")):
        read_gold_labels(file, tasks, ["x", "y"])


APPEN = """_unit_id,_tainted,_worker_id,category
1,false,w1,yes
1,true,w8,no
1,true,w9,no
2,false,w1,no
2,true,w8,yes
2,true,w9,yes
"""


def test_tainted_judgments_of_appen_do_not_count(report):
    file = report("F4/appen.csv", APPEN)
    with pytest.warns(UserWarning, match="column '_tainted' says do not count: 4"):
        crowd = Annotations.read(file, columns="task=_unit_id,annotator=_worker_id,label=category")
    assert texts_of(crowd) == [("1", "w1", "yes"), ("2", "w1", "no")]
    assert crowd.num_rejected == 0


EXTRACT = """classification_id,user_name,task,subject_id,data.yes,data.no,data.fox
1,a,T0,7,1.0,,
1,a,T1,7,,,1.0
2,b,T0,7,,1.0,
3,a,T0,8,,1.0,
4,b,T0,8,,1.0,
"""


def test_blanks_in_the_columns_of_all_labels_are_called_so(report, here, refusal_of):
    file = report("F17/question_extractor.csv", EXTRACT)
    columns = "task=subject_id,annotator=user_name,label=data.yes,data.no"
    words = ["aggregate", str(file), "--method", "majority-vote", "--columns", columns, "--out", "out.csv"]
    said = refusal_of(*words, code=3)
    assert f"{file}, row 3, column 'data.yes': '' is blank or 0," in said
    assert "Leave such rows out by --missing '', or" in said
    assert cli.main([*words, "--missing", ""]) == 0
    assert pd.read_csv("out.csv")["annotations"].tolist() == [2, 2]


def test_tags_of_bilou_are_read_as_those_of_iobes(report, tmp_path):
    file = report("F16/bilou.txt", "Ana U-PER U-PER\nmet O O\nJo B-PER B-PER\nDam L-PER L-PER\n")
    crowd = read_conll(file, scheme="BILOU", annotators=["ann", "bob"])
    assert crowd.scheme == "IOBES"
    tags = ["S-PER", "O", "B-PER", "E-PER"]
    assert crowd.answers(0) == {"ann": tags, "bob": tags}
    words = ["aggregate", str(file), "--kind", "sequence", "--scheme", "BILOU", "--method", "majority-vote"]
    assert cli.main([*words, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "tags.txt").read_text().split()[1::2] == tags


def test_messages_about_bilou_have_the_letters_of_the_file(write):
    file = write("tags.txt", "Ana U-PER E-PER\nmet L-PER O\n")
    with pytest.raises(DataError, match=r"of BILOU: .* E- belongs", check=bad_row(1, "2", "E-PER")) as caught:
        read_conll(file, scheme="BILOU")
    assert "'L-PER' follows 'U-PER'; a span of type PER begins w" in str(caught.value)
    with pytest.raises(DataError, match=r"'U-PER' is not a tag .* U- belongs to the scheme BILOU"):
        read_conll(file)
    classes = ["O", "B-PER", "I-PER", "L-PER", "U-PER"]
    file.write_text("Ana U-PER O\n")
    assert read_conll(file, scheme="BILOU", classes=classes).classes == ["O", "B-PER", "I-PER", "E-PER", "S-PER"]


MARK = "\ufeff"


@pytest.mark.usefixtures("chunks")
def test_a_byte_order_mark_inside_a_file_is_no_part_of_an_id(tmp_path, write):
    """The mark also stands at the edge of a piece that is read."""
    one, two = "task,annotator,label\n1,a,x\n1,b,y\n", "2,a,x\n2,b,x\n"
    expected = [("1", "a", "x"), ("1", "b", "y"), ("2", "a", "x"), ("2", "b", "x")]
    assert texts_of(Annotations.read(write("a.csv", MARK + one + MARK + two))) == expected
    (tmp_path / "b.csv").write_text(MARK + one + f'{MARK}"2","a","x"\n2,b,x\n', encoding="utf-16-le")
    assert texts_of(Annotations.read(tmp_path / "b.csv")) == expected
    lines = [json.dumps(dict(zip(("task", "annotator", "label"), row, strict=True))) for row in expected]
    assert texts_of(Annotations.read(write("a.jsonl", MARK + f"\n{MARK}".join(lines)))) == expected


def test_a_byte_order_mark_inside_a_file_of_sentences_is_no_part_of_a_token(tmp_path):
    (tmp_path / "a.txt").write_text(f"{MARK}Ana B-PER\n\n{MARK}Jo B-PER\n")
    assert read_conll(tmp_path / "a.txt").tokens == (("Ana",), ("Jo",))


@pytest.mark.usefixtures("chunks")
def test_the_header_of_a_second_file_behind_the_first_is_a_bad_row(tmp_path):
    one, two = "task,annotator,label\r\n1,a,x\r\n", "task,annotator,label\ntask,b,y\n"
    (tmp_path / "a.csv").write_text(MARK + one + MARK + two)
    with pytest.raises(DataError, match="repeats the names", check=bad_row(3, None, "task,annotator,label")):
        Annotations.read(tmp_path / "a.csv")
    with pytest.warns(UserWarning, match="1 row was left out"):
        kept = Annotations.read(tmp_path / "a.csv", on_bad_rows="reject")
    assert texts_of(kept) == [("1", "a", "x"), ("task", "b", "y")]


def test_messages_about_json_have_a_row_or_none_and_the_columns_of_the_file(tmp_path):
    for content in ("[" * 200, "9" * 5000, b"\xff\xfe\xff" * 9):
        (tmp_path / "a.json").write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(DataError) as caught:
            Annotations.read(tmp_path / "a.json")
        assert "None" not in str(caught.value)
    (tmp_path / "a.jsonl").write_text('{"task": 1, "annotator": "a", "seconds": 3}\n')
    columns = r"The columns are 'task', 'annotator', 'seconds'\."
    with pytest.raises(DataError, match=f"no column 'said'.*{columns}"):
        Annotations.read(tmp_path / "a.jsonl", columns="label=said")
    with pytest.raises(DataError, match=f"'label' is missing. {columns}"):
        Annotations.read(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_text('none\n{"task": 1, "annotator": "a", "said": 3}\n')
    with pytest.raises(DataError, match="row 1: 'none' is not JSON"):
        Annotations.read(tmp_path / "a.jsonl", columns="label=said")
    (tmp_path / "a.jsonl").write_text('{"task": 1, "annotator": "a", "label": "x"}\n')  # a time in later lines alone
    assert len(Annotations.read(tmp_path / "a.jsonl", columns="timestamp=when")) == 1


LONG = {"a word": "w" * 3000, "quotes": "a' \" " * 800, "lines": "x\ny " * 800}


@pytest.mark.parametrize("name", LONG)
def test_a_long_value_is_cut_in_every_message(name, tmp_path):
    long, said = LONG[name], []

    def read(content, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                Annotations.read(content, **options)
            except CrowdzooError as error:
                said.append(str(error))
        said.extend(str(each.message) for each in caught)

    def table(rows, columns=("task", "annotator", "label")):
        pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "a.csv", index=False)
        return tmp_path / "a.csv"

    for place in range(3):
        row = ["1", "a", "x"]
        row[place] = long
        read(table([row, row]))
        read(table([row]), kind="regression")
        read(table([row]), classes=["p", "q"])
        (tmp_path / "a.jsonl").write_text(json.dumps({"task": "1", "annotator": "a", "label": [long], long: 1}))
        read(tmp_path / "a.jsonl")
        read(table([row], [long, "b", "c"]))
    read(table([["1", "a", f"{long}A"], ["1", "b", f"{long}a"], ["1", "c", f"{long}|{long}"]]), rename=f"{long}=x")
    (tmp_path / "a.jsonl").write_text(json.dumps({"task": "1", "annotator": "a", "label": f" {long} "}))
    read(tmp_path / "a.jsonl")
    read(tmp_path / "a.jsonl", columns=f"task={long}")
    assert len(said) > 12
    assert max(map(len, said)) < 1200, max(said, key=len)


def test_three_independent_annotators_are_read_as_they_stand():
    file = Path(os.environ.get("CROWDZOO_DATA", "nowhere"), "reports", "F22", "three.csv")
    if not file.exists():
        pytest.skip("CROWDZOO_DATA names no folder with reports")
    crowd = Annotations.read(file)
    frame = pd.read_csv(file)
    assert texts_of(crowd) == sorted(frame.astype(str).itertuples(index=False, name=None))
    assert (crowd.num_tasks, crowd.annotators.tolist(), crowd.classes.tolist()) == (200, ["a", "b", "c"], [0, 1])
