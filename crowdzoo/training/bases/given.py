"""A base model on feature vectors that is given as a Python object."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.training.bases.base import BaseContext, Sizes
from crowdzoo.training.bases.own import OwnBase, own_context, try_on_batch

if TYPE_CHECKING:
    import keras


class GivenBase(OwnBase):
    """A Keras model, which is copied with new weights for each training, or a function that makes one.

    Args:
        made_by: the model; or a function of a `BaseContext`, as `crowdzoo train --base` takes it.
    """

    def __init__(self, made_by: Any | Callable[[BaseContext], Any]):
        super().__init__("the base", {})
        self.made_by = made_by

    def encoder(self, settings: Any, batches: Any) -> None:
        """None: feature vectors are the input."""

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> keras.Model:
        """Copies the model, or calls the function.

        Raises:
            ConfigError: there is no Keras model, or its input or output does not fit the instances and labels.
        """
        import keras

        if isinstance(self.made_by, keras.Model):
            model = keras.models.clone_model(self.made_by)
        else:
            model = self.made_by(own_context(settings, sizes))
        if not isinstance(model, keras.Model):
            raise ConfigError(f"base: a keras.Model, or a function that makes one, is needed, got {short_repr(model)}.")
        try_on_batch(model, "given", own_context(settings, sizes), str(sizes.num_classes))
        return model
