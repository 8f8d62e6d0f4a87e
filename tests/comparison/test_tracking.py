"""A comparison in MLflow and in TensorBoard's HParams."""

import sys
import types

import numpy as np
import pytest
from refusals import about

from crowdzoo import Annotations, ConfigError, compare


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 60)
    said = np.where(rng.random((60, 4)) < 0.8, gold[:, None], 1 - gold[:, None])
    return Annotations.from_dense(said, classes=("no", "yes")), gold


def test_tensorboard_has_parameters_figures_and_the_plot(crowd, tmp_path):
    annotations, gold = crowd
    tf = pytest.importorskip("tensorflow")
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    found = compare(annotations, gold=gold, methods=["dawid-skene prior=0.5"], folder=tmp_path, track="tensorboard")
    logged = {}
    for file in (tmp_path / "tensorboard").rglob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                logged.setdefault(file.parent.name, {})[value.tag] = value
    (own,) = (values for name, values in logged.items() if name.endswith("dawid-skene"))
    data = HParamsPluginData.FromString(own["_hparams_/session_start_info"].metadata.plugin_data.content)
    parameters = dict(data.session_start_info.hparams.items())
    assert parameters["method"].string_value == "dawid-skene"
    assert parameters["prior"].number_value == 0.5
    assert parameters["kind"].string_value == "classification"
    score = found.frame.set_index("method").loc["dawid-skene prior=0.5", "score"]
    assert tf.make_ndarray(own["score"].tensor) == pytest.approx(score)
    assert "comparison" in logged["tensorboard"]
    compare(annotations, gold=gold, methods=["wawa"], folder=tmp_path, track="tensorboard")
    assert len([*(tmp_path / "tensorboard").glob("0*")]) == 2  # an earlier one is replaced


@pytest.mark.slow
def test_mlflow_has_parameters_figures_and_the_plot(crowd, tmp_path, monkeypatch, capsys):
    mlflow = pytest.importorskip("mlflow")
    annotations, gold = crowd
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("crowd", str(tmp_path / "artifacts")))
    found = compare(annotations, gold=gold, methods=["dawid-skene prior=0.5"], track="mlflow")
    assert f"logged to sqlite:///{tmp_path}/runs.db" in capsys.readouterr().out
    client = mlflow.MlflowClient()
    runs = {
        run.info.run_name: run for run in client.search_runs([client.get_experiment_by_name("crowd").experiment_id])
    }
    assert set(runs) == {"crowdzoo compare", "majority-vote", "dawid-skene prior=0.5"}
    own = runs["dawid-skene prior=0.5"]
    assert own.data.params == {"kind": "classification", "seeds": "1", "method": "dawid-skene", "prior": "0.5"}
    frame = found.frame.set_index("method")
    for name in ("score", "against_baseline_low", "log loss", "seconds"):
        assert own.data.metrics[name] == pytest.approx(frame.loc["dawid-skene prior=0.5", name])
    above = runs["crowdzoo compare"].info.run_id
    assert own.data.tags["mlflow.parentRunId"] == above
    assert {file.path for file in client.list_artifacts(above)} == {"comparison.png", "comparison.csv"}


def test_what_cannot_be_tracked_is_said_before_the_work(crowd, tmp_path, monkeypatch):
    annotations, gold = crowd
    with pytest.raises(ConfigError, check=about("track", "wandb")):
        compare(annotations, gold=gold, track="wandb")
    with pytest.raises(ConfigError, match="writes next to the runs: name their folder"):
        compare(annotations, gold=gold, track="tensorboard")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match=r"needs mlflow: pip install 'crowdzoo\[mlflow\]'"):
        compare(annotations, gold=gold, track="mlflow", folder=tmp_path)
    monkeypatch.setitem(sys.modules, "mlflow", types.ModuleType("mlflow"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"needs matplotlib: pip install 'crowdzoo\[plots\]'"):
        compare(annotations, gold=gold, track="mlflow", folder=tmp_path)
    assert not [*tmp_path.iterdir()]
