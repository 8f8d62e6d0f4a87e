"""What may be opened for reading, and what goes wrong meanwhile."""

import io
import os
import zipfile

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


def broken_archive(kind):
    """A zip archive of one table, with one fault."""
    made = io.BytesIO()
    method = zipfile.ZIP_LZMA if kind == "stream" else zipfile.ZIP_STORED
    with zipfile.ZipFile(made, "w", method) as archive:
        member = zipfile.ZipInfo("a.csv")
        member.compress_type = method
        member.filename = "" if kind == "empty" else "a.csv"
        archive.writestr(member, "task,annotator,label\n1,ann,cat\n" * 20)
    content = bytearray(made.getvalue())
    if kind == "stream":  # after the header of LZMA's own
        start = content.index(b"a.csv") + 5 + 9
        content[start : start + 12] = bytes(byte ^ 0xFF for byte in content[start : start + 12])
    if kind == "name":
        for mark, flags in ((b"PK\x03\x04", 7), (b"PK\x01\x02", 9)):
            content[content.index(mark) + flags] |= 8  # says that names are UTF-8
        content = content.replace(b"a.csv", b"\xff.csv")
    if kind == "local name":  # alone, before the content
        content[7] |= 8
        content[30] = 0xFF
    return bytes(content)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("stream", "not a sound zip archive"),
        ("name", "not a sound zip archive .*can't decode byte 0xff"),
        ("local name", "not a sound zip archive .a name in it is not UTF-8"),
        ("empty", "a file in the zip archive has no name"),
    ],
)
def test_a_broken_archive_is_refused_as_a_file_and_as_an_export(tmp_path, kind, reason):
    path = tmp_path / "a.zip"
    path.write_bytes(broken_archive(kind))
    for options in ({}, {"platform": "toloka"}):
        with pytest.raises(DataError, match=f"a.zip: {reason}"):
            Annotations.read(path, **options)
