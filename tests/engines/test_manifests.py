"""Files of `crowdzoo deploy` fit the official schemas of Kubernetes, KServe and Docker Compose."""

import subprocess
import sys
from pathlib import Path

import pytest

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
