import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_the_image_is_installed_from_the_lock_by_the_uv_that_made_it():
    pinned = re.search(r'UV_VERSION = "(.+)"', (ROOT / "bootstrap.py").read_text())
    assert re.findall(r"uv==(\S+)", DOCKERFILE) == [pinned[1]]
    syncs = re.findall(r"uv sync (.+)", DOCKERFILE)
    assert len(syncs) == 2
    assert all("--frozen" in line for line in syncs)


def test_what_is_left_out_of_the_image_is_in_the_lock_and_tensorflow_has_its_version():
    locked = dict(re.findall(r'^name = "(.+)"\nversion = "(.+)"', (ROOT / "uv.lock").read_text(), re.MULTILINE))
    assert set(re.findall(r"--no-install-package (\S+?)[\s\"]", DOCKERFILE)) <= locked.keys()
    versions = re.findall(r'^name = "tensorflow"\nversion = "(.+)"', (ROOT / "uv.lock").read_text(), re.MULTILINE)
    assert re.findall(r"\$TENSORFLOW==(\S+)", DOCKERFILE)[0] in versions


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
