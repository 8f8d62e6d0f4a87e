"""Checks a configuration's input files before a run: rows, gold, and whether tasks match instances."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo import datasets
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.instance_kinds import IMAGES, TABLES, VECTORS
from crowdzoo.errors import DataError, settings_as
from crowdzoo.pipelines.config.checks import reading_rules
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.config.sections import as_key
from crowdzoo.reading.instances.export_instances import named_by_image
from crowdzoo.reading.instances.gold import read_gold_pairs
from crowdzoo.reading.instances.images import sampled_images
from crowdzoo.reading.instances.instances import Instances, check_annotated, read_instances
from crowdzoo.reading.instances.tables import tables
from crowdzoo.reading.tables import sources
from crowdzoo.reading.tables.options import Rules
from crowdzoo.reading.tables.read import of_source
from crowdzoo.reading.tables.suffixes import source_of

SAMPLE_BYTES = 32 << 20  # files of instances or sentences up to this size are read completely, even for a sample
SAMPLE_IMAGES = 32  # number of images opened for a sample


@settings_as(as_key)
def check_data(config: PipelineConfig, whole: bool = False) -> str:
    """Reads the input files as the pipeline will, without TensorFlow.

    Args:
        config: result of `load_config`.
        whole: whether to read all rows. Otherwise read the first block of annotations (8 MiB of text, 131,072 rows of
            Parquet), 32 images, and other files of at most 32 MiB.

    Returns:
        A summary of the data read, as the end of a sentence.

    Raises:
        DataError: the first invalid file, with its bad rows; annotated tasks without an instance; or a column `split`
            that leaves train or eval empty.
    """
    data, kind = config.data, config.label_kind
    if data.dataset is not None:
        return "a data set that ships"
    if "instances" not in kind.options.inputs:
        if not (whole or _is_small(data.annotations)):
            return "no sentence, as the file is large (--check=all reads it)"
        return f"{len(kind.reading.read(data.annotations, **_options(config))):,} sentences"
    crowd, complete = _annotations(config, whole)
    read = f"{len(crowd):,} {kind.reading.counted}" + ("" if complete else " (the first; --check=all reads all)")
    images = config.instances == IMAGES
    if not (whole or images or _is_small(data.instances)):
        return f"{read}, no instance, as the file is large (--check=all reads it)"
    of_kind = tables(config.model.inputs) if config.instances == TABLES else config.instances
    if images and not whole:
        of_kind = sampled_images(SAMPLE_IMAGES)
    instances = read_instances(data.instances, of_kind, data.instance_layout).named_like(crowd.tasks)
    check_annotated(instances, crowd, data.instances, data.annotations)
    _check_split(instances, data.instances)
    if complete or data.classes is not None or not kind.labels.one_class:  # else there may be further classes
        kind.training.gold_column(instances, crowd, data.instances)
    if data.gold is not None and crowd.classes is not None:
        read_gold_pairs(data.gold, instances.tasks, crowd.classes)
    some = images and not whole and len(instances) > SAMPLE_IMAGES
    opened = f", of which {SAMPLE_IMAGES} images were opened (--check=all opens all)" if some else ""
    return f"{read}, {len(instances):,} instances{opened}"


@settings_as(as_key)
def check_own_base(config: PipelineConfig) -> None:
    """Imports the function, makes the model for these data, and runs a batch through it.

    Args:
        config: configuration with a custom base.

    Raises:
        ConfigError: the model does not fit, or the user's code raises an exception, with its line.
        DataError: data that cannot be read.
    """
    from crowdzoo.training.bases import BASES, Sizes
    from crowdzoo.training.instance_training import build_model

    settings: Any = config.settings
    if config.data.dataset is not None:
        dataset = datasets.load(config.data.dataset)
        crowd, values = dataset.annotations, dataset.instances
    else:
        data = config.data
        options = data.model_dump(mode="json", include={*config.label_kind.options.reading}, exclude_none=True)
        assert data.annotations is not None
        read = config.label_kind.training.read(
            data.annotations, data.instances, config.model.inputs, data.instance_layout, config.model.base, **options
        )
        crowd, values = read.annotations, read.x
    labels = config.label_kind.labels
    classes = 0 if labels.has_pairs else crowd.num_classes  # a scorer has one output
    sizes = Sizes(crowd.num_annotators, classes)
    if config.instances == VECTORS:
        sizes = replace(sizes, num_features=np.shape(values)[1])
    encoder = BASES[settings.base].encoder(settings, lambda: [values])
    build_model(settings, sizes, encoder)


def _check_split(instances: Instances, path: Path | str) -> None:
    if instances.split is None:
        return
    for name, use in (("train", "training"), ("eval", "evaluation")):
        if not (instances.split == name).any():
            raise DataError(f"{path}: column 'split' has no {name}, so no task is for {use}. Write it for some rows.")


def _is_small(path: Path | str | None) -> bool:
    return path is not None and Path(path).stat().st_size <= SAMPLE_BYTES


def _options(config: PipelineConfig) -> dict[str, Any]:
    """Options of the kind's reader from the configuration."""
    data = config.data
    return {name: getattr(data, name) for name in config.label_kind.options.reading if name in type(data).model_fields}


def _annotations(config: PipelineConfig, whole: bool) -> tuple[Annotations, bool]:
    """Annotations, and whether they are all annotations of the file."""
    data, kind = config.data, config.label_kind
    if data.platform is not None:  # exports are read completely
        return kind.reading.read(data.annotations, **named_by_image(_options(config), str(data.instances))), True
    source = source_of(data.annotations, config.kind, data.layout)
    # a last line without a line end is a separate batch
    small = source.text and source.path is not None and source.path.stat().st_size <= sources.CHUNK_BYTES
    source.most_batches = None if whole or small else 1
    crowd = of_source(source, Rules.of(kind.labels, source.names, **reading_rules(config)))
    return crowd, source.complete
