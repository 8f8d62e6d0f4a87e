"""What cheap models and dear people cost together: language models that grade passages, and simulated people.

    python benchmarks/reproduce/models_and_people.py             # 10 runs a row
    python benchmarks/reproduce/models_and_people.py --page      # prints the table of what is saved

The models are those of `llm-judges` (33 judges, grades 0 to 3, NIST's grades as gold). Eight people are simulated: each
is right with a probability of its own, drawn from .7 to .9, and a wrong grade is the likelier the nearer it is to the
right one (inverse power 1.5). An answer of a person costs 1, one of a model as much as the row says. Of the 2,885 tasks
700 (drawn with seed 0) were looked at while `people_and_models` was written; the others are measured here.

Each run draws 1,000 of these tasks and the people. Two people label a tenth of the tasks and one model all tasks, all
drawn at random; then each way spends a twentieth of a person's answer a task in a round, until its labels are as
accurate as those of two people for every task (`one-coin`), less .01:

- "people, at random": no models; people are asked evenly at random, `one-coin`.
- "people and all models": all models label all tasks, people are asked evenly at random, `people_and_models`.
- "people, by gain": no models; `next_annotations` with `one-coin`.
- "by gain, models as people": `next_annotations` with `hierarchical-dawid-skene`, which takes all annotators as
  independent, as `crowdzoo next` does where it does not know who is a model.
- "by gain, people and models": `next_annotations` with `people_and_models`, as `crowdzoo next --annotator-table`.

Gold measures only. A way that has not reached the accuracy when it has spent three people's answers per task has spent
that, and counts so.
"""

import statistics
import sys
import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from intervals import Runs, mean_interval
from needed import need
from rows import grid, read, run
from settings import aggregator

sys.path.insert(0, str(Path(__file__).parents[1]))
from real_crowds import real_sets

from crowdzoo import Annotations
from crowdzoo.quality import next_annotations, people_and_models

RESULTS = Path(__file__).parents[1] / "results" / "models_and_people.json"
RUNS = 10
TASKS = 1000
PEOPLE = 8
PRICES = (0.01, 0.05, 0.2)
ROUND = 0.05
MOST = 3.0
MARGIN = 0.01
WAYS = (
    "people, at random",
    "people, by gain",
    "people and all models",
    "by gain, models as people",
    "by gain, people and models",
)


@cache
def table_of_models() -> tuple[np.ndarray, np.ndarray]:
    """Labels of the models on the tasks that are measured [N, M], -1 where missing, and gold [N]."""
    _, annotations, gold = next(real_sets(("llm-judges",)))
    table = np.full((annotations.num_tasks, annotations.num_annotators), -1)
    table[annotations.task_ids, annotations.annotator_ids] = annotations.labels
    looked_at = np.random.default_rng(0).choice(len(table), 700, replace=False)
    remaining = np.setdiff1d(np.arange(len(table)), looked_at)
    return table[remaining], np.asarray(gold)[remaining]


