"""The kinds of instances, and the base model for each (`reading.instances` reads their files)."""

from collections.abc import Mapping
from dataclasses import dataclass

from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import ConfigError, unknown

# Types of the columns of a table
NUMBER = "number"
CATEGORY = "category"
TEXT = "text"
VECTOR = "vector"
IMAGE = "image"
INPUT_TYPES = (NUMBER, CATEGORY, TEXT, VECTOR, IMAGE)


@dataclass(frozen=True, eq=False)
class InstanceKind:
    """One kind of instance. Kinds with the same name are equal.

    Attributes:
        name: name in messages and in the settings of the pipeline's components.
        bases: kind of label -> name of the base model in configurations.
    """

    name: str
    bases: Mapping[str, str]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InstanceKind) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def _of_files(name: str, base: str, **more: str) -> InstanceKind:
    kinds = (kind for kind in LABEL_KINDS.values() if kind.trained and not (kind.has_positions or kind.values))
    bases = {kind.name: f"{base}-classifier" if kind.one_class else f"{base}-regressor" for kind in kinds}
    return InstanceKind(name, {**bases, **more})


VECTORS = _of_files("feature vectors", "feature")
TEXTS = _of_files("texts", "text")
IMAGES = _of_files("images", "image", region="image-segmenter")
TABLES = _of_files("tables", "table")
SENTENCES = InstanceKind("sentences", {"sequence": "sequence-tagger"})  # their tokens are in the file of annotations
INSTANCE_KINDS = (VECTORS, TEXTS, IMAGES, TABLES, SENTENCES)


def instance_kind(name: str) -> InstanceKind:
    """Returns the kind with this name.

    Raises:
        ConfigError: unknown name.
    """
    kinds = {kind.name: kind for kind in INSTANCE_KINDS}
    if name not in kinds:
        raise ConfigError(unknown("kind of instances", name, kinds))
    return kinds[name]
