import csv
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

# the extra `pipeline` brings it; without it there is nothing to test here
if find_spec("tfx") is None:
    collect_ignore_glob = ["test_*.py"]

CLASSES = ("cat", "dog", "eel")


def write_inputs(folder: Path, num_tasks: int = 60, seed: int = 0) -> None:
    """Six annotators from poor to good, three labels a task, and five features that tell the classes apart."""
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, 3, num_tasks)
    features = np.eye(3)[gold] @ generator.normal(size=(3, 5)) * 2 + generator.normal(size=(num_tasks, 5)) * 0.5
    with open(folder / "answers.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "annotator", "label"])
        for task in range(num_tasks):
            for annotator in generator.choice(6, 3, replace=False):
                right = generator.random() < 0.5 + 0.08 * annotator
                label = gold[task] if right else generator.integers(0, 3)
                writer.writerow([f"t{task:02}", f"a{annotator}", CLASSES[label]])
    table = {
        "task": [f"t{task:02}" for task in range(num_tasks)],
        "features": pa.array(features.tolist(), pa.list_(pa.float32())),
        "gold": [CLASSES[code] for code in gold],
        "split": ["eval" if task % 4 == 3 else "train" for task in range(num_tasks)],
    }
    pyarrow.parquet.write_table(pa.table(table), folder / "instances.parquet")


CONFIG = """\
name: tiny
data: {annotations: answers.csv, instances: instances.parquet}
model: {hidden: [8], dropout: 0.2}
aggregation: {method: dawid-skene, tol: 0.01, max_iter: 4}
training: {epochs: 8, batch_size: 16, learning_rate: 0.01}
output: {root: out}
"""


@pytest.fixture(scope="session")
def make_inputs():
    """A function that writes answers.csv, instances.parquet and tiny.yaml into a folder, the same each time."""

    def make(folder: Path, num_tasks: int = 60) -> Path:
        write_inputs(folder, num_tasks)
        (folder / "tiny.yaml").write_text(CONFIG)
        return folder

    return make


@pytest.fixture
def inputs(tmp_path, make_inputs):
    """A folder with answers.csv, instances.parquet and tiny.yaml."""
    return make_inputs(tmp_path)
