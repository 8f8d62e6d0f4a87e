"""The demo on classes: LabelMe's crowd labels, on descriptors or photographs, and how ways of training compare."""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crowdzoo.components.code_version import code_version
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.files.writing import atomic_file
from crowdzoo.pipelines.run_result import RunResult
from crowdzoo.report.tables import print_table
from crowdzoo.training.settings import InstanceSettings

METHODS = ("majority", "dawid-skene", "VW", "MW", "gold")
SUMMARY = "comparison.json"


def opening(dataset: CrowdDataset) -> str:
    """What the data set has."""
    return (
        f"LabelMe: {dataset.annotations.num_tasks:,} images, {len(dataset.annotations):,} labels by "
        f"{dataset.annotations.num_annotators} Mechanical Turk annotators"
    )


def compare(
    dataset: CrowdDataset, settings: InstanceSettings, seeds: tuple[int, ...], report: Path, result: RunResult
) -> list[Path]:
    """Compares five ways of training."""
    summary = _compared(dataset, settings, seeds, report)
    print_table(summary["title"], summary["header"], summary["rows"])
    votes = ", ".join(f"{name} {value:.3f}" for name, value in summary["label_accuracy"].items())
    print(f"For comparison, the labels themselves, right on the training images: {votes}\n")
    if not result.cached:
        direct = summary["seconds"]["MW"]
        print(f"Time: the pipeline {result.total_seconds:.1f} s; the same training called directly {direct:.1f} s\n")
    return [report / name for name in summary["plots"]]


def _compared(dataset: CrowdDataset, settings: InstanceSettings, seeds: tuple[int, ...], folder: Path) -> Any:
    """Table and plots of the comparison; those in the folder where they come from the same code and settings."""
    key = hashlib.sha256(
        repr(
            (code_version("crowdzoo.report", "crowdzoo.datasets", __name__), dataclasses.astuple(settings), seeds)
        ).encode()
        + b"".join(map(bytes, dataset.instances))
    ).hexdigest()
    file = folder / SUMMARY
    if file.is_file():
        summary = json.loads(file.read_text(encoding="utf-8"))
        if summary.get("key") == key and all((folder / name).is_file() for name in summary["plots"]):
            return summary
    from crowdzoo.report import comparison as ways

    with _progress(len(METHODS) * len(seeds)) as progress:
        comparison = ways.compare(dataset, METHODS, seeds, settings, progress=progress)
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
            annotators=list(dataset.annotations.annotators), learned_name="by MW's posteriors",
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
