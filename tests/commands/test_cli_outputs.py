"""What commands write, print and leave behind: outputs that are refused before the work, streams, warnings, SIGTERM."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from slow_cases import quick

from crowdzoo.commands import main as cli

ANNOTATIONS = "task,annotator,label\n1,ann,cat\n1,bob,dog\n2,ann,dog\n2,bob,dog\n"
BAD = ANNOTATIONS + "3,,cat\n"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, here):
    Path("a.csv").write_text(ANNOTATIONS)
    Path("bad.csv").write_text(BAD)
    Path("g.csv").write_text("task,gold\n1,cat\n")


def crowdzoo(*words, **options):
    """The command in a process of its own, as a shell starts it."""
    return subprocess.run(
        [sys.executable, "-m", "crowdzoo", *words], capture_output="stdout" not in options, text=True, **options
    )


def tree():
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--out", "."], "--out .: is the working directory"),
        (["--out", "dangling"], "--out dangling: is a link to nowhere"),
        (["--out", "a.csv"], "--out a.csv: is also an input (a.csv)"),
        (["--out", "a.csv/b"], "a.csv is a file, not a folder"),
        (["--out", "/proc/out"], "/proc cannot be written to"),
        (["--rejects", "a.csv"], "--rejects a.csv: is also an input (a.csv)"),
        (["--rejects", "g.csv", "--force"], "--rejects g.csv: is also an input (g.csv)"),
        (["--rejects", "link", "--force"], "--rejects link: is also an input (g.csv)"),
        (["--rejects", "bad.csv"], "--rejects bad.csv: exists and was not written by this command"),
        (["--rejects", "/dev/null", "--force"], "--rejects /dev/null: is a device"),
        (["--rejects", "dangling"], "--rejects dangling: is a link to nowhere"),
        (["--rejects", "out/r.csv"], "--rejects out/r.csv: is inside --out out"),
    ],
)
def test_outputs_that_would_destroy_something_are_refused_before_the_work(words, says, refusal_of, stop_before):
    os.symlink("nowhere", "dangling")
    os.symlink("g.csv", "link")
    before = tree()
    stop_before("aggregate")
    words = ["aggregate", "a.csv", "--gold", "g.csv", "--on-bad-rows", "reject", "--out", "out", *words]
    assert says in refusal_of(*words)
    assert tree() == before


def test_a_command_replaces_what_it_wrote_and_with_force_other_files(refusal_of):
    aggregate = [
        "aggregate",
        "bad.csv",
        "--method",
        "majority-vote",
        "--on-bad-rows",
        "reject",
        "--rejects",
        "r.csv",
        "--out",
    ]
    assert cli.main([*aggregate, "out"]) == 0
    assert "replace the earlier result with --force" in refusal_of(*aggregate, "out")
    assert cli.main([*aggregate, "out", "--force"]) == 0
    assert cli.main([*aggregate, "out2"]) == 0  # r.csv was written by the command
    Path("out/mine").touch()
    assert cli.main([*aggregate, "out", "--force"]) == 4
    Path("r.csv").write_text("mine")
    assert cli.main([*aggregate, "out3"]) == 4
    assert cli.main([*aggregate, "out3", "--force"]) == 0
    assert Path("r.csv").read_text().startswith("file,row,column")

    quality = ["quality", "a.csv", "--method", "none", "--bootstrap", "0"]
    assert cli.main([*quality, "--out", "q"]) == 0
    assert cli.main([*quality, "--out", "q"]) == 4
    assert cli.main([*quality, "--out", "q", "--format", "csv", "--force"]) == 0
    assert sorted(os.listdir("q")) == ["annotators.csv", "classes.csv", "summary.json", "tasks.csv"]
    for name in ("m.keras", "m.names.json"):
        Path(name).write_text("mine")
        assert cli.main(["train", "a.csv", "a.csv", "--out", "m.keras"]) == 4
        Path(name).unlink()

    datasets = ["datasets", "labelme", "--write", "data"]
    assert [cli.main(words) for words in (datasets, datasets, [*datasets, "--force"])] == [0, 4, 0]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["aggregate", "a\0.csv", "--out", "o"], 2, "NUL"),
        (["aggregate", "a.csv", "--out", "o", "--on-bad-rows", "reject", "--rejects", "r\0"], 2, "NUL"),
        (["aggregate", "gs://b/a.csv", "--out", "o"], 2, "gs:// paths are not supported"),
        (["aggregate", "a.csv", "--out", "o", "--max-iter", "9" * 5000], 2, "not an integer from 1 to 1,000,000,000"),
        (["aggregate", "a.csv", "--out", "o", "--seed", str(2**63)], 2, "is not an integer from 0 to"),
        (["aggregate", "a.csv", "--out", "o", "--tol", "nan"], 2, "is not a finite number"),
        (["aggregate", "a.csv", "--out", "o", "--set", "prior=" + "[" * 10_000], 4, "nested too deep"),
        (["aggregate", "a.csv", "--out", "o", "--method", "glad", "--set", "tol=" + "x" * 60_000], 4, "tol must be"),
        (["train", "a.csv", "a.csv", "--out", "m.keras", "--hidden", "9" * 30], 4, "whole numbers of 1 to 65,536"),
        (["run", "x.yaml", "--set", "name=" + "[" * 10_000], 4, "not valid YAML"),
        (["run", "x.yaml", "--set", "name={1: 2}"], 4, "not valid YAML"),
        (["serve", "m", "--tls-key", "k"], 6, "--tls-certificate and --tls-key: give both"),
        (["serve", "m", "--poll-seconds", "-1"], 2, "is not a finite number from 0.01 to"),
    ],
)  # fmt: skip
def test_nonsense_values_are_refused_in_short(words, code, says, capsys):
    with contextlib.ExitStack() as stack:
        stopped = stack.enter_context(pytest.raises(SystemExit)) if code == 2 else None
        assert cli.main(words) == code
    assert stopped is None or stopped.value.code == code
    message = capsys.readouterr().err.split("error: ")[-1]
    assert says in message
    assert len(message) < 300
    assert sorted(os.listdir()) == ["a.csv", "bad.csv", "g.csv"]


@pytest.mark.filterwarnings("default::UserWarning")  # shown, as the command shows them
def test_messages_and_warnings_name_options(capsys):
    assert cli.main(["aggregate", "bad.csv", "--out", "o"]) == 3
    assert "--on-bad-rows reject (--rejects FILE keeps them)" in capsys.readouterr().err
    words = ["--method", "dawid-skene", "--set", "max_iter=1"]
    assert cli.main(["aggregate", "bad.csv", "--out", "o", "--on-bad-rows", "reject", *words]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith("crowdzoo: warning: 1 row was left out, e.g. bad.csv, row 6")
    assert said[1].startswith("crowdzoo: warning: Dawid-Skene did not converge")
    assert "(--tol " in said[1]
    assert "raise --max-iter" in said[1]


def test_help_is_shown_in_any_encoding_and_long_values_are_not_repeated(capsys):
    done = crowdzoo("aggregate", "--help", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    with pytest.raises(SystemExit) as stopped:
        cli.main(["aggregate", "a.csv", "--out", "o", "--scheme", "x" * 60_000])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert "invalid choice: 'xxx" in message
    assert len(message) < 2000


@pytest.mark.parametrize(
    "words", quick(["--help"], slow=[["datasets", "labelme"], ["aggregate", "a.csv", "--out", "o"]])
)
def test_output_that_cannot_be_written_is_one_line(words):
    with open("/dev/full", "w") as full:
        done = crowdzoo(*words, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == "crowdzoo: standard output: No space left on device\n"


def test_sigterm_leaves_no_temporary_file_and_is_one_line(capsys, monkeypatch):
    words = ["aggregate", "bad.csv", "--on-bad-rows", "reject", "--rejects", "new/r.csv", "--out", "deep/out"]
    before = tree()

    def end(*_, **__):
        """In the middle of a write of the command."""
        assert len(tree()) > len(before)
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("goes on after SIGTERM")

    with monkeypatch.context() as patch:
        patch.setattr("crowdzoo.aggregation.result_files.json.dumps", end)
        code = cli.main(words)
    assert (code, capsys.readouterr().err) == (143, "crowdzoo: terminated\n")
    assert {name: text for name, text in tree().items() if not name.startswith("new")} == before
    assert os.listdir("new") == ["r.csv"]  # reading was done


@pytest.mark.slow
@pytest.mark.parametrize("command", ["aggregate", pytest.param("report", marks=pytest.mark.slow)])
def test_a_limit_of_the_size_of_files_is_said(tmp_path, command):
    """Also where it is a library's file, whose error does not name it."""
    (tmp_path / "crowd.csv").write_text(
        "task,annotator,label\n" + "".join(f"{i},{a},x\n" for i in range(99) for a in "ab")
    )
    words = [command, "crowd.csv", "--out", f"out.{'html' if command == 'report' else 'csv'}"]
    code = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
