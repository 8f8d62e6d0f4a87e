"""TensorFlow and Keras for tests of SavedModels, which are skipped where these cannot be written."""

import pytest

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_serving.apis")
keras = pytest.importorskip("keras")
if keras.backend.backend() != "tensorflow":
    pytest.skip("Keras writes SavedModels on the TensorFlow backend alone", allow_module_level=True)
