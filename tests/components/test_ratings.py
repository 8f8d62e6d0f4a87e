"""Ratings through the components: read, checked, aggregated, trained on and evaluated as numbers."""

import functools
import json

import numpy as np
import pyarrow.parquet
import pytest
import tensorflow as tf
from known_models import save_model

from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.ratings.records import RatingRecords
from crowdzoo.records.example_dataset import ExampleDataset

RATINGS = [
    ("t0", "ann", 4.5), ("t0", "bob", 6.5), ("t1", "ann", -1.0), ("t2", "bob", 0.25),
    ("e0", "ann", 2.0), ("e0", "cy", 5.0), ("e1", "cy", 1.0),
]  # fmt: skip
TASKS = ["t0", "t1", "t2", "e0", "e1", "e2"]
FEATURES = [[1.0, 0.5], [2.0, -1.0], [0.0, 3.0], [1.5, 1.5], [-1.0, 0.0], [4.0, 4.0]]
GOLD = [5.0, -1.0, None, 3.5, None, -2.25]


@pytest.fixture
def ratings_folder(folder):
    """Three tasks to train on and three of eval, the last of which nobody rated."""

    def write(ratings=RATINGS, gold=GOLD):
        columns = {"task": TASKS, "features": FEATURES, "split": ["train"] * 3 + ["eval"] * 3}
        folder.write(ratings, columns if gold is None else {**columns, "gold": gold})

    folder.write_ratings = write
    folder.generate_ratings = lambda **options: folder.generate(
        kind="regression", low=options.pop("low", None), high=options.pop("high", None), **options
    )
    write()
    return folder


def by_task(folder, examples, split):
    return {record["task"][0].decode(): record for record in folder.records(examples, split)}


# === AnnotationExampleGen ===


def test_labels_and_gold_are_numbers_and_an_unknown_gold_is_left_out(ratings_folder):
    examples, annotations = ratings_folder.generate_ratings()
    train = by_task(ratings_folder, examples, "train")
    assert sorted(train) == ["t0", "t1", "t2"]
    assert train["t0"]["annotator_labels"] == [4.5, 6.5]
    assert train["t0"]["annotator_ids"] == [0, 1]
    assert train["t1"]["gold"] == [-1.0], "-1 is a rating, not a mark of the unknown"
    assert "gold" not in train["t2"]
    tasks = pyarrow.parquet.read_table(f"{annotations.uri}/tasks.parquet").to_pydict()
    assert dict(zip(tasks["task"], tasks["gold"], strict=True)) == dict(zip(TASKS, GOLD, strict=True))
    info = json.loads(tf.io.gfile.GFile(f"{examples.uri}/dataset.json").read())
    assert (info["kind"], info["classes"], info["annotators"]) == ("regression", None, ["ann", "bob", "cy"])
    assert info["num_gold"] == {"train": 2, "eval": 2}
    kept = Annotations.from_parquet(f"{annotations.uri}/annotations.parquet")
    assert (kept.kind, len(kept)) == ("regression", 7)


# === CrowdAggregator ===


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_each_split_is_aggregated_by_its_own_ratings_and_gold_is_what_counts(ratings_folder, workers):
    """With two workers on Beam."""
    examples, report = ratings_folder.aggregate(*ratings_folder.generate_ratings(), method="mean", workers=workers)
    train, held = (by_task(ratings_folder, examples, split) for split in ("train", "eval"))
    assert {task: record["aggregated_label"] for task, record in train.items()} == {
        "t0": [5.5], "t1": [-1.0], "t2": [0.25]
    }  # fmt: skip
    assert {task: record["aggregated_label"][0] for task, record in held.items()} == {
        "e0": 3.5, "e1": 1.0, "e2": pytest.approx((5.5 - 1 + 0.25) / 3)
    }  # fmt: skip
    assert {task: (record["evaluation_label"][0], record["evaluation_weight"][0]) for task, record in held.items()} == {
        "e0": (3.5, 1.0), "e1": (1.0, 0.0), "e2": (-2.25, 1.0)
    }  # fmt: skip
    assert "posterior" not in train["t0"]
    lines = tf.io.gfile.GFile(f"{report.uri}/annotators.csv").read().splitlines()
    assert lines[0] == '"annotator","annotations","skill"'
    assert len(lines) == 4


def test_without_gold_the_estimates_are_what_counts_where_somebody_rated(ratings_folder):
    ratings_folder.write_ratings(gold=None)
    examples, _ = ratings_folder.aggregate(*ratings_folder.generate_ratings(), method="median")
    assert json.loads(tf.io.gfile.GFile(f"{examples.uri}/dataset.json").read())["truth"] == "aggregated"
    held = by_task(ratings_folder, examples, "eval")
    assert {task: (record["evaluation_label"][0], record["evaluation_weight"][0]) for task, record in held.items()} == {
        "e0": (3.5, 1.0), "e1": (1.0, 1.0), "e2": (pytest.approx(4.75 / 3), 0.0)
    }  # fmt: skip


# === Trainer ===


