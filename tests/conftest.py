"""Fixtures that more than one folder of tests needs."""

import gc
import warnings

import pytest


def pytest_addoption(parser):
    parser.addoption("--no-learning", action="store_true", help="leave out what trains until something is learnt")
    parser.addoption(
        "--battery",
        action="store_true",
        help="of tests/layers only the checks that every layer has to pass: JAX compiles for minutes for the rest",
    )


def pytest_collection_modifyitems(config, items):
    kept = items
    if config.getoption("--no-learning"):
        kept = [item for item in kept if item.get_closest_marker("learning") is None]
    if config.getoption("--battery"):
        kept = [item for item in kept if "layers" not in item.path.parts or "check" in _parameters(item)]
    left_out = set(items) - set(kept)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = kept


def _parameters(item):
    return item.callspec.params if hasattr(item, "callspec") else {}


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
