"""The command line as a user meets it: exit codes, messages without tracebacks, files that come out."""

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run
from csv_files import read_csv, write_csv

from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Annotations of 120 tasks by 6 annotators (the last one is wrong half of the time) and their instances."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 120)
    centres = np.array([[3.0, 0, 0], [0, 3, 0], [0, 0, 3]])
    features = (centres[truth] + rng.normal(size=(120, 3))).astype(np.float32)
    names = np.array(["ape", "bat", "cat"])
    rows = []
    for task in range(120):
        for annotator in rng.choice(6, 3, replace=False):
            wrong = rng.random() < (0.5 if annotator == 5 else 0.1)
            rows.append((f"t{task}", f"a{annotator}", names[rng.integers(0, 3) if wrong else truth[task]]))
    write_csv(folder / "annotations.csv", ("task", "annotator", "label"), *rows)
    table = {
        "task": [f"t{task}" for task in range(120)],
        "features": list(features),
        "gold": names[truth],
        "split": np.where(np.arange(120) < 90, "train", "eval"),
    }
    pq.write_table(pa.table(table), folder / "instances.parquet")
    return folder


def test_no_command_and_unknown_words_exit_with_2(capsys):
    for words, command in (
        ([], ""),
        (["agregate"], ""),
        (["aggregate", "x.csv"], " aggregate"),
        (["serve", "x", "--rest-port", "99999"], " serve"),
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main(words)
        assert stopped.value.code == 2
        said = capsys.readouterr().err.splitlines()
        assert said[0].startswith(f"crowdzoo{command}: error: ")
        assert said[1:] == [f"(`crowdzoo{command} --help` lists what it takes)"]


def test_an_error_is_one_message_without_a_traceback(tmp_path):
    words = [sys.executable, "-m", "crowdzoo", "aggregate", "nowhere.csv", "--out", str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("crowdzoo: ")
    assert "nowhere.csv" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    for place in (["--debug", *words[3:]], [*words[3:], "--debug"]):
        with pytest.raises(DataError):  # which Python shows with its traceback
            cli.main(place)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (RuntimeError("the disk is tired"), 1, r"the disk is tired(?s:.*)--debug"),
        (KeyboardInterrupt(), 130, "^crowdzoo: interrupted\n$"),
        (OSError(28, "No space left on device", "tasks"), 1, "^crowdzoo: tasks: No space left on device\n$"),
        (ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn"), 1, r"pip install 'crowdzoo\[serving\]'"),
    ],
)
def test_what_ends_a_command_is_said_without_a_traceback(error, code, said, stop_before, capsys):
    stop_before("datasets", error)
    assert run("datasets") == code
    message = capsys.readouterr().err
    assert re.search(said, message)
    assert "Traceback" not in message


def test_aggregate_refuses_settings_that_the_method_lacks_and_filled_folders(files, tmp_path, refusal_of):
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "mine.txt").write_text("keep")
    cases = [
        (("--method", "majority"), "unknown aggregation method 'majority'"),
        (("--method", "majority-vote", "--max-iter", 3), "unknown setting of majority-vote 'max_iter'"),
        (("--rejects", "r.csv"), "give both"),
        (("--set", "prior"), "--set takes NAME=VALUE, such as prior=0.1, got 'prior'"),
        (("--method", "dawid-skene", "--set", "piror=1"), "unknown setting of dawid-skene 'piror'"),
        (("--tol", "1"), "--tol is not a setting of robust, the default method: name a method that has it"),
        (("--set", "seed=1"), "--set seed: use the option --seed."),
        (("--set", "self=1"), "--set self: unknown setting."),
        (
            ("--method", "dawid-skene", "--set", "prior=many"),
            "DawidSkene: prior must be a number from 0 to 1e+09, got 'many'",
        ),
        (("--use-gold",), "--use-gold takes the classes of --gold FILE"),
        (("--calibrate",), "--calibrate takes the classes of --gold FILE"),
        (("--calibrate", "--use-gold", "--gold", files / "instances.parquet"), "leave out --use-gold"),
    ]
    for words, message in cases:
        assert message in refusal_of("aggregate", files / "annotations.csv", "--out", tmp_path / "new", *words)
    assert "not empty" in refusal_of("aggregate", files / "annotations.csv", "--out", tmp_path / "filled")
    assert (tmp_path / "filled" / "mine.txt").read_text() == "keep"


