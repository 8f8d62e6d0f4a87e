"""Encodes columns of numbers and categories as one vector, in TensorFlow operations for training and serving."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.instance_kinds import CATEGORY, NUMBER, VECTOR, InstanceKind
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.files.served_model import served_name
from crowdzoo.layers.standardization import Moments
from crowdzoo.networks.instance_encoder import InstanceEncoder
from crowdzoo.reading.instances.tables import typed_tables

_WHOLE = r"^(-?[0-9]+)\.0+$"  # an integer that is written as a float


class TableColumns(InstanceEncoder):
    """Rows of a table as vectors; callable inside a TensorFlow graph, such as a serving signature.

    | column | numbers in the vector |
    |--------|-----------------------|
    | of numbers | `(x - mean) / deviation`, 0 where it is missing |
    | of numbers, with missing ones in training | also 1 where it is missing, else 0 |
    | of categories | one for each category: 1 for its own, 0 for the others |
    | of vectors | each of their numbers, standardised |

    A missing category is a category of its own if values were missing in training as well. A category that did not
    occur in training is all zeros, so that no untrained weight is used; the same holds for a missing one if none was
    missing in training. `1.0` is the category `1`, because columns of integers with gaps are often written so.

    `keras.utils.FeatureSpace` does not treat NaN as missing, has an untrained weight for unknown categories, and reads
    the data once per column.

    Args:
        columns: name of a column -> `{"mean": m, "deviation": s, "missing": whether some were missing}`, s above 0
            (lists for vectors), or `{"categories": names}`, "" for missing. Their order is that of the vector.

    Attributes:
        num_features: D, length of a vector.

    Raises:
        ConfigError: no columns, other settings of a column, or two columns that would be served under the same name.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import TableColumns
        >>> table = {"age": np.array([20.0, 40.0]), "colour": np.array(["red", "blue"])}
        >>> encoder = TableColumns.from_batches([table])
        >>> encoder.num_features
        3
        >>> encoder.to_numpy(table).tolist()
        [[-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """

    key = "table_columns"

    def __init__(self, columns: Mapping[str, Mapping[str, Any]]):
        self.columns = {name: dict(settings) for name, settings in columns.items()}
        for settings in self.columns.values():
            if "categories" in settings:
                settings["categories"] = list(dict.fromkeys(map(_plain, settings["categories"])))
        if not self.columns or len({served_name(name) for name in self.columns}) < len(self.columns):
            raise ConfigError("TableColumns: give at least one column, and no two that are served under the same name")
        self._categories: dict[str, Any] = {}
        self.num_features = 0
        for name, settings in self.columns.items():
            if set(settings) == {"categories"} and settings["categories"]:
                names = tf.constant(settings["categories"])
                codes = tf.range(len(settings["categories"]), dtype=tf.int64)
                self._categories[name] = tf.lookup.StaticHashTable(
                    tf.lookup.KeyValueTensorInitializer(names, codes), -1
                )
                self.num_features += len(settings["categories"])
            elif set(settings) == {"mean", "deviation", "missing"} and np.all(np.asarray(settings["deviation"]) > 0):
                self.num_features += np.size(settings["mean"]) + settings["missing"]
            else:
                raise ConfigError(f"TableColumns: column {name!r} must have mean, deviation and missing, or categories")
        # vectors much longer than a row, as with many categories, may not fit into memory
        self.per_batch = self.num_features > 4 * len(self.columns)

    @classmethod
    @checked(max_categories=Number(1, whole=True))
    def from_batches(cls, batches: Iterable[Mapping[str, ArrayLike]], *, max_categories: int = 1000) -> "TableColumns":
        """Computes means, deviations and categories from the training data, in one pass.

        Args:
            batches: name -> values [n] of each column: floats with NaN for missing, vectors [n, D], or strings (or
                their UTF-8) with "" for missing. All batches have the same columns.
            max_categories: largest number of categories per column, the most frequent ones.

        Raises:
            DataError: no rows, or a column without any value.
        """
        numbers: dict[str, _Column] = {}
        categories: dict[str, Counter[str]] = {}
        order: dict[str, None] = {}
        for batch in batches:
            for name, values in batch.items():
                order[name] = None
                values = np.asarray(values)
                if values.dtype.kind in "biuf":
                    numbers.setdefault(name, _Column()).add(values)
                else:
                    counts = categories.setdefault(name, Counter())
                    counts.update(map(_plain, values.tolist()))
        settings: dict[str, dict[str, Any]] = {}
        for name in order:
            if name in numbers:
                settings[name] = numbers[name].settings(name)
            else:
                # the most frequent first, ties in alphabetical order
                ordered = sorted(categories[name], key=lambda value: (-categories[name][value], value))
                settings[name] = {"categories": ordered[:max_categories]}
        if not settings:
            raise DataError("there are no rows to take means and categories from")
        return cls(settings)

    @property
    def instances(self) -> InstanceKind:  # type: ignore[override]
        """Tables with these columns."""
        return typed_tables(self.types)

    @property
    def types(self) -> dict[str, str]:
        """Served name of each column -> its type; see `crowdzoo.reading.instances.tables`."""
        types = {}
        for name, settings in self.columns.items():
            of_numbers = VECTOR if np.ndim(settings.get("mean", 0.0)) else NUMBER
            types[served_name(name)] = CATEGORY if name in self._categories else of_numbers
        return types

    @property
    def example(self) -> dict[str, object]:  # type: ignore[override]
        """A row with the mean of each column of numbers, and the most frequent category of the others."""
        return {
            served_name(name): settings["categories"][0] if name in self._categories else settings["mean"]
            for name, settings in self.columns.items()
        }

    @property
    def inputs(self) -> dict[str, tf.TensorSpec]:
        """Inputs of a served model: served name of a column -> `tf.TensorSpec`, `[B]` or of vectors `[B, D]`."""
        specs = {}
        for name, settings in self.columns.items():
            dtype = tf.string if name in self._categories else tf.float32
            shape = [None, *np.shape(settings.get("mean", 0.0))]
            specs[served_name(name)] = tf.TensorSpec(shape, dtype, name=served_name(name))
        return specs

    @property
    def resources(self) -> dict[str, object]:
        """Lookup tables from categories to their places; an exported model must contain them."""
        return {served_name(name): table for name, table in self._categories.items()}

    def get_config(self) -> dict[str, object]:
        """Every argument of the constructor."""
        return {"columns": self.columns}

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Vectors of rows.

        Args:
            values: name of each column, its own or as served -> `[B]`, float32 or strings; for vectors `[B, D]`.

        Returns:
            float32 tensor `[B, D]`.
        """
        parts = []
        for name, settings in self.columns.items():
            column = values[name] if name in values else values[served_name(name)]
            if name in self._categories:
                plain = tf.strings.regex_replace(tf.convert_to_tensor(column, tf.string), _WHOLE, r"\1")
                codes = self._categories[name].lookup(plain)
                parts.append(tf.one_hot(codes, len(settings["categories"])))  # all zeros for -1
                continue
            column = tf.cast(column, tf.float32)
            missing = tf.math.is_nan(column)
            standard = (column - settings["mean"]) / settings["deviation"]
            known = tf.where(missing, 0.0, standard)
            parts.append(known if np.ndim(settings["mean"]) else known[:, None])
            if settings["missing"]:
                parts.append(tf.cast(missing, tf.float32)[:, None])
        return tf.concat(parts, axis=1)

    def to_numpy(self, values: Mapping[str, ArrayLike]) -> np.ndarray:
        """Vectors of rows in memory, float32 `[N, D]`."""
        return np.asarray(self(values))


def _plain(category: Any) -> str:
    """Normalises a category for its lookup."""
    return re.sub(_WHOLE, r"\1", category.decode() if isinstance(category, bytes) else str(category))


class _Column(Moments):
    """Mean and deviation of a column of numbers, or of each element of vectors, and the number of missing values."""

    missing = 0

    def add(self, values: np.ndarray) -> None:
        """Adds numbers; NaN is missing."""
        known = values if values.ndim > 1 else values[~np.isnan(values)]
        self.missing += len(values) - len(known)
        if len(known):
            super().add(known)

    def settings(self, name: str) -> dict[str, object]:
        """Settings of the column for `TableColumns`."""
        if not self.rows:
            raise DataError(f"column {name!r} has no value in any training row. Leave the column out.")
        # numbers that are equal in float32 are only centred
        constant = self.variance <= 1e-14 * np.maximum(self.mean**2, 1e-14)
        deviation = np.where(constant, 1.0, np.sqrt(self.variance))
        return {"mean": self.mean.tolist(), "deviation": deviation.tolist(), "missing": self.missing > 0}
