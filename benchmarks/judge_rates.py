"""Rates from few labels of people and many of judges: how often the interval holds the truth, and how wide it is.

    python benchmarks/judge_rates.py             # the rows that the results do not have; an hour in all
    python benchmarks/judge_rates.py --print     # the tables of the saved results

**What is tested.** `crowdzoo.quality.rate` with all judges, against people's labels alone, against the best single
judge (the one whose labels correlate most with gold over all tasks: known in hindsight only), and, for coverage,
against PPI++ with that judge and the usual normal interval.

**Sets** (below `CROWDZOO_DATA`; LLMBar is a checkout of princeton-nlp/LLMBar, MIT). People's labels of a random part of
the tasks are kept; the truth is the mean of all, so `these_tasks=True`.

- `llm-judges`: 33 language models grade passages from 0 to 3; gold by assessors. The mean grade, and the share of
  grade 2 or better. Families: 17 queries.
- `LLMBar` (Zeng et al., ICLR 2024; 419 pairs of answers, 65 judges: six models with several prompts, answers in their
  first order): the share of pairs whose first answer is the better one. Families: three of its five parts; the others
  have fewer than 50 pairs, of which 30 are more than six tenths.
- `convincing arguments`: five people a pair. The first answer is the person's, the four others and "the longer text
  wins" are judges; left is 1, right 0, equal .5. The mean. Families: 24 topics.

30, 50, 100 and 200 labels of people, at most six tenths of the tasks. 1,000 draws on a whole set, 300 on a family,
seed 30,000 and up.

**Simulated** (500 crowds of 1,000 tasks a cell, which are a sample, so `these_tasks=False`; 30 and 100 labels): a true
rate of .05, .2 or .5; one judge who is right in 90 %; ten of 85 % who err independently; ten who repeat one of 85 % in
nine of ten tasks; ten who answer at random.

**Protocol.** Pilots with other seeds (not saved), on the whole sets, the parts of LLMBar, the pass rates of queries and
every other topic, compared ways of combining judges (their mean, the best by people's labels, ridge regression with a
penalty by left-out errors or by evidence, with and without cross-fitting) and intervals (Student's, Clopper and
Pearson's of an effective number, with several corrections for the choice of the penalty). They chose the one that is
built in: left-out errors, an effective number, four labels about which judges tell nothing, no judges below 30 labels.
The mean grades of queries, every other topic and the simulations were not looked at. A first run (seed 20,000 and up,
not saved) met the goals on whole sets (.941 and more, narrower in all 16), but not on mean grades of queries (.927 with
30 labels) and in four simulated cells with a rare class (.920 to .924). So pilots on further seeds raised the four
labels to eight, and let judges count only if people see five tasks that pass and five that do not. Then this run, once.

Success: coverage of .94 or more on each whole set from 30 labels on, on average over each sort of families, and in each
simulated cell; and a mean width below that of the best single judge on each whole set and size.
A share of 1,000 draws has a standard error of .007 at .95.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

sys.path.append(str(Path(__file__).parent / "reproduce"))
from needed import need
from rows import Parts, run

from crowdzoo import Annotations
from crowdzoo.datasets import data_folder
from crowdzoo.quality import rate

RESULTS = Path(__file__).parent / "results" / "judge_rates.json"
SEED, WHOLE, FAMILY, SIMULATED = 30_000, 1000, 300, 500
SIZES = (30, 50, 100, 200)
FIGURES = ("covers", "width")
PARTS = ("Natural", "Adversarial/Neighbor", "Adversarial/GPTInst", "Adversarial/GPTOut", "Adversarial/Manual")
Set = tuple[np.ndarray, np.ndarray, np.ndarray]  # people's labels [N], judges' [N, J], and the family of each task
Passes = tuple[int, ...] | None  # classes that pass; None: the mean of ratings


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def llm_judges() -> Set:
    """Grades of passages; the family is the query."""
    folder = data_folder() / "llm-judges"
    gold = {row["task"]: float(row["gold"]) for row in rows_of(folder / "gold.csv")}
    tasks, rows = sorted(gold), rows_of(folder / "annotations.csv")
    judges = sorted({row["annotator"] for row in rows})
    place = {name: code for names in (tasks, judges) for code, name in enumerate(names)}
    labels = np.full((len(tasks), len(judges)), np.nan)
    for row in rows:
        if row["task"] in gold:
            labels[place[row["task"]], place[row["annotator"]]] = float(row["label"])
    return np.array([gold[task] for task in tasks]), labels, np.array([task.partition("-")[0] for task in tasks])


@cache
def llmbar() -> Set:
    """Pairs of answers; the family is the part of the set."""

    def winner(results: Any) -> float:
        answer = results[-1] if isinstance(results, list) else results
        answer = answer.get("swap = False", answer) if isinstance(answer, dict) else {}
        return {"1": 1.0, "2": 0.0}.get(str(answer.get("winner")), np.nan)

    truth, labels, parts = [], [], []
    for part in PARTS:
        where = data_folder() / "LLMBar" / "Dataset" / "LLMBar" / part
        pairs = json.loads((where / "dataset.json").read_text(encoding="utf-8"))
        files = {"/".join(path.parts[-3:-1]): path for path in where.glob("evaluators/*/*/result.json")}
        each = [json.loads(files[name].read_text(encoding="utf-8")) for name in sorted(files)]
        labels.append([[winner(pair["results"]) for pair in judge] for judge in each])
        truth += [float(pair["label"] == 1) for pair in pairs]
        parts += [part] * len(pairs)
    return np.array(truth), np.concatenate([np.array(each).T for each in labels]), np.array(parts)


@cache
def arguments() -> Set:
    """Pairs of arguments with five answers; the family is the topic."""
    folder, answers = data_folder() / "convincing-arguments", defaultdict(list)
    for row in rows_of(folder / "annotations.csv"):
        answers[row["task"]].append({"left": 1.0, "right": 0.0, "equal": 0.5}[row["label"]])
    length = {row["argument"]: len(row["text"]) for row in rows_of(folder / "arguments.csv")}
    pairs = [row for row in rows_of(folder / "pairs.csv") if len(answers[row["task"]]) >= 5]
    labels = np.array([answers[row["task"]][:5] for row in pairs])
    longer = [0.5 + np.sign(length[row["left"]] - length[row["right"]]) / 2 for row in pairs]
    return labels[:, 0], np.column_stack([labels[:, 1:], longer]), np.array([row["topic"] for row in pairs])


SETS: dict[str, tuple[Callable[[], Set], Passes]] = {
    "llm-judges, mean": (llm_judges, None),
    "llm-judges, pass": (llm_judges, (2, 3)),
    "LLMBar": (llmbar, (1,)),
    "arguments": (arguments, None),
}


def annotations_of(people: np.ndarray, judges: np.ndarray, passes: Passes) -> Annotations:
    """All labels; annotator 0 is the people, 1 and so on the judges."""
    labels = np.column_stack([people, judges])
    if passes is None:
        return Annotations.from_dense(labels, kind="regression")
    return Annotations.from_dense(np.where(np.isnan(labels), -1, labels).astype(int))


def ppi(people: np.ndarray, judge: np.ndarray, rows: np.ndarray) -> tuple[float, float]:
    """PPI++ of the mean of these tasks (Angelopoulos, Duchi and Zrnic 2023): least variance, and a normal interval."""
    labels, known = people[rows], judge[rows]
    power = np.cov(labels, known, ddof=0)[0, 1] / (known.var() or 1.0)
    value = labels.mean() + power * (judge.mean() - known.mean())
    half = norm.ppf(0.975) * np.sqrt((labels - power * known).var() * (1 / len(rows) - 1 / len(people)))
    return value - half, value + half


def cell(people: np.ndarray, judges: np.ndarray, passes: Passes, size: int, draws: int, seed: int) -> dict[str, float]:
    """Coverage and mean width over draws of the tasks that people label."""
    everything, total = annotations_of(people, judges, passes), len(people)
    people = people if passes is None else np.isin(people, passes).astype(float)
    filled = np.where(np.isnan(judges), np.nanmean(judges, axis=0), judges)
    alike = [abs(np.corrcoef(people, column)[0, 1]) if np.ptp(column) else 0.0 for column in filled.T]
    best, truth, numbers = int(np.argmax(alike)), people.mean(), defaultdict(list)
    for draw in range(draws):
        rows = np.random.default_rng([seed, draw]).choice(total, size, replace=False)
        kept = np.zeros(total, bool)
        kept[rows] = True
        some = everything.select_rows((everything.annotator_ids > 0) | kept[everything.task_ids])
        together = rate(some, [0], passes=passes, these_tasks=True)
        single = rate(some, [0], [best + 1], passes=passes, these_tasks=True)
        ends = {
            "people": together.people[1:],
            "best judge": (single.low, single.high),
            "judges": (together.low, together.high),
            "PPI++": ppi(people, filled[:, best], rows),
        }
        for name, (low, high) in ends.items():
            numbers[name].append((low <= truth <= high, high - low))
    return means_of(numbers)


def means_of(numbers: dict[str, list[tuple[bool, float]]]) -> dict[str, float]:
    """Coverage and mean width of each interval."""
    means = {name: np.mean(values, axis=0).tolist() for name, values in numbers.items()}
    return {f"{name}: {key}": pair[place] for name, pair in means.items() for place, key in enumerate(FIGURES)}


def whole(name: str, size: int) -> Iterator[dict[str, float]]:
    """Coverage and width on a whole set."""
    load, passes = SETS[name]
    people, judges, _ = load()
    yield cell(people, judges, passes, size, WHOLE, SEED + [*SETS].index(name))


def by_family(name: str, is_unseen: bool, size: int) -> Iterator[dict[str, Any]]:
    """The same on each family of a set; of those that the first pilots had, or of the others."""
    load, passes = SETS[name]
    people, judges, families = load()
    for number, family in enumerate(np.unique(families)):
        chosen = families == family
        unseen = name.endswith("mean") or (name == "arguments" and number % 2 == 0)
        if unseen == is_unseen and size <= 0.6 * chosen.sum():
            seed = SEED + 100 * ([*SETS].index(name) + 1) + number
            yield {"family": str(family), **cell(people[chosen], judges[chosen], passes, size, FAMILY, seed)}


def simulated(true: float, sort: str, size: int, seed: int) -> Iterator[dict[str, float]]:
    """Coverage and width on crowds of 1,000 tasks that are a sample."""
    numbers = defaultdict(list)
    for crowd in range(SIMULATED):
        rng = np.random.default_rng([seed, crowd])
        people = (rng.random(1000) < true).astype(float)
        number, right = {"one": (1, 0.9), "independent": (10, 0.85), "alike": (10, 0.85), "random": (10, 0.5)}[sort]
        judges = np.where(rng.random((1000, number)) < right, people[:, None], 1 - people[:, None])
        if sort == "alike":
            judges = np.where(rng.random((1000, number)) < 0.9, judges[:, :1], judges)
        people[size:] = np.nan
        found = rate(annotations_of(people, judges, (1,)), [0], passes=[1])
        for name, (low, high) in {"people": found.people[1:], "judges": (found.low, found.high)}.items():
            numbers[name].append((low <= true <= high, high - low))
    yield means_of(numbers)


PARTS: Parts = {
    "whole sets": {f"{name}, {size} labels": partial(whole, name, size) for name in SETS for size in SIZES},
    "families": {
        f"{name}, {'not ' * unseen}in the pilots, {size} labels": partial(by_family, name, unseen, size)
        for name in SETS
        for unseen in (False, True)
        for size in SIZES
    },
    "simulated": {
        f"{sort}, rate {true:g}, {size} labels": partial(simulated, true, sort, size, SEED + 1000 + 10 * place + number)
        for place, sort in enumerate(("one", "independent", "alike", "random"))
        for number, true in enumerate((0.05, 0.2, 0.5))
        for size in (30, 100)
    },
}

if __name__ == "__main__":
    need("llm-judges", "convincing-arguments", "LLMBar", flag="--parts", values=("whole sets", "families"))
    run(RESULTS, PARTS, __doc__, keras=False)
