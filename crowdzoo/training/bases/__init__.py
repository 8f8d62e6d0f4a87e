"""Base models of `train` and the pipeline, by their names in configurations. Does not import Keras."""

from collections.abc import Mapping

from crowdzoo.training.bases.base import Base, BaseContext, Sizes
from crowdzoo.training.bases.images import ImageBase, MaskBase
from crowdzoo.training.bases.own import OwnBase
from crowdzoo.training.bases.own_source import ADDED, is_own, own_files, own_function, source_hash
from crowdzoo.training.bases.tables import FeatureBase, TableBase
from crowdzoo.training.bases.texts import TextBase

__all__ = ["ADDED", "BASES", "Base", "BaseContext", "Sizes", "is_own", "own_files", "own_function", "source_hash"]


class _Bases(dict[str, Base]):
    """A table that also makes bases for references to a user's own functions (`is_own`)."""

    def __missing__(self, name: str) -> Base:
        if not is_own(name):
            raise KeyError(name)
        return OwnBase(name, self)


BASES: Mapping[str, Base] = _Bases(
    {
        "feature-classifier": FeatureBase(),
        "feature-regressor": FeatureBase(),
        "image-classifier": ImageBase(),
        "image-regressor": ImageBase(),
        "image-segmenter": MaskBase(),
        "table-classifier": TableBase(),
        "table-regressor": TableBase(),
        "text-classifier": TextBase(),
        "text-regressor": TextBase(),
    }
)
