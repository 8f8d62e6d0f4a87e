"""`--task regression` on the command line, and the shipped ratings."""

import csv
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdzoo.aggregation import RatingAggregation, create
from crowdzoo.commands import main as cli
from crowdzoo.data.annotations import Annotations


def run(*words) -> int:
    return cli.main([str(word) for word in words])


def write_ratings(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("task", "annotator", "label"), *rows])
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Ratings of 80 tasks by four annotators of different bias, one of whom gives a single rating; and instances."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(3)
    features = rng.normal(size=(80, 3)).astype(np.float32)
    truth = np.clip(5 + 1.5 * features[:, 0] - features[:, 1], 0, 10)
    rows = [
        (f"t{task}", f"a{code}", round(float(np.clip(truth[task] + code - 1 + rng.normal() * 0.3, 0, 10)), 2))
        for task in range(80) for code in range(3)
    ]  # fmt: skip
    write_ratings(folder / "ratings.csv", [*rows, ("t0", "once", 10.0)])
    table = {
        "task": [f"t{task}" for task in range(80)],
        "features": list(features),
        "gold": [str(value) if task % 2 else "" for task, value in enumerate(truth)],
        "split": np.where(np.arange(80) < 60, "train", "eval"),
    }
    pq.write_table(pa.table(table), folder / "instances.parquet")
    return folder


def shown(text, name):
    return re.search(rf"^{re.escape(name)} +(.*)$", text, flags=re.M)[1].strip()


@pytest.mark.parametrize("method", ["mean", "median", "rating-em", "ordinal"])
def test_aggregate_gives_the_methods_estimates_and_their_errors_against_gold(files, tmp_path, capsys, method):
    words = ("aggregate", files / "ratings.csv", "--task", "regression", "--low", 0, "--high", 10, "--out")
    path = files / "ratings.csv"
    if method == "ordinal":  # half points: it takes at most 100 levels
        with open(path) as file:
            rows = [(one["task"], one["annotator"], round(2 * float(one["label"])) / 2) for one in csv.DictReader(file)]
        path = write_ratings(tmp_path / "halves.csv", rows)
    gold = files / "instances.parquet"
    assert run(words[0], path, *words[2:], tmp_path / "out", "--method", method, "--gold", gold) == 0
    text = capsys.readouterr().out
    found = RatingAggregation.from_parquet(tmp_path / "out")
    crowd = Annotations.read(path, kind="regression")
    wanted = create(method, kind="regression", low=0, high=10).fit(crowd)
    np.testing.assert_array_equal(found.estimates, wanted.estimates)
    table = pq.read_table(gold).to_pydict()
    truth = {task: float(value) for task, value in zip(table["task"], table["gold"], strict=True) if value}
    pairs = np.array([(truth[name], value) for name, value in zip(crowd.tasks, wanted.estimates, strict=True)
                      if name in truth])  # fmt: skip
    errors = pairs[:, 1] - pairs[:, 0]
    assert float(shown(text, "MAE")) == pytest.approx(np.abs(errors).mean(), abs=6e-5)
    assert float(shown(text, "RMSE")) == pytest.approx(np.sqrt((errors**2).mean()), abs=6e-5)
    r2 = 1 - (errors**2).sum() / ((pairs[:, 0] - pairs[:, 0].mean()) ** 2).sum()
    assert shown(text, "R² against gold") == f"{r2:.4f} (on 40 tasks with gold)"
    assert shown(text, "annotators") == "4"