from crowdzoo.commands import main as cli
sys.exit(cli.main({words}))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "not foreseen" not in done.stderr


def test_two_dashes_are_the_value_of_an_option(tmp_path, here, capsys, refusal_of):
    (tmp_path / "crowd.csv").write_text("task,annotator,label\n1,a,--\n1,b,x\n")
    assert cli.main(["aggregate", "crowd.csv", "--missing=--", "--out", "labels.csv"]) == 0
    assert " --  " not in capsys.readouterr().out
    assert "'--' is not a condition" in refusal_of("report", "crowd.csv", "--out", "r.html", "--fail-if=--")
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", "crowd.csv", "--out", "r.html", "--decimal=--"])
    assert ended.value.code == 2
    assert "argument --decimal: invalid choice: '--'" in capsys.readouterr().err


OWN_TEXT = {
    "r.csv": "file,row,column,value,reason,original\na.csv,6,annotator,,no annotator,\n",
    "r.txt": "\ufefffile;row;column;value;reason;original\n",
    "p.html": "<!doctype html>\n<title>x - crowdzoo report</title>",
    "p.json": '{"format":"crowdzoo-report","version":1}',
    "b.csv": "task,annotator,gain,cost\n",
    "b.json": '[\n {\n  "data": {\n   "task": "1",\n   "annotators": [\n    "ann"\n   ]\n  }\n }\n]\n',
    "m.names.json": '{"classes": null, "annotators": []}',
}


