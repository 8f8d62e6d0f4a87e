"""Bases on feature vectors, and on tables: columns of numbers, categories, texts and images."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crowdzoo.data.instance_kinds import IMAGE, IMAGES, TEXT
from crowdzoo.errors import DataError
from crowdzoo.reading.instances.tables import input_type
from crowdzoo.training.bases.base import Base, Batches, Sizes, fields_of
from crowdzoo.training.bases.images import ImageBase
from crowdzoo.training.bases.texts import TextBase
from crowdzoo.training.settings import InstanceSettings, TableSettings, TrainingSettings

if TYPE_CHECKING:
    import keras

    from crowdzoo.networks.instance_encoder import InstanceEncoder


class FeatureBase(Base):
    """`FeatureClassifier` and `FeatureRegressor`."""

    settings = TrainingSettings

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> keras.Model:
        """See `Base.build`."""
        from crowdzoo.networks.feature_network import FeatureClassifier, FeatureRegressor

        assert sizes.num_features is not None
        network = {**fields_of(settings, "hidden", "dropout", "batch_normalization"), "name": "base"}
        if not sizes.head:
            return FeatureClassifier(sizes.num_features, None, **network)
        if sizes.num_classes:
            return FeatureClassifier(sizes.num_features, sizes.num_classes, **network)
        return FeatureRegressor(sizes.num_features, center=sizes.center, unit=sizes.unit, **network)

    def adapt(self, model: keras.Model, encoder: Any, batches: Batches) -> None:
        """Mean and variance of each feature."""
        model.standardize.adapt_batches(batches())

    def features(self, model: keras.Model) -> str:
        """The standardised features."""
        return "standardize"


class TableBase(Base):
    """The network of `FeatureClassifier` on columns of numbers and categories (`TableColumns`).

    Each column of texts or images has its own network (`TextClassifier` or `ImageClassifier` without the softmax). The
    last hidden layers of all networks are concatenated, and one layer on top makes the estimate.
    """

    settings = TableSettings

    def encoder(self, settings: Any, batches: Batches) -> InstanceEncoder | None:
        """Statistics and categories of columns, words of text columns, and pixels of images."""
        from crowdzoo.networks.encoders import encoder_config
        from crowdzoo.networks.named_inputs import NamedInputs
        from crowdzoo.networks.table_columns import TableColumns

        first = next(iter(batches()), None)
        if not first:
            raise DataError("there are no rows to learn from")
        types = {name: input_type(name, first[name], settings.inputs) for name in first}
        table_columns = [name for name in first if types[name] not in _OWN]
        table = None
        if table_columns:
            parts = ({name: batch[name] for name in table_columns} for batch in batches())
            table = TableColumns.from_batches(parts, max_categories=settings.max_categories)
        if len(table_columns) == len(types):
            return table
        columns = {
            name: encoder_config(_OWN[kind].encoder(_settings_of(settings, kind), _column(batches, name)))
            for name, kind in types.items()
            if kind in _OWN
        }
        return NamedInputs(None if table is None else table.get_config(), columns)

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> keras.Model:
        """See `Base.build`."""
        import keras

        from crowdzoo.networks.named_inputs import NamedInputs
        from crowdzoo.networks.network import class_head, rating_head

        if not isinstance(encoder, NamedInputs):
            return _FEATURES.build(settings, replace(sizes, num_features=encoder.num_features), encoder)
        inputs, outputs = {}, []
        for name, part in encoder.parts.items():
            network = self._network(settings, sizes, name, part)
            inputs[name] = keras.Input(network.input.shape[1:], dtype=network.input.dtype, name=name)
            outputs.append(network(inputs[name]))
        join = keras.layers.Concatenate if len(outputs) > 1 else keras.layers.Identity
        output = join(name=_JOINED)(outputs if len(outputs) > 1 else outputs[0])
        head = class_head(sizes.num_classes) if sizes.num_classes else rating_head(sizes.center, sizes.unit)
        for layer in head if sizes.head else ():
            output = layer(output)
        return keras.Model(inputs, output, name="base")

    def _network(self, settings: Any, sizes: Sizes, name: str, encoder: InstanceEncoder | None) -> Any:
        """The network of one part, to its last hidden layer."""
        from crowdzoo.networks.table_columns import TableColumns

        if isinstance(encoder, TableColumns):
            sizes = replace(sizes, head=False, num_features=encoder.num_features)
            network = _FEATURES.build(settings, sizes, encoder)
        else:
            kind = _type_of(encoder)
            network = _OWN[kind].build(_settings_of(settings, kind), replace(sizes, head=False), encoder)
        network.name = _network_name(name)
        return network

    def adapt(self, model: keras.Model, encoder: Any, batches: Batches) -> None:
        """Computes the weights of words; the encoder already has the statistics of other columns."""
        from crowdzoo.networks.named_inputs import NamedInputs, part_name

        if isinstance(encoder, NamedInputs):
            for name in encoder.columns:
                part = encoder.parts[part_name(name)]
                base = _OWN[_type_of(part)]
                base.adapt(model.get_layer(_network_name(part_name(name))), part, _column(batches, name))

    def features(self, model: keras.Model) -> str:
        """The vector of numbers and categories; with texts the last hidden layers of all networks."""
        return _JOINED if isinstance(model.input, dict) else _FEATURES.features(model)


_FEATURES = FeatureBase()
_OWN: dict[str, Base] = {TEXT: TextBase(), IMAGE: ImageBase()}  # types of columns with a network of their own
_JOINED = "joined"


def _type_of(encoder: Any) -> str:
    """The type of a column that has its own encoder."""
    return IMAGE if encoder.instances == IMAGES else TEXT


def _settings_of(settings: TableSettings, kind: str) -> InstanceSettings:
    """Settings of a column's own network."""
    return settings.image_settings if kind == IMAGE else settings.text_settings


def _network_name(part: str) -> str:
    return f"network_{part}"


def _column(batches: Batches, name: str) -> Batches:
    """The batches of one column."""
    return lambda: (batch[name] for batch in batches())
