"""A broken input of a command is refused with its place and a way out, and leaves nothing behind."""

from pathlib import Path

import pytest

from crowdzoo.commands import main as cli

CONFIG = "name: pets\ndata:\n  annotations: a.csv\n  instances: i.csv\noutput:\n  root: out\n"
GOOD = {
    "a.csv": "task,annotator,label\n1,ann,cat\n1,bob,dog\n2,ann,dog\n2,bob,dog\n",
    "i.csv": "task,f0,f1\n1,0.5,1.5\n2,2.5,3.5\n",
}
TRAIN = "train a.csv i.csv --out model.keras"
# files beside or instead of the good ones, the command, its exit code, and parts of the message
CASES = {
    "gold of an unknown class": (
        {"g.csv": "task,gold\n1,cat\n2,dgo\n"}, "aggregate a.csv --out out --gold g.csv", 3,
        ["g.csv, row 3, column 'gold'", "'dgo' is not one of the classes ['cat', 'dog']"],
    ),
    "distances of names": ({}, "quality a.csv --metric interval --out q", 3, ["names such as 'cat'", "values="]),
    "instances without a task": ({"i.csv": "number,f0\n1,2\n"}, TRAIN, 3, ["no column 'task'"]),
    "a word among numbers": (
        {"i.csv": "task,f0,f1\n1,0.5,red\n2,1,2\n3,1,4\n"}, TRAIN, 3, ["row 2, column 'f1'", "'red'"]
    ),
    "a task that has no instance": ({"i.csv": "task,f0,f1\n1,0.5,1.5\n"}, TRAIN, 3, ["row 4, column 'task'"]),
    "a preference of a task that has no instance": (
        {"p.csv": "left,right,annotator,label\n1,2,ann,left\n1,3,bob,right\n"},
        "train p.csv i.csv --kind preference --out model.keras", 3, ["p.csv, row 3, column 'right'", "'3'"],
    ),
    "gold that is no class": (
        {"i.csv": "task,f0,gold\n1,0.5,cat\n2,2.5,dgo\n"}, TRAIN, 3, ["'dgo'", "Did you mean 'dog'"]
    ),
    "labels of one class only": ({"a.csv": "task,annotator,label\n1,ann,cat\n2,bob,cat\n"}, TRAIN, 3, ["of one class"]),
    "a misspelt key": (
        {"r.yaml": CONFIG + "trainig:\n  epochs: 3\n"}, "run r.yaml --check", 4, ["trainig", "Did you mean 'training'"]
    ),
    "a value of the wrong kind": (
        {"r.yaml": CONFIG + "training:\n  epochs: many\n"}, "run r.yaml --check", 4, ["training.epochs", "'many'"]
    ),
    "an empty configuration": ({"r.yaml": ""}, "run r.yaml --check", 4, ["is empty"]),
    "no configuration": ({}, "run nowhere.yaml", 4, ["nowhere.yaml", "does not exist"]),
    "a workbook with options of CSV": (
        {}, "aggregate a.csv --out o.xlsx --format csv --bom", 4, ["CSV that is written: add --out DIR --format csv."]
    ),
    "options of CSV, and no file": ({}, "next a.csv --out-decimal ,", 4, ["add --out FILE.csv."]),
    "the two files of train exchanged": ({}, "train i.csv a.csv --out model.keras", 3, ["Are these annotations?"]),
    "masks without their platform": ({"m/a/1.png": ""}, "aggregate m --out o", 3, ["such as --platform png-masks"]),
    "no condition": ({}, "report a.csv --out r.html --fail-if alpha", 4, ["alpha<0.6"]),
    "no model": ({}, "export model.keras served", 3, ["model.keras", "does not exist"]),
    "no served folder": ({}, "predict served i.csv", 6, ["served"]),
    "a folder without a version": ({"served/x": ""}, "predict served i.csv", 6, ["served"]),
    "no server": ({}, "predict http://127.0.0.1:9 i.csv", 6, ["127.0.0.1:9"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_broken_input_is_refused_with_its_place_and_a_way_out(case, here, capsys):
    more, command, exit_code, says = CASES[case]
    files = GOOD | more
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content)
    code, message = cli.main(command.split()), capsys.readouterr().err
    assert code == exit_code, message
    assert all(part in message for part in says), message
    assert "Traceback" not in message
    assert {str(path) for path in Path().rglob("*") if path.is_file()} == {*files}
