"""Broken inputs and what a user sees: the cases of `test_broken_inputs.py`."""

import contextlib
import io
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from crowdzoo.commands import main as cli

ANNOTATIONS = "task,annotator,label\n1,ann,cat\n1,bob,dog\n2,ann,dog\n2,bob,dog\n"
INSTANCES = "task,f0,f1\n1,0.5,1.5\n2,2.5,3.5\n"
CONFIG = """\
name: pets
data:
  annotations: a.csv
  instances: i.csv
output:
  root: out
"""
GOOD = {"a.csv": ANNOTATIONS, "i.csv": INSTANCES}


@dataclass(frozen=True)
class Case:
    """One broken input.

    Attributes:
        what: is broken, in a few words.
        files: name -> content, written before the command runs.
        command: words after `crowdzoo`.
        exit_code: of the command.
        says: parts that the message must have.
    """

    what: str
    files: dict[str, str | bytes]
    command: str
    exit_code: int
    says: tuple[str, ...]


def aggregate(what: str, content: str | bytes, *says: str, name: str = "a.csv", options: str = "") -> Case:
    """A broken file of annotations."""
    return Case(what, {name: content}, f"aggregate {name} --out out {options}".strip(), 3, says)


def train(what: str, instances: str, *says: str) -> Case:
    """A broken file of instances, beside sound annotations."""
    return Case(what, {**GOOD, "i.csv": instances}, "train a.csv i.csv --out model.keras", 3, says)


def config(what: str, content: str, *says: str) -> Case:
    """A broken configuration, beside sound files."""
    return Case(what, {**GOOD, "pets.yaml": content}, "run pets.yaml --check", 4, says)


FILES = [
    aggregate("a misspelt column", "task,anotator,label\n1,2,cat\n", "'annotator'", "Did you mean 'anotator'"),
    aggregate("an annotator answers twice", ANNOTATIONS + "2,ann,cat\n", "'ann'", "in row 4", "--on-duplicate"),
    aggregate(
        "ratings with a decimal comma", "task;annotator;label\n1;2;3,5\n", "row 2", "'3,5'", "--decimal ','",
        options="--task regression",
    ),
    aggregate(
        "several labels in a cell", "task,annotator,label\n1,2,cat|dog\n1,3,cat\n2,3,dog\n", "'cat|dog'",
        "--label-separator '|'",
    ),
    aggregate("a file without a header", "1,ann,cat\n2,bob,dog\n", "'annotator' and 'label'", "--no-header"),
    aggregate(
        "a confidence that is no number among others that are",
        "task,annotator,label,confidence\n1,2,cat,high\n2,2,cat,0.5\n", "row 2", "'high'", "--columns confidence=",
    ),
    Case("no such file", {}, "aggregate nowhere.csv --out out", 3, ("nowhere.csv", "does not exist")),
    Case(
        "gold of an unknown class", {**GOOD, "g.csv": "task,gold\n1,cat\n2,dgo\n"},
        "aggregate a.csv --out out --gold g.csv", 3,
        ("g.csv, row 3, column 'gold'", "'dgo' is not one of the classes ['cat', 'dog']"),
    ),
    Case(
        "predictions of an unknown class", {**GOOD, "p.csv": "task,class,probability\n1,cat,0.9\n2,dgo,0.8\n"},
        "report a.csv --out r.html --predictions p.csv", 3,
        ("p.csv, row 3, column 'class'", "'dgo' is not one of the classes ['cat', 'dog']"),
    ),
    Case(
        "distances of classes that are no numbers", GOOD, "quality a.csv --metric interval --out q", 3,
        ("names such as 'cat'", "values="),
    ),
    train("instances without a task column", "number,f0\n1,2\n", "no column 'task'"),
    train("a word among the numbers", "task,f0,f1\n1,0.5,red\n2,1,2\n3,1,4\n", "row 2, column 'f1'", "'red'"),
    train("annotations of a task that has no instance", "task,f0,f1\n1,0.5,1.5\n", "row 4, column 'task'"),
    Case(
        "a preference of a task that has no instance",
        {"p.csv": "left,right,annotator,label\n1,2,ann,left\n1,3,bob,right\n", "i.csv": INSTANCES},
        "train p.csv i.csv --task preference --out model.keras", 3, ("p.csv, row 3, column 'right'", "'3'"),
    ),
    train("gold that is no class", "task,f0,gold\n1,0.5,cat\n2,2.5,dgo\n", "'dgo'", "Did you mean 'dog'"),
]  # fmt: skip

CONFIGS = [
    config("a misspelt key", CONFIG + "trainig:\n  epochs: 3\n", "trainig", "Did you mean 'training'"),
    config("a value of the wrong kind", CONFIG + "training:\n  epochs: many\n", "training.epochs", "'many'"),
    config("an empty file", "", "is empty"),
    Case("no such configuration", {}, "run nowhere.yaml", 4, ("nowhere.yaml", "does not exist")),
]  # fmt: skip

MODELS = [
    Case(
        "a setting that the method lacks", GOOD, "aggregate a.csv --out out --method majority-vote --tol 1", 4, ("tol",)
    ),
    Case("a picture that is none", GOOD, "quality a.csv --plot q.jpg", 4, ("ends in .png",)),
    Case("tables of quality would overwrite", {**GOOD, "q/x": ""}, "quality a.csv --out q", 4, ("not empty",)),
    Case(
        "a condition on an unknown value", GOOD, "report a.csv --out r.html --fail-if alfa<0.6", 4,
        ("'alfa'", "Did you mean 'alpha'"),
    ),
    Case("no condition", GOOD, "report a.csv --out r.html --fail-if alpha", 4, ("alpha<0.6",)),
    Case("a page over its own data", GOOD, "report a.csv --out a.csv", 4, ("is also an input",)),
    Case(
        "labels of one class only", {**GOOD, "a.csv": "task,annotator,label\n1,ann,cat\n2,bob,cat\n"},
        "train a.csv i.csv --out model.keras", 3, ("of one class",),
    ),
    Case("results would overwrite", {**GOOD, "out/x": ""}, "aggregate a.csv --out out", 4, ("not empty",)),
    Case("no model to export", {}, "export model.keras served", 3, ("model.keras", "does not exist")),
    Case("no served folder", {"i.csv": INSTANCES}, "predict served i.csv", 6, ("served",)),
    Case("a folder without a version", {"served/x": "", "i.csv": INSTANCES}, "predict served i.csv", 6, ("served",)),
    Case("a server that is not there", {"i.csv": INSTANCES}, "predict http://127.0.0.1:9 i.csv", 6, ("127.0.0.1:9",)),
]  # fmt: skip

SECTIONS = {"Files": FILES, "Configurations": CONFIGS, "Models and arguments": MODELS}


def run(case: Case, folder: Path) -> tuple[int, str]:
    """Write the files into the folder, run the command there, and return its exit code and error output."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    errors = io.StringIO()
    here = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = cli.main(shlex.split(case.command))
    finally:
        os.chdir(here)
    return code, errors.getvalue().strip().replace(f"{folder.resolve()}/", "")
