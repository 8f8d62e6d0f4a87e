"""Several encoders, each for some of the columns of a table."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from crowdzoo.data.instance_kinds import IMAGE, TEXT, InstanceKind
from crowdzoo.errors import ConfigError
from crowdzoo.files.served_model import served_name
from crowdzoo.networks.image_pixels import ImagePixels
from crowdzoo.networks.instance_encoder import InstanceEncoder
from crowdzoo.networks.table_columns import TableColumns
from crowdzoo.networks.text_ids import TextIds
from crowdzoo.reading.instances.tables import typed_tables

# Encoders of a single column
ENCODERS: dict[str, Any] = {encoder.key: encoder for encoder in (ImagePixels, TextIds)}
_TYPES = {ImagePixels: IMAGE, TextIds: TEXT}


class NamedInputs(InstanceEncoder):
    """Encodes columns of numbers and categories as one vector, and each other column with its own encoder.

    Args:
        table: settings of `TableColumns` for all columns of numbers and categories, or None.
        columns: name of each other column -> `{key of its encoder: its settings}`, such as `{"text_ids": {...}}`.

    Attributes:
        parts: name of each input of the base -> its encoder; the name is "table" for the vector, and a column's served
            name.

    Raises:
        ConfigError: no columns, an unknown encoder, or two columns that would be served under the same name.
    """

    key = "named_inputs"

    def __init__(self, table: Mapping[str, Any] | None, columns: Mapping[str, Mapping[str, Any]]):
        self.parts: dict[str, InstanceEncoder] = {} if table is None else {TABLE: TableColumns(**table)}
        self.columns = {name: dict(encoder) for name, encoder in columns.items()}
        for name, encoder in self.columns.items():
            if len(encoder) != 1 or not set(encoder) <= set(ENCODERS):
                raise ConfigError(f"NamedInputs: column {name!r} must have one of the encoders {', '.join(ENCODERS)}")
            ((key, settings),) = encoder.items()
            self.parts[part_name(name)] = ENCODERS[key](**settings)
        if len(self.parts) < len(columns) + (table is not None) or not self.parts:
            raise ConfigError("NamedInputs: give at least one column, and no two that are served under the same name")

    @property
    def instances(self) -> InstanceKind:  # type: ignore[override]
        """Tables with these columns."""
        table = self.parts.get(TABLE)
        types = dict(table.types) if isinstance(table, TableColumns) else {}
        types |= {served_name(name): _TYPES[type(self.parts[part_name(name)])] for name in self.columns}
        return typed_tables(types)

    @property
    def example(self) -> dict[str, object]:  # type: ignore[override]
        """A row: numbers and categories from `TableColumns`, and each other column from its encoder."""
        column_examples = {served_name(name): self.parts[part_name(name)].example["instances"] for name in self.columns}
        return {**(self.parts[TABLE].example if TABLE in self.parts else {}), **column_examples}

    @property
    def inputs(self) -> dict[str, tf.TensorSpec]:
        """Inputs of a served model: name of a column as served -> `tf.TensorSpec` of its values."""
        specs = dict(self.parts[TABLE].inputs) if TABLE in self.parts else {}
        for name in self.columns:
            spec = self.parts[part_name(name)].inputs["instances"]
            specs[served_name(name)] = tf.TensorSpec(spec.shape, spec.dtype, name=served_name(name))
        return specs

    @property
    def resources(self) -> dict[str, object]:
        """Resources of all encoders."""
        return {name: encoder.resources for name, encoder in self.parts.items()}

    def get_config(self) -> dict[str, object]:
        """Every argument of the constructor."""
        table = self.parts[TABLE].get_config() if TABLE in self.parts else None
        encoders = {name: self.parts[part_name(name)] for name in self.columns}
        return {
            "table": table,
            "columns": {name: {encoder.key: encoder.get_config()} for name, encoder in encoders.items()},
        }

    def __call__(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the base's inputs, by the names of `parts`.

        Args:
            values: name of each column, its own or as served -> `[B]`.
        """
        return {name: encoder(part) for name, encoder, part in self._columns_by_part(values)}

    def to_numpy(self, values: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """The base's inputs in memory, by the names of `parts`."""
        return {name: encoder.to_numpy(part) for name, encoder, part in self._columns_by_part(values)}

    def _columns_by_part(self, values: Mapping[str, Any]) -> list[tuple[str, InstanceEncoder, Any]]:
        names = {part_name(name): name for name in self.columns}
        columns = []
        for part, encoder in self.parts.items():
            name = names.get(part)
            column = values if name is None else values[name] if name in values else values[served_name(name)]
            columns.append((part, encoder, column))
        return columns


TABLE = "table"


def part_name(column: str) -> str:
    """The name of the base's input for a column that has its own encoder."""
    return f"column_{served_name(column)}"
