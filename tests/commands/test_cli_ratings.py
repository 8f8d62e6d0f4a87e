"""`--kind regression` on the command line, and the shipped ratings."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run, shown
from csv_files import write_csv

from crowdzoo.aggregation import RatingAggregation, create
from crowdzoo.data.annotations import Annotations


def write_ratings(path, rows):
    return write_csv(path, ("task", "annotator", "label"), *rows)


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


@pytest.mark.parametrize("method", ["mean", "median", "rating-em"])
def test_aggregate_gives_the_methods_estimates_and_their_errors_against_gold(files, tmp_path, capsys, method):
    words = ("aggregate", files / "ratings.csv", "--kind", "regression", "--low", 0, "--high", 10, "--out")
    path = files / "ratings.csv"
    gold = files / "instances.parquet"
    assert run(words[0], path, *words[2:], tmp_path / "out", "--method", method, "--gold", gold) == 0
    text = capsys.readouterr().out
    found = RatingAggregation.from_parquet(tmp_path / "out")
    crowd = Annotations.read(path, kind="regression")
    wanted = create(method, kind="regression", low=0, high=10).fit(crowd)
    np.testing.assert_allclose(found.estimates, wanted.estimates, rtol=1e-9, atol=1e-12)
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


@pytest.mark.parametrize(("method", "source"), [("aggregated", "rating-em"), ("median", "median")])
def test_an_aggregation_trains_on_its_estimates(files, tmp_path, training_call, method, source):
    words = (files / "ratings.csv", files / "instances.parquet", "--kind", "regression", "--method", method)
    assert run("train", *words, "--out", tmp_path / "m.keras") == 130
    crowd = Annotations.read(files / "ratings.csv", kind="regression", tasks=[f"t{task}" for task in range(80)])
    wanted = create(source, kind="regression").fit(crowd.select_tasks(np.arange(60)))
    np.testing.assert_allclose(training_call.call_args.kwargs["ratings"], wanted.estimates, rtol=1e-9, atol=1e-12)
    assert training_call.call_args.args[0].method == "aggregated"


@pytest.mark.parametrize("command", ["aggregate", "train"])
@pytest.mark.parametrize(
    ("row", "words", "code", "message"),
    [
        (("t1", "zoe", 10.5), ("--low", 0, "--high", 10), 3,
         "10.5 is outside the scale 0 to 10. Fix the rating or remove it, or change --low and --high."),
        (("t1", "zoe", "inf"), (), 3, "bad.csv, row 242, column 'label': 'inf' is not a finite number"),
        (("t1", "zoe", "nan"), (), 3, "bad.csv, row 242, column 'label': 'nan' is not a finite number"),
        (("t1", "zoe", "much"), (), 3, "bad.csv, row 242, column 'label': 'much' is not a number"),
        (None, ("--low", 5, "--high", 1), 4, "--low must be below --high"),
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
    assert run(command, *inputs, "--kind", "regression", *words, "--out", *rest) == code
    text = capsys.readouterr().err
    assert message in text
    assert not rest[0].exists()
