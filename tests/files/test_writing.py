"""Files and folders appear complete or not at all, whatever ends their writer."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crowdzoo.aggregation import Aggregation, MajorityVote
from crowdzoo.data.annotations import Annotations
from crowdzoo.files.writing import atomic_file, atomic_folder, atomic_path
from crowdzoo.quality import quality_report
from crowdzoo.sequences import CrowdSequences, read_spans, write_spans

pytestmark = pytest.mark.usefixtures("here")


def write_file(path, text):
    with atomic_file(path) as file:
        file.write(text.encode())


def write_path(path, text):
    with atomic_path(path) as temporary:
        assert temporary.name.endswith(Path(path).suffix)
        temporary.write_text(text)


def write_folder(path, text):
    with atomic_folder(path, replace=True) as temporary:
        (temporary / "part").mkdir()
        (temporary / "part" / "text").write_text(text)


def content(path):
    path = Path(path)
    return (path / "part" / "text" if path.is_dir() else path).read_text()


WRITERS = [write_file, write_path, write_folder]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("name", ["a.txt", "deep/er/my results [50%] ü", "x" * 251 + ".txt"])
def test_what_is_written_replaces_what_was_there(write, name):
    write(name, "old")
    write(name, "new")
    assert content(name) == "new"
    assert os.listdir(Path(name).parent) == [Path(name).name]


@pytest.mark.parametrize("write", WRITERS)
def test_the_old_content_stays_and_nothing_else_where_a_write_fails(write, monkeypatch):
    write("out", "old")
    before = sorted(os.listdir())

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for name in ("out", "new/parents/out"):
        with pytest.raises(OSError, match="No space left") as failed:
            write(name, "new")
        assert failed.value.filename == name
    assert content("out") == "old"
    assert sorted(os.listdir()) == before


def test_a_filled_folder_is_replaced_only_where_that_is_asked_for():
    write_folder("out", "old")
    with pytest.raises(OSError, match="not empty"), atomic_folder("out") as temporary:
        (temporary / "text").write_text("new")
    assert content("out") == "old"
    assert os.listdir() == ["out"]


def test_permissions_stay_and_links_are_followed():
    write_file("a", "old")
    os.chmod("a", 0o640)
    os.mkdir("folder")
    os.symlink("../a", "folder/link")
    write_file("folder/link", "new")
    assert content("a") == "new"
    assert os.stat("a").st_mode & 0o777 == 0o640
    assert os.path.islink("folder/link")
    assert sorted(os.listdir()) == ["a", "folder"]


# Says "ready" in the middle of a write, and waits to be killed.
WRITER = """
import signal, sys, time
from crowdzoo.files.writing import atomic_file, atomic_folder
from crowdzoo.quality import quality_report
from crowdzoo.sequences import CrowdSequences, read_spans, write_spans
if sys.argv[1] == "file":
    with atomic_file("out") as file:
        file.write(b"half")
        file.flush()
        print("ready", flush=True)
        time.sleep(60)
with atomic_folder("out", replace=True) as folder:
    (folder / "text").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("kind", [pytest.param("file", marks=pytest.mark.slow), "folder"])
def test_what_a_killed_writer_left_is_removed_by_the_next_and_a_living_one_is_let_be(kind):
    write = write_file if kind == "file" else write_folder
    write("out", "old")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, kind], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait()
        assert content("out") == "old"
        assert len(os.listdir()) == 3
        write("out", "new")
        assert content("out") == "new"
        assert len(os.listdir()) == 2, "the living one's"
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    write("out", "newer")
    assert os.listdir() == ["out"]


def test_a_folder_whose_replacement_was_killed_between_two_renames_comes_back():
    write_folder("out", "old")
    os.rename("out", ".out.0123456789abcdef.crowdzoo-old")
    Path(".out.fedcba9876543210.crowdzoo-new").mkdir()
    with pytest.raises(OSError, match="not empty"), atomic_folder("out"):
        pass
    assert content("out") == "old"
    assert os.listdir() == ["out"]


@pytest.mark.parametrize("name", ["d/my results", "Köln", "50%", "a[1]", "a:b", "a?b#c"])
def test_everything_that_is_written_takes_any_relative_name(name):
    annotations = Annotations.from_arrays(["a", "a", "b"], ["x", "y", "x"], ["yes", "no", "no"])
    assert Annotations.read(annotations.to_parquet(f"{name}.parquet")) == annotations
    result = MajorityVote().fit(annotations)
    assert Aggregation.from_parquet(result.to_parquet(name)).num_iterations == result.num_iterations
    assert Aggregation.from_parquet(result.to_parquet(name)).num_iterations == result.num_iterations
    report = quality_report(annotations, bootstrap=0)
    for file_format in ("csv", "parquet"):
        report.write(f"{name} {file_format}", file_format)
    sentences = CrowdSequences([["a"]], Annotations.from_arrays(
        ["s"], ["x"], ["O"], kind="sequence", position=[0], classes=["O"]))  # fmt: skip
    write_spans(sentences, f"{name}.jsonl.gz")
    assert len(read_spans(f"{name}.jsonl.gz")) == 1
    left = [path for path in Path().rglob("*") if "crowdzoo-" in path.name]
    assert left == []
