"""Checks of a configuration against files and registries: columns of files, and names of methods."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crowdzoo import datasets
from crowdzoo.data.instance_kinds import IMAGES, TABLES
from crowdzoo.errors import ConfigError, DataError, DataWarning, short_repr, unknown
from crowdzoo.files.paths import local_path
from crowdzoo.files.regular import check_regular
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.config.sections import placed
from crowdzoo.reading.instances.images import image_paths, read_image_table
from crowdzoo.reading.instances.readers import reader_of
from crowdzoo.reading.instances.table import read_table
from crowdzoo.reading.instances.tables import tables
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.tables.options import Rules
from crowdzoo.reading.tables.suffixes import source_of
from crowdzoo.report.page import Condition
from crowdzoo.training.bases import is_own, own_files
from crowdzoo.training.methods import check_method

# Arguments of `Rules.of` in the section data
_RULES = ("classes", "low", "high", "on_bad_rows", "on_duplicate", "exclude")


def setting_problems(config: PipelineConfig) -> list[str]:
    """Checks names of methods and their arguments, and the rules of reading.

    Args:
        config: a configuration with valid values.

    Returns:
        One sentence for each problem: key, value, what is wrong, the fix.
    """
    aggregation = config.aggregation
    rules = _problems("data", Rules.of, config.label_kind.labels, {}, **reading_rules(config))
    return [
        *rules,
        *_problems("aggregation", config.label_kind.aggregation.create, aggregation.method, **aggregation.arguments),
        *([] if rules else _method_problems(config)),  # which include the scale
        *_report_problems(config),
    ]


def outside_problems(config: PipelineConfig) -> list[str]:
    """Checks a configuration against the heads of the files that it names.

    Args and returns: as `setting_problems`.
    """
    return [*_file_problems(config), *_data_problems(config)]


def reading_rules(config: PipelineConfig) -> dict[str, Any]:
    """Arguments of `Rules.of` for the kind's reader."""
    return {name: getattr(config.data, name) for name in _RULES if name in config.label_kind.options.reading}


def _problems(section: str, check: Callable[..., Any], *args: Any, **named: Any) -> list[str]:
    """The first problem that a check of a section finds."""
    try:
        check(*args, **named)
    except ConfigError as error:
        text = placed(f"{section}: ", str(error).removeprefix("training: "))
        return [text if text.endswith((".", "?")) else f"{text}."]
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
    results = (_problems("report.fail_if", Condition.parse, text, config.kind) for text in config.report.fail_if)
    return [problem for problems in results for problem in problems]


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
            named, fix = short_repr(data.dataset), f"base {config.base} needs a file of them"
            instances_there = datasets.instances_of(data.dataset).name
            return [f"data.dataset: {named} has {instances_there} and no {instances.name}; {fix}."]
        return []
    problems = []
    for key in kind.options.inputs:
        if (path := getattr(data, key)) is None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # which the reader raises when the whole file is read
                _read_head(key, path, config)
        except DataError as error:  # its message names the file
            problems.append(f"data.{key}: {error}")
        except ConfigError as error:
            problems.append(placed(f"data.{'platform' if data.platform else key}: ", str(error)))
    return problems


def _read_head(key: str, path: Path, config: PipelineConfig) -> None:
    """Reads the head of an input file: its columns, or the names of its images."""
    data, kind = config.data, config.label_kind
    if key == "annotations" and data.platform is not None:
        Export(path, data.platform, kind.name, data.field, layout=data.layout)
    elif "instances" not in kind.options.inputs or (key == "gold" and kind.options.gold):
        if not path.is_dir():  # exports and folders are not tables
            check_regular(path)
    elif key == "annotations":
        source = source_of(path, kind.name, data.layout)
        source.match(source.read_header())
    elif key == "gold":
        read_table(path, ("left", "right", "gold"), usual=("gold",), most_rows=1)
    elif config.instances == IMAGES:
        table = read_image_table(path, data.instance_layout)
        missing = [not image.exists() for image in image_paths(table)]
        table.refuse("image", missing, "does not exist. Correct the path, or leave the task out.")
    else:
        reader = reader_of(tables(config.model.inputs) if config.instances == TABLES else config.instances)
        read_table(path, reader.wanted, reader.check_header, data.instance_layout, as_text=reader.as_text, most_rows=1)
