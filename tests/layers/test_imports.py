"""What the layers need: Keras and NumPy, and none of the engines around them."""

import subprocess
import sys

import pytest

CHILD = """
import sys
for name in ("numba", "pyarrow", "apache_beam", "tfx"):
    sys.modules[name] = None  # an import of it fails
import keras
sys.modules.update({"tensorflow": None, "jax": None, "torch": None})  # Keras has loaded its own
from crowdzoo import layers
for name in layers.__all__:
    assert getattr(layers, name).__name__ == name
above = ("aggregation", "export", "models", "quality", "tables", "training")
loaded = [name for name in sys.modules if name.startswith(tuple(f"crowdzoo.{room}" for room in above))]
assert not loaded, loaded
print(layers.CrowdsourcedLayer(num_annotators=3).num_annotators)
"""


@pytest.mark.slow  # tests/test_imports.py reads the same from the source
def test_layers_load_without_numba_pyarrow_and_tensorflow_and_import_nothing_that_stands_on_them():
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True)
    assert done.stdout == "3\n", done.stderr[-3000:]
