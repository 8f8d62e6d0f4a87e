"""Which annotators are models, by the file of `--annotator-table`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


def models_of(path: Path, annotations: Annotations) -> list[str]:
    """Names of the annotators that are models.

    Raises:
        DataError: the file cannot be read, does not say who is a model, or says that nobody is.
    """
    from crowdzoo.reading.instances.annotator_table import read_annotator_table

    table = read_annotator_table(path, annotations.annotators)
    if table.sources is None:
        raise DataError(f"{path}: has no column 'source', which says who is a model. Add it, with model or person.")
    models = [str(name) for name in annotations.annotators[table.sources == "model"]]
    if not models:
        raise DataError(f"{path}: none of the {len(table.sources):,} annotators is a model.")
    return models