def test_from_ratings_to_predictions(files, tmp_path, capsys):
    instances = files / "instances.parquet"
    model = tmp_path / "model.keras"
    words = ("--task", "regression", "--hidden", "4", "--dropout", 0, "--epochs", 15, "--learning-rate", 0.1)
    assert run("train", files / "ratings.csv", instances, "--method", "rating-em", *words, "--out", model) == 0
    text = capsys.readouterr().out
    assert shown(text, "ratings trained on") == "181"
    assert float(shown(text, "held-out R² against gold").split()[0]) > 0.7
    assert run("export", model, tmp_path / "served") == 0
    assert run("predict", tmp_path / "served", instances, "--out", tmp_path / "values.csv") == 0
    with open(tmp_path / "values.csv") as file:
        rows = list(csv.DictReader(file))
    table = pq.read_table(instances).to_pydict()
    held = [(float(row["value"]), float(gold)) for row, gold, split in
            zip(rows, table["gold"], table["split"], strict=True) if split == "eval" and gold]  # fmt: skip
    errors = np.array(held) @ [1, -1]
    assert float(shown(text, "held-out MAE")) == pytest.approx(np.abs(errors).mean(), abs=1e-4)
    assert [row["task"] for row in rows] == table["task"]


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """Ninety reviews of four words that are worth 1 to 9 points, rated by three annotators of different bias."""
    folder = tmp_path_factory.mktemp("reviews")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, size=(90, 4))
    words = np.array(["awful", "dull", "plain", "fine", "great"])
    truth = 1 + 2 * codes.mean(axis=1)
    write_ratings(
        folder / "ratings.csv",
        [(f"r{task}", f"a{code}", round(truth[task] + code - 1, 2)) for task in range(90) for code in range(3)],
    )
    with open(folder / "reviews.csv", "w", newline="") as file:
        rows = [(f"r{task}", " ".join(words[codes[task]]), truth[task], "eval" if task % 3 == 0 else "train")
                for task in range(90)]  # fmt: skip
        csv.writer(file).writerows([("task", "text", "gold", "split"), *rows])
    return folder


@pytest.mark.slow
def test_from_ratings_of_texts_to_predictions_on_texts(reviews, tmp_path, capsys):
    inputs = (reviews / "ratings.csv", reviews / "reviews.csv", "--task", "regression")
    words = ("--form", "bag-of-words", "--hidden", 8, "--dropout", 0, "--epochs", 15, "--learning-rate", 0.1)
    model = tmp_path / "model.keras"
    assert run("train", *inputs, "--method", "rating-em", *words, "--out", model) == 0
    assert float(shown(capsys.readouterr().out, "held-out R² against gold").split()[0]) > 0.8
    assert run("export", model, tmp_path / "served", "--warmup", reviews / "reviews.csv") == 0
    (tmp_path / "new.txt").write_text("Great, great!\nawful ... dull\n")
    capsys.readouterr()
    assert run("predict", tmp_path / "served", tmp_path / "new.txt") == 0
    header, good, bad = capsys.readouterr().out.split()
    assert header == "task,value"
    assert float(good.removeprefix("1,")) > float(bad.removeprefix("2,")) + 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--form", "bag"), "unknown form 'bag': choose one of convolutional, bag-of-words, characters"),
        (("--hidden", "3,4"), "--hidden: a model of texts has one hidden layer: give one number"),
        (("--low", 3), "outside of the scale"),
    ],
)
def test_what_is_not_for_texts_is_said(reviews, tmp_path, capsys, words, message):
    inputs = (reviews / "ratings.csv", reviews / "reviews.csv", "--task", "regression")
    assert run("train", *inputs, *words, "--out", tmp_path / "model.keras") != 0
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_a_form_belongs_to_texts(files, tmp_path, capsys):
    inputs = (files / "ratings.csv", files / "instances.parquet", "--form", "bag-of-words")
    assert run("train", *inputs, "--task", "regression", "--out", tmp_path / "model.keras") != 0
    assert (
        "--form: is not for base feature-regressor, which has batch_normalization, dropout, hidden."
        in capsys.readouterr().err
    )
    assert run("train", *inputs, "--out", tmp_path / "model.keras") != 0
    assert "--form: is not for base feature-classifier" in capsys.readouterr().err


