"""Task regression: its configuration."""

import pytest
from refusals import bad_row

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.local import run

CONFIG = """\
name: stars
kind: regression
data: {annotations: ratings.csv, instances: instances.csv, low: 0, high: 10}
model: {hidden: [], dropout: 0.0}
training: {epochs: 12, batch_size: 16, learning_rate: 0.05}
evaluation: {minimum_r2: 0.5, tolerance: 0.1}
output: {root: out}
"""


@pytest.fixture
def inputs(tmp_path):
    """Sixty tasks with a feature, a number from 0 to 10; three annotators a task, and gold."""
    ratings = [f"t{task},a{code},{task % 10 + code / 2}" for task in range(60) for code in range(3)]
    instances = [f"t{task},{task % 10},{task % 10},{'eval' if task % 4 == 3 else 'train'}" for task in range(60)]
    (tmp_path / "ratings.csv").write_text("\n".join(["task,annotator,label", *ratings]) + "\n")
    (tmp_path / "instances.csv").write_text("\n".join(["task,feature,gold,split", *instances]))
    (tmp_path / "stars.yaml").write_text(CONFIG)
    return tmp_path


@pytest.mark.slow
def test_a_rating_outside_of_the_scale_stops_the_run_and_is_named(inputs):
    with open(inputs / "ratings.csv", "a") as file:
        file.write("t1,zoe,10.5\n")
    config = load_config(inputs / "stars.yaml", {"output.root": str(inputs / "out")})
    with pytest.raises(DataError, check=bad_row(182, "label", 10.5)):
        run(config, quiet=True)


def test_defaults_suit_the_task(inputs):
    config = load_config(inputs / "stars.yaml")
    assert config.aggregation.method == "rating-em"
    assert config.base_arguments == {
        "base": "feature-regressor", "hidden": [], "dropout": 0.0, "batch_normalization": False
    }  # fmt: skip
    assert (config.minimum, config.data.low, config.data.high) == (0.5, 0, 10)
    with_arguments = load_config(inputs / "stars.yaml", {"aggregation.bias": False})
    assert with_arguments.aggregation.method == "rating-em"
    assert with_arguments.aggregation.arguments == {"bias": False}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("data.low", 12, "stars.yaml, data.low must be below data.high, got data.low: 12.0, data.high: 10.0."),
        ("data.high", "ten", "data.high: must be a number from -1e30 to 1e30, got 'ten'"),
        ("model.base", "feature-classifier", "it is feature-regressor or text-regressor"),
        ("evaluation.minimum_r2", -0.1, "evaluation.minimum_r2: must be a number from 0 to 1, got -0.1"),
        ("method.connection", "MW", "method: CrowdsourcedLayer: unknown connection 'MW': choose one of S, B, S+B"),
    ],
)  # fmt: skip
def test_what_is_not_for_ratings_is_said(inputs, key, value, message):
    with pytest.raises(ConfigError) as caught:
        load_config(inputs / "stars.yaml", {key: value})
    assert message in str(caught.value)
