"""Files of `crowdzoo deploy` fit the official schemas of Kubernetes, KServe and Docker Compose."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))
from install import ROOT, SCHEMAS

from crowdzoo.commands import main as cli

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SCHEMAS.exists(), reason=f"no {SCHEMAS.relative_to(ROOT)}: run `make engines`"),
]


def check(*folders):
    python = SCHEMAS / "bin" / "python"
    command = [python, Path(__file__).with_name("check_manifests.py"), *folders]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("kubernetes", "pvc://models/labelme"),
        ("kubernetes", "gs://crowd/labelme"),
        ("kubernetes", "{served}"),
        ("kserve", "s3://crowd/labelme"),
        ("kserve", "pvc://models"),
        ("compose", "{served}"),
    ],
)
def test_the_files_fit_the_official_schemas(target, place, tmp_path):
    for version in ("1", "2"):
        (tmp_path / "served" / version).mkdir(parents=True)
        (tmp_path / "served" / version / "saved_model.pb").touch()
    place = place.format(served=tmp_path / "served")
    assert cli.main(["deploy", "--target", target, "--model", f"labelme={place}", "--out", str(tmp_path / "out")]) == 0
    code, said = check(tmp_path / "out")
    files = {path.name for path in (tmp_path / "out").glob("*.yaml")}
    assert {line.partition(":")[0] for line in said.splitlines()} == files
    assert code == 0, said


@pytest.mark.parametrize(
    ("target", "number", "path", "value", "says"),
    [
        ("monitoring", 0, ("spec", "podMetricsEndpoints", 0, "portt"), "x", "portt"),
        ("monitoring", 1, ("spec", "groups", 0, "rules", 0, "expression"), "x", "expression"),
        ("network", 0, ("spec", "ingress", 0, "form"), [], "form"),
        ("network", 2, ("spec", "rules", 0, "backendRefs", 0, "weigth"), 1, "weigth"),
        ("kubernetes", 1, ("spec", "template", "spec", "containers", 0, "imagee"), "x", "imagee"),
        ("kubernetes", 3, ("spec", "maxReplicas"), "many", "maxReplicas"),
        ("kubernetes", 4, ("spec", "max"), 1, "'max' was unexpected"),
        ("kserve", 1, ("spec", "predictor", "model", "storage_uri"), "x", "storage_uri"),
        ("kserve", 1, ("spec", "predictor", "scaleMetric"), "votes", "votes"),
        ("compose", 0, ("services", "serving", "readonly"), True, "readonly"),
    ],
)
def test_the_check_finds_what_does_not_fit(target, number, path, value, says, tmp_path):
    (tmp_path / "served" / "1").mkdir(parents=True)
    (tmp_path / "served" / "1" / "saved_model.pb").touch()
    place = tmp_path / "served" if target == "compose" else "gs://crowd/labelme"
    whole = "kubernetes" if target in ("monitoring", "network") else target
    assert cli.main(["deploy", "--target", whole, "--model", f"a={place}", "--out", str(tmp_path / "out")]) == 0
    file = tmp_path / "out" / f"{target}.yaml"
    contents = list(yaml.safe_load_all(file.read_text()))
    *way, last = path
    inner = contents[number]
    for step in way:
        inner = inner[step]
    inner[last] = value
    file.write_text(yaml.safe_dump_all(contents))
    code, said = check(tmp_path / "out")
    assert code == 1
    assert says in said
