"""How settled labels are: estimates against labels from many more answers, on simulated and on real crowds.

    python benchmarks/settled.py                   # the rows that the results do not have
    python benchmarks/settled.py --fit             # the coefficients of CALIBRATION in crowdzoo/quality/settled.py
    python benchmarks/settled.py --page            # the tables of the saved results
    python benchmarks/settled.py --draw FILE.png   # reliability diagrams of settled and of probability

**What is estimated.** `crowdzoo.quality.settled` says for each label how probable it is to stay the same if many more
annotators of the crowd answered. The figure of a crowd is the mean of `settled` less the share of labels that stay.

**Simulated crowds.** 2, 3, 5 or 8 classes, 150, 400 or 1,000 tasks, 12, 40 or 200 annotators who give 3, 4, 5 or 7
answers per task, and 200 further annotators of the same crowd who answer every task; the label of all is `robust`'s.
"independent": annotators of different skill, some with confusions of their own, up to a fifth at random. "difficulty":
tasks are easy or hard alike for all (log-normal), and classes pull on a task for all. "copies": as hard, without a
pull, and a tenth or three tenths of all annotators repeat one other annotator nine times in ten.

**Real crowds.** All sets of classes in CROWDZOO_DATA with ten answers per task or more (median). Three, four and five
answers of each task are kept, and the label from all of a task's answers is `robust`'s.

**Protocol.** A pilot (not saved) chose the model and its constants on two seeds of both sorts. Then, with other seeds:
the coefficients of the calibration are fitted by logistic regression with a penalty of .001, where families of real
crowds count as one and each sort of simulated crowds counts as three families. A real crowd's figure is made with
coefficients that were fitted without its family. Simulated crowds are drawn anew (another seed) for their figures.
Accepted if the mean over simulated crowds of each sort and over real crowds lies within .03, and nine in ten real
crowds lie within .08.

**Replay.** 300 tasks, answers of independent annotators. Questions are asked and answered in rounds of forty, until no
task is worth a further answer. "promised" is the sum of further answers at the start. (Seeds 0 to 4 of these crowds
served to choose OVERSHOOT; the figures are of others.)

**Diagrams.** Eight further simulated crowds of each sort: of the labels in each tenth of `settled`, how many stay; and
of those in each tenth of the probability by `robust`, how many are the class that the crowd was drawn with.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from real_crowds import read as read_crowds
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

sys.path.append(str(Path(__file__).parent / "reproduce"))
from rows import Parts, grid, read, run

from crowdzoo import Annotations
from crowdzoo.aggregation import Robust
from crowdzoo.quality import next_annotations, settlement, worth_asking
from crowdzoo.quality.copies import copy_families, counted_once
from crowdzoo.quality.figures import wilson
from crowdzoo.quality.settled import ENDS, consensus_of

RESULTS = Path(__file__).parent / "results" / "settled.json"
SORTS = ("independent", "difficulty", "copies")
KEPT = (3, 4, 5)
ENOUGH = 10  # answers per task of a real crowd
MANY = 200  # further annotators of a simulated one
FIT_SEED, SHOWN_SEED, CROWDS = 909, 4242, 30
WEIGHTS = {"independent": 24.0, "difficulty": 12.0, "copies": 12.0}  # of the simulated crowds, in families
PENALTY = 1e-3
REPLAYED, ROUND, SEEDS, FIRST_REPLAY = 300, 40, 5, 100
REPLAYS = {  # classes, accuracy, answers per task, annotators, share of tasks on which half of the answers are right
    "5 classes, .85 correct, 4 answers": (5, 0.85, 4, 12, 0.0),
    "5 classes, .75 correct, 3 answers": (5, 0.75, 3, 12, 0.0),
    "5 classes, .85 correct, 4 answers, three in ten hard": (5, 0.85, 4, 12, 0.3),
    "2 classes, .75 correct, 4 answers": (2, 0.75, 4, 25, 0.0),
}

DRAWN_SEED, DRAWN_CROWDS, LEAST_LABELS = 77, 8, 20  # of diagrams
TITLES = {"independent": "independent", "difficulty": "difficult tasks", "copies": "copies"}
NAMES = (("settled", "share that stays"), ("probability", "share that is correct"))

# family, name, features [n, 4], whether the label stays [n]
Sample = tuple[str, str, np.ndarray, np.ndarray]


def simulate(rng: np.random.Generator, sort: str) -> tuple[Annotations, Annotations, np.ndarray]:
    """A few answers per task, these with those of 200 further annotators, and the true classes; see the page."""
    classes, tasks = int(rng.choice([2, 3, 5, 8])), int(rng.choice([150, 400, 1000]))
    per_task, pool = int(rng.choice([3, 4, 5, 7])), int(rng.choice([12, 40, 200]))
    people = MANY + pool
    skill = (
        rng.uniform(0.6, 2.5) + rng.choice([0.2, 0.6, 1.0]) * rng.normal(size=people) + np.log(max(classes - 1, 1)) / 2
    )
    skill[rng.random(people) < rng.choice([0, 0.1, 0.2])] = 0
    truth = rng.choice(classes, tasks, p=rng.dirichlet(np.full(classes, rng.choice([3.0, 10.0]))))
    logits = (rng.normal(size=(people, classes, classes)) * rng.choice([0, 0.5]))[:, truth]
    ease = np.ones(tasks) if sort == "independent" else np.exp(rng.normal(0, 0.8, tasks))
    if sort == "difficulty":
        logits = logits + rng.normal(size=(tasks, classes)) * rng.choice([0, 0.7, 1.2])
    logits[:, np.arange(tasks), truth] += skill[:, None] * ease
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=2)
    if sort == "copies":
        for copyist in np.flatnonzero(rng.random(people) < rng.choice([0.1, 0.3])):
            copied = rng.random(tasks) < 0.9
            labels[copyist, copied] = labels[rng.integers(people), copied]
    keys = np.log(rng.random((tasks, pool))) / (rng.pareto(2.0, pool) + 0.3)
    who = np.argsort(-keys, axis=1)[:, :per_task]
    few = np.repeat(np.arange(tasks), who.shape[1]), who.ravel()
    many = np.tile(np.arange(tasks), MANY), np.repeat(np.arange(pool, people), tasks)
    both = np.concatenate([few[0], many[0]]), np.concatenate([few[1], many[1]])
    crowds = (Annotations.from_arrays(*ids, labels[ids[::-1]], classes=range(classes)) for ids in (few, both))
    return next(crowds), next(crowds), truth


def kept_rows(annotations: Annotations, number: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of so many annotations of each task, drawn at random."""
    order = rng.permutation(len(annotations))
    order = order[np.argsort(annotations.task_ids[order], kind="stable")]
    places = np.arange(len(order)) - np.searchsorted(annotations.task_ids[order], annotations.task_ids[order])
    return np.sort(order[places < number])


