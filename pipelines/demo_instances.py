"""The demos on classes and ratings: what the pipeline's base learns from annotations in several ways."""

from pathlib import Path

from crowdzoo.comparison.compare import compare as compare_methods
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.pipelines.run_result import RunResult
from crowdzoo.report.plots import plot_comparison
from crowdzoo.report.tables import print_table
from crowdzoo.training.settings import InstanceSettings

# Kind of labels -> what is compared beside the baseline; the first is the pipeline's own
METHODS = {
    "classification": ["crowdsourced-layer scale=1.0", "dawid-skene", "crowdsourced-layer connection=VW", "gold"],
    "regression": ["crowdsourced-layer", "median", "rating-em", "gold"],
}


def opening(dataset: CrowdDataset) -> str:
    """What the data set has."""
    crowd = dataset.annotations
    return f"{dataset.name}: {crowd.num_tasks:,} tasks, {len(crowd):,} labels by {crowd.num_annotators} annotators"


def compare(
    dataset: CrowdDataset, settings: InstanceSettings, seeds: tuple[int, ...], report: Path, result: RunResult
) -> list[Path]:
    """Compares ways of training; held-out tasks take part in the score alone."""
    held_out = dataset.split == "eval"

    def on_run(done: int, total: int) -> None:
        print(f"  {done} of {total} trainings", flush=True)

    found = compare_methods(
        dataset.annotations.select_tasks(~held_out), dataset.instances, dataset.gold, settings=settings, seeds=seeds,
        tasks=dataset.annotations.tasks, held_out=held_out, methods=METHODS[dataset.annotations.kind], folder=report,
        on_run=on_run,
    )  # fmt: skip
    print_table(*found.table())
    print()
    return [plot_comparison(found, report / "comparison.png")]
