"""A push onto a disk that is full, by a process of its own."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

# copies a model into a serving folder on a disk on which no file may have more bytes than this
PUSH = """
import resource, sys
from crowdzoo.components.serving_folder import push_version
from crowdzoo.errors import PipelineError
most = int(sys.argv[3])
if most:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    print(push_version(sys.argv[1], sys.argv[2]).name)
except PipelineError as error:
    sys.exit(str(error))
"""


@contextmanager
def small_disk(folder, _):
    """A disk of 40 KB, of which the push sees the end; skipped where mounting is not allowed."""
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk cannot be mounted here: {error}")
    try:
        yield [0]
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def short_files(folder, size):
    yield [size]


@pytest.mark.parametrize(("limit", "says"), [(small_disk, "No space left"), (short_files, "File too large")])
def test_a_push_onto_a_full_disk_says_so_and_leaves_nothing_behind(tmp_path, pets, limit, says):
    model, folder = pets.folder / "1", tmp_path / "served"
    folder.mkdir()
    largest = max(path.stat().st_size for path in model.rglob("*") if path.is_file())
    with limit(folder, largest // 2) as most:
        (folder / "notes").write_text("kept")
        push = [sys.executable, "-c", PUSH, model, folder, *map(str, most)]
        failed = subprocess.run(push, capture_output=True, text=True)
        assert failed.returncode == 1
        assert failed.stderr.startswith(f"{folder}: the model cannot be copied there: ")
        assert says in failed.stderr
        assert failed.stderr.count("\n") == 1
        assert [path.name for path in folder.iterdir()] == ["notes"]
    again = subprocess.run([*push[:-1], "0"], capture_output=True, text=True, check=True)
    assert (folder / again.stdout.strip() / "saved_model.pb").read_bytes() == (model / "saved_model.pb").read_bytes()
