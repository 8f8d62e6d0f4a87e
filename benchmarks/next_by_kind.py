"""`crowdzoo next` against random choice on every kind of labels, replayed on simulated crowds.

    python benchmarks/next_by_kind.py            # the rows that the results do not have
    python benchmarks/next_by_kind.py --page     # prints the tables of what is saved

**Protocol.** Each crowd has annotators of different skill, each of whom would answer every task; these answers are
drawn once (ten seeds, 0 to 9). Texts and regions are the crowds of eight of `planted_answers.py`, of whom two are
careless. Both ways begin with the same plan of `first_annotations`: two answers per task, for preferences two answers
to each pair of one cycle through the tasks. Then there are ten rounds: each fits the kind's default method to all
answers so far, and asks for as many answers as a tenth of the first plan. "next" asks what `crowdzoo.next_answers`
chooses, at most twice an even share from each annotator; "random" asks pairs of a task and an annotator at random (for
preferences pairs of tasks), no pair twice, evenly over tasks: none gets its next answer before all others have as
many. The score after each round is against the truth: the accuracy of classes; the share of right decisions on several
labels; one minus the root mean squared error over the deviation of the true ratings; Kendall's tau of the scores of
preferences; F1 of spans; one minus the word errors of texts; the Dice coefficient of the marked pixels, averaged over
images.

The figures of a kind: the score after the last round of both ways, with 95 % intervals over seeds; and the share of
the answers after the first plan that "next" saves, until the score that random choice has after its last round (by
linear interpolation; where it is not reached, none is saved). Expected before the run: "next" is better after the last
round on every kind, and saves a fifth of the answers or more on average over kinds.
"""

import statistics
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import kendalltau

from crowdzoo import Annotations, next_answers
from crowdzoo.aggregation import MultiLabel, create
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.kinds import kind_of
from crowdzoo.quality import NextAnnotations, first_annotations, first_pairs
from crowdzoo.sequences import span_scores

sys.path.append(str(Path(__file__).parent / "reproduce"))
import planted_answers
from intervals import Runs, mean_interval
from rows import grid, read, run

RESULTS = Path(__file__).parent / "results" / "next_by_kind.json"
SEEDS, ROUNDS, PART, FIRST = 10, 10, 0.1, 2
HEADER = ("labels", "answers at first", "at last", "score at first", "at random", "next", "better by", "answers saved")

Pair = tuple[int, ...]  # task, or left and right; and the annotator


@dataclass
class Pool:
    """A simulated crowd.

    Attributes:
        tasks: how many.
        annotators: how many.
        crowd: of what was asked.
        fit: result for a crowd.
        score: of a result.
        pairs: whether a question is about two tasks.
    """

    tasks: int
    annotators: int
    crowd: Callable[[list[Pair]], Any]
    fit: Callable[[Any], Any]
    score: Callable[[Any], float]
    pairs: bool = False


def dense(rows: Annotations, number: int) -> Callable[[list[Pair]], Annotations]:
    """Those rows of a table that were asked for."""

    def crowd(asked: list[Pair]) -> Annotations:
        mask = np.zeros((rows.num_tasks, number), bool)
        mask[tuple(np.array(asked).T)] = True
        return rows.select_rows(mask[rows.task_ids, rows.annotator_ids])

    return crowd


def classes(rng: np.random.Generator) -> Pool:
    """Four classes; annotators are right with .4 to .95, half of their errors are on the next class."""
    tasks, people, number = 150, 15, 4
    truth, skill = rng.integers(number, size=tasks), rng.uniform(0.4, 0.95, people)
    other = (
        truth[:, None] + np.where(rng.random((tasks, people)) < 0.5, 1, rng.integers(1, number, (tasks, people)))
    ) % number
    said = np.where(rng.random((tasks, people)) < skill, truth[:, None], other)
    table = Annotations.from_dense(said, classes=range(number))
    return Pool(tasks, people, dense(table, people), create("robust").fit, lambda result: result.accuracy(truth))


def several_labels(rng: np.random.Generator) -> Pool:
    """Five labels, each on a quarter of the tasks; sensitivities and specificities of .55 to .97."""
    tasks, people, number = 100, 12, 5
    truth = rng.random((tasks, number)) < 0.25
    right = rng.uniform(0.55, 0.97, (people, number, 2))
    rates = np.where(truth[:, None], right[..., 1], 1 - right[..., 0])
    said = rng.random(rates.shape) < rates
    said = np.concatenate([said, ~said.any(axis=2, keepdims=True)], axis=2)
    task, who, label = np.nonzero(said)
    names = [*"abcde", "(none)"]
    table = Annotations("classification", task, who, label, tasks=np.arange(tasks), annotators=np.arange(people),
                        classes=np.array(names, object), repeats=True)  # fmt: skip

    def score(result: Any) -> float:
        places = [result.label_names.tolist().index(name) for name in names[:-1]]
        return float(((result.probabilities[:, places] > 0.5) == truth).mean())

    return Pool(tasks, people, dense(table, people), MultiLabel().fit, score)


