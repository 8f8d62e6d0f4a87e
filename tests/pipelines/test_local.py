import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet
import pytest
import tensorflow as tf
from known_models import save_model
from ml_metadata import metadata_store
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tensorflow_metadata.proto.v0 import anomalies_pb2

from crowdzoo.commands import main as cli
from crowdzoo.components import evaluator
from crowdzoo.components.input_files import content_hashes
from crowdzoo.components.lineage import read_origin
from crowdzoo.errors import BusyError, ConfigError, DataError, PipelineError
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.pipelines import local_runner, pipeline
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.local import _commit, _lock, run
from crowdzoo.pipelines.pipeline import create_pipeline

COMPONENTS = (
    "AnnotationExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "DriftValidator", "CrowdAggregator",
    "Trainer", "Evaluator", "Pusher",
)  # fmt: skip


def store_of(root):
    """The metadata of the runs in a folder."""
    connection = mlmd.ConnectionConfig()
    connection.sqlite.filename_uri = str(root / "metadata.sqlite")
    return metadata_store.MetadataStore(connection)


def predictions(model):
    """What a served model says of some fixed instances."""
    instances = np.random.default_rng(5).normal(size=(20, 5)).astype(np.float32)
    signature = tf.saved_model.load(str(model)).signatures["serving_default"]
    return signature(instances=tf.constant(instances))["probabilities"].numpy()


def indifferent_model(folder):
    """Saves a model that finds all three classes equally likely, with the signature of the pipeline's own models."""
    save_model(folder, lambda x: {"probabilities": tf.fill([tf.shape(x)[0], 3], 1 / 3)}, instances=("float32", 5))


