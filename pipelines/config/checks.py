"""What a configuration cannot know about itself: whether its files have the right columns, and its names exist."""

from collections.abc import Iterable
from pathlib import Path

from crowdzoo import datasets
from crowdzoo.aggregation import create
from crowdzoo.errors import ConfigError, DataError, did_you_mean, short_repr, unknown
from crowdzoo.files.regular import check_regular
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.config.sections import DataConfig
from crowdzoo.tables.suffixes import column_names
from crowdzoo.training.methods import check_method

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
        *_data_problems(config.data, config.kind, config.base),
    ]


def _aggregation_problems(config: PipelineConfig) -> list[str]:
    try:
        create(config.aggregation.method, kind=config.kind, **config.aggregation.arguments)
    except ConfigError as error:
        return [f"aggregation: {error}"]
    return []


def _method_problems(config: PipelineConfig) -> list[str]:
    try:
        check_method(config.method.name, config.method.arguments, config.kind)
    except ConfigError as error:
        return [f"method: {error}"]
    if config.kind == "sequence" and config.model.crf and config.method.name == "doctor-net":
        return ["model.crf: True does not go with method doctor-net, which has a softmax for each annotator."]
    return []


def _data_problems(data: DataConfig, task: str, base: str) -> list[str]:
    texts = base == "text-regressor"
    if data.dataset is not None:
        given = f"data.dataset: {short_repr(data.dataset)}"
        if texts:
            return [f"{given} has features and no texts; base text-regressor needs files with a column 'text'."]
        known = datasets.names(task)
        if data.dataset in known:
            return []
        return [f"data: {unknown('dataset', data.dataset, known)}"]
    problems = []
    for key, suffixes, needed in _FILES_OF[base if texts else task]:
        path = getattr(data, key)
        if path is None:
            continue
        try:
            _check_file(path, suffixes)
            problem = _column_problem(column_names(path), needed) if needed else None
        except DataError as error:  # names the file itself
            problems.append(f"data.{key}: {error}")
        else:
            problems += [] if problem is None else [f"data.{key}: {path} {problem}"]
    return problems


# Kind of data -> key, endings of a file's name, and columns that it needs
_LABELS = ("annotations", _ANNOTATION_SUFFIXES, ("task", "annotator", "label"))
_FILES_OF: dict[str, tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = {
    "classification": (_LABELS, ("instances", _INSTANCE_SUFFIXES, ("task",))),
    "regression": (_LABELS, ("instances", _INSTANCE_SUFFIXES, ("task",))),
    "text-regressor": (_LABELS, ("instances", _INSTANCE_SUFFIXES, ("task", "text"))),
    "sequence": (("annotations", ("",), ()), ("gold", ("",), ())),
}


def _check_file(path: Path, suffixes: tuple[str, ...]) -> None:
    if not path.parent.is_dir():
        raise DataError(f"{path} does not exist, nor does the folder {path.parent}.")
    check_regular(path)
    if not path.name.endswith(suffixes):
        raise DataError(f"{path} has an unknown ending: choose one of {', '.join(suffixes)}.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty.")


def _column_problem(columns: list[str], needed: Iterable[str]) -> str | None:
    names = {"annotator" if name == "worker" else name for name in columns}
    missing = [name for name in needed if name not in names]
    if not missing:
        return None
    free = [name for name in columns if name not in needed]
    hints = [did_you_mean(name, free, 0.5) for name in missing]
    wanted = " and ".join(f"'{name}'" for name in missing)
    return f"has no column {wanted} among {', '.join(short_repr(name) for name in columns[:10])}.{''.join(hints)}"
