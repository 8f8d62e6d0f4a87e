"""Lists in order: read as lists (Plackett-Luce), or as the pairs that they imply (Bradley-Terry)?

    python benchmarks/rankings.py           # the simulated lists and the judges; a few minutes
    python benchmarks/rankings.py --print   # the tables of the saved results

**What is decided.** Lists that a platform or a column holds become pairs, each task before all that follow it, which
any method of preferences reads. The pairs of a list are not independent. If the scores that come of them are measurably
worse than those of the lists, lists are to be kept, and read by `plackett-luce`.

**Simulated lists.** 30 tasks with scores from a standard normal distribution, and 12 annotators. Lists of 3, 5 and 10
tasks drawn at random, as many as give each task 12 places; the annotators take turns. An annotator orders the tasks of
a list by slope times score plus noise: Gumbel noise, which is Plackett and Luce's model, or normal noise of the same
variance, which is Thurstone's and neither method's. Slopes: "alike" all are 1; "careful" log-normal, sigma .5;
"random" three annotators have 0, nine have 1. 40 seeds of each of the 18 settings.

**Judges.** `llm-judges`: 33 judges gave passages of a query a grade from 0 to 3. For each query and judge up to 20
lists are drawn, of one passage of each grade that the judge gave, if these are three or four. Methods are fitted to
each query; figures are means over the 17 queries. 5 seeds. Gold is the grade by assessors.

**Measures.** Spearman's rho of the scores with the true scores (or grades). In simulations also the mean log-likelihood
of a fresh comparison by an annotator with slope 1, over all pairs of tasks, in nats: scores that are too far apart lose
there, as those of pairs that were taken for independent may be.

**Protocol**, fixed before the first run. Methods have their default settings. In each setting the mean over seeds of
the difference to `plackett-luce`, with a 95 % interval (normal, paired by seed). The pairs are measurably worse if rho
is lower by more than .005 in most of the settings, with an interval without 0; or the log-likelihood by more than .005
nats, likewise. `annotator-bradley-terry`, the default for preferences, decides; `bradley-terry` is shown too.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, spearmanr

sys.path.append(str(Path(__file__).parent / "reproduce"))
from needed import need

from crowdzoo.aggregation import PlackettLuce, create
from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.datasets import data_folder
from crowdzoo.report.tables import print_table
from crowdzoo.tables import Rankings

RESULTS = Path(__file__).parent / "results" / "rankings.json"
NUM_TASKS, NUM_ANNOTATORS, PLACES = 30, 12, 12
LENGTHS, NOISES, CROWDS = (3, 5, 10), ("gumbel", "normal"), ("alike", "careful", "random")
SEEDS, JUDGE_SEEDS, MOST_LISTS = 40, 5, 20
PAIRS = ("annotator-bradley-terry", "bradley-terry")
SPREAD = np.pi / np.sqrt(6)  # standard deviation of Gumbel noise
LEAST = 0.005  # a difference that counts


def fit_all(rankings: Rankings) -> dict[str, PreferenceAggregation]:
    """Method -> its result."""
    pairs = rankings.preferences()
    return {"plackett-luce": PlackettLuce().fit(rankings)} | {
        name: create(name, kind="preference").fit(pairs) for name in PAIRS
    }


def simulated(length: int, noise: str, crowd: str, seed: int) -> dict[str, dict[str, float]]:
    """Method -> measures, of one draw."""
    rng = np.random.default_rng([61, length, NOISES.index(noise), CROWDS.index(crowd), seed])
    scores = rng.normal(size=NUM_TASKS)
    slopes = np.ones(NUM_ANNOTATORS) if crowd != "careful" else np.exp(rng.normal(0, 0.5, NUM_ANNOTATORS))
    slopes[:3] = 0 if crowd == "random" else slopes[:3]
    number = NUM_TASKS * PLACES // length
    shown = np.argsort(rng.random((number, NUM_TASKS)), axis=1)[:, :length]
    who = np.arange(number) % NUM_ANNOTATORS
    drawn = rng.gumbel(size=shown.shape) if noise == "gumbel" else rng.normal(0, SPREAD, shown.shape)
    places = (-(slopes[who, None] * scores[shown] + drawn)).argsort(axis=1).argsort(axis=1)
    lists = np.repeat(np.arange(number), length)
    rankings = Rankings.from_arrays(shown.ravel(), who[lists], places.ravel(), lists)
    left, right = np.triu_indices(NUM_TASKS, 1)
    ahead = scores[left] - scores[right]
    true = 1 / (1 + np.exp(-ahead)) if noise == "gumbel" else norm.cdf(ahead / (SPREAD * np.sqrt(2)))
    measures = {}
    for name, result in fit_all(rankings).items():
        chances = np.log(result.probabilities(left, right)[:, :2])
        likelihood = float((true * chances[:, 0] + (1 - true) * chances[:, 1]).mean())
        measures[name] = {"rho": float(spearmanr(result.scores, scores).statistic), "log-likelihood": likelihood}
    return measures


def judged(seed: int) -> dict[str, dict[str, float]]:
    """Method -> mean rho over the queries."""
    folder = data_folder() / "llm-judges"
    grades: dict[str, dict[str, dict[int, list[str]]]] = {}  # query -> judge -> grade -> passages
    with open(folder / "annotations.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            of_judge = grades.setdefault(row["task"].split("-")[0], {}).setdefault(row["annotator"], {})
            of_judge.setdefault(int(row["label"]), []).append(row["task"])
    with open(folder / "gold.csv", encoding="utf-8", newline="") as file:
        gold = {row["task"]: float(row["gold"]) for row in csv.DictReader(file)}
    rng = np.random.default_rng([62, seed])
    rhos: dict[str, list[float]] = {}
    for of_query in grades.values():
        rows = [*lists_of(of_query, rng)]
        rankings = Rankings.from_arrays(*(np.array(column) for column in zip(*rows, strict=True)))
        known = np.array([gold.get(str(task), np.nan) for task in rankings.tasks])
        for name, result in fit_all(rankings).items():
            is_known = ~np.isnan(known)
            rhos.setdefault(name, []).append(float(spearmanr(result.scores[is_known], known[is_known]).statistic))
    return {name: {"rho": float(np.mean(values))} for name, values in rhos.items()}


def lists_of(of_query: dict[str, dict[int, list[str]]], rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """Task, judge, rank and list of each place."""
    for judge, passages in of_query.items():
        if len(passages) < 3:
            continue
        for number in range(min(MOST_LISTS, max(map(len, passages.values())))):
            for rank, grade in enumerate(sorted(passages, reverse=True)):
                yield str(rng.choice(passages[grade])), judge, rank, f"{judge} {number}"


def summary(draws: list[dict[str, dict[str, float]]], measure: str) -> dict[str, list[float]]:
    """Method -> mean, mean difference to `plackett-luce`, and half of its interval."""
    values: dict[str, NDArray[np.float64]] = {
        name: np.array([draw[name][measure] for draw in draws]) for name in ("plackett-luce", *PAIRS)
    }
    apart = {name: column - values["plackett-luce"] for name, column in values.items()}
    half = {name: 1.96 * float(gap.std(ddof=1)) / np.sqrt(len(gap)) for name, gap in apart.items()}
    return {name: [float(values[name].mean()), float(apart[name].mean()), half[name]] for name in values}


def show(results: dict[str, Any]) -> None:
    """Prints the tables, and what follows from them."""
    for measure in ("rho", "log-likelihood"):
        rows, worse = [], 0
        for setting, by_measure in results["settings"].items():
            if measure not in by_measure:
                continue
            cells = [f"{by_measure[measure]['plackett-luce'][0]:.3f}"]
            for name in PAIRS:
                _, apart, half = by_measure[measure][name]
                cells.append(f"{apart:+.4f} ± {half:.4f}")
                worse += name == PAIRS[0] and setting != "judges" and apart < -LEAST and apart + half < 0
            rows.append((setting, *cells))
        title = f"{measure}: plackett-luce, and the difference of the others to it"
        print_table(title, ("setting", "plackett-luce", *PAIRS), rows)
        print(f"measurably worse in {worse} of {sum(setting != 'judges' for setting, *_ in rows)} settings")


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="show the saved results")
    arguments = parser.parse_args()
    need("llm-judges")
    if not arguments.print:
        settings = {}
        for length, noise, crowd in product(LENGTHS, NOISES, CROWDS):
            draws = [simulated(length, noise, crowd, seed) for seed in range(SEEDS)]
            of = {measure: summary(draws, measure) for measure in ("rho", "log-likelihood")}
            settings[f"{length} tasks, {noise}, {crowd}"] = of
        settings["judges"] = {"rho": summary([judged(seed) for seed in range(JUDGE_SEEDS)], "rho")}
        RESULTS.write_text(json.dumps({"seeds": SEEDS, "settings": settings}, indent=1) + "\n", encoding="utf-8")
    show(json.loads(RESULTS.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
