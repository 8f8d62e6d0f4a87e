"""Advice that a message gives: it is taken, word for word, and works, on the command line and in Python."""

import ast
import io
import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest
from studio_exports import annotation, choice, task

import crowdzoo
from crowdzoo import Annotations
from crowdzoo.aggregation import MultiLabel
from crowdzoo.commands import main as cli
from crowdzoo.commands.options import as_option
from crowdzoo.errors import CrowdzooError, as_argument
from crowdzoo.quality import krippendorff_alpha
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS

OPTIONS = (
    *(*LAYOUT_OPTIONS, "platform", "field", "image", "classes", "exclude"),
    *("on_duplicate", "on_bad_rows", "rejects", "kind"),
)
FLAGS = {"header": "--no-header", "kind": "--kind"}
HEAD = "task,annotator,label\n"
GRADES = HEAD + "".join(
    f"{n},{who},{('low', 'medium', 'high')[(n + (who == 'b')) % 3]}\n" for n in range(6) for who in "ab"
)


@dataclass
class Advice:
    """A file that a message is about, and the options that it names, which are taken one after the other.

    The last one has to end the trouble: `said` is then gone, and the command ends with 0.
    """

    content: object
    follow: list[str]
    said: str
    words: str = "aggregate --method majority-vote"
    name: str = "a.csv"
    python: dict | None = field(default_factory=dict)
    use: object = None  # what is done with the annotations in Python
    fill: dict = field(default_factory=dict)  # words that stand for a name -> the name
    failing: tuple = (3, 4)  # exit codes before


def studio(*answers, data=None, names=("mood",)):
    """An export of Label Studio in which annotators 1, 2, ... answer."""
    results = ([choice(name, said) for name in names] for said in answers)
    return [task(1, *(annotation(who, *each) for who, each in enumerate(results, start=1)), data=data or {"text": "t"})]


def two_sheets():
    """A workbook whose second sheet holds the answers."""
    book, file = pytest.importorskip("openpyxl").Workbook(), io.BytesIO()
    book.active.append(["notes"])
    book.active.append(["see the next sheet"])
    answers = book.create_sheet("answers")
    for row in (["task", "annotator", "label"], [1, "a", "x"], [2, "a", "y"]):
        answers.append(row)
    book.save(file)
    return file.getvalue()


NONE = HEAD + "".join(
    f"{task},{who},{'sports' if (task, who) == (0, 'a') else 'NONE'}\n" for task in range(3) for who in "ab"
)
STUDIO = {"name": "a.json", "words": "aggregate --method majority-vote --platform label-studio",
          "python": {"platform": "label-studio"}}  # fmt: skip
WIDE = {"words": "aggregate --method majority-vote --wide", "python": {"wide": True}}
WIDE_NO = {"words": f"{WIDE['words']} --columns task=no", "python": {"wide": True, "columns": "task=no"}}
BY_RATER = {"columns={'task': ''}": "", "--columns task= ": "", "annotator=NAME": "annotator=rater"}
RATINGS = {"words": "aggregate --kind regression --method mean", "python": {"kind": "regression"}}
SEVERAL = {"words": "aggregate --method majority-vote --multi-label", "failing": (0,),
           "python": {"on_duplicate": "all", "no_label": "(none)"}}  # fmt: skip
