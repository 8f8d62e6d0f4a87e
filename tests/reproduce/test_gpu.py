"""The benchmark of GPUs: its Dawid-Skene is crowdzoo's, and a new row of the same cell takes the old one's place."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


@pytest.fixture(scope="module")
def gpu():
    spec = importlib.util.spec_from_file_location("gpu_benchmark", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore:Dawid-Skene did not converge:UserWarning")
@pytest.mark.filterwarnings("ignore:dawid-skene. The labels differ from the plurality:UserWarning")
@pytest.mark.slow
def test_dawid_skene_as_array_code_finds_what_crowdzoo_finds(gpu):
    found = gpu.dawid_skene(30_000)
    assert found["difference"] < 1e-3  # float32 against float64, after twenty iterations
    assert found["same_labels"] == 1.0
    assert found["seconds"] > 0
