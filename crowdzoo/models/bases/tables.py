"""Bases on tables: columns of numbers and categories, and of texts beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crowdzoo.errors import DataError
from crowdzoo.instances.tables import TEXT, input_type
from crowdzoo.label_kinds import label_kind
from crowdzoo.models.bases.base import Base, Batches, Sizes
from crowdzoo.models.bases.features import FeatureBase
from crowdzoo.models.bases.texts import TextBase
from crowdzoo.training.settings import TableSettings

__all__ = ["TableBase"]


class TableBase(Base):
    """The network of `FeatureClassifier` on columns of numbers and categories (`TableColumns`).

    Where columns are of texts, each has a network of its own (`TextClassifier` without its softmax). The last hidden
    layers of all networks stand side by side, and one layer on them makes the estimate.
    """

    settings = TableSettings

    def encoder(self, settings: Any, batches: Batches) -> Any:
        """Statistics and categories of the columns, and the words of those of texts."""
        from crowdzoo.models.named_inputs import NamedInputs
        from crowdzoo.models.table_columns import TableColumns

        first = next(iter(batches()), None)
        if not first:
            raise DataError("there are no rows to learn from")
        texts = [name for name in first if input_type(name, first[name], settings.inputs) == TEXT]
        others = [name for name in first if name not in texts]
        table = None
        if others:
            parts = ({name: batch[name] for name in others} for batch in batches())
            table = TableColumns.adapted(parts, max_categories=settings.max_categories)
        if not texts:
            return table
        words = {name: _TEXTS.encoder(settings.text_settings, _column(batches, name)) for name in texts}
        return NamedInputs(
            None if table is None else table.get_config(),
            {name: {one.key: one.get_config()} for name, one in words.items()},
        )

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> Any:
        """See `Base.build`."""
        import keras

        from crowdzoo.layers.label_unit import LabelUnit
        from crowdzoo.models.named_inputs import NamedInputs

        if not isinstance(encoder, NamedInputs):
            return _FEATURES.build(settings, replace(sizes, num_features=encoder.num_features), encoder)
        inputs, outputs = {}, []
        for name, part in encoder.parts.items():
            network = self._network(settings, sizes, name, part)
            inputs[name] = keras.Input(network.input.shape[1:], dtype=network.input.dtype, name=name)
            outputs.append(network(inputs[name]))
        join = keras.layers.Concatenate if len(outputs) > 1 else keras.layers.Identity
        output = join(name=_JOINED)(outputs if len(outputs) > 1 else outputs[0])
        if sizes.head and label_kind(settings.kind).has_classes:
            output = keras.layers.Dense(sizes.num_classes, name="logits")(output)
            precision = keras.backend.result_type(keras.config.floatx(), "float32")
            output = keras.layers.Softmax(dtype=precision)(output)
        elif sizes.head:
            output = keras.layers.Dense(1, name="value")(output)
            output = LabelUnit(sizes.center, sizes.unit, name="label_unit")(output)
        return keras.Model(inputs, output, name="base")

    def _network(self, settings: Any, sizes: Sizes, name: str, encoder: Any) -> Any:
        """The network of one part, to its last hidden layer."""
        from crowdzoo.models.table_columns import TableColumns

        if isinstance(encoder, TableColumns):
            sizes = replace(sizes, head=False, num_features=encoder.num_features)
            network = _FEATURES.build(settings, sizes, encoder)
        else:
            # without its estimate the network of a classifier is that of a regressor
            settings = replace(settings.text_settings, task="classification", low=None, high=None)
            network = _TEXTS.build(settings, replace(sizes, head=False), encoder)
        network.name = _network_name(name)
        return network

    def adapt(self, model: Any, encoder: Any, batches: Batches) -> None:
        """The weights of words; columns of numbers and categories were adapted to with the encoder."""
        from crowdzoo.models.named_inputs import NamedInputs, part_name

        if isinstance(encoder, NamedInputs):
            for name in encoder.columns:
                part = part_name(name)
                _TEXTS.adapt(model.get_layer(_network_name(part)), encoder.parts[part], _column(batches, name))

    def features(self, model: Any) -> str:
        """The vector of numbers and categories; with texts the last hidden layers of all networks."""
        return _JOINED if isinstance(model.input, dict) else _FEATURES.features(model)


_FEATURES = FeatureBase()
_TEXTS = TextBase()
_JOINED = "joined"


def _network_name(part: str) -> str:
    return f"network_{part}"


def _column(batches: Batches, name: str) -> Batches:
    """The batches of one column."""
    return lambda: (batch[name] for batch in batches())