CASES = {
    "a usual name": Advice("item,worker,label\n1,a,x\n", ["columns"], "found by usual names", failing=(0,)),
    "two usual names": Advice("item,image,worker,label\n1,2,a,x\n", ["columns"], "it may be"),
    "no usual name": Advice(
        "p,q,r\n1,a,x\n",
        ["columns"],
        "are missing",
        fill={"task=NAME": "task=p", "annotator=NAME": "annotator=q", "label=NAME": "label=r"},
    ),
    "one column without a usual name": Advice(
        "photo,annotator,label,timestamp\n1,a,x,soon\n2,a,y,0\n",
        ["columns", "on_bad_rows"],
        "is missing",
        fill={"task=NAME": "task=photo"},
    ),
    "a time that is none": Advice("task,annotator,label,timestamp\n1,a,x,soon\n2,a,y,0\n", ["columns"], "soon"),
    "a separator": Advice("task^annotator^label\n1^a^x\n", ["separator"], "the whole header"),
    "another sheet": Advice(two_sheets, ["sheet"], "has one column", name="a.xlsx", fill={"NAME": "answers"}),
    "no header": Advice("1,a,x\n2,a,y\n", ["header", "columns"], "header"),
    "a wide table": Advice("task,ann,bob\n1,x,y\n", ["wide"], "each other column an annotator"),
    "a row for each annotator": Advice(
        "rater,i1,i2,i3\nann,x,y,x\nbob,x,x,y\n",
        ["wide", "columns"],
        "each other column a task",
        fill=BY_RATER,
    ),
    "a wide table with a row for each annotator": Advice(
        "rater,i1,i2\nann,x,y\nbob,x,x\n", ["columns"], "each other column a task", fill=BY_RATER, **WIDE
    ),
    "a wide table with other columns": Advice(
        "no,Title,ann,bob\n1,t,x,y\n", ["columns"], "does not look like", **WIDE_NO
    ),
    "an encoding": Advice((HEAD + "1,a,\u00e4\n").encode("latin-1"), ["encoding"], "not UTF-8"),
    "a decimal comma": Advice(HEAD.replace(",", ";") + "1;a;3,5\n2;a;4\n", ["decimal"], "decimal comma", **RATINGS),
    "times and confidences in words": Advice(
        "task,annotator,label,confidence\n1,a,x,high\n", ["columns"], "left out", failing=(0,)
    ),
    "a mark of nothing": Advice(HEAD + "1,a,x\n2,a,NA\n", ["missing"], "counts as a class", failing=(0,)),
    "a mark of nothing in an export": Advice(
        studio("x", "NA"), ["missing"], "counts as a class", failing=(0,), **STUDIO
    ),
    "several labels in a cell": Advice(
        HEAD + "1,a,x|y\n1,b,x\n2,a,y\n", ["label_separator", "on_duplicate"], "made of other"
    ),
    "a line break between labels": Advice(
        HEAD + '1,a,"born in\nlives in"\n1,b,born in\n1,c,lives in\n', ["label_separator", "on_duplicate"], "made of"
    ),
    "two spellings": Advice(
        HEAD + "1,a,New York\n1,b,New York\n2,a,new york\n", ["rename"], "differ only in case", failing=(0,)
    ),
    "a misspelt class": Advice(
        HEAD + "".join(f"{n},a,dog's\n" for n in range(40)) + "1,b,dgo's\n", ["rename"], "is almost", failing=(0,)
    ),
    "two dashes": Advice(HEAD + "1,a,x\n2,a,--\n", ["missing"], "counts as a class", failing=(0,)),
    "columns with signs of a shell": Advice(
        "no,Title,it's,$HOME,a&b;c\n1,t,x,y,x\n", ["columns"], "does not look like", **WIDE_NO
    ),
    "a question with signs of a shell": Advice(
        studio("x", names=("what's $it?", "topic")), ["field"], "several questions", **STUDIO
    ),
    "a blank between labels": Advice(HEAD + "1,a,0 0\n1,b,0\n", ["label_separator", "on_duplicate"], "made of other"),
    "a class with a comma": Advice(
        HEAD + '1,a,"0, 0"\n1,b,0\n', ["classes"], "made of other", python=None, fill={"A,B": """'"0, 0",0'"""}
    ),
    "an annotator with a comma": Advice(
        HEAD + '1,"Smith,Ann",x\n1,b,y\n',
        ["exclude"],
        "no annotation of",
        words="aggregate --method majority-vote --exclude Smith,Ann",
        python={"exclude": ["Smith", "Ann"]},
        fill={"--exclude: ": ""},
    ),
    "a list in a cell": Advice(HEAD + "1,a,\"['x', 'y']\"\n", ["label_separator", "on_duplicate"], "is a list"),
    "a list in an export": Advice(
        studio("x,y", "x", "y"), ["label_separator", "on_duplicate"], "made of other", **STUDIO
    ),
    "a second answer": Advice(HEAD + "1,a,x\n1,a,y\n", ["on_duplicate"], "before, in row"),
    "a bad row": Advice(HEAD + "1,a,x\n1,b,\n", ["on_bad_rows"], "1 bad row."),
    "a bad row that is kept": Advice(
        HEAD + "1,a,x\n1,b,\n", ["rejects", "on_bad_rows"], "1 bad row.", fill={"FILE": "r.csv"}
    ),
    "classes by the alphabet": Advice(
        GRADES,
        ["classes"],
        "sorted alphabetically",
        words="quality --method none --bootstrap 0 --metric ordinal",
        use=lambda found: krippendorff_alpha(found, "ordinal"),
        fill={"LOWEST,...,HIGHEST": "low,medium,high", "'LOWEST', '...', 'HIGHEST'": "'low', 'medium', 'high'"},
    ),
    "a rating that is not a number": Advice(HEAD + "1,a,2\n1,b,nan\n", ["missing"], "not a finite number", **RATINGS),
    "an answer that none holds": Advice(NONE, ["no_label"], "counts as a label", **SEVERAL),
    "marks in an answer that none holds": Advice(NONE, ["missing"], "counts as a label", **SEVERAL),
    "preferences": Advice(
        "left,right,annotator,label\np,q,a,left\nq,p,b,left\n", ["kind"], "looks like preferences", words="aggregate"
    ),
    "names of answers": Advice(
        "left,right,annotator,label\np,q,a,A\nq,p,b,B\np,q,b,same\n",
        ["classes"],
        "not one of the classes",
        words="aggregate --kind preference",
        python=None,
        fill={"LEFT,RIGHT,EQUAL": "A,B,same"},
    ),
    "ratings": Advice(
        HEAD + "1,a,1.5\n2,a,2.5\n3,a,3.5\n1,b,2\n",
        ["kind"],
        "some with decimals",
        words="aggregate",
        python=None,
        failing=(0,),
    ),
    "a platform": Advice(
        studio("x"),
        ["platform"],
        "looks like an export",
        name="a.json",
        words="aggregate --method majority-vote --platform argilla",
        python={"platform": "argilla"},
    ),
    "a table of a platform": Advice("HITId,WorkerId,Answer.mood\n1,a,x\n", ["platform"], "looks like an export"),
    "no platform": Advice(studio("x"), ["platform"], "looks like an export", name="a.json"),
    "several annotators in a cell": Advice(
        HEAD + '1,"p,q","a,b"\n2,p,a\n', ["annotator_separator"], "looks like several"
    ),
    "several items": Advice(studio("x", names=("mood1", "mood2")), ["field"], "several questions", **STUDIO),
    "several questions": Advice(studio("x", names=("mood", "topic")), ["field"], "several questions", **STUDIO),
    "several images": Advice(
        studio("x", data={"one": "1.png", "two": "2.png"}),
        ["image"],
        "names the image",
        name="a.json",
        words="",
        python={"platform": "label-studio", "image": True},
    ),
}


