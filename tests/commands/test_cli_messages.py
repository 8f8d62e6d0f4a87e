"""Messages that users met with a wrong fix, or without one."""

import re

import pytest

from crowdzoo.commands import main as cli

pytestmark = pytest.mark.usefixtures("here")
ROWS = "".join(f"{n},{who},{'cat' if n % 2 else 'dog'}\n" for n in range(6) for who in ("ann", "hugo"))
FILES = {
    "a.csv": f"task,annotator,label\n{ROWS}",
    "few.csv": f"task,annotator,label\n{ROWS}7,ann\n",
    "many.csv": f"task,annotator,label\n{ROWS}7,ann,cat,dog\n",
    "open.csv": f'task,annotator,label\n{ROWS}7,ann,"cat\n',
    "image.csv": f"image,worker,label\n{ROWS}",
    "ratings.csv": "task,annotator,label\n" + "".join(f"{n},{who},{n}\n" for n in range(6) for who in "ab"),
    "other.csv": "task,score\n1,2\n",
    "names.csv": "task\n" + "".join(f"{n}\n" for n in range(8)),
    "a.xlsx": "task,annotator,label\n",
    "none.csv": "task,class,probability\n",
}
AGGREGATE = "--method majority-vote --out o"


@pytest.fixture(autouse=True)
def files(tmp_path, here):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            f"aggregate few.csv {AGGREGATE}",
            "row 14: '7,ann' has 2 values where the header has 3. Add the missing values",
        ),
        (f"aggregate many.csv {AGGREGATE}", 'has 4 values where the header has 3. Put quotes (") around a value that'),
        (f"aggregate open.csv {AGGREGATE}", "opens a quote that nothing closes. Close it, or remove it;"),
        (
            f"aggregate a.csv {AGGREGATE} --exclude Hugo",
            "is by 'Hugo'. Did you mean 'hugo'? The annotators are 'ann', ",
        ),
        (f"aggregate a.csv {AGGREGATE} --only Zoe", "is by 'Zoe'. The annotators are 'ann', 'hugo'."),
        (f"aggregate a.csv {AGGREGATE} --platform zooniverse", "Did you mean 'panoptes'?"),
        (f"aggregate a.csv {AGGREGATE} --platform inception", "Did you mean 'webanno'?"),
        (
            "next a.csv --out gold.xlsx --gold-sample 3",
            "--out gold.xlsx: is written as .csv or .json, by the ending of",
        ),
        (
            "report a.csv --out r.html --predictions other.csv",
            "Predictions have the columns task, class and probability",
        ),
        (f"aggregate a.csv {AGGREGATE} --gold names.csv", "['task']. Say which it is: --gold-columns gold=NAME."),
        ("aggregate a.csv --out o --annotator-table names.csv", "['task']. Rename the one that is meant."),
        (f"aggregate a.xlsx {AGGREGATE}", "a.xlsx: not a sound workbook of Excel ("),
        ("report a.csv --out r.html --predictions none.csv", "none.csv: has no rows, only a header."),
        (
            "report ratings.csv --kind regression --out r.html --predictions other.csv",
            "has no column 'value'; its columns are ['task', 'score']. Predictions have the columns task and value, as",
        ),
        (
            "quality a.csv --rate mean",
            "--rate: corrects the labels of models by people's: name the models with --models",
        ),
        (
            "quality a.csv --rate mean --models ann --method none",
            "and these are ['cat', 'dog']. Name those whose share of the tasks you want, such as --rate cat.",
        ),
        (
            "export a.csv served",
            "a.csv: is not a trained model (.keras). If it holds annotations, `crowdzoo train a.csv ",
        ),
    ],
)
def test_a_message_says_what_to_do(words, said, capsys):
    assert cli.main(words.split()) in (3, 4)
    assert said in capsys.readouterr().err


