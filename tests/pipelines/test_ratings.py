"""Task regression: its configuration."""

import csv
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.pipelines.config import load_config
from crowdzoo.pipelines.local import run

CONFIG = """\
name: stars
task: regression
data: {annotations: ratings.csv, instances: instances.parquet, low: 0, high: 10}
model: {hidden: [], dropout: 0.0}
training: {epochs: 12, batch_size: 16, learning_rate: 0.05}
evaluation: {minimum_r2: 0.5, tolerance: 0.1}
output: {root: out}
"""


def write_inputs(folder):
    """Sixty tasks, a score that two of three features tell, and four annotators with biases of -1.5 to 1.5."""
    generator = np.random.default_rng(0)
    features = generator.normal(size=(60, 3)).astype("float32")
    gold = np.clip(5 + 1.2 * features[:, 0] - features[:, 1], 0, 10)
    with open(folder / "ratings.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("task", "annotator", "label"))
        for task in range(60):
            for annotator in generator.permutation(4)[:3]:
                said = gold[task] + annotator - 1.5 + generator.normal() * 0.3
                writer.writerow((f"t{task}", f"a{annotator}", f"{np.clip(said, 0, 10):.2f}"))
    table = {
        "task": [f"t{task}" for task in range(60)],
        "features": pa.array(features.tolist()),
        "gold": gold,
        "split": ["eval" if task % 4 == 3 else "train" for task in range(60)],
    }
    pyarrow.parquet.write_table(pa.table(table), folder / "instances.parquet")
    (folder / "stars.yaml").write_text(CONFIG)
    return SimpleNamespace(path=folder, features=features, gold=gold)


@pytest.fixture
def inputs(tmp_path):
    return write_inputs(tmp_path)


def test_a_rating_outside_of_the_scale_stops_the_run_and_is_named(inputs):
    with open(inputs.path / "ratings.csv", "a") as file:
        file.write("t1,zoe,10.5\n")
    config = load_config(inputs.path / "stars.yaml", {"output.root": str(inputs.path / "out")})
    with pytest.raises(DataError, match=r"ratings.csv, row 182, column 'label': 10.5 is outside of the scale 0 to 10"):
        run(config, quiet=True)


def test_defaults_suit_the_task(inputs):
    config = load_config(inputs.path / "stars.yaml")
    assert config.aggregation.method == "rating-em"
    assert config.base_arguments == {
        "base": "feature-regressor", "hidden": [], "dropout": 0.0, "batch_normalization": False
    }  # fmt: skip
    assert (config.minimum, config.data.low, config.data.high) == (0.5, 0, 10)
    with_arguments = load_config(inputs.path / "stars.yaml", {"aggregation.bias": False})
    assert with_arguments.aggregation.method == "rating-em"
    assert with_arguments.aggregation.arguments == {"bias": False}


@pytest.mark.parametrize(("task", "method"), [("classification", "robust"), ("sequence", "bsc-seq")])
def test_other_tasks_keep_an_aggregation_of_their_own(tmp_path, task, method):
    data = {"classification": "labelme", "sequence": "generated-ner"}[task]
    (tmp_path / "one.yaml").write_text(f"name: one\ntask: {task}\ndata: {{dataset: {data}}}\n")
    assert load_config(tmp_path / "one.yaml").aggregation.method == method


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("data.low", 12, "data: 'low' must be below 'high', got 12 and 10"),
        ("data.high", "ten", "data.high: must be a number from -1e30 to 1e30, got 'ten'"),
        ("data.classes", ["a", "b"], "data.classes is not for task regression, where data has dataset, annotations, "
         "instances, low, high, on_bad_rows, on_duplicate, exclude, platform, field, image, columns, "),
        ("data.dataset", "labelme", "'dataset' takes the place of 'annotations' and 'instances'"),
        ("model.base", "feature-classifier", "model.base 'feature-classifier' is not for task regression; it is "
         "feature-regressor or text-regressor"),
        ("evaluation.minimum_accuracy", 0.5, "evaluation.minimum_accuracy is not for task regression, where evaluation "
         "has tolerance, undecided, minimum_r2"),
        ("evaluation.minimum_r2", -0.1, "evaluation.minimum_r2: must be a number from 0 to 1, got -0.1"),
        ("aggregation.method", "dawid-skene", "aggregation: unknown aggregation method 'dawid-skene': choose one of "
         "mean, median, rating-em"),
        ("method.name", "deep-em", "method: method 'deep-em' is not for task regression; choose one of "
         "crowdsourced-layer, rating-em, aggregated"),
        ("method.connection", "MW", "method: CrowdsourcedLayer: unknown connection 'MW': choose one of S, B, S+B"),
        ("aggregation", "mean", "aggregation: must be a section"),
    ],
)  # fmt: skip
def test_what_is_not_for_ratings_is_said(inputs, key, value, message):
    with pytest.raises(ConfigError) as caught:
        load_config(inputs.path / "stars.yaml", {key: value})
    assert message in str(caught.value)


def test_the_shipped_configuration_takes_the_shipped_set():
    from crowdzoo.pipelines.demo import CONFIGS

    shipped = CONFIGS / "generated-ratings.yaml"
    config = load_config(shipped)
    assert (config.kind, config.data.dataset) == ("regression", "generated-ratings")
    with pytest.raises(ConfigError, match=r"data: unknown dataset 'labelme': choose one of generated-ratings"):
        load_config(shipped, {"data.dataset": "labelme"})
