"""For methods that train in two phases: another loss for a while, and one history of both."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras

__all__ = ["compiled_with", "joined"]


@contextmanager
def compiled_with(model: Any, **changes: Any) -> Iterator[None]:
    """A model compiled otherwise for a while; afterwards it is compiled as before, its optimizer going on as it stands.

    Loss and metrics are taken down and put back by their configuration, so they must be registered with Keras.

    Args:
        model: a compiled model.
        **changes: arguments of `compile` that differ.
    """
    settings = keras.saving.deserialize_keras_object(model.get_compile_config())
    settings["optimizer"] = model.optimizer
    model.compile(**{**settings, **changes})
    try:
        yield
    finally:
        model.compile(**settings)


def joined(model: Any, first: keras.callbacks.History, second: keras.callbacks.History) -> keras.callbacks.History:
    """The history of two phases, one after the other; it becomes the model's.

    Args:
        model: the model that was trained.
        first: of the first phase; it is extended.
        second: of the second.

    Returns:
        The first.
    """
    first.epoch.extend(second.epoch)
    for name, values in second.history.items():
        first.history.setdefault(name, []).extend(values)
    model.history = first
    return first
