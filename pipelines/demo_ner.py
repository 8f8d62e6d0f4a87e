"""The demo on sentences: entities that simulated annotators marked, to a served tagger of raw text."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo import datasets
from crowdzoo.aggregation import create
from crowdzoo.models.tagger_training import train_tagger
from crowdzoo.pipelines.config import load_config
from crowdzoo.pipelines.demo import print_ways_on
from crowdzoo.pipelines.local import run
from crowdzoo.report.plots import plot_scores
from crowdzoo.report.tables import print_table
from crowdzoo.sequences import CrowdSequences, span_scores
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import TaggerSettings

__all__ = ["run_ner_demo"]

CONFIG = Path(__file__).with_name("configs") / "generated-ner.yaml"
HELD_OUT = 0.25
# What the tagger learns from: an aggregation, the annotators' own tags through a crowd layer, or gold
ROWS = {
    "majority vote": "majority-vote",
    "Bayesian sequence combination": "bsc-seq",
    "CrowdsourcedLayer, MW": "crowdsourced-layer",
    "deep EM": "deep-em",
    "the true tags (ceiling)": "gold",
}


def run_ner_demo(out: Path, seeds: Iterable[int] = range(2)) -> None:
    """Runs the pipeline on generated sentences, compares ways of training, and says where everything is.

    Args:
        out: folder of everything that is written.
        seeds: seeds of the trainings that are compared.

    Raises:
        CrowdzooError: as `crowdzoo.pipelines.local.run`.
    """
    # sentences of many lengths are traced often, and TensorFlow warns of that on the terminal
    tf.get_logger().setLevel("ERROR")
    config = load_config(CONFIG, {"output.root": str(out), "output.serving": str(out / "serving")})
    sequences, seeds = datasets.load("generated-ner"), tuple(seeds)
    crowd = sequences.annotations
    print(
        f"{len(sequences):,} generated sentences, {int(crowd.redundancy.sum()):,} tagged copies by "
        f"{crowd.num_annotators} simulated annotators"
    )
    print(f"\nThe pipeline, {CONFIG.name}:")
    result = run(config)
    print(f"\n{result.summary()}\n")
    settings = TaggerSettings(
        **{key: value for key, value in config.base_arguments.items() if key != "base"},
        **config.training.model_dump(),
    )
    scores = _compared(sequences, settings, seeds)
    title = f"{_num_train(sequences):,} sentences trained on, the others held out; {len(seeds)} seeds"
    header = ("trained on", "F1 of spans", "against majority")
    floor = np.mean(scores["majority vote"])
    rows = [
        (name, _mean(values), "" if name == "majority vote" else f"{np.mean(values) - floor:+.3f}")
        for name, values in scores.items()
    ]
    print_table(title, header, rows)
    plot = plot_scores(
        {name: np.array(values) for name, values in scores.items()}, out / "report" / "f1.png",
        label="F1 of spans in held-out sentences", title=f"Generated sentences: {title}", baseline="majority vote",
    )  # fmt: skip
    print_ways_on(config, result, [plot])


def _num_train(sequences: CrowdSequences) -> int:
    return round(len(sequences) * (1 - HELD_OUT))


def _compared(sequences: CrowdSequences, settings: TaggerSettings, seeds: Sequence[int]) -> dict[str, list[float]]:
    """F1 on the held-out sentences by row, one number a seed."""
    size = _num_train(sequences)
    train, test = sequences.select(np.arange(size)), sequences.select(np.arange(size, len(sequences)))
    scores: dict[str, list[float]] = {name: [] for name in ROWS}
    for seed in seeds:
        for name, source in ROWS.items():
            how: dict[str, Any] = {"method": source}
            distribution = None
            if source in ("gold", "majority-vote", "bsc-seq"):
                how, distribution = {"method": AGGREGATED}, _targets(train, source, seed)
            model, encoder = train_tagger(
                dataclasses.replace(settings, seed=seed, **how), train.tokens, train.annotations,
                tasks=train.annotations.tasks, tag_distribution=distribution,
            )  # fmt: skip
            found = [test.tag_set.tags(codes) for codes in model.base.tag(encoder(test.tokens))]
            scores[name].append(span_scores(test.gold_tags(), found).f1)
            print(f"  seed {seed}, {name}: F1 {scores[name][-1]:.3f}", flush=True)
    return scores


def _targets(train: CrowdSequences, source: str, seed: int) -> list[np.ndarray]:
    """One certain tag a token: the true one, or an aggregation's."""
    if source == "gold":
        codes: Any = train.gold
    else:
        codes = (
            create(source, kind="sequence", **({"seed": seed} if source == "majority-vote" else {})).fit(train).codes()
        )
    return [np.eye(len(train.classes))[tags] for tags in codes]


def _mean(values: Sequence[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"