def ratings(rng: np.random.Generator) -> Pool:
    """Standard normal truths; annotators' deviations of .2 to 1.6, biases of .3."""
    tasks, people = 100, 15
    truth, deviations, biases = rng.normal(size=tasks), np.geomspace(0.2, 1.6, people), rng.normal(0, 0.3, people)
    said = truth[:, None] + biases + deviations * rng.normal(size=(tasks, people))
    table = Annotations.from_dense(said, kind="regression")

    def score(result: Any) -> float:
        errors = result.estimates - truth
        return float(1 - errors.std() / truth.std())

    return Pool(tasks, people, dense(table, people), create("rating-em", kind="regression").fit, score)


def preferences(rng: np.random.Generator) -> Pool:
    """Normal scores of deviation 1.5; slopes of 0 to 2."""
    tasks, people = 30, 12
    scores, slopes = rng.normal(0, 1.5, tasks), np.linspace(0, 2, people)
    draws = rng.random((tasks, tasks, people))

    def crowd(asked: list[Pair]) -> Annotations:
        left, right, who = np.array(asked).T
        low, high = np.minimum(left, right), np.maximum(left, right)
        low_wins = draws[low, high, who] < expit(slopes[who] * (scores[low] - scores[high]))
        return Annotations("preference", left, who, np.where(low_wins == (left == low), 0, 1), tasks=np.arange(tasks),
                           annotators=np.arange(people), right_ids=right,
                           classes=np.array(["left", "right", "equal"], object))  # fmt: skip

    def score(result: Any) -> float:
        return float(kendalltau(result.scores, scores).statistic)

    return Pool(tasks, people, crowd, create("annotator-bradley-terry", kind="preference").fit, score, pairs=True)


def sentences(rng: np.random.Generator) -> Pool:
    """Sentences of generated_ner; annotators miss .05 to .5 of the spans, and give .02 to .4 another type."""
    tasks, people = 80, 12
    source = generated_ner()
    chosen = rng.choice(len(source), tasks, replace=False)
    tokens, gold = [source.tokens[task] for task in chosen], [source.gold_tags()[task] for task in chosen]
    names = [str(name) for name in np.asarray(source.annotations.classes)]
    types = sorted({name[2:] for name in names if name != "O"})
    misses, wrongs = rng.permutation(np.linspace(0.05, 0.5, people)), rng.permutation(np.linspace(0.02, 0.4, people))
    rows = []
    for task, tags in enumerate(gold):
        for who in range(people):
            said = "O"
            for position, tag in enumerate(tags):
                if tag == "O":
                    said = "O"
                elif tag.startswith("B-"):
                    kind = tag[2:] if rng.random() >= wrongs[who] else str(rng.choice(types))
                    said = "O" if rng.random() < misses[who] else f"B-{kind}"
                elif said != "O":
                    said = f"I-{said[2:]}"
                rows.append((task, who, position, names.index(said)))
    task, who, position, label = np.array(rows).T
    table = Annotations("sequence", task, who, label, tasks=np.arange(tasks), annotators=np.arange(people),
                        classes=np.array(names, object), positions=position)  # fmt: skip
    select = dense(table, people)

    def crowd(asked: list[Pair]) -> CrowdSequences:
        return CrowdSequences(tokens, select(asked))

    def score(result: Any) -> float:
        return float(span_scores(gold, result.tags()).f1)

    return Pool(tasks, people, crowd, create("bsc-seq", kind="sequence").fit, score)


def planted(kind: str, seed: int) -> tuple[Annotations, list[Any]]:
    """A crowd of eight of `planted_answers.py` of whom two are careless, and the truth of its tasks."""
    makers = {"free-text": planted_answers.texts, "region": planted_answers.regions}
    found = next(crowd for crowd in makers[kind](seed) if crowd[0] == "8, careless")
    return found[1], found[3]


def texts(rng: np.random.Generator) -> Pool:
    """See `planted_answers.py`."""
    table, truth = planted("free-text", int(rng.integers(1000)))

    def score(result: Any) -> float:
        edits, words = kind_of("free-text").scoring.sums(np.array(truth, object), result.texts)
        return float(1 + edits.sum() / words.sum())

    select = dense(table, table.num_annotators)
    return Pool(table.num_tasks, table.num_annotators, select, create("text-rasa", kind="free-text").fit, score)


def regions(rng: np.random.Generator) -> Pool:
    """See `planted_answers.py`."""
    table, truth = planted("region", int(rng.integers(1000)))

    def pixels(image: Any) -> np.ndarray:
        marked = np.zeros((image.height, image.width), bool)
        for left, top, width, height in np.round(np.asarray(image.boxes)).astype(int):
            marked[top : top + height, left : left + width] = True
        return marked

    def score(result: Any) -> float:
        dice = []
        for image, true in zip(result.marked, truth, strict=True):
            said, right = pixels(image), pixels(true)
            sizes = said.sum() + right.sum()
            dice.append(2 * (said & right).sum() / sizes if sizes else 1.0)
        return float(np.mean(dice))

    select = dense(table, table.num_annotators)
    return Pool(table.num_tasks, table.num_annotators, select, create("objects", kind="region").fit, score)