def test_batches_hold_ratings_padded_with_nan_and_estimates(ratings_folder):
    examples, report = ratings_folder.aggregate(*ratings_folder.generate_ratings(), method="mean")
    data = ExampleDataset([f"{examples.uri}/Split-train/*"], 3, {"num_features": 2, "classes": None})
    records = ratings_folder.records(examples, "train")
    number = 0
    for x, y in data.batches(2, 0, shuffle=False, inputs=("annotators", "labels", "tasks")):
        assert y.dtype == tf.float32
        np.testing.assert_array_equal(x["labels"], y)
        np.testing.assert_array_equal(np.isnan(y), x["annotators"] == -1)
        for task, annotators, labels in zip(x["tasks"], x["annotators"].numpy(), y.numpy(), strict=True):
            assert annotators[annotators >= 0].tolist() == records[task]["annotator_ids"]
            assert labels[~np.isnan(labels)].tolist() == records[task]["annotator_labels"]
            number += 1
    assert number == 3
    tasks = pyarrow.parquet.read_table(f"{report.uri}/tasks.parquet").to_pydict()
    estimates = dict(zip(tasks["task"], tasks["estimate"], strict=True))
    wanted = [estimates[record["task"][0].decode()] for record in records]
    np.testing.assert_allclose(data.aggregated_ratings(), wanted, rtol=1e-6)
    x, y = next(iter(data.aggregated(3, 0)))
    assert (x.shape, y.shape) == ((3, 2), (3, 1))
    np.testing.assert_allclose(np.sort(y[:, 0]), np.sort(wanted), rtol=1e-6)


# === Evaluator ===


def line_model(folder, slope, shift=0.0):
    """A served model that says the first feature times `slope`, plus `shift`."""
    return str(save_model(folder, lambda x: {"value": slope * x[:, 0] + shift}, instances=("float32", 2)))


def test_errors_are_those_of_the_tasks_whose_rating_is_known(ratings_folder, tmp_path):
    examples, _ = ratings_folder.aggregate(*ratings_folder.generate_ratings(), method="mean")
    info = json.loads(tf.io.gfile.GFile(f"{examples.uri}/dataset.json").read())
    model = line_model(tmp_path / "model", 2.0)
    files = f"{examples.uri}/Split-eval/*"
    scores = RatingRecords().model_scores({"candidate": model}, files, info)
    assert scores["candidate"].pop("by_task").mean() == pytest.approx(scores["candidate"]["r2"])
    # e0: says 3, is 3.5; e2: says 8, is -2.25; their mean is 0.625, squares about it 2 * 2.875^2
    assert scores == {
        "candidate": {
            "tasks": 2, "mae": pytest.approx((0.5 + 10.25) / 2),
            "rmse": pytest.approx(np.sqrt((0.25 + 10.25**2) / 2)),
            "r2": pytest.approx(1 - (0.25 + 10.25**2) / (2 * 2.875**2)),
        },
    }  # fmt: skip
    broken = line_model(tmp_path / "broken", float("nan"))
    with pytest.raises(ValueError, match="broken: the model answers nan to 2 of the 2 tasks"):
        RatingRecords().model_scores({"candidate": broken}, files, info)


def test_a_regressor_is_blessed_by_its_r2(ratings_folder, tmp_path):
    examples, _ = ratings_folder.aggregate(*ratings_folder.generate_ratings(), method="mean")

    def evaluate(slope, shift, **options):
        ratings_folder.count += 1
        base, serving = tmp_path / f"evaluator{ratings_folder.count}", str(tmp_path / "serving")
        write = functools.partial(line_model, slope=slope, shift=shift)
        return ratings_folder.evaluate(examples, base, write, serving=serving, **options)[0]

    # of instances 1.5 and 4 the truth is 3.5 and -2.25: this line meets both
    slope = -5.75 / 2.5
    exact = evaluate(slope, 3.5 - 1.5 * slope)
    assert (exact["metric"], exact["blessed"]) == ("r2", True)
    assert exact["candidate"]["r2"] == pytest.approx(1)
    poor = evaluate(0.0, 2.0)
    assert poor["candidate"]["r2"] == pytest.approx(1 - (1.5**2 + 4.25**2) / (2 * 2.875**2))
    assert (poor["blessed"], poor["reason"]) == (False, "its R² -0.2287 is below the minimum 0")
    line_model(tmp_path / "serving" / "7", slope, 3.5 - 1.5 * slope)
    mean = evaluate(slope, 4.0 - 1.5 * slope)  # everything half a point too high: R² is 1 - 0.25 / 2.875^2
    assert mean["baseline"]["r2"] == pytest.approx(1)
    assert (mean["blessed"], mean["outcome"]) == (False, "undecided")
    assert mean["loss"]["mean"] == pytest.approx(1 - mean["candidate"]["r2"])
    assert mean["reason"].startswith("its R² 0.9698 against the 1.0000 of version 7 on 2 tasks")
    assert evaluate(slope, 4.0 - 1.5 * slope, undecided="push")["blessed"]
