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


def row(device, seconds, precision="float32"):
    about = {"backend": "jax 0.10.2", "device": device}
    return {"cell": "step", "what": "conal", "precision": precision, "seconds": seconds, "cpu_seconds": seconds,
            "about": about}  # fmt: skip


def test_a_row_is_known_by_what_it_measures_and_a_gpu_is_compared_with_the_cpu_of_its_backend(gpu, capsys, tmp_path):
    cpu, card = row("cpu: cpu", 0.5), row("gpu: NVIDIA H100", 0.01)
    assert gpu.key(cpu) != gpu.key(card)
    assert gpu.key(cpu) == gpu.key(row("cpu: cpu", 0.6))
    assert gpu.key(cpu) != gpu.key(row("cpu: cpu", 0.5, "mixed_bfloat16"))
    gpu.show([card, cpu])
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if "H100" in line]
    assert "10.00 ms" in line
    assert "50.0" in line
