"""Store of a project's tasks and answers, as last returned by the server."""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from crowdzoo.errors import DataError
from crowdzoo.files.json import FORMAT_VERSION, check_format
from crowdzoo.files.paths import local_path

TASK_KEYS = ("id", "data", "updated_at", "overlap", "is_labeled", "total_annotations")
ANSWER_KEYS: tuple[str, ...] = ("id", "completed_by", "result", "was_cancelled", "ground_truth", "lead_time")
ANSWER_KEYS += ("created_at", "updated_at", "parent_prediction")


class Store:
    """Tasks of one project in an SQLite file. A `with` block is a transaction.

    Args:
        path: path of the file, created if missing; None keeps everything in memory.

    Raises:
        DataError: the file is not such a store, or a later release wrote it.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None):
        name = ":memory:" if path is None else os.fspath(local_path(path))
        self._database = sqlite3.connect(name, isolation_level=None)
        try:
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            check_format(version or None, name)
            self._database.executescript(
                "CREATE TABLE IF NOT EXISTS tasks(id INTEGER PRIMARY KEY, total INTEGER, content TEXT);"
                "CREATE TABLE IF NOT EXISTS facts(name TEXT PRIMARY KEY, value TEXT);"
                f"PRAGMA user_version = {FORMAT_VERSION};"
            )
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise DataError(f"{name}: {error}. Remove the file; the next round pulls the project again.") from None

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def __enter__(self) -> "Store":
        self._database.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._database.execute("COMMIT" if kind is None else "ROLLBACK")

    def fact(self, name: str) -> Any:
        """The value that `set_facts` stored under a name, or None."""
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set_facts(self, **facts: Any) -> None:
        """Stores JSON values by name."""
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        self._database.executemany("REPLACE INTO facts VALUES (?, ?)", rows)

    def totals(self, low: int = 0, high: int = 1 << 60) -> tuple[int, int]:
        """Number of the tasks whose ids are in this range, and the sum of their counters of answers."""
        command = "SELECT COUNT(*), COALESCE(SUM(total), 0) FROM tasks WHERE id BETWEEN ? AND ?"
        return self._database.execute(command, (low, high)).fetchone()

    def ids(self, low: int = 0, high: int = 1 << 60) -> list[int]:
        """Ids of the tasks in this range, in order."""
        rows = self._database.execute("SELECT id FROM tasks WHERE id BETWEEN ? AND ? ORDER BY id", (low, high))
        return [number for (number,) in rows]

    def tasks(self) -> Iterator[dict[str, Any]]:
        """All tasks in order of their ids, with the keys `TASK_KEYS` and "annotations"."""
        for (content,) in self._database.execute("SELECT content FROM tasks ORDER BY id"):
            yield json.loads(content)

    def put(self, tasks: Iterable[Mapping[str, Any]]) -> Counter[str]:
        """Stores tasks as returned by the server, replacing earlier versions.

        Returns:
            Number of "new tasks", "changed tasks", "new answers", "changed answers" and "deleted answers".
        """
        changes: Counter[str] = Counter()
        for task in tasks:
            answers = [{key: answer.get(key) for key in ANSWER_KEYS} for answer in task.get("annotations", ())]
            kept = {**{key: task.get(key) for key in TASK_KEYS}, "annotations": answers}
            row = self._database.execute("SELECT content FROM tasks WHERE id = ?", (task["id"],)).fetchone()
            before = {"annotations": []} if row is None else json.loads(row[0])
            copied = {answer["id"]: answer["parent_prediction"] for answer in before["annotations"]}
            for answer in answers:  # the server deletes it with the prediction
                answer["parent_prediction"] = answer["parent_prediction"] or copied.get(answer["id"])
            changes += Counter(_changed(before, kept))
            values = (task["id"], task.get("total_annotations") or 0, json.dumps(kept, ensure_ascii=False))
            self._database.execute("REPLACE INTO tasks VALUES (?, ?, ?)", values)
        return changes

    def delete(self, ids: Iterable[int]) -> Counter[str]:
        """Deletes tasks; returns the number of "deleted tasks" and "deleted answers"."""
        changes: Counter[str] = Counter()
        for number in ids:
            content = self._database.execute("SELECT content FROM tasks WHERE id = ?", (number,)).fetchone()[0]
            changes += Counter({"deleted tasks": 1, "deleted answers": len(json.loads(content)["annotations"])})
            self._database.execute("DELETE FROM tasks WHERE id = ?", (number,))
        return changes


def time_of(text: str) -> datetime:
    """Parses a time in the server's format."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yields the changes of a task and its answers."""
    if "data" not in before:
        yield "new tasks"
    elif before["data"] != now["data"]:
        yield "changed tasks"
    earlier = {answer["id"]: answer for answer in before["annotations"]}
    for answer in now["annotations"]:
        known = earlier.pop(answer["id"], None)
        if known is None:
            yield "new answers"
        elif known != answer:
            yield "changed answers"
    yield from ["deleted answers"] * len(earlier)
