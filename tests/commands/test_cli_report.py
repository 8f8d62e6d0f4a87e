"""`crowdzoo report` as a user meets it."""

import json

import numpy as np
import pytest

from crowdzoo.commands import main as cli


@pytest.fixture
def folder(tmp_path, here):
    """Annotations, texts and ratings of 30 tasks by four annotators."""
    rng = np.random.default_rng(1)
    rows = ["task,annotator,label"]
    ratings = ["task,annotator,label"]
    for task in range(30):
        for annotator in range(4):
            label = ("ape", "bat")[task % 2 if rng.random() < 0.9 else rng.integers(2)]
            rows.append(f"t{task},worker{annotator},{label}")
            ratings.append(f"t{task},worker{annotator},{task % 7 + annotator}")
    (tmp_path / "a.csv").write_text("\n".join(rows))
    (tmp_path / "r.csv").write_text("\n".join(ratings))
    texts = ["task,text", *(f"t{task},this is text {task}" for task in range(30))]
    (tmp_path / "texts.csv").write_text("\n".join(texts))
    return tmp_path


def run(*words) -> int:
    return cli.main(["report", *map(str, words)])


def test_page_and_numbers_are_written(folder, capsys):
    assert run("a.csv", "--out", "r.html", "--instances", "texts.csv", "--bootstrap", 20) == 0
    printed = capsys.readouterr().out
    assert "of the labels are correct (" in printed
    assert "numbers: r.json" in printed
    assert "this is text 7" in (folder / "r.html").read_text("utf-8")
    assert json.loads((folder / "r.json").read_text("utf-8"))["title"] == "a.csv"
    assert run("a.csv", "--out", "r.html", "--bootstrap", 0, "--hash-ids") == 0  # its own files are replaced
    for name in ("r.html", "r.json"):
        assert "worker1" not in (folder / name).read_text("utf-8")


def test_a_condition_that_holds_exits_with_7_after_the_page_is_written(folder, capsys):
    assert run("a.csv", "--out", "r.html", "--bootstrap", 0, "--fail-if", "alpha<0.99", "--fail-if", "tasks<30") == 7
    assert "alpha<0.99 holds: alpha is 0." in capsys.readouterr().err
    assert (folder / "r.html").is_file()


def test_wrong_words_are_refused_before_any_work(folder, refusal_of):
    (folder / "page.json").write_text("{}")
    (folder / "own.html").write_text("<!doctype html><title>mine</title>")
    for words, message in (
        (["--out", "r.html", "--fail-if", "alhpa<1"], "alpha"),
        (["--out", "r.html", "--fail-if", "agreement<1", "--kind", "regression"], "alpha_low"),
        (["--out", "r.htm"], "ends in .html"),
        (["--out", "page.html"], "page.json"),
        (["--out", "own.html"], "own.html"),
        (["--out", "r.html", "--kind", "region", "--gold", "g.csv"], "leave it out with --kind region"),
        (["--out", "r.html", "--kind", "preference", "--fail-if", "spans<1"], "order_agreement"),
        (["--out", "r.html", "--kind", "sequence", "--instances", "texts.csv"], "in the file of annotations"),
        (["--out", "r.html", "--method", "nothing"], "dawid-skene"),
    ):
        assert message in refusal_of("report", "a.csv", *words)
    assert not (folder / "r.html").exists()


def test_preferences_have_a_page(folder, capsys):
    rng = np.random.default_rng(0)
    rows = ["left,right,annotator,label"]
    for left in range(12):
        for right in set(range(12)) - {left}:
            for who in range(4):
                better = left < right if rng.random() < 0.9 else left > right
                said = "A" if who == 3 or better else "B"
                rows.append(f"t{left},t{right},w{who},{said}")
    (folder / "p.csv").write_text("\n".join(rows))
    how = ("p.csv", "--kind", "preference", "--classes", "A,B,tie", "--bootstrap", 5)
    assert run(*how, "--out", "r.html", "--instances", "texts.csv", "--fail-if", "order_agreement<0.99") == 7
    said = capsys.readouterr()
    assert "agree with the order by the other annotators' judgments" in said.out
    assert "order_agreement<0.99 holds" in said.err
    assert "this is text 7" in (folder / "r.html").read_text("utf-8")
    numbers = json.loads((folder / "r.json").read_text("utf-8"))
    assert numbers["kind"] == "preference"
    assert numbers["tables"]["annotators"]["values"]["notes"][3] == ["random", "left"]
    tasks = numbers["tables"]["tasks"]
    assert tasks["values"]["task"][tasks["shown"][0]] == "t0"
    assert run(*how, "--out", "s.html", "--before", "r.json", "--method", "bradley-terry", "--hash-ids") == 3
    assert "their names are hashes" in capsys.readouterr().err
    assert run(*how, "--out", "s.html", "--before", "r.json", "--method", "bradley-terry") == 0
    assert json.loads((folder / "s.json").read_text("utf-8"))["changes"]["tasks"]["both"] == 12


