"""The compiled pipeline, executed: the command of every container, from annotations in a store to a pushed model."""

import json
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet
import pytest
import tensorflow as tf
from launcher import Launcher

from crowdzoo import datasets
from crowdzoo.components.remote_files import fetch
from crowdzoo.components.remote_serving import remote_versions
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.kubeflow import compile_pipeline
from crowdzoo.pipelines.local import run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]

CONFIG = """\
name: labelme
data: {annotations: s3://crowd/labelme/annotations.csv, instances: s3://crowd/labelme/instances.parquet}
model: {base: feature-classifier, hidden: [32]}
training: {epochs: 1, batch_size: 64}
evaluation: {minimum_accuracy: 0.2}
report: {fail_if: ["alpha<0.1", "model_accuracy<0.2"]}
kubeflow:
  image: registry.example.com/crowdzoo:1.0
  pipeline_root: s3://crowd/runs
  serving: s3://crowd/serving
  parameters: [training.epochs]
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory, store, client):
    """A run by the launcher with three epochs, the last two tasks once more, and a run on this machine."""
    folder = tmp_path_factory.mktemp("executed")
    files = datasets.write_files(datasets.load("labelme"), folder / "labelme")
    for path in files:
        client.upload_file(str(path), "crowd", f"labelme/{path.name}")
    (folder / "labelme.yaml").write_text(CONFIG)
    compile_pipeline(load_config(folder / "labelme.yaml", on="kubeflow"), folder / "pipeline.yaml")
    launcher = Launcher(
        folder / "pipeline.yaml", folder / "disks", client, arguments={"training_epochs": 3}, environment=store
    )
    launcher.run()
    first = remote_versions("s3://crowd/serving")
    evaluated = launcher.artifacts["Evaluator"]
    fetch(launcher.artifacts["CrowdReport"]["page"].uri, folder / "page")
    for name in ("Evaluator", "CrowdReport", "Pusher"):
        launcher.run_task(name, launcher.spec.root.dag.tasks[name])
    here = {
        "data.annotations": str(files[0]),
        "data.instances": str(files[1]),
        "training.epochs": 3,
        "output.root": str(folder / "here"),
    }
    local = run(load_config(folder / "labelme.yaml", here), quiet=True)
    fetch(evaluated["evaluation"].uri, folder / "evaluation")
    for version in first:
        fetch(version, folder / "pushed")
    return SimpleNamespace(
        folder=folder, launcher=launcher, first=first, evaluated=evaluated, local=local,
        again=remote_versions("s3://crowd/serving"), instances=pyarrow.parquet.read_table(files[1]),
    )  # fmt: skip


def predictions(model, instances):
    signature = tf.saved_model.load(str(model)).signatures["serving_default"]
    features = np.array(instances["features"].to_pylist(), np.float32)
    return signature(instances=tf.constant(features))["probabilities"].numpy()


def test_the_page_on_the_crowd_is_that_of_a_run_on_this_machine(story):
    (place,) = story.folder.joinpath("page").rglob("report.json")
    there, here = (json.loads(path.read_text()) for path in (place, story.local.page.with_suffix(".json")))
    assert there["model"]["tasks"] == 250
    assert there["history"]["epochs"] == 3
    assert there == here


def test_the_pushed_model_answers_exactly_as_that_of_a_run_on_this_machine(story):
    assert len(story.first) == 1
    assert story.local.pushed is not None
    pushed = predictions(story.folder / "pushed", story.instances)
    assert pushed.shape == (1000, 8)
    np.testing.assert_array_equal(pushed, predictions(story.local.pushed, story.instances))
    assert len({*pushed.argmax(axis=1)}) > 4, "or equal models could both know nothing"


def test_the_evaluator_came_to_the_same_scores(story):
    evaluation = json.loads((story.folder / "evaluation" / "evaluation.json").read_text())
    ours = {key: value for key, value in evaluation["candidate"].items() if key != "model"}
    local = {key: value for key, value in story.local.evaluation["candidate"].items() if key != "model"}
    assert ours == pytest.approx(local, abs=1e-6)
    assert evaluation["truth"] == "gold"
    assert evaluation["blessed"]


def test_the_parameter_of_the_run_counted(story):
    fetch(story.launcher.artifacts["Trainer"]["model_run"].uri, story.folder / "run")
    assert len(json.loads((story.folder / "run" / "history.json").read_text())["loss"]) == 3, "and not 1, the default"


def test_artifacts_are_in_the_store_under_the_pipelines_root(story):
    for task, outputs in story.launcher.artifacts.items():
        for key, artifact in outputs.items():
            assert artifact.uri == f"s3://crowd/runs/labelme/run/{task}/{key}"
    assert story.evaluated["blessing"].metadata["blessed"] == 1
    pushed = story.launcher.artifacts["Pusher"]["pushed_model"].metadata
    assert pushed["pushed_destination"] == story.first[0]


def test_a_model_that_is_the_newest_version_is_not_pushed_again_and_is_no_baseline_of_itself(story):
    assert story.again == story.first
    fetch(story.launcher.artifacts["Evaluator"]["evaluation"].uri, story.folder / "evaluation again")
    evaluation = json.loads((story.folder / "evaluation again" / "evaluation.json").read_text())
    assert evaluation["baseline"] is None