def drawn_people(gold: np.ndarray, num_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Labels of the people, [N, PEOPLE]."""
    gap = np.abs(np.arange(num_classes)[:, None] - np.arange(num_classes))
    odds = np.where(gap > 0, 1 / np.maximum(gap, 1) ** 1.5, 0.0)
    wrong = (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)
    labels = []
    for skill in rng.uniform(0.7, 0.9, PEOPLE):
        other = (rng.random(len(gold))[:, None] > wrong[gold]).sum(axis=1)
        labels.append(np.where(rng.random(len(gold)) < skill, gold, other))
    return np.stack(labels, axis=1)


class Replay:
    """One draw of tasks and people, what was asked so far, and what it cost."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        models, gold = table_of_models()
        rows = self.rng.choice(len(gold), TASKS, replace=False)
        self.gold, models = gold[rows], models[rows]
        self.num_classes, self.num_models = int(gold.max()) + 1, models.shape[1]
        self.labels = np.hstack([models, drawn_people(self.gold, self.num_classes, self.rng)])
        self.is_model = np.arange(self.labels.shape[1]) < self.num_models
        two = np.zeros(self.labels.shape, bool)
        people = self.num_models + self.rng.random((TASKS, PEOPLE)).argsort(axis=1)
        np.put_along_axis(two, people[:, :2], True, axis=1)
        self.target = self.accuracy(self.coin(two).posteriors) - MARGIN
        self.order = people  # of the people for each task
        self.first = np.zeros(self.labels.shape, bool)
        some = self.rng.choice(TASKS, TASKS // 10, replace=False)
        self.first[some[:, None], people[some, :2]] = True

    def annotations(self, mask: np.ndarray, chosen: np.ndarray | None = None) -> Annotations:
        """What was asked, of the chosen annotators."""
        mask = mask & (self.labels >= 0) & (True if chosen is None else chosen)
        tasks, who = np.nonzero(mask)
        return Annotations.from_arrays(
            tasks, who, self.labels[tasks, who], tasks=np.arange(TASKS), annotators=np.arange(mask.shape[1]),
            classes=np.arange(self.num_classes),
        )  # fmt: skip

    def coin(self, mask: np.ndarray) -> Any:
        """`one-coin` of what people said."""
        return aggregator("one-coin", max_iter=1000).fit(self.annotations(mask, ~self.is_model))

    def accuracy(self, posteriors: np.ndarray) -> float:
        """Share of right labels; ties count by their chance."""
        best = posteriors >= posteriors.max(axis=1, keepdims=True) - 1e-9
        return float((best[np.arange(TASKS), self.gold] / best.sum(axis=1)).mean())

    def spent(self, way: str, price: float) -> tuple[float, int, int]:
        """Cost a task until the target, and the answers of models and of people a hundred tasks."""
        costs = np.where(self.is_model, price, 1.0)
        mask = self.first.copy()
        if way == "people and all models":
            mask[:, self.is_model] = True
        elif way.startswith("by gain"):
            mask[np.arange(TASKS), self.rng.integers(0, self.num_models, TASKS)] = True
        turn = self.rng.permutation(TASKS)
        who = np.flatnonzero(~self.is_model) if way == "people, by gain" else np.arange(len(costs))
        while True:
            result, confusions = self.estimate(way, mask)
            cost = float((mask * costs).sum())
            number = int(mask[:, self.is_model].sum()), int(mask[:, ~self.is_model].sum())
            if self.accuracy(result.posteriors) >= self.target:
                return cost, *number
            if cost >= MOST * TASKS:
                return MOST * TASKS, *number
            if confusions is None:
                self.ask_evenly(mask, turn)
                continue
            chosen = next_annotations(
                result.posteriors, confusions, TASKS, annotators=who, annotations=self.annotations(mask), per_task=1,
                costs=costs, budget=ROUND * TASKS,
            )  # fmt: skip
            mask[chosen.tasks, chosen.annotators] = True

    def estimate(self, way: str, mask: np.ndarray) -> tuple[Any, Any]:
        """Labels so far, and what says whom to ask; None: evenly."""
        if way.startswith("people, "):
            coin = self.coin(mask)
            return coin, coin.confusions if way == "people, by gain" else None
        if way == "by gain, models as people":
            result = aggregator("hierarchical-dawid-skene").fit(self.annotations(mask))
            return result, result.confusions
        both = people_and_models(self.annotations(mask), np.flatnonzero(self.is_model).tolist())
        return both.aggregation, None if way == "people and all models" else both.next_confusions

    def ask_evenly(self, mask: np.ndarray, turn: np.ndarray) -> None:
        """One more person each for the tasks with the fewest, in a random order."""
        have = mask[:, ~self.is_model].sum(axis=1)
        tasks = turn[np.argsort(have[turn], kind="stable")][: round(ROUND * TASKS)]
        for task in tasks:
            left = [who for who in self.order[task] if not mask[task, who]]
            mask[task, left[0]] = True


def replay(way: str, price: float) -> Iterator[dict[str, Any]]:
    """One dictionary a run."""
    warnings.simplefilter("ignore")  # of few annotations, on the way to many
    for seed in range(RUNS):
        this = Replay(seed)
        cost, models, people = this.spent(way, price)
        yield {
            "seed": str(seed),
            "target": round(this.target, 4),
            "cost a task": round(cost / TASKS, 4),
            "models a task": round(models / TASKS, 3),
            "people a task": round(people / TASKS, 3),
            "reached": int(cost < MOST * TASKS),
        }


def show_table() -> None:
    """Prints the saved results as Markdown."""
    saved, lines = read(RESULTS), []
    for price in PRICES:
        rows = saved[f"a model's answer costs {price:g}"]
        alone = rows[WAYS[0]]["runs"]
        for way in WAYS:
            runs = rows[way]["runs"]
            cost, models, people = (
                statistics.mean(run[name] for run in runs) for name in ("cost a task", "models a task", "people a task")
            )
            saving = [1 - run["cost a task"] / other["cost a task"] for run, other in zip(runs, alone, strict=True)]
            center, half = mean_interval([Runs(saving)])
            shown = "" if way == WAYS[0] else f"{100 * center:.0f} ± {100 * half:.0f} %"
            reached = f"{sum(run['reached'] for run in runs)} of {len(runs)}"
            lines.append((f"{price:g}", way, f"{cost:.2f}", shown, f"{models:.1f}, {people:.2f}", reached))
    header = ("a model's answer costs", "way", "cost a task", "saved (95 %)", "answers of models, people", "reached")
    print(grid(header, lines, words=2))


PARTS = {f"a model's answer costs {price:g}": {way: partial(replay, way, price) for way in WAYS} for price in PRICES}

if __name__ == "__main__":
    need("llm-judges")
    run(RESULTS, PARTS, __doc__, show_table)
