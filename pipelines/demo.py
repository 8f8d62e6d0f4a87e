"""The demos: the pipeline on a data set that crowdzoo ships, ways of training compared, and how to go on."""

import dataclasses
import logging
import os
import shlex
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from crowdzoo import datasets
from crowdzoo.data.instance_kinds import IMAGES
from crowdzoo.pipelines.config import PipelineConfig, load_config
from crowdzoo.pipelines.local import run
from crowdzoo.pipelines.run_result import RunResult
from crowdzoo.serving.curl import curl_example

CONFIGS = Path(__file__).with_name("configs")


# Name -> configuration and data set, the number of trainings of each way, and the module with the rest: its `opening`
# says what the data set has; its `compare` trains, prints a table, and gives the files of plots
DEMOS = {
    "labelme": ("labelme", 5, "demo_instances"),
    "images": ("labelme-images", 1, "demo_instances"),
    "ner": ("generated-ner", 2, "demo_ner"),
    "ratings": ("generated-ratings", 3, "demo_instances"),
}


def run_demo(name: str, out: Path, seeds: Iterable[int] | None = None) -> None:
    """Runs the pipeline, compares ways of training, draws plots and says where everything is.

    Args:
        name: a name in `DEMOS`.
        out: folder of everything that is written. What an earlier run has left complete there is used again.
        seeds: of the trainings that are compared; None is the demo's own number of them.

    Raises:
        CrowdzooError: as `crowdzoo.pipelines.local.run`.
    """
    source, num_seeds, module = DEMOS[name]
    demo = import_module(f"crowdzoo.pipelines.{module}")
    file = CONFIGS / f"{source}.yaml"
    config = load_config(file, {"output.root": str(out), "output.serving": str(out / "serving")})
    dataset = datasets.load(source)
    print(demo.opening(dataset))
    print(f"\nThe pipeline, {file.name}:")
    result = run(config)
    print(f"\n{result.summary()}\n")
    settings = dataclasses.replace(config.settings, arguments={})
    chosen = tuple(range(num_seeds) if seeds is None else seeds)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # each training is traced anew, of which it warns
    _print_ways_on(config, result, demo.compare(dataset, settings, chosen, out / "report", result))


def _print_ways_on(config: PipelineConfig, result: RunResult, plots: Iterable[Path]) -> None:
    """Prints where everything is, and the lines that serve the model and ask it."""
    print(f"Served models  {config.output.serving}")
    print(f"Metadata       {result.metadata}")
    for path in plots:
        print(f"Plot           {path}")
    command = Path(sys.argv[0]).name if os.environ.get("VIRTUAL_ENV") else os.path.relpath(sys.argv[0])
    serve = shlex.join([command, "serve", str(config.output.serving), "--name", config.name])
    print(f"\nServe it:\n    {serve}\nand ask it:\n    {curl_example(config.output.serving, name=config.name)}")
    if config.instances == IMAGES:
        ask = f"curl -d @- http://127.0.0.1:8501/v1/models/{config.name}:predict"
        write = """(printf '{"instances": [{"b64": "'; base64 < photo.jpg | tr -d '\\n'; printf '"}]}')"""
        print(f"or with a JPEG or PNG file of yours:\n    {write} | {ask}")
