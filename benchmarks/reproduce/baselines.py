"""Registers the aggregators of examples/baselines, as `pip install examples/baselines` would; scripts import it."""

import sys
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "examples" / "baselines"))
for _name in ("bwa", "generative_model", "metal", "mmce", "without_spammers", "worker_clustering"):
    import_module(f"crowd_baselines.{_name}")
