"""Base models that `train` and the pipeline make, by the name that configurations write. Loads no Keras."""

from collections.abc import Mapping

from crowdzoo.models.bases.base import Base, Sizes
from crowdzoo.models.bases.features import FeatureBase
from crowdzoo.models.bases.images import ImageBase
from crowdzoo.models.bases.tables import TableBase
from crowdzoo.models.bases.texts import TextBase

__all__ = ["BASES", "Base", "Sizes"]

BASES: Mapping[str, Base] = {
    "feature-classifier": FeatureBase(),
    "feature-regressor": FeatureBase(),
    "image-classifier": ImageBase(),
    "image-regressor": ImageBase(),
    "table-classifier": TableBase(),
    "table-regressor": TableBase(),
    "text-classifier": TextBase(),
    "text-regressor": TextBase(),
}
