"""docs/components.md: its pipeline runs as it stands; and a component's parameters follow files and code."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import datasets
from crowdzoo.components import crowd_aggregator, evaluator
from crowdzoo.components.code_version import code_version
from crowdzoo.components.module_trainer import ModuleTrainer
from crowdzoo.components.tfx_internals import standard_artifacts
from crowdzoo.errors import ConfigError
from crowdzoo.export import load_and_predict

GUIDE = Path(__file__).parents[2] / "docs" / "components.md"


def write_example(folder):
    """The files of the page, and LabelMe's data."""
    for code in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S):
        name = re.match(r"# (\w+\.py)\n", code)[1]
        (folder / name).write_text(code)
    datasets.write_files(datasets.load("labelme"), folder / "data")


@pytest.mark.slow
def test_the_pipeline_of_the_page_trains_and_pushes_a_model_with_its_transform(tmp_path):
    write_example(tmp_path)
    ran = [sys.executable, "my_pipeline.py"]
    first = subprocess.run(ran, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr[-3000:]
    labelme = datasets.load("labelme")
    answers = load_and_predict(tmp_path / "served", labelme.instances)
    held = labelme.split == "eval"
    assert (answers["label"] == labelme.gold)[held].mean() > 0.7
    # raw instances go in: the graph of Transform standardises them
    moved = load_and_predict(tmp_path / "served", labelme.instances + 10)
    assert np.abs(moved["probabilities"] - answers["probabilities"]).max() > 0.1
    (tmp_path / "my_transform.py").write_text((tmp_path / "my_transform.py").read_text() + "\n# changed\n")
    again = subprocess.run(ran, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr[-3000:]
    runs = {path.name: len(list((path / ".system" / "executor_execution").iterdir()))
            for path in (tmp_path / "artifacts").iterdir() if (path / ".system").is_dir()}  # fmt: skip
    assert runs["AnnotationExampleGen"] == runs["CrowdAggregator"] == 1
    assert runs["ModuleTransform"] == 2


def channel(kind):
    made = kind()
    from tfx.types import channel_utils

    return channel_utils.as_channel([made])


def test_the_evaluator_knows_the_last_pushed_model_and_every_component_its_code(tmp_path):
    served = tmp_path / "served"

    def evaluation():
        return evaluator.Evaluator(
            examples=channel(standard_artifacts.Examples), model=channel(standard_artifacts.Model),
            settings=json.dumps({"serving": str(served)}),
        ).exec_properties  # fmt: skip

    assert evaluation()["baseline"] == ""
    for version in ("1", "2"):
        (served / version).mkdir(parents=True)
        (served / version / "saved_model.pb").write_text(version)
    before = evaluation()["baseline"]
    assert before
    (served / "2" / "saved_model.pb").write_text("another")
    assert evaluation()["baseline"] not in ("", before)
    assert evaluation()["code_version"] == code_version(evaluator.__name__)
    from crowdzoo.components.artifacts import AnnotationsArtifact

    aggregation = crowd_aggregator.CrowdAggregator(
        examples=channel(standard_artifacts.Examples), annotations=channel(AnnotationsArtifact), settings="{}"
    )
    assert aggregation.exec_properties["code_version"] == code_version(crowd_aggregator.__name__)


def test_a_module_file_is_imported_where_it_is_and_counts_for_the_cache(tmp_path):
    (tmp_path / "beside.py").write_text("UNITS = 3\n")
    (tmp_path / "mine.py").write_text("import beside\n\ndef run_fn(fn_args): pass\n")

    def trainer():
        return ModuleTrainer(
            str(tmp_path / "mine.py"), examples=channel(standard_artifacts.Examples), custom_config={"units": 3}
        )

    first = trainer()
    first._resolve_pip_dependencies(str(tmp_path / "root"))
    assert first.exec_properties["module_file"] == str(tmp_path / "mine.py"), "no wheel was made of it"
    before = json.loads(first.exec_properties["custom_config"])
    assert before["units"] == 3
    (tmp_path / "beside.py").write_text("UNITS = 4\n")
    assert json.loads(trainer().exec_properties["custom_config"])["source"] != before["source"]
    with pytest.raises(ConfigError, match=r"module_file nowhere\.py: the file does not exist"):
        ModuleTrainer("nowhere.py", examples=channel(standard_artifacts.Examples))