@pytest.mark.parametrize("copies", [True, False], ids=["copies", "independent"])
def test_aggregate_says_how_far_probabilities_are_from_the_accuracy(copies, tmp_path, capsys):
    rng, right = np.random.default_rng(0), 0.7
    truth = rng.integers(0, 2, 300)
    own = np.where(rng.random((300, 5)) < right, truth[:, None], 1 - truth[:, None])
    said = own[:, :1].repeat(5, axis=1) if copies else own
    rows = [f"{task},{who},{said[task, who]}" for task in range(300) for who in range(5)]
    (tmp_path / "said.csv").write_text("\n".join(["task,annotator,label", *rows]), encoding="utf-8")
    rows = [f"{task},{truth[task]}" for task in range(300)]
    (tmp_path / "gold.csv").write_text("\n".join(["task,gold", *rows]), encoding="utf-8")
    words = ("aggregate", tmp_path / "said.csv", "--method", "dawid-skene", "--gold", tmp_path / "gold.csv")
    assert run(*words, "--out", tmp_path / "out") == 0
    out = capsys.readouterr().out
    figures = [
        float(re.search(rf"^{name} +(\d\.\d+)", out, flags=re.M)[1])
        for name in ("accuracy", "mean probability there", "expected calibration error")
    ]
    if copies:  # one answer, five times: all are certain, so the error is the gap
        assert figures[0] == pytest.approx((said[:, 0] == truth).mean(), abs=1e-4)
        assert figures[1] > 0.99
        assert figures[2] == pytest.approx(figures[1] - figures[0], abs=1e-3)
        assert re.search(r"0\.\d\d above the accuracy: correct them with --calibrate", out)
    else:
        assert abs(figures[1] - figures[0]) < 0.06
        assert "the accuracy: correct them" not in out


def test_aggregate_calibrates_by_some_gold(files, tmp_path, capsys):
    truth = pq.read_table(files / "instances.parquet").to_pandas().set_index("task")["gold"]
    truth.iloc[:40].rename_axis("task").reset_index().to_csv(tmp_path / "gold.csv", index=False)
    words = ("aggregate", files / "annotations.csv", "--gold", tmp_path / "gold.csv", "--calibrate")
    assert run(*words, "--out", tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert re.search(r"gold tasks, for calibration +40", out)
    value, low, high = map(
        float, re.search(r"accuracy on other tasks +(\S+) \((\S+) to (\S+), estimated\)", out).groups()
    )
    tasks = pq.read_table(tmp_path / "out" / "tasks.parquet").to_pandas().set_index("task")
    right = tasks["label"] == truth.reindex(tasks.index)
    assert low <= right.drop(truth.index[:40]).mean() <= high
    assert low < value <= high
    assert right.loc[truth.index[:40]].all()


def test_quality_prints_tables_and_writes_them(files, tmp_path, capsys):
    out = tmp_path / "out"
    words = ("quality", files / "annotations.csv", "--out", out, "--format", "csv", "--bootstrap", 20, "--top", 2)
    assert run(*words, "--seed", 3) == 0
    shown = capsys.readouterr().out
    assert "Krippendorff's alpha, nominal" in shown
    summary = json.loads((out / "summary.json").read_text())
    assert f"{summary['krippendorff_alpha']['value']:.3f}" in shown
    assert summary["aggregation"] == "robust"  # as `aggregate` and `report`
    annotators = read_csv(out / "annotators.csv")
    worst = min(annotators, key=lambda row: float(row["spammer_score"]))
    assert worst["annotator"] == "a5"  # wrong half of the time
    noted = [row["annotator"] for row in annotators if row["notes"]]
    assert ("annotators to check" in shown) == bool(noted)
    listed = shown.split("tasks to look at")[1].splitlines()
    assert listed[5] == ""  # two lines, no more


def test_quality_refuses_before_it_works(files, tmp_path, refusal_of):
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "mine.txt").write_text("keep")
    cases = [
        (("--method", "majority"), "unknown aggregation method 'majority'"),
        (("--out", tmp_path / "filled"), "not empty"),
        (("--rejects", "r.csv"), "give both"),
        (("--kind", "regression", "--epsilon", ".1"), "--epsilon does not go with --kind regression"),
        (("--sure", ".8"), "--sure does not go with classes"),
    ]
    for words, message in cases:
        assert message in refusal_of("quality", files / "annotations.csv", *words)
    for words in (("--bootstrap", "-1"), ("--seed", "-1"), ("--metric", "nominl"), ("--format", "xls")):
        with pytest.raises(SystemExit) as stopped:
            run("quality", files / "annotations.csv", *words)
        assert stopped.value.code == 2


def test_datasets_are_listed_shown_and_written(tmp_path, capsys):
    assert run("datasets") == 0
    assert "labelme" in capsys.readouterr().out
    assert run("datasets", "labelme") == 0
    assert "CC BY 4.0" in capsys.readouterr().out
    assert run("datasets", "labelme", "--write", tmp_path / "data") == 0
    assert {path.name for path in (tmp_path / "data").iterdir()} >= {"annotations.csv", "instances.parquet"}
    assert run("datasets", "labelmee") in (3, 4)
    assert "Did you mean 'labelme'" in capsys.readouterr().err
