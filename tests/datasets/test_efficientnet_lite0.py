"""The reader of PyTorch's files, and what it makes of weights; the weights themselves are not in the repository."""

import importlib.util
import io
import os
import pickle
import struct
import sys
import types
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "datasets" / "efficientnet_lite0.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("efficientnet_lite0", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Storage:
    """What a tensor's pickle refers to by an id of its own."""


def saved(monkeypatch, tensors, magic=0x1950A86A20F9469CFC6C):
    """A file as torch.save wrote it before PyTorch 1.6: name -> array in C order, stored once each."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    class FloatStorage:
        __module__, __qualname__ = "torch", "FloatStorage"

    def _rebuild_tensor_v2(*_):
        raise AssertionError("only its name is written")

    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    torch.FloatStorage, utils._rebuild_tensor_v2 = FloatStorage, _rebuild_tensor_v2
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    storages = {}

    class Tensor:
        def __init__(self, array):
            self.array = array

        def __reduce__(self):
            storage, array = Storage(), self.array
            storages[str(len(storages))] = array
            storage.id = ("storage", FloatStorage, str(len(storages) - 1), "cpu", array.size, None)
            strides = tuple(step // array.itemsize for step in array.strides)
            return _rebuild_tensor_v2, (storage, 0, array.shape, strides, False, OrderedDict())

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            return thing.id if isinstance(thing, Storage) else None

    file = io.BytesIO()
    for part in (magic, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}):
        pickle.dump(part, file, protocol=2)
    Pickler(file, protocol=2).dump(OrderedDict((name, Tensor(array)) for name, array in tensors.items()))
    pickle.dump(list(storages), file, protocol=2)
    for array in storages.values():
        file.write(struct.pack("<q", array.size) + array.ravel(order="K").tobytes())
    file.seek(0)
    return file


def test_arrays_are_read_as_they_were_saved_whatever_their_order_in_memory(script, monkeypatch):
    rng = np.random.default_rng(0)
    arrays = {"a.weight": rng.normal(size=(4, 3, 2, 5)).astype("f4"), "a.bias": rng.normal(size=4).astype("f4")}
    arrays["b.weight"] = np.asarray(rng.normal(size=(5, 2, 3, 4)).astype("f4").transpose(3, 2, 0, 1))
    found = script.read_state(saved(monkeypatch, arrays))
    assert [*found] == [*arrays]
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_a_file_that_would_run_a_program_is_refused(script, tmp_path):
    class Run:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    with pytest.raises(pickle.UnpicklingError, match=r"mkdir has no place in a file of weights"):
        script.read_state(io.BytesIO(pickle.dumps(Run(), protocol=2)))
    assert not (tmp_path / "ran").exists()
