"""Tries a base of the user's own on the data of a configuration."""

from dataclasses import replace
from typing import Any

import numpy as np

from crowdzoo import datasets
from crowdzoo.data.instance_kinds import VECTORS
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig


def check_own_base(config: PipelineConfig) -> None:
    """Imports the function, makes the model for these data, and runs a batch through it.

    Args:
        config: with a base of the user's own.

    Raises:
        ConfigError: what does not fit, and the line of the user's code where it raises an exception.
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
        options = data.model_dump(mode="json", include={*config.label_kind.reading}, exclude_none=True)
        assert data.annotations is not None
        read = config.label_kind.training_set(
            data.annotations, data.instances, config.model.inputs, data.instance_layout, config.model.base, **options
        )
        crowd, values = read.annotations, read.x
    labels = config.label_kind.labels
    classes = crowd.num_classes if labels.has_classes and not labels.has_pairs else 0  # a scorer has one output
    sizes = Sizes(crowd.num_annotators, classes)
    if config.instances == VECTORS:
        sizes = replace(sizes, num_features=np.shape(values)[1])
    encoder = BASES[settings.base].encoder(settings, lambda: [values])
    build_model(settings, sizes, encoder)
