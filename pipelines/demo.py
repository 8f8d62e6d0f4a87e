"""The demos: run the pipeline on a shipped data set, compare ways of training, and print next steps."""

import dataclasses
import logging
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo import datasets
from crowdzoo.comparison.compare import compare
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.instance_kinds import IMAGES
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.local import run
from crowdzoo.pipelines.run_result import RunResult
from crowdzoo.report.plots import plot_comparison
from crowdzoo.report.tables import print_table
from crowdzoo.serving.curl import curl_example

CONFIGS = Path(__file__).with_name("configs")


OF_CLASSES = ("crowdsourced-layer scale=1.0", "dawid-skene", "crowdsourced-layer connection=VW", "gold")
# Name -> configuration and data set, number of trainings per way, and ways that are compared with the baseline; the
# first is that of the pipeline
DEMOS = {
    "labelme": ("labelme", 5, OF_CLASSES),
    "images": ("labelme-images", 1, OF_CLASSES),
    "ner": ("generated-ner", 2, ("bsc-seq", "crowdsourced-layer", "deep-em", "gold")),
    "ratings": ("generated-ratings", 3, ("crowdsourced-layer", "median", "rating-em", "gold")),
}
HELD_OUT = 0.25  # for sentences, which have no split


def run_demo(name: str, out: Path, seeds: Iterable[int] | None = None) -> None:
    """Runs the pipeline, compares ways of training, draws plots and prints where results are.

    Args:
        name: a name in `DEMOS`.
        out: folder of all results. Complete results of an earlier run are reused.
        seeds: seeds of the compared trainings; None uses the demo's number of trainings.

    Raises:
        CrowdzooError: as `crowdzoo.pipelines.local.run`.
    """
    source, num_seeds, methods = DEMOS[name]
    file = CONFIGS / f"{source}.yaml"
    config = load_config(file, {"output.root": str(out), "output.serving": str(out / "serving")})
    dataset = datasets.load(source)
    print(_opening(dataset))
    print(f"\nThe pipeline, {file.name}:")
    result = run(config)
    print(f"\n{result.summary()}\n")
    settings = dataclasses.replace(config.settings, arguments={})
    chosen = tuple(range(num_seeds) if seeds is None else seeds)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # it warns about tracing each training
    report = out / "report"
    comparison = compare(
        **_crowd(dataset), settings=settings, seeds=chosen, methods=methods, folder=report, on_run=_say
    )
    print_table(*comparison.table(), whole=3)
    print()
    _print_ways_on(config, result, plot_comparison(comparison, report / "comparison.png"))


def _opening(dataset: CrowdDataset | CrowdSequences) -> str:
    """Describes the data set."""
    crowd = dataset.annotations
    if isinstance(dataset, CrowdSequences):
        copies = f"{int(crowd.redundancy.sum()):,} tagged copies by {crowd.num_annotators} simulated annotators"
        return f"{len(dataset):,} generated sentences, {copies}"
    return f"{dataset.name}: {crowd.num_tasks:,} tasks, {len(crowd):,} labels by {crowd.num_annotators} annotators"


def _crowd(dataset: CrowdDataset | CrowdSequences) -> dict[str, Any]:
    """Arguments of the comparison; held-out tasks are only used for scores."""
    if isinstance(dataset, CrowdSequences):
        return {"annotations": dataset, "held_out": np.arange(len(dataset)) >= round(len(dataset) * (1 - HELD_OUT))}
    held_out = dataset.split == "eval"
    crowd = dataset.annotations
    known = {"tasks": crowd.tasks, "instances": dataset.instances, "gold": dataset.gold}
    return {"annotations": crowd.select_tasks(~held_out), "held_out": held_out, **known}


def _say(done: int, total: int) -> None:
    print(f"  {done} of {total} trainings", flush=True)


def _print_ways_on(config: PipelineConfig, result: RunResult, plot: Path) -> None:
    """Prints where results are, and commands that serve the model and request a prediction."""
    print(f"Served models  {config.output.serving}")
    print(f"Metadata       {result.metadata}")
    print(f"Plot           {plot}")
    command = Path(sys.argv[0]).name if os.environ.get("VIRTUAL_ENV") else os.path.relpath(sys.argv[0])
    serve = shlex.join([command, "serve", str(config.output.serving), "--name", config.name])
    print(f"\nServe it:\n    {serve}\nand ask it:\n    {curl_example(config.output.serving, name=config.name)}")
    if config.instances == IMAGES:
        ask = f"curl -d @- http://127.0.0.1:8501/v1/models/{config.name}:predict"
        write = """(printf '{"instances": [{"b64": "'; base64 < photo.jpg | tr -d '\\n'; printf '"}]}')"""
        print(f"or with your own JPEG or PNG file:\n    {write} | {ask}")
