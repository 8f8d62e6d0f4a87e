import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LOCK, HASHES = (ROOT / "uv.lock").read_text(), (ROOT / "image.txt").read_text()


def test_every_download_of_the_image_is_checked_against_a_hash():
    pinned = re.search(r'UV_VERSION = "(.+)"', (ROOT / "bootstrap.py").read_text())
    locked = dict(re.findall(r'^name = "(.+)"\nversion = "(.+)"', LOCK, re.MULTILINE))
    hashed = dict(re.findall(r"^(\S+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}", HASHES, re.MULTILINE))
    assert hashed.keys() == {"setuptools", "tensorflow", "tensorflow-cpu", "uv", "wheel"}
    assert (hashed["uv"], hashed["setuptools"]) == (pinned[1], locked["setuptools"])
    assert hashed["tensorflow"] == hashed["tensorflow-cpu"]
    assert hashed["tensorflow"] in re.findall(r'^name = "tensorflow"\nversion = "(.+)"', LOCK, re.MULTILINE)
    installs = re.findall(r"pip install (.+)", DOCKERFILE)
    assert [("--require-hashes" in line, line == "--no-deps .") for line in installs] == [
        (True, False), (True, False), (False, True),
    ]  # fmt: skip
    assert "UV_BUILD_CONSTRAINT=/src/image.txt" in DOCKERFILE, "and what source distributions are built with"
    assert "uv export -q --frozen" in DOCKERFILE
    assert DOCKERFILE.count("\\\n    --extra pipeline --extra text --extra images --extra s3") == 1


def test_the_base_images_have_digests_and_the_same_python():
    bases = re.findall(r"^ARG \w*BASE=(\S+)", DOCKERFILE, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["$BUILD_BASE", "$BASE"]
    assert all(re.fullmatch(r"python:3\.10-(slim-)?bookworm@sha256:[0-9a-f]{64}", base) for base in bases)


def test_what_is_left_out_of_the_image_is_in_the_lock():
    locked = re.findall(r'^name = "(.+)"', LOCK, re.MULTILINE)
    left_out = set(re.findall(r"--no-emit-package (\S+?)[\s\"]", DOCKERFILE))
    assert "tensorflow" in left_out
    assert left_out <= {*locked}


def test_the_image_runs_as_a_user_that_is_not_root_and_may_write_where_kubeflow_copies_artifacts():
    last = DOCKERFILE.split("FROM ")[-1]
    user = re.findall(r"^USER (\d+)$", last, re.MULTILINE)
    assert user == ["1000"]
    assert f"-o {user[0]}" in last
    assert re.search(r"install .* /gcs /minio /s3$", last, re.MULTILINE)


@pytest.mark.parametrize("copied", re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE))
def test_what_is_copied_into_the_image_is_there_and_not_left_out_by_dockerignore(copied):
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    for name in copied.split():
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignore
