"""What a configuration cannot know about itself: whether its files have the right columns, and its names exist."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from crowdzoo import datasets
from crowdzoo.data.instance_kinds import IMAGES, TEXTS
from crowdzoo.errors import ConfigError, DataError, did_you_mean, short_repr, unknown
from crowdzoo.files.paths import local_path
from crowdzoo.files.regular import check_regular
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.config.sections import DataConfig
from crowdzoo.reading.instances.images import image_paths, read_image_table
from crowdzoo.reading.instances.table import find_instance_columns
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.naming import find_columns
from crowdzoo.reading.tables.suffixes import column_names
from crowdzoo.report.report_page import Condition
from crowdzoo.training.bases import is_own, own_files
from crowdzoo.training.methods import check_method

# Endings of a file's name, and columns that it needs
_File = tuple[tuple[str, ...], tuple[str, ...]]
_TEXT: _File = (("",), ())  # files of sentences are no tables
_TABLES: dict[str, _File] = {
    "annotations": (
        (".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".zip"),
        ("task", "annotator", "label"),
    ),
    "instances": ((".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".zip"), ("task",)),
    "gold": ((".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".zip"), ("left", "right", "gold")),
}
_OF_PAIRS = ("left", "right", "annotator", "label")  # columns of annotations that compare tasks


def setting_problems(config: PipelineConfig) -> list[str]:
    """Checks names of methods and their arguments.

    Args:
        config: a configuration whose own values are in order.

    Returns:
        One sentence for each problem: key, value, what is wrong, the way out.
    """
    given = config.aggregation
    return [
        *_problems("aggregation", config.label_kind.create_aggregator, given.method, **given.arguments),
        *_method_problems(config),
        *_report_problems(config),
    ]


def outside_problems(config: PipelineConfig) -> list[str]:
    """Checks a configuration against the files that it names, of which only the heads are read.

    Args and returns: as `setting_problems`.
    """
    return [*_file_problems(config), *_data_problems(config)]


def _problems(section: str, check: Callable[..., Any], *given: Any, **named: Any) -> list[str]:
    """What a check of a section finds wrong; the first thing."""
    try:
        check(*given, **named)
    except ConfigError as error:
        text = str(error).removeprefix("training: ")
        return [f"{section}: {text}" if text.endswith((".", "?")) else f"{section}: {text}."]
    return []


def _method_problems(config: PipelineConfig) -> list[str]:
    problems = _problems("model", own_files, config.base) if is_own(config.base) else []
    named = config.method.name, config.method.arguments, config.kind
    problems = problems or _problems("method", check_method, *named) or _problems("model", lambda: config.settings)
    if problems:
        return problems
    if config.method.arguments.get("confidence"):
        return [
            "method: confidence is for a training from annotations in memory, and the pipeline trains from files of "
            "labels without it. Remove it here, and train with crowdzoo train --set confidence=true; the section "
            "aggregation takes it, with dawid-skene or majority-vote."
        ]
    return []


def _report_problems(config: PipelineConfig) -> list[str]:
    if not config.has_page:
        return ["report.fail_if: needs the page: remove report.page."] if config.report.fail_if else []
    found = (_problems("report.fail_if", Condition.parse, text, config.kind) for text in config.report.fail_if)
    return [problem for problems in found for problem in problems]


def _file_problems(config: PipelineConfig) -> list[str]:
    problems = []
    for key, path in config.model_files.items():
        try:
            check_regular(local_path(path))
        except (ConfigError, DataError) as error:
            problems.append(f"{key}: {error}")
    return problems


def _data_problems(config: PipelineConfig) -> list[str]:
    data, kind, instances = config.data, config.label_kind, config.instances
    if data.dataset is not None:
        if not datasets.has(data.dataset, kind.name):
            return [f"data: {unknown('dataset', data.dataset, datasets.names(kind.name))}"]
        if instances is not datasets.instances_of(data.dataset):
            named, way_out = short_repr(data.dataset), f"base {config.base} needs a file of them"
            held = datasets.instances_of(data.dataset).name
            return [f"data.dataset: {named} has {held} and no {instances.name}; {way_out}."]
        return []
    problems = []
    for key in kind.inputs:
        path = getattr(data, key)
        if path is None:
            continue
        if key == "instances" and instances == IMAGES:
            problems += _image_problems(path, data)
            continue
        export = key == "annotations" and data.platform is not None
        own_gold = key == "gold" and bool(kind.gold_reading)  # which the kind reads: an export, too, or a table
        suffixes, needed = _TEXT if export or own_gold or kind.labels.has_positions else _TABLES[key]
        if key == "annotations" and kind.labels.has_pairs:
            needed = _OF_PAIRS
        elif key == "annotations" and data.wide:
            needed = needed[:1]
        if key == "instances" and instances == TEXTS:
            needed = (*needed, "text")
        try:
            if not (path.is_dir() and (export or own_gold)):
                _check_file(path, suffixes)
            if export:
                text = data.layout.encoding, data.layout.separator
                Export(path, str(data.platform), kind.name, data.field, None, *text)
            problem = _column_problem(_our_columns(path, key, needed, data), needed) if needed else None
        except DataError as error:  # names the file itself
            problems.append(f"data.{key}: {error}")
        except ConfigError as error:
            problems.append(f"data.platform: {error}")
        else:
            problems += [] if problem is None else [f"data.{key}: {path} {problem}"]
    return problems


def _image_problems(path: Path, data: DataConfig) -> list[str]:
    """What is wrong with a folder or a table of images, none of which is opened; one that is missing is found."""
    try:
        if not path.is_dir():
            _check_file(path, _TABLES["instances"][0])
        table = read_image_table(path, data.instance_layout)
        names, paths = table.names("image"), image_paths(table)
        missing = [place for place, image in enumerate(paths) if not image.exists()]
        table.complain(missing, "image", names, "does not exist. Correct the path, or leave the task out.")
    except DataError as error:
        return [f"data.instances: {error}"]
    return []


def _check_file(path: Path, suffixes: tuple[str, ...]) -> None:
    if not path.parent.is_dir():
        raise DataError(f"{path} does not exist, nor does the folder {path.parent}.")
    check_regular(path)
    if not path.name.endswith(suffixes):
        raise DataError(f"{path} has an unknown ending: choose one of {', '.join(suffixes)}.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty.")


def _our_columns(path: Path, key: str, needed: tuple[str, ...], data: DataConfig) -> list[str]:
    """Names of a file's columns, ours where they are found."""
    name = str(path)
    if key == "instances":
        header = column_names(path, data.instance_layout)
        found, _ = find_instance_columns(name, header, data.instance_layout)
    elif key == "gold":  # read by its names alone
        return list(column_names(path, Layout()))
    else:
        header = column_names(path, data.layout)
        found, _ = find_columns(name, header, needed, data.layout)
    ours = {theirs: column for column, theirs in found.items()}
    return [ours.get(each, each) for each in header]


def _column_problem(columns: list[str], needed: Iterable[str]) -> str | None:
    names = {"annotator" if name == "worker" else name for name in columns}
    missing = [name for name in needed if name not in names]
    if not missing:
        return None
    free = [name for name in columns if name not in needed]
    hints = [did_you_mean(name, free, 0.5) for name in missing]
    wanted = " and ".join(f"'{name}'" for name in missing)
    return f"has no column {wanted} among {', '.join(short_repr(name) for name in columns[:10])}.{''.join(hints)}"