@pytest.mark.parametrize(("method", "source"), [("aggregated", "rating-em"), ("median", "median")])
def test_an_aggregation_trains_on_its_estimates(files, tmp_path, monkeypatch, method, source):
    from crowdzoo.training import instance_training as training

    seen = {}

    def train(settings, x, **labels):
        seen.update(labels, settings=settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", train)
    words = (files / "ratings.csv", files / "instances.parquet", "--task", "regression", "--method", method)
    assert run("train", *words, "--out", tmp_path / "m.keras") == 130
    crowd = Annotations.read(files / "ratings.csv", kind="regression", tasks=[f"t{task}" for task in range(80)])
    wanted = create(source, kind="regression").fit(crowd.select_tasks(np.arange(60)))
    np.testing.assert_array_equal(seen["ratings"], wanted.estimates)
    assert seen["settings"].method == "aggregated"


@pytest.mark.parametrize("command", ["aggregate", "train"])
@pytest.mark.parametrize(
    ("row", "words", "code", "message"),
    [
        (("t1", "zoe", 10.5), ("--low", 0, "--high", 10), 3,
         "bad.csv, row 242, column 'label': 10.5 is outside of the scale 0 to 10"),
        (("t1", "zoe", "inf"), (), 3, "bad.csv, row 242, column 'label': 'inf' is not a finite number"),
        (("t1", "zoe", "nan"), (), 3, "bad.csv, row 242, column 'label': 'nan' is not a finite number"),
        (("t1", "zoe", "much"), (), 3, "bad.csv, row 242, column 'label': 'much' is not a number"),
        (None, ("--low", 5, "--high", 1), 4, "below high"),
        (None, ("--classes", "a,b"), 4, "--classes a,b: ratings have no classes"),
        (None, ("--method", "dawid-skene"), 4, "dawid-skene"),
        (None, ("--method", "medain"), 4, "Did you mean 'median'?"),
        (None, ("--method", "mean", "--set", "trimm=0.1"), 4, "trimm"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(files, tmp_path, capsys, command, row, words, code, message):
    with open(files / "ratings.csv") as file:
        rows = [tuple(one) for one in csv.reader(file)][1:240]
    path = write_ratings(tmp_path / "bad.csv", [*rows, ("t79", "a9", 5), *([row] if row else [])])
    rest = (tmp_path / "out",) if command == "aggregate" else (tmp_path / "m.keras",)
    inputs = (path,) if command == "aggregate" else (path, files / "instances.parquet")
    assert run(command, *inputs, "--task", "regression", *words, "--out", *rest) == code
    text = capsys.readouterr().err
    assert message in text
    assert not rest[0].exists()


def test_gold_that_is_no_number_is_named(files, tmp_path, capsys):
    (tmp_path / "gold.csv").write_text("task,gold\nt0,5\nt1,fine\n")
    words = ("--task", "regression", "--gold", tmp_path / "gold.csv", "--out", tmp_path / "out")
    assert run("aggregate", files / "ratings.csv", *words) == 3
    assert "gold.csv, row 3, column 'gold': 'fine' is not a number" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--low", 0), ("--high", 10)])
def test_a_scale_belongs_to_ratings(files, tmp_path, capsys, words):
    assert run("aggregate", files / "ratings.csv", *words, "--out", tmp_path / "out") == 4
    message = f"{words[0]} {words[1]}: an end of a scale of ratings belongs to --task regression"
    assert message in capsys.readouterr().err


def test_the_shipped_ratings_are_listed_and_written(tmp_path, capsys):
    assert run("datasets") == 0
    assert "of ratings: generated-ratings" in capsys.readouterr().out
    assert run("datasets", "generated-ratings") == 0
    assert "generated, free for any use" in capsys.readouterr().out
    assert run("datasets", "generated-ratings", "--write", tmp_path / "data") == 0
    assert len(Annotations.read(tmp_path / "data" / "annotations.csv", kind="regression")) == 3600
