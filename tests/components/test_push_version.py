"""Pushes by several processes at once; nothing here needs TFX."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crowdzoo.components import serving_folder as module
from crowdzoo.components.serving_folder import copy_model, push_version
from crowdzoo.errors import PipelineError
from crowdzoo.files.version_folders import complete_versions

FILES = ("saved_model.pb", *(f"variables/data-{number}" for number in range(20)))


def write_model(folder, letter):
    """A model of which every file holds one letter, so that a mix of two models can be told."""
    for name in FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(letter * 20_000)
    return folder


def whole(version):
    """Whether a version has every file of one model and of no other."""
    found = sorted(str(path.relative_to(version)) for path in version.rglob("*") if path.is_file())
    return found == sorted(FILES) and len({(version / name).read_text() for name in FILES}) == 1


# pushes two models in turn: the newest version is hardly ever the one that is pushed
PUSHES = """
import sys
from crowdzoo.components.serving_folder import push_version
for number in range(int(sys.argv[4])):
    print(push_version(sys.argv[1 + number % 2], sys.argv[3]).name, flush=True)
"""


def pushing(first, second, serving, times):
    return subprocess.Popen([sys.executable, "-c", PUSHES, first, second, serving, str(times)], stdout=subprocess.PIPE)


def test_processes_that_push_at_once_leave_only_whole_versions_of_one_model(tmp_path):
    models = [write_model(tmp_path / letter, letter) for letter in "abcdef"]
    serving = tmp_path / "serving"
    times = 20
    processes = [pushing(*models[2 * number : 2 * number + 2], serving, times) for number in range(3)]
    said = [process.communicate()[0].decode().split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    found = complete_versions(serving)
    assert all(whole(version) for version in found)
    assert sorted(found) == sorted(serving.iterdir()), "no other folders are left"
    assert {path.name for path in found} == {name for names in said for name in names}
    for names in said:
        assert len(set(names)) == times, "each process pushes its two models in turn"
        assert sorted(names, key=int) == names, "later pushes have higher numbers"


def test_folders_of_killed_pushes_are_removed_by_the_next_but_not_those_in_use(tmp_path):
    model, serving = write_model(tmp_path / "a", "a"), tmp_path / "serving"
    serving.mkdir()
    code = """
import os, shutil, signal, sys
from crowdzoo.components.serving_folder import push_version
def half(source, target, dirs_exist_ok):
    shutil.copy(os.path.join(source, "saved_model.pb"), target)
    print(flush=True)
    signal.pause()
shutil.copytree = half
push_version(*sys.argv[1:])
"""
    busy = subprocess.Popen([sys.executable, "-c", code, model, serving], stdout=subprocess.PIPE)
    try:
        busy.stdout.readline()
        (hidden,) = serving.iterdir()
        first = push_version(model, serving)
        assert set(serving.iterdir()) == {hidden, first}
        assert complete_versions(serving) == [first]
        busy.send_signal(signal.SIGKILL)
        busy.wait()
    finally:
        busy.kill()
        busy.communicate()
    second = push_version(write_model(tmp_path / "b", "b"), serving)
    assert set(serving.iterdir()) == {first, second}
    assert whole(first)
    assert whole(second)


def without_locks(descriptor, operation):
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


def test_without_locks_a_version_is_never_replaced(tmp_path, monkeypatch):
    model, serving = write_model(tmp_path / "a", "a"), tmp_path / "serving"
    monkeypatch.setattr(module.fcntl, "flock", without_locks)
    rename, raced = Path.rename, []

    def another_was_first(source, target):
        if not raced:
            raced.append(target)
            write_model(target, "b")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", another_was_first)
    version = push_version(model, serving)
    assert complete_versions(serving) == [*raced, version]
    assert int(version.name) == int(raced[0].name) + 1
    assert [path.joinpath("saved_model.pb").read_text()[0] for path in (*raced, version)] == ["b", "a"]


def test_a_model_that_another_process_pushed_in_the_meantime_is_not_pushed_twice(tmp_path, monkeypatch):
    model, serving = write_model(tmp_path / "a", "a"), tmp_path / "serving"
    copytree = shutil.copytree

    def copies_late(source, target, **options):
        monkeypatch.undo()
        push_version(model, serving)
        return copytree(source, target, **options)

    monkeypatch.setattr(module.shutil, "copytree", copies_late)
    assert [push_version(model, serving)] == complete_versions(serving)


@pytest.mark.parametrize("call", [push_version, copy_model])
def test_a_full_disk_is_one_line_that_names_the_folder_and_nothing_is_left(tmp_path, monkeypatch, call):
    model, serving = write_model(tmp_path / "a", "a"), tmp_path / "serving"

    def full(source, target, **_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(PipelineError) as caught:
        call(model, serving)
    assert str(caught.value).startswith(f"{serving}: the model cannot be copied there: {serving}")
    assert "No space left on device (20 more files likewise)" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "[(" not in str(caught.value)
    if call is push_version:
        assert list(serving.iterdir()) == []
