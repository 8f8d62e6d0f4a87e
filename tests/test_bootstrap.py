"""The set-up finds a Python that is not first on the PATH, and says clearly what is missing."""

import importlib.util
import re
import stat
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "bootstrap.py")
bootstrap = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bootstrap)


def fake_python(path, version):
    """A program that answers as an interpreter of that version would; version None makes one that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "exit 127" if version is None else f'case "$2" in *version_info*) echo {version};; *) echo True;; esac'
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def empty_machine(tmp_path, monkeypatch):
    """No Python anywhere but in the folders of the test."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(bootstrap, "SYSTEM_FOLDERS", ())
    return tmp_path


@pytest.mark.parametrize(
    ("libc", "first"), [(("glibc", "2.36"), "3.10"), (("glibc", "2.38"), "3.10"), (("glibc", "2.39"), "3.13")]
)
def test_the_c_library_decides_on_the_versions(libc, first, monkeypatch):
    monkeypatch.setattr(bootstrap.platform, "libc_ver", lambda: libc)
    monkeypatch.setattr(bootstrap.sys, "platform", "linux")
    versions, why = bootstrap.wanted_versions()
    assert versions[0] == first
    assert libc[1] in why


def test_the_wheels_of_the_lock_need_the_c_library_that_the_set_up_asks_for():
    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")
    for version in bootstrap.MODERN:
        tag = "cp" + version.replace(".", "")
        wheels = re.findall(
            rf"/(?:ml_metadata|tfx_bsl|tensorflow_data_validation)-1\.21\.0-{tag}-(\S+)_x86_64\.whl", lock
        )
        linux = [re.findall(r"manylinux_(\d+)_(\d+)", wheel) for wheel in wheels]
        assert len(linux) == 3
        lowest = [min((int(first), int(second)) for first, second in tags) for tags in linux]
        assert max(lowest) == bootstrap.MODERN_GLIBC


def test_a_python_kept_by_pyenv_is_found_though_it_is_not_on_the_path(empty_machine):
    older = fake_python(empty_machine / ".pyenv/versions/3.10.4/bin/python3.10", "3.10")
    newer = fake_python(empty_machine / ".pyenv/versions/3.10.13/bin/python3.10", "3.10")
    fake_python(empty_machine / ".pyenv/versions/3.12.1/bin/python3.12", "3.12")
    assert bootstrap.find_python(("3.10",)) == newer != older


def test_the_first_wanted_version_that_is_there_wins(empty_machine):
    fake_python(empty_machine / "bin/python3.10", "3.10")
    modern = fake_python(empty_machine / "bin/python3.11", "3.11")
    assert bootstrap.find_python(("3.13", "3.12", "3.11", "3.10")) == modern


def test_without_a_python_the_message_says_what_to_install(empty_machine):
    uv = fake_python(empty_machine / "uv", None)
    with pytest.raises(SystemExit, match=r"Python 3.10 is needed \(old glibc\).*pyenv install 3.10"):
        bootstrap.python_for(uv, ("3.10",), "old glibc")


def test_a_stamp_of_other_files_is_not_fresh(tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap, "ROOT", str(tmp_path))
    fake_python(tmp_path / ".venv/bin/python", "3.10")
    (tmp_path / "uv.lock").write_text("one")
    stamp = bootstrap.digest(["uv.lock"], [])
    assert not bootstrap.fresh(".venv", stamp)
    bootstrap.write_stamp(".venv", stamp)
    assert bootstrap.fresh(".venv", stamp)
    (tmp_path / "uv.lock").write_text("two")
    assert not bootstrap.fresh(".venv", bootstrap.digest(["uv.lock"], []))
    (tmp_path / ".venv/bin/python").unlink()
    assert not bootstrap.fresh(".venv", stamp)


def test_the_interpreter_of_these_tests_has_what_the_set_up_asks_for():
    assert bootstrap.version_of(sys.executable) == "{}.{}".format(*sys.version_info[:2])
    assert bootstrap.version_of(str(ROOT / "README.md")) is None
