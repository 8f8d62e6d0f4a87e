"""What may be opened for reading, and what goes wrong meanwhile."""

import gzip
import os

import pytest

from crowdzoo import Annotations
from crowdzoo.errors import DataError
from crowdzoo.files.regular import check_regular, open_regular
from crowdzoo.instances import read_instances
from crowdzoo.sequences import read_conll, read_spans


def test_only_regular_files_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    os.symlink("/dev/zero", tmp_path / "zero.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "answers.csv").write_text("")
    os.symlink("answers.csv", tmp_path / "link.csv")
    for name, reason in (
        ("pipe.csv", "is a pipe"),
        ("zero.csv", "is a device"),
        ("folder.csv", "is a folder. Name a file in it"),
        ("answer.csv", "does not exist. Did you mean 'answers.csv'?"),
        ("answers.csv/a.csv", "does not exist"),
        ("a\0b.csv", "cannot be read"),
        ("x" * 300, "cannot be read"),
    ):
        with pytest.raises(DataError, match=reason):
            check_regular(tmp_path / name)
    check_regular(tmp_path / "link.csv")


@pytest.mark.parametrize("read", [Annotations.read, read_instances, read_conll, read_spans])
def test_no_reader_waits_for_a_pipe(read, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="is a pipe"):
        read(tmp_path / "pipe.csv")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes on another user's rights")
def test_a_file_without_permission_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("task")
    path.chmod(0)
    os.seteuid(65534)
    try:
        with pytest.raises(DataError, match=r"a\.csv'? cannot be read: Permission denied"), open_regular(path):
            pass
    finally:
        os.seteuid(0)


def test_a_damaged_gzip_file_is_named(tmp_path):
    path = tmp_path / "a.csv.gz"
    whole = gzip.compress(os.urandom(1000), mtime=0)
    for content, reason in (
        (whole[:-50], "is cut off"),
        (whole[:-8] + b"\0" * 8, "not a sound"),
        (b"x", "not a sound"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=reason), open_regular(path) as file:
            file.read()
