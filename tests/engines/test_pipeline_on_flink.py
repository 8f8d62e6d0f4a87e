"""`crowdzoo run` on Flink, with the Beam that is installed here: the same labels and model as on this machine."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tfx")
sys.path.insert(0, str(Path(__file__).parent))
from flink_cluster import flink_cluster  # noqa: E402
from install import FLINK, JOB_SERVER, ROOT  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("engines"),
    pytest.mark.skipif(not (FLINK.exists() and JOB_SERVER.exists()), reason="no Flink: run `make engines`"),
]
LABELME = ROOT / "pipelines" / "configs" / "labelme.yaml"


def crowdzoo_run(folder, **overrides):
    """Runs the pipeline of LabelMe, for two epochs; gives the folder of its output."""
    given = {"output.root": folder / "runs", "output.serving": folder / "served", "training.epochs": 2, **overrides}
    settings = [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
    command = [Path(sys.executable).with_name("crowdzoo"), "run", LABELME, *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return crowdzoo_run(tmp_path_factory.mktemp("here"))


def columns(folder, name):
    """The columns of a table of CrowdAggregator's report."""
    (file,) = folder.glob(f"runs/artifacts/CrowdAggregator/report/*/{name}.parquet")
    return pq.read_table(file).to_pydict()


def predictions(folder):
    """What the pushed model says of some fixed instances."""
    (version,) = (folder / "served").iterdir()
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    (given,) = signature.structured_input_signature[1].values()
    instances = np.random.default_rng(0).normal(size=(50, given.shape[1])).astype(np.float32)
    return signature(**{given.name: tf.constant(instances)})["probabilities"].numpy()


def close(found, expected, name):
    np.testing.assert_allclose(np.array(found, float), np.array(expected, float), atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("components", "memory"),
    [(["CrowdAggregator"], {}), (["StatisticsGen", "CrowdAggregator", "Evaluator"], {"memory": "3g", "network": "1g"})],
    ids=["aggregation with the default memory", "all with a gigabyte between steps"],
)
def test_labels_and_model_are_those_of_a_run_on_this_machine(here, tmp_path, components, memory):
    with flink_cluster(tmp_path / "cluster", **memory) as cluster:
        options = [f"--job_endpoint={cluster.address}", "--environment_type=LOOPBACK"]
        there = crowdzoo_run(
            tmp_path,
            **{"beam.runner": "PortableRunner", "beam.options": json.dumps(options)},
            **{"beam.components": json.dumps(components), "beam.retries": 3, "beam.timeout": 600},
        )
        assert len(cluster.jobs()) >= len(components)
    for table in ("tasks", "annotators"):
        expected = columns(here, table)
        for name, values in columns(there, table).items():
            same = np.testing.assert_array_equal if isinstance(values[0], int | str) else close
            same(values, expected[name], f"{table}, {name}")
    np.testing.assert_allclose(predictions(there), predictions(here), atol=1e-5)