def write(case, folder):
    content = case.content() if callable(case.content) else case.content
    content = content if isinstance(content, (str, bytes)) else json.dumps(content)
    (folder / case.name).write_bytes(content if isinstance(content, bytes) else content.encode())


def filled(text, fill):
    for word, name in fill.items():
        text = text.replace(word, name).replace(word.replace("=", "': '"), name.replace("=", "': '"))  # of a mapping
    return text


def option_in(message, name):
    """The words of an option as a message has them, to be typed."""
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    value = r"""(?:'[^']*'|"[^"]*"|[^\s'"])+?"""
    found = re.search(rf"(?<!\S)\(?({flag}(?:(?: (?!--)|=){value})?)(?=[.,;:)]*(?:\s|$))", message)
    return in_a_shell(found[1]) if found else []


def in_a_shell(words):
    """The words that a shell makes of what is pasted into it."""
    done = subprocess.run(["sh", "-c", f"printf '%s\\0' {words}"], capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


def argument_in(message, name):
    _, _, text = message.partition(f"{name}=")
    for end in range(1, len(text)):
        with suppress(SyntaxError, ValueError):
            return ast.literal_eval(text[:end])
    return None


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.words])
def test_the_command_that_a_message_advises_works(name, tmp_path, here, capsys):
    case = CASES[name]
    write(case, tmp_path)
    command, *words = case.words.split()
    out = [] if command == "quality" else ["--out", "out.csv", "--force"]
    code = cli.main([command, case.name, *words, *out])
    assert code in case.failing
    message = said = "".join(capsys.readouterr())
    assert case.said.casefold() in said.casefold()
    for option in case.follow:
        advised = option_in(filled(said, case.fill), option) or option_in(filled(message, case.fill), option)
        assert advised, (option, message)
        if advised[0] in words:  # in the place of what was given
            place = words.index(advised[0])
            words[place : place + 2] = []
        words += advised
        code = cli.main([command, case.name, *words, *out])
        said = "".join(capsys.readouterr())
        message += said
    assert code == 0, said
    assert case.said.casefold() not in said.casefold()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.python is not None])
