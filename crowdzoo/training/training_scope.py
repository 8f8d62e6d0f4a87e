"""Precision and devices of a training."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar, cast

import keras

from crowdzoo.errors import ConfigError
from crowdzoo.training.settings import Settings

_Function = TypeVar("_Function", bound=Callable[..., Any])


@contextmanager
def training_scope(settings: Settings) -> Iterator[None]:
    """Within this context, models are made and trained in the settings' precision and on their number of devices.

    Args:
        settings: `crowdzoo.training.settings.Settings`, with `precision` and `devices`.

    Raises:
        ConfigError: the machine has fewer devices, or Keras cannot distribute training on this backend.
    """
    before = keras.config.dtype_policy()
    spread = _spread(settings.devices) if settings.devices > 1 else nullcontext()
    try:
        if settings.precision is not None:
            keras.config.set_dtype_policy(settings.precision)
        with spread:
            yield
    finally:
        keras.config.set_dtype_policy(before)


def in_training_scope(function: _Function) -> _Function:
    """Runs a function in the `training_scope` of its first argument, the settings."""

    @functools.wraps(function)
    def wrapper(settings: Settings, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(settings, "devices"):
            raise ConfigError(f"{function.__name__}: settings are an object, such as TrainingSettings(epochs=10).")
        with training_scope(settings):
            return function(settings, *args, **kwargs)

    return cast(_Function, wrapper)


def _spread(devices: int) -> Any:
    """A scope in which batches are cut into equal parts, one per device; GPUs, or CPUs without GPUs."""
    backend = keras.backend.backend()
    if backend == "torch":
        raise ConfigError(
            f"training: devices is {devices}, and Keras trains on one device with PyTorch. Set devices to 1, or choose "
            "another backend: KERAS_BACKEND=tensorflow."
        )
    if backend == "jax":
        names = keras.distribution.list_devices()
    else:
        import tensorflow as tf

        logical_devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        names = [device.name for device in logical_devices]
    if len(names) < devices:
        raise ConfigError(
            f"training: devices is {devices}, and this machine has {len(names)} ({', '.join(names)}). Set devices to "
            "that number at most."
        )
    if backend == "jax":
        return keras.distribution.DataParallel(devices=names[:devices], auto_shard_dataset=False).scope()
    return _strategy(*names[:devices]).scope()


@functools.cache
def _strategy(*names: str) -> Any:
    """A TensorFlow strategy, the same one for all trainings of the process.

    A second one over the same devices would number its sums from the start again, and TensorFlow would confuse them
    with those of the first: "Shape mismatch in the collective instance".
    """
    import tensorflow as tf

    # on CPUs TensorFlow starts collective sums in any order, and confuses two that run at once
    sums = None if "GPU" in names[0] else tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(names, cross_device_ops=sums)