# === The replay ===


def replay(make: Callable[[np.random.Generator], Pool]) -> Iterator[dict[str, Any]]:
    """One dictionary a seed: scores after each round, both ways."""
    for seed in range(SEEDS):
        pool = make(np.random.default_rng([3, seed]))
        if pool.pairs:
            pairs = first_pairs(pool.tasks, pool.tasks, seed)
            plan = first_annotations(len(pairs), pool.annotators, per_task=FIRST, seed=seed)
            first: list[Pair] = [(*pairs[task].tolist(), who) for task, who in questions(plan)]
        else:
            first = questions(first_annotations(pool.tasks, pool.annotators, per_task=FIRST, seed=seed))
        batch = max(1, round(PART * len(first)))
        ways = {name: way(pool, first, batch, ask, seed) for name, ask in (("random", at_random), ("next", chosen))}
        target = ways["random"][-1]
        yield {
            "seed": str(seed), "first": len(first), "last": len(first) + ROUNDS * batch,
            "score at first": round(ways["next"][0], 4),
            **{name: round(scores[-1], 4) for name, scores in ways.items()},
            "saved": round(saved(ways["next"], target), 4),
        }  # fmt: skip


def saved(scores: list[float], target: float) -> float:
    """Share of the answers after the first plan that are not needed until the target."""
    for place, score in enumerate(scores):
        if score >= target:
            before = scores[place - 1]
            part = 1.0 if place == 0 else place - 1 + (target - before) / max(score - before, 1e-12)
            return 1 - (0.0 if place == 0 else part) / ROUNDS
    return 0.0


def questions(found: NextAnnotations) -> list[Pair]:
    """Questions as pairs of codes."""
    columns = (found.tasks, *([] if found.rights is None else [found.rights]), found.annotators)
    return [tuple(row) for row in np.stack(columns, axis=1).tolist()]


def way(pool: Pool, first: list[Pair], batch: int, ask: Callable[..., list[Pair]], seed: int) -> list[float]:
    """Scores after the first plan and after each round."""
    rng, asked, scores = np.random.default_rng([4, seed]), list(first), []
    for turn in range(ROUNDS + 1):
        crowd = pool.crowd(asked)
        result = pool.fit(crowd)
        scores.append(pool.score(result))
        if turn < ROUNDS:
            asked += ask(pool, crowd, result, asked, batch, rng)
    return scores


def chosen(pool: Pool, crowd: Any, result: Any, asked: list[Pair], batch: int, rng: np.random.Generator) -> list[Pair]:
    """What `next_answers` asks; where all is sure, or answered, the rest at random."""
    share = 2 * -(-batch // pool.annotators)
    found = questions(next_answers(crowd, batch, result=result, per_annotator=share))
    return found + at_random(pool, crowd, result, asked + found, batch - len(found), rng)


def at_random(
    pool: Pool, crowd: Any, result: Any, asked: list[Pair], batch: int, rng: np.random.Generator
) -> list[Pair]:
    """Questions at random, evenly over tasks; of pairs any."""
    have: set[Pair] = {(*sorted(pair[:-1]), pair[-1]) for pair in asked}
    counts = np.bincount([task for pair in asked for task in pair[:-1]], minlength=pool.tasks).astype(float)
    found: list[Pair] = []
    while len(found) < batch:
        who = int(rng.integers(pool.annotators))
        if pool.pairs:
            pair: Pair = (*(int(task) for task in rng.choice(pool.tasks, 2, replace=False)), who)
        else:
            pair = (int(np.lexsort((rng.random(pool.tasks), counts))[0]), who)
        key = (*sorted(pair[:-1]), who)
        if key in have:
            if not pool.pairs and sum((pair[0], other) in have for other in range(pool.annotators)) == pool.annotators:
                counts[pair[0]] = np.inf
            continue
        have.add(key)
        found.append(pair)
        counts[list(pair[:-1])] += 1
    return found


# === The table ===


def show_table() -> None:
    """Prints the saved results as Markdown."""
    rows = []
    for name, row in read(RESULTS)["kinds"].items():
        runs = row["runs"]
        mean = {key: statistics.mean(run[key] for run in runs) for key in runs[0] if key != "seed"}
        better, half = mean_interval([Runs([run["next"] - run["random"] for run in runs])])
        gain, width = mean_interval([Runs([run["saved"] for run in runs])])
        rows.append((
            name, f"{mean['first']:.0f}", f"{mean['last']:.0f}", f"{mean['score at first']:.3f}",
            f"{mean['random']:.3f}", f"{mean['next']:.3f}", f"{better:+.3f} ± {half:.3f}",
            f"{100 * gain:.0f} ± {100 * width:.0f} %",
        ))  # fmt: skip
    print(grid(HEADER, rows))


MAKERS = {
    "classes": classes, "several labels": several_labels, "ratings": ratings, "preferences": preferences,
    "sentences": sentences, "texts": texts, "regions": regions,
}  # fmt: skip
PARTS = {"kinds": {name: partial(replay, make) for name, make in MAKERS.items()}}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(RESULTS, PARTS, __doc__, show_table, keras=False)
