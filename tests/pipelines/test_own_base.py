"""A base of the user's own in a configuration: tried before a run, trained in it, and trained again when it changes."""

import pytest

from crowdzoo.errors import ConfigError
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.pipelines.config.data_checks import check_own_base
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.local import run

SOURCE = """\
import keras
from keras import layers
from sizes import UNITS


@keras.saving.register_keras_serializable(package="mine")
class Doubled(layers.Layer):
    def call(self, inputs):
        return 2 * inputs


def build(context, dropout=0.0):
    x = inputs = context.inputs()
    x = layers.Dropout(dropout)(layers.Dense(UNITS, "relu")(Doubled()(layers.Normalization()(x))))
    return keras.Model(inputs, layers.Dense(context.num_classes, "softmax")(x))
"""
CONFIG = """\
name: tiny
data: {annotations: answers.csv, instances: instances.parquet}
model: {base: "own/base.py:build", arguments: {dropout: 0.1}}
training: {epochs: 8, batch_size: 16, learning_rate: 0.01}
evaluation: {tolerance: 1.0}
output: {root: out}
"""


@pytest.fixture
def own(inputs):
    """A folder with the data, own.yaml, and a function in own/base.py that imports from a file beside it."""
    (inputs / "own").mkdir()
    (inputs / "own" / "base.py").write_text(SOURCE)
    (inputs / "own" / "sizes.py").write_text("UNITS = 8\n")
    (inputs / "own.yaml").write_text(CONFIG)
    return inputs


def test_the_file_is_found_from_the_configuration_and_its_settings_are_checked(own):
    config = load_config(own / "own.yaml")
    assert config.base == f"{own}/own/base.py:build"
    assert config.base_arguments == {
        "base": config.base, "instance_kind": "feature vectors", "base_arguments": {"dropout": 0.1}
    }  # fmt: skip
    for change, message in (
        ({"model.hidden": [3]}, r"model\.hidden is not for a base of your own, where model has base, arguments"),
        ({"model.base": "own/bas.py:build"}, r"model: base .*own/bas\.py:build: the file .* does not exist"),
        ({"model.base": "no_such:build"}, "there is no module 'no_such'"),
        ({"model.base": "text-tagger"}, "'text-tagger' is not for kind classification"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_config(own / "own.yaml", change)
    with pytest.raises(ConfigError, match=r"model\.arguments is not for"):
        load_config(own / "own.yaml", {"model.base": "feature-classifier"})


def test_check_runs_a_batch_through_the_base_and_names_what_does_not_fit(own):
    check_own_base(load_config(own / "own.yaml"))
    with pytest.raises(ConfigError, match=r"unexpected keyword argument 'unit'"):
        check_own_base(load_config(own / "own.yaml", {"model.arguments": {"unit": 3}}))
    (own / "own" / "base.py").write_text(SOURCE.replace("context.num_classes", "4"))
    with pytest.raises(ConfigError, match=r"gives shape \[2, 4\] for 2 instances, not 3 classes"):
        check_own_base(load_config(own / "own.yaml"))


@pytest.mark.filterwarnings("ignore::crowdzoo.training.faults.NotLearnedWarning")  # of 45 tasks
@pytest.mark.slow
def test_a_run_trains_it_and_trains_again_when_a_file_beside_it_changes(own):
    def go():
        return run(load_config(own / "own.yaml"), quiet=True)

    first = go()
    assert first.pushed is not None
    assert "Trainer" in go().cached
    (own / "own" / "sizes.py").write_text("UNITS = 9\n")
    again = go()
    assert "Trainer" not in again.cached
    assert "CrowdAggregator" in again.cached
    assert len(complete_versions(own / "out" / "serving")) == 2
