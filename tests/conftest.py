"""Fixtures that more than one folder of tests needs."""

import gc
import warnings

import pytest


@pytest.fixture(autouse=True, scope="module")
def _earlier_objects_aside():
    """pyarrow walks over all objects at each error: with those of a thousand tests before, that is a second each."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def xla():
    """XLA is really used. Keras may do without and only warns, as after a test that made TensorFlow deterministic."""
    import keras

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Model doesn't support `jit_compile=True`")
        if keras.backend.backend() != "tensorflow":
            yield
            return
        from tensorflow.python.framework import config  # TensorFlow has no public way back

        before = config.is_op_determinism_enabled()
        config.disable_op_determinism()
        yield
        if before:
            config.enable_op_determinism()
