"""`--kind preference` on the command line: a reward model from preferences and the texts, or vectors, they compare."""

import csv

import numpy as np
import pytest
from command_line import run, shown
from csv_files import read_csv, write_csv

from crowdzoo.aggregation import create
from crowdzoo.tables import Annotations

WORDS = np.array(["awful", "dull", "plain", "fine", "great"])
HOW = ("--kind", "preference", "--form", "bag-of-words", "--hidden", 8, "--dropout", 0)
LONG = ("--epochs", 20, "--batch-size", 32, "--learning-rate", 0.05)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Sixty texts of words that are worth 0 to 4, a third of them held out, and what four annotators prefer."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, size=(60, 4))
    worth = codes.mean(axis=1)
    pairs = [(a, (a + step) % 60) for a in range(60) for step in (1, 3, 6, 10, 15, 21)]
    answers = ["equal" if worth[a] == worth[b] else ("left", "right")[int(worth[a] < worth[b])] for a, b in pairs]
    said = [
        (f"r{a}", f"r{b}", f"a{who}", "right" if who == 3 else best)  # one always says right
        for (a, b), best in zip(pairs, answers, strict=True) for who in range(4)
    ]  # fmt: skip
    write_csv(folder / "preferences.csv", ("left", "right", "annotator", "label"), *said)
    rows = [(f"r{task}", " ".join(WORDS[codes[task]]), worth[task], "eval" if task % 3 == 0 else "train")
            for task in range(60)]  # fmt: skip
    write_csv(folder / "texts.csv", ("task", "text", "gold", "split"), *rows)
    write_csv(folder / "vectors.csv", ("task", "a", "b"), *((f"r{task}", worth[task], task % 7) for task in range(60)))
    known = [(f"r{a}", f"r{b}", best) for (a, b), best in zip(pairs, answers, strict=True)]
    write_csv(folder / "gold.csv", ("left", "right", "gold"), *known, ("r0", "r1", ""))
    return folder


@pytest.mark.slow
def test_from_preferences_between_texts_to_scores_of_new_texts(files, tmp_path, capsys):
    model = tmp_path / "model.keras"
    gold = ("--gold", files / "gold.csv")
    assert run("train", files / "preferences.csv", files / "texts.csv", *HOW, *LONG, *gold, "--out", model) == 0
    text = capsys.readouterr().out
    assert text.startswith("pair-annotators\n")
    crowd = Annotations.read(files / "preferences.csv", kind="preference")
    trained = [name for name in crowd.tasks if int(name[1:]) % 3]
    assert shown(text, "preferences trained on") == str(len(crowd.select_tasks(trained)))
    rows = [row for row in read_csv(files / "gold.csv") if row["gold"] in ("left", "right")]
    new = sum(int(row["left"][1:]) % 3 == 0 or int(row["right"][1:]) % 3 == 0 for row in rows)
    share, about = shown(text, "held-out pairs right, against gold").split(" ", 1)
    assert (float(share) > 0.95, about) == (True, f"(on {new} of left or right)")
    share, about = shown(text, "training pairs right, against gold").split(" ", 1)
    assert (float(share) > 0.95, about) == (True, f"(on {len(rows) - new} of left or right)")
    held = crowd.select_tasks([name for name in crowd.tasks if int(name[1:]) % 3 == 0])
    share, about = shown(text, "held-out preferences right").split(" ", 1)
    assert (0.6 < float(share) < 0.95, about) == (True, f"(on {(held.labels < 2).sum()} of left or right)")
    assert float(shown(text, "held-out Spearman's rho with gold").split()[0]) > 0.95
    assert run("export", model, tmp_path / "served", "--warmup", files / "texts.csv") == 0
    (tmp_path / "new.txt").write_text("Great, great!\nawful ... dull\n")
    capsys.readouterr()
    assert run("predict", tmp_path / "served", tmp_path / "new.txt") == 0
    header, good, bad = capsys.readouterr().out.split()
    assert header == "task,score"
    assert float(good.removeprefix("1,")) > float(bad.removeprefix("2,")) + 3


@pytest.mark.parametrize(("method", "source"), [("aggregated", "annotator-bradley-terry"), ("crowd-bt", "crowd-bt")])
def test_an_aggregation_trains_on_its_probabilities(files, tmp_path, training_call, method, source):
    words = ("--kind", "preference", "--method", method, "--out", tmp_path / "m.keras")
    assert run("train", files / "preferences.csv", files / "vectors.csv", *words) == 130
    tasks = [f"r{task}" for task in range(60)]
    crowd = Annotations.read(files / "preferences.csv", kind="preference", tasks=tasks)
    wanted = create(source, kind="preference").fit(crowd)
    pairs = training_call.call_args.kwargs["annotations"].pairs()[0]
    np.testing.assert_allclose(training_call.call_args.kwargs["label_distribution"], wanted.probabilities(*pairs.T))
    assert training_call.call_args.args[0].method == "aggregated"


@pytest.mark.parametrize(
    ("rows", "gold", "words", "code", "message"),
    [
        ([("r1", "x9", "a9", "left")], None, (), 3, "preferences.csv, row 62, column 'right': 'x9' is not one of the"),
        ([("x9", "r1", "a9", "left")], None, (), 3, "preferences.csv, row 62, column 'left': 'x9' is not one of the"),
        ([], [("r1", "x9", "left")], (), 3, "gold.csv, row 2, column 'right': 'x9' is not one of the 60 tasks, which"),
        ([], [("r1", "r1", "left")], (), 3, "gold.csv, row 2, column 'right': 'r1' is in column 'left', too"),
        ([], [("r1", "r2", "left"), ("r2", "r1", "left")], (), 3,
         "gold.csv, row 3, column 'gold': 'left' is another answer than an earlier row's for these two tasks"),
        ([], [("r1", "r2", "lft")], (), 3, "gold.csv, row 2, column 'gold': 'lft' is not one of the classes"),
        ([], None, ("--method", "crowdsourced-layer"), 4, "choose one of pair-annotators, bradley-terry"),
        ([], None, ("--low", 1), 4, "--low 1: an end of a scale of ratings belongs to --kind regression"),
        ([], None, ("--wide",), 4, "--wide: a wide table has one task a row, and a preference has two"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(files, tmp_path, capsys, rows, gold, words, code, message):
    with open(files / "preferences.csv") as file:
        header, *good = list(csv.reader(file))
    path = write_csv(tmp_path / "preferences.csv", header, *good[:60], *rows)
    if gold is not None:
        words = (*words, "--gold", write_csv(tmp_path / "gold.csv", ("left", "right", "gold"), *gold))
    before = {*tmp_path.iterdir()}
    model = tmp_path / "m.keras"
    assert run("train", path, files / "texts.csv", "--kind", "preference", *words, "--out", model) == code
    assert message in capsys.readouterr().err
    assert {*tmp_path.iterdir()} == before
