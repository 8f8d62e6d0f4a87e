"""The demo on ratings: numbers by harsh, mild and careless annotators, and what a regressor can learn from them."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.aggregation import create
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.metrics import annotator_biases_from_gold, bias_correlation, mean_absolute_error, r2_score
from crowdzoo.pipelines.demo_trials import against, mean_and_spread, trials
from crowdzoo.report.plots import plot_biases, plot_scores
from crowdzoo.report.tables import print_table
from crowdzoo.training.instance_training import train
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import TrainingSettings

BASELINE = "mean"
# What the regressor learns from: one number a task, or all ratings through a crowd layer
TARGETS = {
    BASELINE: "mean",
    "median": "median",
    "EM, then the network": "rating-em",
    "the true scores (ceiling)": "gold",
}
LAYERS = {"CrowdsourcedLayer, B": "crowdsourced-layer", "deep EM": "rating-em"}
ROWS = (BASELINE, "median", "EM, then the network", *LAYERS, "the true scores (ceiling)")


def opening(dataset: CrowdDataset) -> str:
    """What the data set has."""
    crowd = dataset.annotations
    return (
        f"{crowd.num_tasks:,} made-up things, {len(crowd):,} ratings from 0 to 10 by {crowd.num_annotators} simulated "
        "annotators"
    )


def compare(
    dataset: CrowdDataset, settings: TrainingSettings, seeds: tuple[int, ...], report: Path, result: Any
) -> list[Path]:
    """Compares what a regressor can learn from, by R² on held-out things."""
    training = dataset.split == "train"
    crowd = dataset.annotations.select_tasks(training)
    x, gold = dataset.instances, dataset.gold
    targets = {
        row: gold[training] if source == "gold" else _estimates(source, crowd, settings)
        for row, source in TARGETS.items()
    }
    ratings = {"annotations": crowd, "tasks": crowd.tasks}
    errors: dict[str, list[float]] = {row: [] for row in ROWS}
    biases: dict[str, np.ndarray] = {}  # those that the last seed's crowd layers learnt, [R]

    def r2(row: str, seed: int) -> float:
        labels: dict[str, Any] = ratings if row in LAYERS else {"ratings": targets[row]}
        how = dataclasses.replace(settings, seed=seed, method=LAYERS.get(row, AGGREGATED))
        model, _ = train(how, x[training], **labels)
        found = model.predict(x[~training], verbose=0)[:, 0]
        errors[row].append(mean_absolute_error(gold[~training], found))
        if row in LAYERS:
            biases[row] = model.annotator_biases()
        return r2_score(gold[~training], found)

    scores = trials(ROWS, seeds, "R²", r2)
    title = f"{training.sum():,} things trained on, {(~training).sum():,} held out; {len(seeds)} seeds"
    print_table(
        title, ("trained on", "R²", "against mean", "MAE"),
        [
            (row, mean_and_spread(scores[row]), against(scores, row, BASELINE), mean_and_spread(errors[row]))
            for row in ROWS
        ],
    )  # fmt: skip
    true, counts = annotator_biases_from_gold(crowd, gold[training])
    for row, learnt in biases.items():
        print(f"Biases, {row}: correlation with those against gold {bias_correlation(true, learnt, counts):.3f}")
    print()
    return [
        plot_scores(
            {row: np.array(values) for row, values in scores.items()}, report / "r2.png",
            label="R² on held-out things", title=f"Generated ratings: {title}", baseline=BASELINE,
        ),
        plot_biases(
            true, biases, counts, report / "biases.png",
            title="Annotators' biases (points of 10); areas follow the number of ratings",
        ),
    ]  # fmt: skip


def _estimates(method: str, crowd: Any, settings: TrainingSettings) -> np.ndarray:
    return create(method, kind="regression", low=settings.low, high=settings.high).fit(crowd).estimates
