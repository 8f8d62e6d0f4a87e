"""Every YAML block of the pages is a configuration that the checks take, and the compiler where it is for Kubeflow."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

from crowdzoo.commands.main import main
from crowdzoo.pipelines.config.load import load_config

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = {
    f"{page.stem} {number}": block
    for page in sorted(DOCS.rglob("*.md"))
    for number, block in enumerate(re.findall(r"^```ya?ml\n(.*?)^```", page.read_text("utf-8"), flags=re.M | re.S), 1)
}
KUBERNETES = [name for name, block in BLOCKS.items() if "apiVersion" in block]
KUBEFLOW = [name for name, block in BLOCKS.items() if re.search(r"^kubeflow:", block, flags=re.M)]


def test_the_blocks_are_found():
    assert len(BLOCKS) >= 12
    assert KUBERNETES == ["kubeflow 2"]
    assert KUBEFLOW == ["kubeflow 1"]


TABLE = "task,postcode,comment\na,12345,good\nb,54321,bad\n"
# What a block leaves out, which shows only some settings
ADDED = {
    "tables 1": {"data": {"annotations": "answers.csv", "instances": "table.csv"}},
    "keras 1": {"data": {"annotations": "answers.csv", "instances": "instances.parquet"}},
    "scale 1": {"data": {"dataset": "labelme"}},
}


@pytest.fixture
def files(here):
    """The files that the pages name, in the current folder; each has two tasks."""
    (here / "data").mkdir()
    for folder in (here, here / "data"):
        features = {"task": ["a", "b"], "features": [np.zeros(4, "float32")] * 2}
        pd.DataFrame(features).to_parquet(folder / "instances.parquet")
        for name in ("answers", "annotations"):
            (folder / f"{name}.csv").write_text("task,annotator,label\na,ann,cat\nb,bo,dog\n")
    (here / "ratings.csv").write_text("task,annotator,label\na,ann,7\nb,bo,3.5\n")
    (here / "judgments.csv").write_text("left,right,annotator,label\na,b,ann,left\n")
    (here / "known.csv").write_text("left,right,gold\na,b,left\n")
    (here / "texts.csv").write_text("task,text\na,good\nb,bad\n")
    (here / "table.csv").write_text(TABLE)
    (here / "spans.jsonl").write_text("{}\n")
    for folder in ("photos", "images", "gold", "jobs/ann", "jobs/bo"):
        (here / folder).mkdir(parents=True)
        for name in ("a", "b"):
            Image.fromarray(np.eye(8, dtype="uint8")).save(here / folder / f"{name}.png")
    (here / "my_package").mkdir()
    (here / "my_package" / "__init__.py").touch()
    (here / "my_package" / "my_module.py").write_text("def build_base(units):\n    pass\n")
    return here


@pytest.mark.parametrize("name", [name for name in BLOCKS if name not in (*KUBERNETES, *KUBEFLOW)])
def test_a_block_is_a_configuration_that_the_checks_take(files, monkeypatch, name):
    monkeypatch.syspath_prepend(str(files))
    values = {"name": "page", **ADDED.get(name, {}), **yaml.safe_load(BLOCKS[name])}
    (files / "pipeline.yaml").write_text(yaml.safe_dump(values))
    config = load_config(files / "pipeline.yaml")
    for section in yaml.safe_load(BLOCKS[name]):
        known = {field.alias or key for key, field in type(config).model_fields.items()}
        assert section in known, "which the page shows"


@pytest.mark.parametrize("name", KUBEFLOW)
def test_a_block_for_kubeflow_compiles_as_it_is(here, capsys, name):
    (here / "pipeline.yaml").write_text(BLOCKS[name])
    assert main(["run", "pipeline.yaml", "--on", "kubeflow", "--out", "compiled.yaml"]) == 0
    assert capsys.readouterr().err == ""
    spec = next(yaml.safe_load_all((here / "compiled.yaml").read_text()))
    executors = spec["deploymentSpec"]["executors"]
    found = {
        component: executors[each["executorLabel"]]["container"]["resources"]
        for component, each in spec["components"].items()
    }
    asked = yaml.safe_load(BLOCKS[name])["kubeflow"]["resources"]
    assert (found["Trainer"]["memoryRequest"], found["Trainer"]["memoryLimit"]) == (asked["Trainer"]["memory_gb"],) * 2
    default = asked["default"]
    assert (found["Pusher"]["memoryRequest"], found["Pusher"]["memoryLimit"]) == (
        default["memory_gb"],
        default["memory_limit_gb"],
    )


@pytest.mark.parametrize("name", KUBERNETES)
def test_a_block_of_kubernetes_is_an_object_whose_settings_are_yaml(name):
    document = yaml.safe_load(BLOCKS[name])
    assert {"apiVersion", "kind", "metadata"} <= document.keys()
    assert yaml.safe_load(document["data"]["providers"])["s3"]["default"]["credentials"]["secretRef"]["secretName"]
