"""Reads a configuration's input files before a run: rows, gold, and whether tasks and instances fit together."""

from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.errors import SHOWN, DataError
from crowdzoo.instances import IMAGES, TABLES, Instances, read_instances, tables
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.tables.annotations import Annotations
from crowdzoo.tables.options import Rules
from crowdzoo.tables.suffixes import source_of
from crowdzoo.tables.vocabulary import is_among, name_texts

__all__ = ["check_data"]

_RULES = ("classes", "low", "high", "on_bad_rows", "on_duplicate")
_READ = (*_RULES, "platform", "field")
SAMPLE_BYTES = 32 << 20  # a file of instances or sentences up to this is read whole, even for a sample


def check_data(config: PipelineConfig, whole: bool = False) -> str:
    """Reads the input files as the pipeline will, without TensorFlow.

    Args:
        config: from `load_config`.
        whole: read all rows. Otherwise of annotations the first block (8 MiB of text, 131,072 rows of Parquet), and of
            other files those of at most 32 MiB.

    Returns:
        What was read, as the end of a sentence.

    Raises:
        DataError: the first file that cannot be used, with its bad rows; annotated tasks without an instance.
    """
    data, kind = config.data, config.label_kind
    if data.dataset is not None:
        return "a data set that ships"
    if kind.labels.has_positions:
        if not (whole or _is_small(data.annotations)):
            return "no sentence, as the file is large (--check=all reads it)"
        options = {name: getattr(data, name) for name in kind.reading if name in type(data).model_fields}
        return f"{len(kind.read(data.annotations, **options)):,} sentences"
    crowd, complete = _annotations(config, whole)
    read = f"{len(crowd):,} {kind.counted}" + ("" if complete else " (the first; --check=all reads all)")
    if not (whole or (config.instances is not IMAGES and _is_small(data.instances))):
        why = "as all images are opened" if config.instances is IMAGES else "as the file is large"
        return f"{read}, no instance, {why} (--check=all reads it)"
    of_kind = tables(config.model.inputs) if config.instances == TABLES else config.instances
    instances = read_instances(data.instances, of_kind, data.instance_layout).named_like(crowd.tasks)
    _check_tasks(crowd, instances, data.annotations, data.instances)
    if crowd.classes is None:
        instances.gold_ratings(data.instances)
    elif (complete or data.classes is not None) and instances.gold is not None and not _are_codes(instances, crowd):
        instances.gold_codes(crowd.classes, data.instances)
    return f"{read}, {len(instances):,} instances"


def _is_small(path: Path | None) -> bool:
    return path is not None and path.stat().st_size <= SAMPLE_BYTES


def _annotations(config: PipelineConfig, whole: bool) -> tuple[Annotations, bool]:
    """Annotations, and whether they are all of the file's."""
    data, kind = config.data, config.label_kind
    if data.platform is not None:  # an export is read whole
        return kind.read(
            data.annotations, **{name: getattr(data, name) for name in _READ if name in kind.reading}
        ), True
    source = source_of(data.annotations, config.kind, data.layout)
    rules: dict[str, Any] = {name: getattr(data, name) for name in _RULES if name in kind.reading}
    source.most_batches = None if whole else 1
    crowd = Annotations.of_source(source, Rules.of(kind.labels, source.names, **rules))
    return crowd, source.complete


def _are_codes(instances: Instances, crowd: Annotations) -> bool:
    """Whether gold holds codes of the classes, or marks of nothing, in place of names, as the pipeline allows."""
    assert instances.gold is not None
    names = {str(name) for name in np.asarray(crowd.classes).tolist()}
    known = set(instances.gold.tolist()) - ({"", "-1", "nan"} - names)
    return known <= names or known <= {str(code) for code in range(len(names))}


def _check_tasks(crowd: Annotations, instances: Instances, annotations: Any, path: Any) -> None:
    names = name_texts(instances.tasks)
    tasks = name_texts(crowd.tasks[crowd.redundancy > 0])
    unknown = tasks[~is_among(tasks, names)]
    if len(unknown):
        shown = ", ".join(map(repr, unknown[:SHOWN].tolist())) + (", ..." if len(unknown) > SHOWN else "")
        raise DataError(
            f"{annotations}: {len(unknown):,} of the {len(tasks):,} tasks have no row in {path}: {shown}. Tasks there "
            f"look like {str(names[0])!r}."
        )
