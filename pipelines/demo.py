"""The main job on real data: LabelMe's crowd labels to a served model, and how the ways of training compare."""

import contextlib
import dataclasses
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from crowdzoo import datasets
from crowdzoo.components.code_version import code_version
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.files.writing import atomic_file
from crowdzoo.pipelines.config import PipelineConfig, load_config
from crowdzoo.pipelines.local import run
from crowdzoo.pipelines.run_result import RunResult
from crowdzoo.report.tables import print_table
from crowdzoo.serving.curl import curl_example
from crowdzoo.training.settings import TrainingSettings

__all__ = ["print_ways_on", "run_demo"]

CONFIG = Path(__file__).with_name("configs") / "labelme.yaml"
METHODS = ("majority", "dawid-skene", "VW", "MW", "gold")
SUMMARY = "comparison.json"


def run_demo(out: Path, seeds: Iterable[int] = range(5)) -> None:
    """Runs the pipeline on LabelMe, compares five ways of training, draws plots and says where everything is.

    What an earlier run in the same folder has left complete is used again.

    Args:
        out: folder of everything that is written.
        seeds: seeds of the trainings that are compared.

    Raises:
        CrowdzooError: as `crowdzoo.pipelines.local.run`.
    """
    config = load_config(CONFIG, {"output.root": str(out), "output.serving": str(out / "serving")})
    dataset = datasets.load("labelme")
    print(
        f"LabelMe: {dataset.annotations.num_tasks:,} images, {len(dataset.annotations):,} labels by "
        f"{dataset.annotations.num_annotators} Mechanical Turk annotators"
    )
    print(f"\nThe pipeline, {CONFIG.name}:")
    result = run(config)
    print(f"\n{result.summary()}\n")
    settings = TrainingSettings(
        **{key: value for key, value in config.base_arguments.items() if key != "base"}, **config.training.model_dump()
    )
    summary = _compared(dataset, settings, tuple(seeds), out / "report")
    print_table(summary["title"], summary["header"], summary["rows"])
    votes = ", ".join(f"{name} {value:.3f}" for name, value in summary["label_accuracy"].items())
    print(f"For comparison, the labels themselves, right on the training images: {votes}\n")
    if not result.cached:
        direct = summary["seconds"]["MW"]
        print(f"Time: the pipeline {result.total_seconds:.1f} s; the same training called directly {direct:.1f} s\n")
    print_ways_on(config, result, [out / "report" / name for name in summary["plots"]])


def print_ways_on(config: PipelineConfig, result: RunResult, plots: Iterable[Path]) -> None:
    """Prints where everything is, and the lines that serve the model and ask it.

    Args:
        config: config of the run.
        result: result of the run.
        plots: files of pictures.
    """
    print(f"Served models  {config.output.serving}")
    print(f"Metadata       {result.metadata}")
    for path in plots:
        print(f"Plot           {path}")
    command = Path(sys.argv[0]).name if os.environ.get("VIRTUAL_ENV") else os.path.relpath(sys.argv[0])
    serve = shlex.join([command, "serve", str(config.output.serving), "--name", config.name])
    print(f"\nServe it:\n    {serve}\nand ask it:\n    {curl_example(config.output.serving, name=config.name)}")


def _compared(dataset: CrowdDataset, settings: TrainingSettings, seeds: tuple[int, ...], folder: Path) -> Any:
    """Table and plots of the comparison; those in the folder where they come from the same code and settings."""
    key = hashlib.sha256(
        repr(
            (code_version("crowdzoo.report", "crowdzoo.datasets", __name__), dataclasses.astuple(settings), seeds)
        ).encode()
        + dataset.instances.tobytes()
    ).hexdigest()
    file = folder / SUMMARY
    if file.is_file():
        summary = json.loads(file.read_text(encoding="utf-8"))
        if summary.get("key") == key and all((folder / name).is_file() for name in summary["plots"]):
            return summary
    from crowdzoo.report.comparison import compare

    with _progress(len(METHODS) * len(seeds)) as progress:
        comparison = compare(dataset, METHODS, seeds, settings, progress=progress)
    summary = {
        **comparison.to_dict(),
        "key": key,
        "title": f"{comparison.num_train} training images, {comparison.num_eval} held out; mean ± std over seeds",
        "header": comparison.header(),
        "rows": comparison.rows(),
        "plots": [path.name for path in _draw(comparison, dataset, folder)],
    }
    with atomic_file(file) as stream:  # last of all: it says that the rest is complete
        stream.write(json.dumps(summary, indent=1).encode())
    return summary


def _draw(comparison: Any, dataset: CrowdDataset, folder: Path) -> list[Path]:
    from crowdzoo.metrics import annotator_confusions_from_gold
    from crowdzoo.report.plots import plot_accuracies, plot_confusions, plot_em_history, plot_training_curves

    assert dataset.annotations.classes is not None  # only ratings have none
    true, counts = annotator_confusions_from_gold(dataset.annotations, dataset.gold)
    return [
        plot_accuracies(comparison, folder / "accuracies.png"),
        plot_confusions(
            true, comparison.confusions["MW"], counts, list(dataset.annotations.classes), folder / "confusions.png",
            annotators=list(dataset.annotations.annotators), learned_name="learned by MW",
        ),
        plot_em_history(comparison.aggregation_history, folder / "dawid_skene.png"),
        plot_training_curves(comparison.curves, folder / "training.png"),
    ]  # fmt: skip


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[str, int, int, int], None]]:
    """A bar on a terminal; elsewhere a line for each method's last seed."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("comparison", total=total)

        def trained(method: str, seed: int, done: int, of: int) -> None:
            progress.update(bar, completed=done, description=f"training {method}, seed {seed}")
            if not console.is_terminal and done % len(METHODS) == 0:
                print(f"comparison: {done} of {of} trainings", flush=True)

        yield trained
