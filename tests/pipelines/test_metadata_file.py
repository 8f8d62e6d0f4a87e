"""The metadata's file before a run: who has it locked, and whether it can be used. No TFX here."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from crowdzoo.errors import PipelineError
from crowdzoo.pipelines import metadata_file
from crowdzoo.pipelines.metadata_file import check_metadata

LOCKS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path):
    """A folder after two executions, with the tables that are looked at."""
    connection = sqlite3.connect(tmp_path / "metadata.sqlite", isolation_level=None)
    connection.execute("CREATE TABLE MLMDEnv (schema_version INTEGER)")
    connection.execute("CREATE TABLE Execution (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO Execution VALUES (1), (2)")
    connection.close()
    for number in ("1", "2"):
        (tmp_path / "artifacts" / "Trainer" / "model" / number).mkdir(parents=True)
    return tmp_path


@pytest.fixture
def locked(root, monkeypatch):
    """A process that has the store locked, which is said soon."""
    monkeypatch.setattr(metadata_file, "SAY_AFTER", 0.1)
    with subprocess.Popen(
        [sys.executable, "-c", LOCKS, root / "metadata.sqlite"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_a_new_folder_and_a_store_that_knows_its_artifacts_pass_in_silence(root, tmp_path_factory):
    said = []
    check_metadata(root, said.append)
    check_metadata(tmp_path_factory.mktemp("new"), said.append)
    assert said == []


def test_a_store_that_another_process_has_locked_is_waited_for_with_a_line_and_given_up(root, locked, monkeypatch):
    monkeypatch.setattr(metadata_file, "GIVE_UP_AFTER", 0.3)
    said = []
    with pytest.raises(PipelineError, match=r"metadata.sqlite: locked by .*process.* for 0 seconds"):
        check_metadata(root, said.append)
    (line,) = said
    assert "metadata.sqlite, which" in line
    if sys.platform == "linux":
        assert f"process {locked.pid} (python" in line


def test_a_store_that_is_unlocked_in_time_is_used(root, locked):
    check_metadata(root, lambda _: locked.stdin.close())


@pytest.mark.parametrize("what", ["removed", "emptied", "older"])
def test_results_of_runs_that_the_store_does_not_know_are_not_overwritten(root, what):
    path = root / "metadata.sqlite"
    if what == "removed":
        path.unlink()
    elif what == "emptied":
        path.write_bytes(b"")
    else:
        (root / "artifacts" / "Trainer" / "model" / "3").mkdir()
    with pytest.raises(PipelineError, match=r"has results of runs that are not in .*metadata.sqlite"):
        check_metadata(root, print)
    assert (root / "artifacts" / "Trainer" / "model" / "1").is_dir()


def without_its_table(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE MLMDEnv")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(b"nonsense" * 1000), "file is not a database"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000] + b"\xff" * 3000), "malformed|corrupt|page|disk image"),
        (without_its_table, "a database of something else"),
        (lambda path: (path.unlink(), path.mkdir()), "unable to open database file"),
    ],
)
def test_a_damaged_store_is_named_with_what_to_do(root, damage, reason):
    damage(root / "metadata.sqlite")
    with pytest.raises(PipelineError, match=rf"metadata.sqlite: not a sound .*({reason}).*\). Move it"):
        check_metadata(root, print)