@pytest.mark.parametrize(
    ("command", "name", "others"),
    [
        (
            ["aggregate", "a.csv", "--out", "o", "--on-bad-rows", "reject", "--rejects"],
            "r.csv",
            "file,row,column,value,reason,original,mine\n",
        ),
        (["aggregate", "a.csv", "--out", "o", "--on-bad-rows", "reject", "--rejects"], "r.txt", "row;column\n"),
        (["report", "a.csv", "--out"], "p.html", "<!doctype html>\n<title>my report</title>"),
        (["report", "a.csv", "--out", "p.html"], "p.json", '{"format": "mine"}'),
        (["next", "a.csv", "--out"], "b.csv", "task,annotator,gain,cost,mine\n"),
        (["next", "a.csv", "--out"], "b.json", '[{"data": {"task": 1}}]'),
        (["train", "a.csv", "a.csv", "--out", "m.keras"], "m.names.json", '{"names": []}'),
    ],
)
def test_a_file_is_replaced_if_it_has_the_mark_of_its_command(command, name, others, stop_before):
    words = [*command, *([] if name in ("p.json", "m.names.json") else [name])]
    stop_before(command[0])
    Path(name).write_text(OWN_TEXT[name])
    assert cli.main(words) == 1
    for text in (others, OWN_TEXT["b.csv" if name[0] != "b" else "r.csv"], "\0" * 9000):
        Path(name).write_text(text)
        assert cli.main(words) == 4
        assert Path(name).read_text() == text
    assert cli.main([*words, "--force"]) == 1


@pytest.mark.parametrize(
    ("command", "own", "others"),
    [
        (["aggregate", "a.csv", "--out"], ["summary.json", "tasks.csv", "annotators.csv"], ["tasks.csv"]),
        (["quality", "a.csv", "--out"], ["summary.json", "tasks.csv", "camps.csv"], ["summary.json", "tasks.txt"]),
        (["convert", "a.csv", "--out"], ["annotations.csv", "instances.csv"], ["instances.csv"]),
        (["convert", "a.csv", "--out"], ["spans.jsonl"], ["spans.jsonl", "annotations.csv"]),
        (["datasets", "labelme", "--write"], ["annotations.csv", "instances.parquet"], ["annotations.csv", ".git"]),
    ],
)
def test_a_folder_is_replaced_with_force_if_it_holds_nothing_else(command, own, others, stop_before, refusal_of):
    stop_before(command[0])
    for folder, names in (("own", own), ("others", others), ("more", [*own, "mine.txt"])):
        Path(folder).mkdir()
        for name in names:
            (Path(folder) / name).touch()
    assert "replace the earlier result with --force" in refusal_of(*command, "own")
    assert cli.main([*command, "own", "--force"]) == 1
    for folder in ("others", "more"):
        assert cli.main([*command, folder, "--force"]) == 4


def test_a_folder_of_masks_is_replaced_if_each_was_written_by_predict(stop_before):
    Image = pytest.importorskip("PIL.Image")

    from crowdzoo.kinds.regions.masks import write_png

    stop_before("predict")
    Image.new("L", (4, 4)).save("like.png")
    Path("masks/deep").mkdir(parents=True)
    for name in ("a.png", "deep/b.png"):
        write_png(np.zeros((4, 4), int), ["", "cat"], Path("masks") / name, Path("like.png"))
    assert cli.main(["predict", "m", "a.csv", "--out", "masks"]) == 4
    assert cli.main(["predict", "m", "a.csv", "--out", "masks", "--force"]) == 1
    Image.new("L", (4, 4)).save("masks/mine.png")
    assert cli.main(["predict", "m", "a.csv", "--out", "masks", "--force"]) == 4