def test_the_arguments_that_a_message_advises_work(name, tmp_path, here):
    case = CASES[name]
    write(case, tmp_path)

    def read(options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = Annotations.read(case.name, **options)
                if case.use is not None:
                    case.use(found)
                ended = 0
            except CrowdzooError as error:
                warnings.warn(str(error), stacklevel=1)
                ended = error.exit_code
        return ended, "\n".join(str(each.message) for each in caught)

    options = dict(case.python)
    code, said = read(options)
    assert code in case.failing
    message = said
    for option in case.follow:
        value = argument_in(filled(said, case.fill), option)
        value = argument_in(filled(message, case.fill), option) if value is None else value
        assert value is not None, (option, message)
        options[option] = value
        code, said = read(options)
        message += said
    assert code == 0, said
    assert case.said.casefold() not in said.casefold()


def test_every_option_that_a_message_advises_is_in_the_table():
    advised = set()
    for place in ("tables", "platforms"):
        for path in (Path(crowdzoo.__file__).parent / "reading" / place).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "Setting" and len(node.args) > 1:
                    advised |= {ast.unparse(node.args[0]).strip("'")} & {*OPTIONS}
    followed = {name for case in CASES.values() for name in case.follow}
    assert advised <= followed | {"columns"}
    assert followed <= {*OPTIONS}


def test_the_advice_for_several_labels_works(tmp_path, here, refusal_of):
    (tmp_path / "a.csv").write_text(HEAD + "1,a,x|y\n1,b,x\n2,a,y\n")
    said = refusal_of("aggregate", "a.csv", "--out", "out.csv", code=3)
    words = [*option_in(said, "label_separator"), *option_in(said, "multi_label")]
    assert cli.main(["aggregate", "a.csv", "--out", "out.csv", "--method", "majority-vote", *words[:3]]) == 0
    assert pd.read_csv("out.csv")["labels"].tolist() == ["x", "y"]
    with pytest.raises(CrowdzooError, match="split them with label_separator"):
        MultiLabel().fit(Annotations.read("a.csv", on_duplicate="all", classes=["x|y", "x", "y"]))


def test_the_separator_that_is_a_line_break_can_be_pasted_into_a_shell(tmp_path, here, refusal_of):
    file = Path(os.environ.get("CROWDZOO_DATA", "nowhere")) / "reports/F1/nl.csv"
    if not file.exists():
        file = tmp_path / "nl.csv"
        file.write_text(HEAD + '1,a,"born in\nlives in"\n1,b,born in\n1,c,lives in\n')
    words = ["aggregate", str(file), "--multi-label", "--out", "labels.csv"]
    option = re.search(r"split them with (.*?);", refusal_of(*words, code=3))[1]
    command = f"{shlex.quote(sys.executable)} -m crowdzoo {' '.join(words)} {option}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [*pd.read_csv("labels.csv").filter(regex="^probability_")] == ["probability_born in", "probability_lives in"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("columns", {"task": "a b"}, ["--columns", "task=a b"]),
        ("columns", {"task": "it's"}, ["--columns", "task=it's"]),
        ("columns", {"task": "task=1", "label": "is_*"}, ["--columns", "task=task=1,label=is_*"]),
        ("classes", ["A", "B"], ["--classes", "A,B"]),
        ("missing", ["-1", "NA"], ["--missing=-1,NA"]),
        ("missing", ["$(ls)"], ["--missing", "$(ls)"]),
        ("label_separator", "\n", ["--label-separator", r"\n"]),
        ("label_separator", "|", ["--label-separator", "|"]),
        ("header", False, ["--no-header"]),
        ("inputs", {"x": "text"}, ["--inputs", "x=text"]),
        ("max_iter", ..., ["--max-iter"]),
    ],
)
def test_a_setting_is_written_as_an_option_for_a_shell(name, value, words):
    options = {"header": "--no-header", "types": "--inputs"}
    options |= {each: f"--{each.replace('_', '-')}" for each in ("columns", "classes", "missing", "label_separator")}
    assert in_a_shell(as_option({**options, "max_iter": "--max-iter"}, name, value)) == words
    assert as_option({}, name, value) == as_argument(name, value)