def features(annotations: Annotations) -> tuple[np.ndarray, np.ndarray]:
    """What `settled` combines, [N, 4], and the labels."""
    labels, rows = Robust().fit(annotations).labels, np.arange(annotations.num_tasks)
    columns = annotations.num_annotators, annotations.task_ids, annotations.annotator_ids, annotations.labels
    once = counted_once(annotations, copy_families(*columns))
    base = Robust().fit(once)
    posteriors = consensus_of(once, base.posteriors).posteriors
    stays, robust = (logit(np.clip(matrix[rows, labels], *ENDS)) for matrix in (posteriors, base.posteriors))
    return np.stack([np.ones(len(rows)), stays, robust, np.minimum(stays, 0)], axis=1), labels


def simulated(seed: int) -> Iterator[Sample]:
    """Thirty crowds of each sort."""
    rng = np.random.default_rng(seed)
    for sort in SORTS:
        for number in range(CROWDS):
            few, many, _ = simulate(rng, sort)
            columns, labels = features(few)
            yield sort, f"{sort} {number}", columns, labels == Robust().fit(many).labels


def real(seed: int) -> Iterator[Sample]:
    """The real crowds, three times each."""
    rng = np.random.default_rng(seed)
    for crowd, annotations, _ in read_crowds():
        enough = annotations.redundancy >= ENOUGH
        if np.median(annotations.redundancy) >= ENOUGH:
            truth = Robust().fit(annotations).labels
            for number in KEPT:
                columns, labels = features(annotations.select_rows(kept_rows(annotations, number, rng)))
                yield crowd.family, f"{crowd.name}, {number}", columns[enough], (labels == truth)[enough]


