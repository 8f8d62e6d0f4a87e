"""Names of classes that may be a mistake: a warning where a file is read, a note in the report on quality."""

import re
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from csv_files import write_csv
from pyarrow import csv
from table_files import write

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.errors import DataWarning, Setting
from crowdzoo.quality import quality_report
from crowdzoo.reading.tables.suspicious import suspicious_classes
from crowdzoo.report.quality_tables import print_quality

pytestmark = pytest.mark.usefixtures("here")


def file_of(*labels):
    with open("a.jsonl", "w", encoding="utf-8") as file:
        file.writelines(f'{{"task": {row}, "worker": 1, "label": "{label}"}}\n' for row, label in enumerate(labels))
    return "a.jsonl"


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["Sehr gut", "sehr gut", "gut"], "white space, Unicode form or the form of a number: 'Sehr gut'"),
        (["sehr  gut", "sehr gut"], "differ only in case"),
        (["caf\u00e9", "cafe\u0301"], "differ only in case"),
        (["cat", "NA"], "If it means that there is no label, leave the rows out: missing=['NA']."),
        (["cat", "-"], "missing=['-']"),
        (["-1", "0", "1"], "leave the rows out: missing=['-1']."),
        (["1.5", "2", "3.25", "4.5"], "some with decimals: '1.5', '3.25', '4.5'. If they are ratings, use kind"),
        (["1,5", "2", "3,25", "4,5"], "use kind='regression' and decimal=','."),
        (["cat ", "dog"], "white space at the ends is part of a class's name: 'cat '."),
    ],
)
def test_a_name_that_may_be_a_mistake_is_said_when_a_file_is_read(names, sentence):
    assert any(sentence in said for said in suspicious_classes(names, np.full(len(names), 9)))
    with pytest.warns(DataWarning) as said:
        Annotations.read(file_of(*names))
    assert any(sentence in str(one.message) for one in said)
    # who names the classes means them
    Annotations.read("a.jsonl", classes=names)


def test_commas_of_thousands_are_no_decimals_and_no_label_is_said_once():
    for names in (["1", "10", "100", "1,000"], ["1,500", "2,500", "3,500"], ["1.5", "2,5", "3,5", "4"]):
        assert suspicious_classes(names, np.full(len(names), 9)) == []
    assert suspicious_classes(["-1", "0"], np.array([9, 9]), no_label="-1") == []


def test_a_class_with_one_annotation_of_thousands_may_be_written_wrongly():
    (said,) = suspicious_classes(["cat", "cow", "dog"], np.array([1500, 1, 1500]))
    assert said.startswith("only one of 3,001 annotations says 'cow'.")
    # many classes are rare, and so are those of a small file
    assert suspicious_classes(["cat", "cow", "dog"], np.array([150, 1, 150])) == []
    assert suspicious_classes([f"class {number}" for number in range(9)], np.array([1] * 5 + [700] * 4)) == []


@pytest.mark.parametrize("name", ["dgo", "dogg", "dig", "dot"])
def test_a_rare_class_a_letter_from_a_common_one_is_told_with_the_correction(name):
    (said,) = suspicious_classes(["cat", "dog", name], np.array([30, 20, 1]))
    assert said.startswith(f"1 of 51 annotations says '{name}', which is almost 'dog'.")
    assert said.endswith(f"correct it: {Setting('rename', {name: 'dog'})}.")


@pytest.mark.parametrize(
    ("names", "counts"),
    [
        (["cat", "dog", "dgo"], [30, 20, 2]),  # not rare
        (["class 1", "class 2"], [30, 1]),  # another number
        (["B-PER", "I-PER"], [30, 1]),  # another first letter
        (["cat", "cattle"], [30, 1]),
        (["no", "now"], [30, 1]),  # too short
    ],
)
def test_other_classes_are_no_misspellings(names, counts):
    assert suspicious_classes(names, np.array(counts)) == []


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("dgo", "a.jsonl: 1 of 44 annotations says 'dgo' (row 43), which is almost 'dog'."),
        ("Dog", "the form of a number: 'Dog' (row 43) and 'dog' (row 2). Write them alike: "),
    ],
)
def test_a_misspelt_class_is_told_with_its_row_and_an_option_that_works(capsys, wrong, said):
    words = ["quality", file_of(*["cat", "dog"] * 21, wrong, "cat"), "--method", "none", "--bootstrap", "0"]
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert said in printed.err
    option = re.search(r"(--rename \S+)\.\n", printed.err)[1]
    assert cli.main([*words, *shlex.split(option)]) == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_the_command_line_says_them_with_its_option(capsys):
    words = ["quality", file_of("cat", "NA", "dog"), "--method", "none", "--bootstrap", "0"]
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert "leave the rows out: --missing NA." in printed.err
    assert "counts as a class" not in printed.out  # said once


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("command", ["quality", "aggregate", "next", "report"])
def test_a_command_says_a_warning_once(command, capsys):
    rows = [(n, who, "Cat" if who == "c" else "cat") for n in range(30) for who in "abc"]
    write_csv("b.csv", ("task", "annotator", "label"), *rows)
    out = {"aggregate": ["--out", "labels.csv"], "report": ["--out", "page.html"]}
    assert cli.main([command, "b.csv", *out.get(command, [])]) == 0
    printed = "".join(capsys.readouterr())
    assert [printed.count(said) for said in ("differ only in case", "Class 'Cat' is the label of no task")] == [1, 1]
    # for a script, which has no standard error
    with pytest.warns(DataWarning):
        report = quality_report(Annotations.read("b.csv"), bootstrap=0)
    print_quality(report)
    assert "note: classes differ only in case" in capsys.readouterr().out


