"""The demo on ratings: numbers by harsh, mild and careless annotators, to a served regressor."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo import datasets
from crowdzoo.aggregation import create
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.metrics import annotator_biases_from_gold, bias_correlation, mean_absolute_error, r2_score
from crowdzoo.models.feature_training import train
from crowdzoo.pipelines.config import load_config
from crowdzoo.pipelines.demo import print_ways_on
from crowdzoo.pipelines.local import run
from crowdzoo.report.plots import plot_biases, plot_scores
from crowdzoo.report.tables import print_table
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import TrainingSettings

__all__ = ["run_ratings_demo"]

CONFIG = Path(__file__).with_name("configs") / "generated-ratings.yaml"
# What the regressor learns from: one number a task, or all ratings through a crowd layer
TARGETS = {"mean": "mean", "median": "median", "EM, then the network": "rating-em", "the true scores (ceiling)": "gold"}
LAYERS = {"CrowdsourcedLayer, B": "crowdsourced-layer", "deep EM": "rating-em"}
ROWS = ("mean", "median", "EM, then the network", *LAYERS, "the true scores (ceiling)")


@dataclasses.dataclass
class _Scores:
    """By row, one number a seed; and the biases that the last seed's crowd layers learnt, [R]."""

    r2: dict[str, list[float]]
    errors: dict[str, list[float]]
    biases: dict[str, np.ndarray]


def run_ratings_demo(out: Path, seeds: Iterable[int] = range(3)) -> None:
    """Runs the pipeline on generated ratings, compares ways of training, and says where everything is.

    Args:
        out: folder of everything that is written.
        seeds: seeds of the trainings that are compared.

    Raises:
        CrowdzooError: as `crowdzoo.pipelines.local.run`.
    """
    config = load_config(CONFIG, {"output.root": str(out), "output.serving": str(out / "serving")})
    dataset, seeds = datasets.load("generated-ratings"), tuple(seeds)
    crowd = dataset.annotations
    print(
        f"{crowd.num_tasks:,} made-up things, {len(crowd):,} ratings from {config.data.low:g} to {config.data.high:g} "
        f"by {crowd.num_annotators} simulated annotators"
    )
    print(f"\nThe pipeline, {CONFIG.name}:")
    result = run(config)
    print(f"\n{result.summary()}\n")
    settings = TrainingSettings(
        task="regression", low=config.data.low, high=config.data.high,
        **{key: value for key, value in config.base_arguments.items() if key != "base"}, **config.training.model_dump(),
    )  # fmt: skip
    scores = _compared(dataset, settings, seeds)
    num_train = int((dataset.split == "train").sum())
    title = f"{num_train:,} things trained on, {crowd.num_tasks - num_train:,} held out; {len(seeds)} seeds"
    floor = np.mean(scores.r2["mean"])
    print_table(
        title, ("trained on", "R²", "against mean", "MAE"),
        [
            (row, _mean(scores.r2[row]), "" if row == "mean" else f"{np.mean(scores.r2[row]) - floor:+.3f}",
             _mean(scores.errors[row]))
            for row in ROWS
        ],
    )  # fmt: skip
    known = crowd.select_tasks(dataset.split == "train")
    true, counts = annotator_biases_from_gold(known, dataset.gold[dataset.split == "train"])
    for row, biases in scores.biases.items():
        print(f"Biases, {row}: correlation with those against gold {bias_correlation(true, biases, counts):.3f}")
    plots = [
        plot_scores(
            {row: np.array(values) for row, values in scores.r2.items()}, out / "report" / "r2.png",
            label="R² on held-out things", title=f"Generated ratings: {title}", baseline="mean",
        ),
        plot_biases(
            true, scores.biases, counts, out / "report" / "biases.png",
            title="Annotators' biases (points of 10); areas follow the number of ratings",
        ),
    ]  # fmt: skip
    print()
    print_ways_on(config, result, plots)


def _compared(dataset: CrowdDataset, settings: TrainingSettings, seeds: Sequence[int]) -> _Scores:
    """Errors on the held-out things."""
    training = dataset.split == "train"
    crowd = dataset.annotations.select_tasks(training)
    x, gold = dataset.instances, dataset.gold
    targets = {
        row: gold[training] if source == "gold" else _estimates(source, crowd, settings)
        for row, source in TARGETS.items()
    }
    ratings = {"annotations": crowd, "tasks": crowd.tasks}
    scores = _Scores({row: [] for row in ROWS}, {row: [] for row in ROWS}, {})
    for seed in seeds:
        for row in ROWS:
            labels: dict[str, Any] = ratings if row in LAYERS else {"ratings": targets[row]}
            how = dataclasses.replace(settings, seed=seed, method=LAYERS.get(row, AGGREGATED))
            model = train(how, x[training], **labels)
            found = model.predict(x[~training], verbose=0)[:, 0]
            scores.r2[row].append(r2_score(gold[~training], found))
            scores.errors[row].append(mean_absolute_error(gold[~training], found))
            if row in LAYERS:
                scores.biases[row] = model.annotator_biases()
            print(f"  seed {seed}, {row}: R² {scores.r2[row][-1]:.3f}", flush=True)
    return scores


def _estimates(method: str, crowd: Any, settings: TrainingSettings) -> np.ndarray:
    return create(method, kind="regression", low=settings.low, high=settings.high).fit(crowd).estimates


def _mean(values: Sequence[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"