def coefficients(samples: list[Sample]) -> np.ndarray:
    """Logistic regression; families weigh the same, and so do the crowds of one."""
    families = {family: [sample for sample in samples if sample[0] == family] for family, *_ in samples}
    weights = [
        np.full(len(y), WEIGHTS.get(family, 1.0) / len(families[family]) / len(y)) for family, _, _, y in samples
    ]
    x, y, w = (np.concatenate(parts) for parts in ([s[2] for s in samples], [s[3] for s in samples], weights))
    model = LogisticRegression(C=1 / PENALTY, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    return model.fit(x, y, sample_weight=w / len(families)).coef_[0]


def replay(classes: int, accuracy: float, per_task: int, annotators: int, hard: float, seed: int) -> dict[str, float]:
    """Asks until no task is worth a further answer; see the page."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=REPLAYED)
    right = rng.random((annotators, REPLAYED)) < np.where(rng.random(REPLAYED) < hard, 0.5, accuracy)
    wrong = (truth + rng.integers(1, classes, size=right.shape)) % classes
    labels = np.where(right, truth, wrong)
    who = np.argsort(rng.random((REPLAYED, annotators)), axis=1)[:, :per_task].ravel()
    tasks, figures = np.repeat(np.arange(REPLAYED), per_task), dict[str, float]()
    while True:
        crowd = Annotations.from_arrays(tasks, who, labels[who, tasks], classes=range(classes))
        result = Robust().fit(crowd)
        state = settlement(crowd, result)
        redo = worth_asking(state.settled, state.further)
        share = float((result.labels == truth).mean())
        if not figures:
            figures = {"redo": float(redo.sum()), "promised": float(state.further[redo].sum()), "before": share}
        plan = next_annotations(
            state.consensus.posteriors, state.consensus.answers, ROUND, annotations=crowd, per_task=1, sure=~redo
        )
        if not len(plan.tasks):
            return {**figures, "needed": float(len(tasks) - REPLAYED * per_task), "after": share}
        tasks, who = np.concatenate([tasks, plan.tasks]), np.concatenate([who, plan.annotators])


def draw(path: Path) -> None:
    """Reliability diagrams; see the page."""
    from matplotlib.figure import Figure

    rng, figure = np.random.default_rng(DRAWN_SEED), Figure(figsize=(8.4, 6.2), layout="constrained")
    panels = figure.subplots(2, len(SORTS), sharex=True, sharey=True)
    for place, sort in enumerate(SORTS):
        columns = []
        for _ in range(DRAWN_CROWDS):
            few, many, truth = simulate(rng, sort)
            result = Robust().fit(few)
            stays, correct = result.labels == Robust().fit(many).labels, result.labels == truth
            columns.append([settlement(few, result).settled, stays, result.posteriors.max(axis=1), correct])
        pairs = np.concatenate(columns, axis=1).reshape(2, 2, -1)
        for axes, (values, right), names in zip(panels[:, place], pairs, NAMES, strict=True):
            tenth = np.minimum((10 * values).astype(int), 9)
            number = np.bincount(tenth, minlength=10)
            some = number >= LEAST_LABELS
            means, shares = (np.bincount(tenth, each, 10)[some] / number[some] for each in (values, right))
            ends = wilson(shares, number[some])
            axes.plot([0, 1], [0, 1], color="#8a94a0", linewidth=0.9, linestyle="--")
            axes.vlines(means, *ends, color="#3b6ea5", linewidth=1.4)
            axes.scatter(means, shares, s=10 + 130 * number[some] / number.sum(), color="#3b6ea5", zorder=2)
            axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel=names[0], ylabel="" if place else names[1])
            axes.set_title(f"{TITLES[sort]}: mean {values.mean():.2f}, share {right.mean():.2f}", fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[0]:
        axes.xaxis.set_tick_params(labelbottom=True)
    figure.savefig(path, dpi=110, metadata={"Software": "crowdzoo"})


@cache
def fitted_to() -> list[Sample]:
    """What the coefficients are fitted to."""
    return [*simulated(FIT_SEED), *real(FIT_SEED)]


def shown(draw: Callable[[int], Iterator[Sample]]) -> Iterator[dict[str, Any]]:
    """The estimate and the truth of each crowd."""
    for family, name, columns, stays in draw(SHOWN_SEED):
        training = [row for row in fitted_to() if row[0] != family or family in SORTS]
        estimate = expit(columns @ coefficients(training)).mean()
        yield {"family": family, "crowd": name, "settled": float(estimate), "stays": float(stays.mean())}


def replayed(*crowd: Any) -> Iterator[dict[str, float]]:
    """One dictionary a seed."""
    for seed in range(FIRST_REPLAY, FIRST_REPLAY + SEEDS):
        yield replay(*crowd, seed)


PARTS: Parts = {
    "crowds": {"simulated": partial(shown, simulated), "real": partial(shown, real)},
    "replay": {name: partial(replayed, *crowd) for name, crowd in REPLAYS.items()},
}


def show_table() -> None:
    """Prints by how much `settled` is off, and the replays."""
    saved, table = read(RESULTS), []
    crowds = [run for row in saved["crowds"].values() for run in row["runs"]]
    for title in (*SORTS, "real"):
        rows = [row for row in crowds if (row["family"] if row["family"] in SORTS else "real") == title]
        values = np.array([row["settled"] - row["stays"] for row in rows])
        sizes = np.abs(values)
        far = (sizes > 0.08).mean()
        table.append((title, len(values), f"{values.mean():+.3f}", f"{sizes.mean():.3f}", f"{far:.0%}"))
    print(grid(("settled less the share of labels that stay", "number", "mean", "mean size", "beyond .08"), table))
    names = ("redo", "promised", "needed", "before", "after")
    table = [(title, *(f"{np.mean([run[name] for run in row['runs']]):.4g}" for name in names))
             for title, row in saved["replay"].items()]  # fmt: skip
    print(grid(("questions until none is worth its price", *names), table))


if __name__ == "__main__":
    if "--draw" in sys.argv:
        draw(Path(sys.argv[sys.argv.index("--draw") + 1]))
    elif "--fit" in sys.argv:
        print("CALIBRATION =", tuple(coefficients(fitted_to()).round(3).tolist()))
    else:
        run(RESULTS, PARTS, __doc__, show_table, keras=False)
