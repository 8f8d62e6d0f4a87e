"""What a configuration cannot know about itself: whether its files have the right columns, and its names exist."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from crowdzoo import datasets
from crowdzoo.aggregation import create
from crowdzoo.errors import ConfigError, did_you_mean
from crowdzoo.files.arrow import open_parquet
from crowdzoo.models.methods import check_method

if TYPE_CHECKING:
    from crowdzoo.pipelines.config import DataConfig, PipelineConfig

__all__ = ["outside_problems"]

_ANNOTATION_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz")
_INSTANCE_SUFFIXES = (".parquet", ".csv", ".csv.gz")


def outside_problems(config: PipelineConfig) -> list[str]:
    """Checks a configuration against the world outside it; only the heads of files are read.

    Args:
        config: a configuration whose own values are in order.

    Returns:
        One sentence for each problem: key, value, what is wrong, the way out.
    """
    return [
        *_aggregation_problems(config),
        *_method_problems(config),
        *_data_problems(config.data, config.task, config.base),
    ]


def _aggregation_problems(config: PipelineConfig) -> list[str]:
    try:
        create(config.aggregation.method, kind=config.task, **config.aggregation.arguments)
    except ConfigError as error:
        return [f"aggregation: {error}"]
    return []


def _method_problems(config: PipelineConfig) -> list[str]:
    try:
        check_method(config.method.name, config.method.arguments, config.task)
    except ConfigError as error:
        return [f"method: {error}"]
    if config.task == "sequence" and config.model.crf and config.method.name == "doctor-net":
        return ["model.crf: True does not go with method doctor-net, which has a softmax for each annotator."]
    return []


def _data_problems(data: DataConfig, task: str, base: str) -> list[str]:
    texts = base == "text-regressor"
    if data.dataset is not None:
        if texts:
            return [f"data.dataset: {data.dataset!r} has features and no texts; base text-regressor needs files with a "
                    "column 'text'."]  # fmt: skip
        known = datasets.names(task)
        if data.dataset in known:
            return []
        return [f"data.dataset: {data.dataset!r} is not one of {', '.join(known)}.{did_you_mean(data.dataset, known)}"]
    if task == "sequence":
        return [
            f"data.{key}: {path} {problem}"
            for key, path in (("annotations", data.annotations), ("gold", data.gold))
            if path is not None and (problem := _file_problem(path, ("",))) is not None
        ]
    problems = []
    for key, path, suffixes, needed in (
        ("data.annotations", data.annotations, _ANNOTATION_SUFFIXES, ("task", "annotator", "label")),
        ("data.instances", data.instances, _INSTANCE_SUFFIXES, ("task", "text") if texts else ("task",)),
    ):
        assert path is not None
        problem = _file_problem(path, suffixes)
        if problem is None:
            try:
                problem = _column_problem(_columns(path), needed)
            except (OSError, ValueError, EOFError) as error:
                problem = f"cannot be read: {(str(error) or type(error).__name__).splitlines()[0]}"
        if problem is not None:
            problems.append(f"{key}: {path} {problem}")
    return problems


def _file_problem(path: Path, suffixes: tuple[str, ...]) -> str | None:
    if path.is_dir():
        return "is a folder; give the file in it."
    if not path.exists():
        near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        where = "" if path.parent.is_dir() else f" Nor is there a folder {path.parent}."
        return f"does not exist.{where}{did_you_mean(path.name, near)}"
    if not path.name.endswith(suffixes):
        return f"has an ending that is not known; use one of {', '.join(suffixes)}."
    if path.stat().st_size == 0:
        return "is empty."
    return None


def _columns(path: Path) -> list[str]:
    """Names of the columns of a table, from its head alone."""
    if path.suffix == ".parquet":
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as raw:
        head = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="").readline()
    if ".jsonl" in path.name:
        first = json.loads(head)
        if not isinstance(first, dict):
            raise ValueError("the first line is not a JSON object")
        return list(first)
    return next(csv.reader([head], delimiter="\t" if ".tsv" in path.name else ","), [])


def _column_problem(columns: list[str], needed: Iterable[str]) -> str | None:
    names = {"annotator" if name == "worker" else name for name in columns}
    missing = [name for name in needed if name not in names]
    if not missing:
        return None
    free = [name for name in columns if name not in needed]
    hints = [
        f" Did you mean '{near[0]}'?" for name in missing if (near := difflib.get_close_matches(name, free, 1, 0.5))
    ]
    wanted = " and ".join(f"'{name}'" for name in missing)
    return f"has no column {wanted} among {', '.join(repr(name) for name in columns[:10])}.{''.join(hints)}"