def test_several_labels_a_task_have_a_page(folder, capsys, refusal_of):
    rng = np.random.default_rng(0)
    rows = ["task,annotator,label"]
    for task in range(30):
        for who in range(4):
            labels = ["cat"] * (task % 2) + ["out"] * (task % 3 == 0) if rng.random() < 0.9 else ["dog"]
            rows.append(f"t{task},w{who},{'|'.join(labels)}")
    (folder / "m.csv").write_text("\n".join(rows))
    how = ("m.csv", "--multi-label", "--label-separator", "|", "--bootstrap", 5)
    assert run(*how, "--out", "r.html", "--instances", "texts.csv", "--fail-if", "least_alpha<0.99") == 7
    said = capsys.readouterr()
    assert "annotators agree most on " in said.out
    assert "least_alpha<0.99 holds" in said.err
    assert "this is text 7" in (folder / "r.html").read_text("utf-8")
    numbers = json.loads((folder / "r.json").read_text("utf-8"))
    assert numbers["kind"] == "multi-label"
    assert numbers["classes"] == ["cat", "dog", "out"]
    assert numbers["method"] == "robust"
    assert numbers["values"]["annotations"] == 120
    assert run(*how, "--out", "s.html", "--before", "r.json", "--method", "one-coin") == 0
    assert json.loads((folder / "s.json").read_text("utf-8"))["changes"]["annotators"]["both"] == 4
    for words, message in (
        (("--kind", "regression"), "--multi-label is for classes"),
        (("--gold", "g.csv"), "--gold does not go with --multi-label"),
        (("--curve", 3), "--curve does not go with --multi-label"),
        (("--predictions", "g.csv"), "--predictions does not go with --multi-label"),
        (("--on-duplicate", "first"), "--on-duplicate first does not go with --multi-label"),
        (("--fail-if", "fleiss_kappa<1"), "least_alpha"),
    ):
        assert message in refusal_of("report", *how, "--out", "t.html", *words)


def test_predictions_and_gold_are_compared(folder, capsys, refusal_of):
    rows = [f"t{task},{('ape', 'bat')[task % 2 if task else 1]},0.99" for task in range(28)]
    (folder / "p.csv").write_text("\n".join(["task,class,probability", *rows, "new,ape,0.5"]))
    (folder / "g.csv").write_text(
        "\n".join(["task,gold", *(f"t{task},{('ape', 'bat')[task % 2]}" for task in range(9))])
    )
    how = ("a.csv", "--out", "r.html", "--bootstrap", 0, "--method", "majority-vote", "--predictions", "p.csv")
    assert run(*how, "--gold", "g.csv", "--fail-if", "model_agreement<0.99", "--fail-if", "model_accuracy<0.5") == 7
    said = capsys.readouterr()
    assert "28 compared; 2 labelled tasks have none; 1 are of" in said.out
    assert "model_agreement<0.99 holds" in said.err
    assert "model_accuracy" not in said.err
    numbers = json.loads((folder / "r.json").read_text("utf-8"))
    assert numbers["calibration"]["tasks"] == 9
    assert numbers["values"]["model_accuracy"] == round(8 / 9, 4)
    (folder / "p.csv").write_text("task,class,probability\nt0,ape,0.9\nt1,cow,0.9\n")
    assert "p.csv, row 3, column 'class'" in refusal_of("report", *how, "--force", code=3)


def test_the_history_of_a_training_and_the_curve_are_in_the_page(folder, refusal_of):
    (folder / "h.json").write_text('{"loss": [1, 0.5]}')
    how = ("a.csv", "--bootstrap", 0, "--method", "majority-vote")
    assert run(*how, "--out", "r.html", "--history", "h.json", "--curve", 2) == 0
    numbers = json.loads((folder / "r.json").read_text("utf-8"))
    assert numbers["history"] == {"epochs": 2, "shown": [1, 2], "metrics": {"loss": [1, 0.5]}}
    assert numbers["curve"]["draws"] == 2
    assert run(*how, "--out", "s.html", "--curve", 0) == 0
    numbers = json.loads((folder / "s.json").read_text("utf-8"))
    assert numbers["curve"] is None
    assert numbers["history"] is None
    (folder / "h.json").write_text('{"loss": 1}')
    assert "h.json: is not a history" in refusal_of("report", *how, "--out", "t.html", "--history", "h.json", code=3)
    assert not (folder / "t.html").exists()
