"""Bases on feature vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdzoo.training.bases.base import Base, Batches, Sizes, fields_of
from crowdzoo.training.settings import TrainingSettings

if TYPE_CHECKING:
    import keras


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