@pytest.mark.filterwarnings("default")
def test_a_row_in_the_name_of_a_class_is_not_taken_for_that_of_the_warning(capsys):
    words = ["quality", file_of("Cat (row 7)", "cat (row 7)", "dog"), "--method", "none", "--bootstrap", "0"]
    assert cli.main(words) == 0
    printed = "".join(capsys.readouterr())
    assert printed.count("differ only in case") == 1


def misspelt():
    """Columns of 6,000 annotations, one of which says `hihg`."""
    labels = np.array(["low", "mid", "high"], object)[np.arange(6000) % 3]
    labels[77] = "hihg"
    return {"task": np.arange(6000) // 5, "annotator": np.arange(6000) % 5, "label": labels}


@pytest.mark.parametrize("way", ["csv", "parquet", "categories", "frame", "arrays"])
def test_a_misspelt_class_is_said_wherever_the_table_stands(way):
    columns = misspelt()
    table = pa.table(columns)
    if way == "csv":
        csv.write_csv(table, "a.csv")
    else:
        encoded = table.set_column(2, "label", table["label"].dictionary_encode())
        pq.write_table(encoded if way == "categories" else table, "a.parquet")
    read = {
        "csv": lambda: Annotations.read("a.csv"),
        "frame": lambda: Annotations.from_frame(table),
        "arrays": lambda: Annotations.from_arrays(*columns.values()),
    }.get(way, lambda: Annotations.read("a.parquet"))
    with pytest.warns(DataWarning, match=r"1 of 6,000 annotations says 'hihg' \(row .*'high'\."):
        found = read()
    # it was said; a file of one's own says nothing more
    found.to_parquet("own.parquet")
    assert Annotations.read("own.parquet") == found


@pytest.mark.filterwarnings("default")
def test_the_check_of_a_pipeline_says_a_misspelt_class_of_parquet(capsys):
    pq.write_table(pa.table(misspelt()), "a.parquet")
    pq.write_table(pa.table({"task": np.arange(1200), "x": np.random.default_rng(0).normal(size=1200)}), "x.parquet")
    write("run.yaml", "{name: n, data: {annotations: a.parquet, instances: x.parquet}, output: {root: out}}\n")
    assert cli.main(["run", "run.yaml", "--check=all"]) == 0
    assert "1 of 6,000 annotations says 'hihg' (row 77)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "names", [["Ann", "ann"], ["Ann Lee", "Ann  Lee"], ["Zo\u00eb", "Zoe\u0308"], ["7", "07"], ["Ann", "A\u200bnn"]]
)
def test_two_spellings_of_an_annotator_are_said(names):
    rows = [(task, who, "x") for task, who in enumerate([*names, "bob"])]
    write_csv("a.csv", ("task", "annotator", "label"), *rows)
    with pytest.warns(DataWarning) as said:
        found = Annotations.read("a.csv")
    with pytest.warns(DataWarning):
        Annotations.from_arrays(*zip(*rows, strict=True))
    assert len(said) == 1
    assert str(said[0].message).endswith(f": {' and '.join(map(repr, sorted(names)))}. Write them alike.")
    Annotations.read("a.csv", annotators=found.annotators)


def test_a_number_that_is_written_in_several_ways_is_said():
    fix = "the form of a number: '01' .*: rename={'01': '1', '1.0': '1'}"
    with pytest.warns(DataWarning, match=f"classes differ only in .* {fix}"):
        Annotations.read(file_of("1", "1.0", "01", "x"))
    assert Annotations.read(file_of("1", "1.0", "2")).num_classes == 2
