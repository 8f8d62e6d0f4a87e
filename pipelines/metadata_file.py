"""Checks of the file of ML Metadata before a run: locked, damaged, or without existing runs."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from crowdzoo.errors import PipelineError

SAY_AFTER = 3.0
GIVE_UP_AFTER = 60.0


def check_metadata(root: Path, say: Callable[[str], None]) -> None:
    """Checks that a run can use `metadata.sqlite`, and that it contains the runs of all results below `artifacts`.

    Waits while another process has locked it: prints a line after three seconds, and gives up after a minute.

    Args:
        root: folder of metadata and artifacts.
        say: function that prints a line.

    Raises:
        PipelineError: the file is locked, cannot be read or written, is damaged or another kind of file; or `artifacts`
            has results of runs that are not in the file, whose folders TFX would reuse. The message says what to do.
    """
    path = root / "metadata.sqlite"
    newest = 0
    if path.exists():
        try:
            newest = _newest_execution(path, say)
        except sqlite3.Error as error:
            raise PipelineError(
                f"{path}: not a sound metadata store ({error}). Move it away together with {root / 'artifacts'}, or "
                "choose another output.root; the next run then computes everything again."
            ) from error
    folders = (root / "artifacts").glob("*/*/*")
    numbers = [int(folder.name) for folder in folders if folder.name.isascii() and folder.name.isdecimal()]
    if max(numbers, default=0) > newest:
        raise PipelineError(
            f"{root / 'artifacts'}: has results of runs that are not in {path} (it was removed, emptied or replaced "
            "by an older one). Move the folder away, or put the file back, or choose another output.root."
        )


def _newest_execution(path: Path, say: Callable[[str], None]) -> int:
    """The highest number of an execution; 0 without any."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        _wait(connection, path, say)
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict.splitlines()[-1])
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            return 0
        if "MLMDEnv" not in tables:
            raise sqlite3.DatabaseError("a database of something else")
        return connection.execute("SELECT COALESCE(MAX(id), 0) FROM Execution").fetchone()[0]
    finally:
        connection.close()


def _wait(connection: sqlite3.Connection, path: Path, say: Callable[[str], None]) -> None:
    """Waits until no other process has locked the file."""
    started, was_told = time.monotonic(), False
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
        waited = time.monotonic() - started
        if waited >= GIVE_UP_AFTER:
            raise PipelineError(
                f"{path}: locked by {_holders(path)} for {waited:.0f} seconds. Wait until it has ended, or end it."
            )
        if waited >= SAY_AFTER and not was_told:
            say(f"Waiting for {path}, which {_holders(path)} has locked; giving up after {GIVE_UP_AFTER:.0f} seconds …")
            was_told = True
        time.sleep(0.1)


def _holders(path: Path) -> str:
    """Processes that have locked a file, as far as Linux reports them."""
    try:
        inode = str(os.stat(path).st_ino)
        lines = (line.split() for line in Path("/proc/locks").read_text().splitlines())
        processes = {words[4] for words in lines if "->" not in words and words[5].rsplit(":", 1)[-1] == inode}
        named = [f"process {number} ({_command(number)})" for number in sorted(processes, key=int)]
    except (OSError, IndexError, ValueError):
        named = []
    return " and ".join(named) or "another process"


def _command(number: str) -> str:
    return Path("/proc", number, "comm").read_text().strip()
