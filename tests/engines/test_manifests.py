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
PLAIN = ["--model", "labelme={place}"]
FULL = [
    *PLAIN, "--label", "stable=1", "--label", "canary=2", "--cpu", "0.5", "--memory-gb", "1.5", "--gpus", "1",
    "--batch", "64", "--user", "65534",
]  # fmt: skip
CLUSTER = ["--replicas", "3", "--max-replicas", "9", "--service-account", "reader"]


def check(*folders):
    python = SCHEMAS / "bin" / "python"
    command = [python, Path(__file__).with_name("check_manifests.py"), *folders]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("target", "place", "words"),
    [
        ("kubernetes", "pvc://models/labelme", FULL + CLUSTER),
        ("kubernetes", "gs://crowd/labelme", PLAIN),
        ("kubernetes", "{served}", PLAIN),
        ("kserve", "s3://crowd/labelme", FULL + CLUSTER),
        ("kserve", "pvc://models", PLAIN),
        ("compose", "{served}", FULL),
        ("compose", "{served}", PLAIN),
    ],
)
def test_the_files_fit_the_official_schemas(target, place, words, tmp_path):
    for version in ("1", "2"):
        (tmp_path / "served" / version).mkdir(parents=True)
        (tmp_path / "served" / version / "saved_model.pb").touch()
    place = place.format(served=tmp_path / "served")
    words = [word.format(place=place) for word in words]
    assert cli.main(["deploy", "--target", target, *words, "--out", str(tmp_path / "out")]) == 0
    code, said = check(tmp_path / "out")
    files = {path.name for path in (tmp_path / "out").glob("*.yaml")}
    assert {line.partition(":")[0] for line in said.splitlines()} == files
    assert code == 0, said


@pytest.mark.parametrize(
    ("target", "file", "path", "value", "says"),
    [
        ("kubernetes", "deployment.yaml", ("spec", "template", "spec", "containers", 0, "imagee"), "x", "imagee"),
        ("kubernetes", "hpa.yaml", ("spec", "maxReplicas"), "many", "maxReplicas"),
        ("kubernetes", "pdb.yaml", ("spec", "max"), 1, "'max' was unexpected"),
        ("kserve", "inferenceservice.yaml", ("spec", "predictor", "model", "storage_uri"), "x", "storage_uri"),
        ("kserve", "inferenceservice.yaml", ("spec", "predictor", "scaleMetric"), "votes", "votes"),
        ("compose", "compose.yaml", ("services", "serving", "readonly"), True, "readonly"),
    ],
)
def test_the_check_finds_what_does_not_fit(target, file, path, value, says, tmp_path):
    (tmp_path / "served" / "1").mkdir(parents=True)
    (tmp_path / "served" / "1" / "saved_model.pb").touch()
    place = tmp_path / "served" if target == "compose" else "gs://crowd/labelme"
    assert cli.main(["deploy", "--target", target, "--model", f"a={place}", "--out", str(tmp_path / "out")]) == 0
    content = yaml.safe_load((tmp_path / "out" / file).read_text())
    *way, last = path
    inner = content
    for step in way:
        inner = inner[step]
    inner[last] = value
    (tmp_path / "out" / file).write_text(yaml.safe_dump(content))
    code, said = check(tmp_path / "out")
    assert code == 1
    assert says in said