@pytest.fixture(scope="module")
def begun(tmp_path_factory, make_inputs):
    """Two runs in one folder, one after the other: one that fails, and one that goes on."""
    folder = make_inputs(tmp_path_factory.mktemp("story"))
    story = SimpleNamespace(folder=folder)

    def go(**overrides):
        result = run(load_config(folder / "tiny.yaml", {"output.root": str(folder / "out"), **overrides}), quiet=True)
        served = [path.name for path in complete_versions(folder / "out" / "serving")]
        return SimpleNamespace(**{**vars(result), "summary": result.summary(), "served": served})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "read_dataset_info", lambda *_: 1 / 0)
        patch.setenv("CROWDZOO_COMMIT", "c0ffee")
        with pytest.raises(PipelineError) as caught:
            go()
    story.failure = str(caught.value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROWDZOO_COMMIT", "of another run")  # the failed run has trained the model
        story.first = go()
    story.predictions = predictions(story.first.pushed)
    story.first_card = json.loads((story.first.pushed / "assets.extra" / "model_card.json").read_text())
    story.go = go
    return story


@pytest.fixture(scope="module")
def story(begun):
    """Further runs in the same folder: with other settings, and after somebody else has pushed a model."""
    story, go, folder = begun, begun.go, begun.folder
    for name in ("answers.csv", "instances.parquet"):
        os.utime(folder / name)
    story.again = go()
    story.worse = go(**{"training.epochs": 1, "training.learning_rate": 1e-7})
    story.worse_again = go(**{"training.epochs": 1, "training.learning_rate": 1e-7})
    # somebody else pushes another model
    story.other = folder / "out" / "serving" / str(int(story.first.pushed.name) + 1)
    indifferent_model(story.other)
    story.after_other = go()
    story.after_other_predictions = predictions(story.after_other.pushed)
    story.after_other_again = go()
    return story


def test_a_component_that_fails_is_named_with_its_message_and_the_log(begun):
    first, second = begun.failure.splitlines()
    assert first == "Evaluator failed: ZeroDivisionError: division by zero"
    log = second.removeprefix("Log: ")
    with open(log) as file:
        text = file.read()
    assert "Traceback" in text
    assert "Epoch 8/8" in text, "what components print goes to the log as well"


def test_the_run_after_a_failure_goes_on_where_it_failed_and_ends_in_a_pushed_model(begun):
    first = begun.first
    assert first.cached == COMPONENTS[:7]
    assert tuple(first.seconds) == COMPONENTS
    assert first.blessed
    assert first.evaluation["truth"] == "gold"
    assert first.evaluation["candidate"]["tasks"] == 15
    assert first.evaluation["candidate"]["accuracy"] > 0.6, "chance is a third"
    assert first.pushed.parent == begun.folder / "out" / "serving"
    assert begun.first_card["name"] == "tiny"
    origin = read_origin(first.pushed)
    assert origin["commit"] == "c0ffee", "that of the training; which the cache keeps"
    assert origin["files"] == {
        "annotations": str(begun.folder / "answers.csv"),
        "instances": str(begun.folder / "instances.parquet"),
    }
    assert first.served == [first.pushed.name]
    assert (first.report / "annotators.csv").exists()
    assert (first.annotations / "annotations.parquet").exists()
    assert (first.model_run / "model.keras").exists()
    assert first.anomalies == ()
    for path in (first.metadata, first.log):
        assert path.is_file()
        assert str(path) in first.summary


@pytest.mark.slow
def test_a_plain_rerun_comes_from_the_cache_also_after_a_touch(story):
    assert story.again.cached == COMPONENTS
    assert story.again.pushed == story.first.pushed
    assert story.again.served == story.first.served


@pytest.mark.slow
def test_new_training_settings_rerun_training_and_what_follows_and_a_worse_model_is_not_pushed(story):
    worse = story.worse
    assert worse.cached == COMPONENTS[:6]
    assert worse.evaluation["candidate"]["accuracy"] < worse.evaluation["baseline"]["accuracy"]
    assert not worse.blessed
    assert worse.pushed is None
    assert worse.served == story.first.served
    assert f"of version {story.first.pushed.name}" in worse.reason
    assert "not pushed" in worse.summary
    assert story.worse_again.cached == COMPONENTS
    assert story.worse_again.pushed is None


def other_trainer(patch):
    """Lets the Trainer's code count as changed: what is before the Trainer may come from the cache, the rest not."""
    before = pipeline.code_version
    patch.setattr(pipeline, "code_version", lambda name: "changed" if name.endswith(".trainer") else before(name))


# imports once what takes seconds, and forks for each kill: prints how each run ended
DRIVER = """
import os, signal, sys
from crowdzoo.components import annotation_example_gen, crowd_aggregator, drift_validator, pusher, tfx_internals
from crowdzoo.export import saved_model
from crowdzoo.pipelines import local_runner, pipeline
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.local import _commit, _lock, run
from tfx.components.example_validator import executor as example_validator
from tfx.components.schema_gen import executor as schema_gen
from tfx.components.statistics_gen import executor as statistics_gen

version = pipeline.code_version
pipeline.code_version = lambda name: "changed" if name.endswith(".trainer") else version(name)

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

POINTS = {
    "AnnotationExampleGen": (annotation_example_gen, "_write_tasks"),
    "StatisticsGen": (statistics_gen.Executor, "Do"),
    "SchemaGen": (schema_gen.Executor, "Do"),
    "ExampleValidator": (example_validator.Executor, "Do"),
    "DriftValidator": (drift_validator, "crowd_statistics"),
    "CrowdAggregator": (crowd_aggregator, "_write_report"),
    "Trainer": (saved_model, "export_model"),
    "Evaluator": (tfx_internals, "mark_blessing"),
    "Pusher": (pusher.PusherExecutor, "_MarkPushed"),
}
for owner, name in map(POINTS.get, sys.argv[2:]):
    child = os.fork()
    if child == 0:
        setattr(owner, name, die)
        run(load_config(sys.argv[1]), quiet=True)
        os._exit(0)
    # at once: what is left in the buffer would be the next child's as well
    print(os.WTERMSIG(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("points", [("Pusher",), COMPONENTS], ids=["one component", "every component"])
def test_a_run_killed_in_a_component_and_started_again_ends_in_the_same_model(inputs, story, points, monkeypatch):
    # kills from the Trainer on need no data of their own: what is before it comes from the story's cache
    folder = inputs if points == COMPONENTS else story.folder
    shutil.rmtree(folder / "out" / "serving", ignore_errors=True)
    driver = subprocess.run(
        [sys.executable, "-c", DRIVER, folder / "tiny.yaml", *points], capture_output=True, text=True, check=True
    )
    assert driver.stdout.split() == [str(int(signal.SIGKILL))] * len(points), driver.stderr
    executions = store_of(folder / "out").get_executions()
    running = [execution for execution in executions if execution.last_known_state == mlmd.Execution.RUNNING]
    assert len(running) == len(points), "each kill leaves its execution as running"
    other_trainer(monkeypatch)
    result = run(load_config(folder / "tiny.yaml"), quiet=True)
    assert result.cached == COMPONENTS[:8]
    assert complete_versions(folder / "out" / "serving") == [result.pushed], (
        "the kill came after the push: not pushed twice"
    )
    np.testing.assert_array_equal(predictions(result.pushed), story.predictions)


# a run whose training kills the process right after its third epoch was written
KILLED_IN_TRAINING = """
import os, signal, sys
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.local import _commit, _lock, run
from crowdzoo.training.checkpoint import _Keeper

write = _Keeper.on_epoch_end

def write_and_die(keeper, epoch, logs=None):
    write(keeper, epoch, logs)
    if epoch == 2:
        os.kill(os.getpid(), signal.SIGKILL)

_Keeper.on_epoch_end = write_and_die
run(load_config(sys.argv[1], {"training.checkpoint": True}), quiet=True)
"""


@pytest.mark.slow
def test_a_run_killed_in_mid_training_goes_on_after_the_last_epoch_and_ends_in_the_same_model(inputs, story):
    driver = subprocess.run([sys.executable, "-c", KILLED_IN_TRAINING, inputs / "tiny.yaml"], capture_output=True)
    assert driver.returncode == -signal.SIGKILL, driver.stderr[-2000:]
    assert [*(inputs / "out" / "checkpoint").rglob("phase-0.npz")]
    result = run(load_config(inputs / "tiny.yaml", {"training.checkpoint": True}), quiet=True)
    log = result.log.read_text()
    assert "training went on after epoch 3" in log
    assert "Epoch 4/8" in log
    assert "Epoch 3/8" not in log
    assert result.cached == COMPONENTS[:6]
    np.testing.assert_array_equal(predictions(result.pushed), story.predictions)
    assert not (inputs / "out" / "checkpoint").exists()
    assert run(load_config(inputs / "tiny.yaml", {"training.checkpoint": True}), quiet=True).cached == COMPONENTS


def parameters(config):
    """The parameters of each component, which with its inputs are what decides about a rerun."""
    return {component.id: dict(component.exec_properties) for component in create_pipeline(config).components}


@pytest.mark.slow
def test_what_reruns_follows_from_content_and_settings(inputs):
    before = parameters(load_config(inputs / "tiny.yaml"))
    os.utime(inputs / "answers.csv")
    assert parameters(load_config(inputs / "tiny.yaml")) == before

    def changed(**overrides):
        after = parameters(load_config(inputs / "tiny.yaml", overrides))
        return [name for name in before if after[name] != before[name]]

    assert changed(**{"training.epochs": 9}) == ["Trainer"]
    assert changed(**{"method.majority_epochs": 2}) == ["Trainer"]
    assert changed(**{"evaluation.tolerance": 0.5}) == ["Evaluator"]
    assert changed(**{"aggregation.max_iter": 5}) == ["CrowdAggregator"]
    assert changed(seed=1) == ["CrowdAggregator", "Trainer"], "a task keeps its split"
    text = (inputs / "answers.csv").read_text()
    (inputs / "answers.csv").write_text(text.replace("cat", "dog", 1))
    assert changed() == ["AnnotationExampleGen"]


@pytest.mark.slow
def test_a_changed_file_of_a_backbone_trains_again_and_is_found_from_the_configuration(inputs, monkeypatch):
    PIL = pytest.importorskip("PIL.Image")
    tasks = sorted({line.split(",")[0] for line in (inputs / "answers.csv").read_text().splitlines()[1:]})
    (inputs / "photos").mkdir()
    for task in tasks:
        PIL.new("RGB", (8, 8)).save(inputs / "photos" / f"{task}.png")
    (inputs / "mine.keras").write_bytes(b"one")
    model = "model: {height: 8, backbone: mine.keras}"
    config = (inputs / "tiny.yaml").read_text().replace("instances.parquet", "photos")
    (inputs / "images.yaml").write_text(config.replace("model: {hidden: [8], dropout: 0.2}", model))
    monkeypatch.chdir(inputs / "photos")  # another folder than the configuration's
    before = parameters(load_config(inputs / "images.yaml"))
    assert load_config(inputs / "images.yaml").settings.backbone == str(inputs / "mine.keras")
    (inputs / "mine.keras").write_bytes(b"two")
    after = parameters(load_config(inputs / "images.yaml"))
    assert [name for name in before if after[name] != before[name]] == ["Trainer"]
    named = {"model.backbone": "MobileNetV2", "model.backbone_weights": "../mine.keras"}
    assert load_config(inputs / "images.yaml", named).model_files == {
        "model.backbone_weights": str(inputs / "photos" / ".." / "mine.keras")
    }
    (inputs / "mine.keras").unlink()
    with pytest.raises(ConfigError, match=r"model\.backbone: .*mine\.keras does not exist"):
        load_config(inputs / "images.yaml")


def test_a_change_of_code_reruns_the_components_that_use_it(inputs, monkeypatch):
    from crowdzoo.components import code_version
    from crowdzoo.layers import crowdsourced_layer

    before = parameters(load_config(inputs / "tiny.yaml"))
    copy = inputs / "crowdsourced_layer.py"
    copy.write_text(Path(crowdsourced_layer.__file__).read_text() + "# changed\n")
    source = code_version._source
    monkeypatch.setattr(
        code_version, "_source", lambda name: copy if name == crowdsourced_layer.__name__ else source(name)
    )
    after = parameters(load_config(inputs / "tiny.yaml"))
    # the Evaluator asks the kind of label, which also trains; it runs again in any case, on the new model
    assert [name for name in before if after[name] != before[name]] == ["Trainer", "Evaluator"]


def test_a_run_whose_input_is_replaced_after_it_began_fails_and_is_not_taken_from_the_cache(inputs, monkeypatch):
    table = pyarrow.parquet.read_table(inputs / "instances.parquet")

    def hashed_then_replaced(files, *how):
        found = content_hashes(files, *how)
        pyarrow.parquet.write_table(table.slice(30), inputs / "instances.parquet")
        return found

    monkeypatch.setattr(pipeline, "content_hashes", hashed_then_replaced)
    with pytest.raises(DataError, match=r"instances.parquet: its content changed after the run began"):
        run(load_config(inputs / "tiny.yaml"), quiet=True)
    executions = store_of(inputs / "out").get_executions()
    assert [execution.last_known_state for execution in executions] == [mlmd.Execution.FAILED]


def test_anomalies_become_sentences_with_split_and_feature(tmp_path):
    anomalies = anomalies_pb2.Anomalies()
    anomalies.anomaly_info["gold"].description = "The feature was not in every example."
    (tmp_path / "Split-eval").mkdir()
    (tmp_path / "Split-eval" / "SchemaDiff.pb").write_bytes(anomalies.SerializeToString())
    assert local_runner._anomalies(tmp_path) == ("eval, gold: The feature was not in every example.",)


def test_a_second_run_in_the_same_folder_does_nothing_and_says_who_is_at_work(inputs, monkeypatch, capsys):
    monkeypatch.chdir(inputs)
    (inputs / "out").mkdir()
    works = (
        "import sys\nfrom pathlib import Path\nfrom crowdzoo.pipelines.local import _lock\n"
        "with _lock(Path('out')):\n    print(flush=True)\n    sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", works], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=inputs
    ) as process:
        process.stdout.readline()
        for _ in range(2):
            assert cli.main(["run", "tiny.yaml"]) == BusyError.exit_code == 10
            said = capsys.readouterr().err
            assert f"another run (process {process.pid} since 20" in said
        assert sorted(path.name for path in (inputs / "out").iterdir()) == [".lock", "serving"]
        process.kill()
    with _lock(inputs / "out"):  # a kill leaves no lock
        assert (inputs / "out" / ".lock").read_text().startswith(f"process {os.getpid()} since 20")


def test_the_commit_is_in_the_environment_as_long_as_the_run_and_a_set_one_is_kept(tmp_path, monkeypatch):
    monkeypatch.delenv("CROWDZOO_COMMIT", raising=False)
    monkeypatch.setattr("crowdzoo.pipelines.local.commit_of", lambda file: "c0ffee")
    with _commit(tmp_path / "pets.yaml"):
        assert os.environ["CROWDZOO_COMMIT"] == "c0ffee"
    assert "CROWDZOO_COMMIT" not in os.environ
    monkeypatch.setenv("CROWDZOO_COMMIT", "of the CI")
    with _commit(tmp_path / "pets.yaml"):
        assert os.environ["CROWDZOO_COMMIT"] == "of the CI"
    assert os.environ["CROWDZOO_COMMIT"] == "of the CI"