BROKEN = {
    "a web page": ("a.csv", b"\n<!DOCTYPE html><html>", "", "a.csv: the file is a web page, perhaps that of a login"),
    "UTF-16": (
        "a.csv",
        FILES["a.csv"].encode("utf-16-be"),
        "",
        "UTF-16 without its byte order mark. Give --encoding utf-16-be.",
    ),
    "no header": (
        "a.csv",
        ROWS.encode(),
        "--columns task=t,annotator=a,label=l",
        "say so: --no-header, with --columns task=NUMBER,annotator=NUMBER,label=NUMBER.",
    ),
    "cut off": (
        "a.jsonl",
        b'{"text": "t',
        "--platform argilla",
        "Unterminated string at character 10; it may be cut off",
    ),
    "of another encoding": (
        "a.jsonl",
        '{"text": "ä"}\n'.encode("latin-1"),
        "--platform argilla",
        "is not UTF-8 (byte 0xE4). Save the file as UTF-8, or give its encoding, such as --encoding latin-1.",
    ),
    "no object": ("a.jsonl", b"null", "--platform argilla", "row 1: 'null' is not a JSON object."),
    "two objects": (
        "a.json",
        b'{"images": [], "categories": [], "annotations": []}\n' * 2,
        "--platform coco --kind region",
        "a.json: holds more than one object. Write each export into a file of its own.",
    ),
    "a missing tag": ("a.txt", b"Ann B-PER O\nsings O\n", "--kind sequence", "Write a tag in each column, or ?."),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_told_with_the_fix(name, tmp_path, refusal_of):
    file, content, words, said = BROKEN[name]
    (tmp_path / file).write_bytes(content)
    assert said in refusal_of("aggregate", file, "--out", "o", *words.split(), code=3)


def test_the_encoding_that_is_advised_for_a_file_works(tmp_path, capsys):
    (tmp_path / "a.csv").write_bytes(FILES["a.csv"].encode("utf-16-le"))
    assert cli.main(["aggregate", "a.csv", "--out", "o"]) == 3
    option = capsys.readouterr().err.rpartition("Give ")[2].strip().removesuffix(".")
    assert cli.main(["aggregate", "a.csv", "--out", "o", *option.split()]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("aggregate a.csv --out o --kind ratings", ". Did you mean '--kind regression'?\n"),
        ("aggregate a.csv --out o --kind ner", ". Did you mean '--kind sequence'?\n"),
        ("aggregate a.csv --out o --kind multi-label", ". Did you mean '--multi-label'?\n"),
        ("aggregate a.csv --out o --on-bad-rows rejct", ". Did you mean '--on-bad-rows reject'?\n"),
        ("aggregat a.csv", ". Did you mean 'aggregate'?\n"),
        ("aggregate a.csv --out o --kind bogus", "'region')\n"),
        (
            "export a.csv",
            "required: out\n  model: a .keras file from `crowdzoo train`, or a folder of --hub\n  out: the",
        ),
    ],
)
def test_a_wrong_word_is_told_with_the_one_that_was_meant(words, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(words.split())
    assert said in capsys.readouterr().err.replace("region)", "'region')")  # as Python 3.12 writes it


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("columns", ["image=task", "image=task,worker=annotator"])
def test_columns_that_are_swapped_are_told_in_the_right_order(columns, capsys):
    words = ["aggregate", "image.csv", "--method", "majority-vote", "--out", "o", "--columns"]
    assert cli.main([*words, columns]) == 4
    advised = capsys.readouterr().err.rpartition("--columns ")[2].strip().removesuffix(".")
    assert cli.main([*words, advised]) == 0


@pytest.mark.parametrize(
    "words", [["names.csv", "--first", "--annotators", "ann,hugo"], ["a.csv", "names.csv"]], ids=len
)
def test_next_takes_a_table_of_the_names_of_tasks_alone(words, capsys):
    assert cli.main(["next", *words, "--out", "batch.csv"]) == 0
    assert re.search(r"^tasks +8$", capsys.readouterr().out, flags=re.M)


@pytest.mark.filterwarnings("default")
def test_a_column_found_by_a_usual_name_is_told_without_an_option_that_does_not_exist(tmp_path, capsys):
    (tmp_path / "names.csv").write_text("image\n1\n2\n")
    assert cli.main(["next", "names.csv", "--first", "--annotators", "ann,hugo"]) == 0
    assert "by usual names: 'image' as task. Rename them to be sure." in capsys.readouterr().err


def test_a_second_label_is_told_with_both_options(capsys, tmp_path):
    (tmp_path / "a.csv").write_text(f"{FILES['a.csv']}1,ann,dog\n")
    assert cli.main(["aggregate", "a.csv", "--out", "o"]) == 3
    assert "keep one with --on-duplicate first or --on-duplicate last." in capsys.readouterr().err


def test_a_server_without_a_folder_says_only_that(capsys, caplog):
    pytest.importorskip("crowdzoo.serving")
    assert cli.main(["serve", "nothere", "--rest-port", "0", "--grpc-port", "0"]) == 6
    assert "`crowdzoo run` and `crowdzoo export` write one" in capsys.readouterr().err
    assert not caplog.records
