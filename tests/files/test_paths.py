"""What may be an output is decided before any work is done."""

import os
from pathlib import Path

import pytest

from crowdzoo.errors import ConfigError
from crowdzoo.files.paths import check_output_file, check_output_folder, local_path

pytestmark = pytest.mark.usefixtures("here")


def refusal(check, *args, **kwargs):
    with pytest.raises(ConfigError) as refused:
        check(*args, **kwargs)
    return str(refused.value)


@pytest.mark.parametrize("name", ["my results", "Köln", "50%", "a[1]", "~", "a\nb", "-", "x" * 255])
def test_any_name_of_a_file_is_a_local_path(name):
    assert local_path(name) == Path.cwd() / name
    check_output_file(name, "--out")
    check_output_folder(f"a/{name}", "--out")
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "--out is empty"),
        ("a\0b", r"NUL character. Received: 'a\x00b'"),
        ("gs://bucket/a.csv", "gs:// paths are not supported"),
        (Path("s3://bucket/a.csv"), "s3:// paths are not supported"),
        ("a\ud800b", "cannot be encoded"),
    ],
)
def test_what_is_no_local_path_is_refused(path, says):
    for check in (check_output_file, check_output_folder):
        assert says in refusal(check, path, "--out")


def test_places_where_a_file_cannot_be_written_are_refused():
    os.mkdir("folder")
    os.mkfifo("pipe")
    os.symlink("nowhere", "dangling")
    os.symlink("loop", "loop")
    Path("file").write_text("text")
    for path, says in [
        (".", "--out .: is a folder"),
        ("folder", "is a folder"),
        ("new/", "is a folder"),
        ("pipe", "is a pipe, not a regular file"),
        ("/dev/null", "is a device, not a regular file"),
        ("dangling", "is a link to nowhere, which does not exist"),
        ("file/a", "file is a file, not a folder"),
        ("loop", "symbolic links"),
        ("x" * 256, "too long"),
        ("/proc/a", "/proc cannot be written to"),
    ]:
        assert says in refusal(check_output_file, path, "--out"), path


def test_places_where_a_folder_cannot_be_made_are_refused():
    os.symlink("nowhere", "dangling")
    Path("file").write_text("text")
    Path("filled").mkdir()
    Path("filled/a").write_text("text")
    for path, says in [
        (".", "is the working directory or above it"),
        ("..", "is the working directory or above it"),
        ("file", "is a file, not a folder"),
        ("file/a", "is a file, not a folder"),
        ("dangling", "is a link to nowhere"),
        ("filled", "exists and is not empty"),
        ("/proc/a/b", "/proc cannot be written to"),
    ]:
        assert says in refusal(check_output_folder, path, "--out"), path


def test_a_file_is_replaced_where_it_is_empty_own_or_with_force():
    Path("other").write_text("text")
    Path("empty").touch()
    own = {"is_own": lambda path: path.read_text() == "mine"}
    assert "exists and was not written by this command" in refusal(check_output_file, "other", "--out", **own)
    check_output_file("other", "--out", force=True, **own)
    check_output_file("empty", "--out", **own)
    Path("other").write_text("mine")
    check_output_file("other", "--out", **own)
    os.symlink("other", "link")
    check_output_file("link", "--out", **own)


def test_an_input_is_never_replaced_through_whatever_name():
    Path("input").write_text("text")
    Path("folder").mkdir()
    os.symlink("input", "link")
    os.link("input", "second")
    for path in ("input", "./folder/../input", "link", "second"):
        assert "is also an input (input)" in refusal(
            check_output_file, path, "--out", inputs=["missing", "input"], force=True
        )


def test_a_folder_is_replaced_only_with_force_and_where_it_is_an_earlier_result():
    Path("out").mkdir()
    check_output_folder("out", "--out")
    Path("out/result").touch()
    own = {"is_own": lambda path: os.listdir(path) == ["result"]}
    assert "with --force" in refusal(check_output_folder, "out", "--out", **own)
    check_output_folder("out", "--out", force=True, **own)
    Path("out/other").touch()
    assert "Name a new folder." in refusal(check_output_folder, "out", "--out", force=True, **own)
