"""The demo on sentences: entities that simulated annotators marked, and what a tagger can learn from them."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.aggregation import create
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.pipelines.demo_trials import against, mean_and_spread, trials
from crowdzoo.quality.span_scores import span_scores
from crowdzoo.report.plots import plot_scores
from crowdzoo.report.tables import print_table
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import TaggerSettings
from crowdzoo.training.tagger_training import train_tagger

BASELINE = "majority vote"
HELD_OUT = 0.25
# What the tagger learns from: an aggregation, the annotators' own tags through a crowd layer, or gold
ROWS = {
    BASELINE: "majority-vote",
    "Bayesian sequence combination": "bsc-seq",
    "CrowdsourcedLayer, MW": "crowdsourced-layer",
    "deep EM": "deep-em",
    "the true tags (ceiling)": "gold",
}


def opening(sequences: CrowdSequences) -> str:
    """What the data set has."""
    crowd = sequences.annotations
    return (
        f"{len(sequences):,} generated sentences, {int(crowd.redundancy.sum()):,} tagged copies by "
        f"{crowd.num_annotators} simulated annotators"
    )


def compare(
    sequences: CrowdSequences, settings: TaggerSettings, seeds: tuple[int, ...], report: Path, result: Any
) -> list[Path]:
    """Compares what a tagger can learn from, by F1 on held-out sentences."""
    size = round(len(sequences) * (1 - HELD_OUT))
    train, test = sequences.select(np.arange(size)), sequences.select(np.arange(size, len(sequences)))

    def f1(row: str, seed: int) -> float:
        method, distribution = ROWS[row], None
        if method in ("gold", "majority-vote", "bsc-seq"):
            method, distribution = AGGREGATED, _targets(train, method, seed)
        model, encoder = train_tagger(
            dataclasses.replace(settings, seed=seed, method=method), train.tokens, train.annotations,
            tasks=train.annotations.tasks, tag_distribution=distribution,
        )  # fmt: skip
        found = [test.tag_set.tags(codes) for codes in model.base.tag(encoder(test.tokens))]
        return span_scores(test.gold_tags(), found).f1

    scores = trials(ROWS, seeds, "F1", f1)
    title = f"{size:,} sentences trained on, the others held out; {len(seeds)} seeds"
    header = ("trained on", "F1 of spans", "against majority")
    print_table(title, header, [(row, mean_and_spread(scores[row]), against(scores, row, BASELINE)) for row in ROWS])
    plot = plot_scores(
        {row: np.array(values) for row, values in scores.items()}, report / "f1.png",
        label="F1 of spans in held-out sentences", title=f"Generated sentences: {title}", baseline=BASELINE,
    )  # fmt: skip
    return [plot]


def _targets(train: CrowdSequences, source: str, seed: int) -> list[np.ndarray]:
    """One certain tag a token: the true one, or an aggregation's."""
    if source == "gold":
        codes: Any = train.gold
    else:
        codes = (
            create(source, kind="sequence", **({"seed": seed} if source == "majority-vote" else {})).fit(train).codes()
        )
    return [np.eye(len(train.classes))[tags] for tags in codes]
