"""Bases on texts."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from crowdzoo.errors import ConfigError, Setting
from crowdzoo.training.bases.base import Base, Batches, Sizes, fields_of
from crowdzoo.training.settings import Settings, TextSettings

if TYPE_CHECKING:
    import keras

    from crowdzoo.networks.instance_encoder import InstanceEncoder


class TextBase(Base):
    """`TextClassifier` and `TextRegressor`."""

    settings = TextSettings

    def make_settings(self, **values: Any) -> Settings:
        """See `Base.make_settings`; `hidden` is a number, or a list of one, as there is one hidden layer."""
        if isinstance(hidden := values.get("hidden"), (list, tuple)):
            if len(hidden) != 1:
                one = "a model of texts has one hidden layer: give one number, or a list of one"
                raise ConfigError(f"{Setting('hidden')}: {one}.", setting="hidden", value=hidden)
            values["hidden"] = hidden[0]
        return super().make_settings(**values)

    def encoder(self, settings: Any, batches: Batches) -> InstanceEncoder | None:
        """Word ids from the training texts, or character ids if the form says so or most texts have no spaces."""
        from crowdzoo.networks.text_ids import TextIds, build_vocabulary, mostly_without_spaces

        known: dict[str, Any] = {"max_words": settings.max_words, "min_texts": settings.min_texts}

        def words(splitting: str) -> list[str]:
            return build_vocabulary(chain.from_iterable(batches()), **known, splitting=splitting)

        splitting = "characters" if settings.form == "characters" else "scripts"
        vocabulary = words(splitting)
        if settings.form is None and mostly_without_spaces(vocabulary):
            splitting, vocabulary = "characters", words("characters")
        return TextIds(vocabulary, settings.max_length, splitting)

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> keras.Model:
        """See `Base.build`."""
        from crowdzoo.networks.text_network import TextClassifier, TextRegressor

        network = {**fields_of(settings, "embedding", "filters", "hidden", "dropout"), "name": "base"}
        # a bag of words or of characters
        network["form"] = "convolutional" if settings.form == "convolutional" else "bag-of-words"
        if sizes.num_classes:
            return TextClassifier(encoder.num_words, sizes.num_classes if sizes.head else None, **network)
        return TextRegressor(encoder.num_words, center=sizes.center, unit=sizes.unit, head=sizes.head, **network)

    def adapt(self, model: keras.Model, encoder: Any, batches: Batches) -> None:
        """Computes the words' weights of a bag of words."""
        if model.weigh is not None:
            model.weigh.adapt_batches(encoder.to_numpy(batch) for batch in batches())

    def features(self, model: keras.Model) -> str:
        """The last hidden layer."""
        return "hidden"
