"""How often the 95 % intervals of annotators' reliability hold the true accuracy, on simulated crowds, copies included.

    python benchmarks/reliability.py            # what the results do not have; two minutes
    python benchmarks/reliability.py --page     # prints the table of what is saved, with means over the sorts

Protocol, written before the first run. The method was chosen on seeds 0 to 19 of crowds like these; the figures are of
seeds 10,000 and up, which nothing else has used; 60 crowds a cell. Success: with two labels per task the mean over the
sorts is .92 or more, and with five the intervals are no wider than before by more than .01.

- `coins`: 5 classes, 12 annotators, 300 tasks; accuracies of .6 to .95, all errors alike.
- `large coins`: the same with 10 annotators and 5,000 tasks.
- `matrices`: 8 classes, 10 annotators, 1,000 tasks; each row of a matrix is drawn around the annotator's skill.
- `shared slips`: 4 classes, 30 annotators, 1,200 tasks; all confuse the same classes, and some label far more than
  others.
- `two classes`: 2 classes in the ratio of five to one, 20 annotators, 600 tasks.
- `copies`: as `coins`, with four labels per task, where the second annotator copies the first; only these two count,
  and the true value is the share of their labels that is right.

- `real`: means over families of real crowds of at most 60,000 labels; annotators with twenty labels of tasks with gold,
  whose share of right ones is the true value. Real crowds share mistakes, so that this is no target.

Columns: `covers`, the share of annotators whose interval holds the accuracy; `bias`, of the estimate; `width`, means.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import real_crowds

sys.path.append(str(Path(__file__).parent / "reproduce"))
from rows import Parts, grid, read, run

from crowdzoo import Annotations
from crowdzoo.aggregation import Robust
from crowdzoo.quality import annotator_table

RESULTS = Path(__file__).parent / "results" / "reliability.json"
FIRST, CROWDS, LABELS = 10_000, 60, (2, 3, 5)
MOST_LABELS, LEAST_GOLD = 60_000, 20
KEYS = ("covers", "bias", "width")


def coins(rng: np.random.Generator, classes: int, annotators: int) -> np.ndarray:
    """Matrices of annotators who confuse all classes alike, [R, K, K]."""
    right = rng.uniform(0.6, 0.95, annotators)[:, None, None]
    return np.where(np.eye(classes) > 0, right, (1 - right) / (classes - 1))


def matrices(rng: np.random.Generator, classes: int, annotators: int) -> np.ndarray:
    """Matrices whose rows are drawn around the annotator's skill."""
    right = rng.beta(8, 2.5, annotators)[:, None, None]
    means = np.where(np.eye(classes) > 0, right, (1 - right) / (classes - 1))
    return np.array([[rng.dirichlet(15 * row) for row in one] for one in means])


def shared_slips(rng: np.random.Generator, classes: int, annotators: int) -> np.ndarray:
    """Matrices drawn around one pattern of confusions."""
    slips = rng.dirichlet(np.full(classes, 0.7), classes) * (1 - np.eye(classes))
    slips /= slips.sum(axis=1, keepdims=True)
    right = rng.beta(4, 2, annotators)[:, None, None]
    means = right * np.eye(classes) + (1 - right) * slips + 1e-4
    return np.array([[rng.dirichlet(30 * row) for row in one] for one in means])


# matrices, classes, annotators, tasks, ratio of the frequencies of two classes, whether some label more
SORTS: dict[str, tuple[Callable[[np.random.Generator, int, int], np.ndarray], int, int, int, float, bool]] = {
    "coins": (coins, 5, 12, 300, 1.0, False),
    "large coins": (coins, 5, 10, 5000, 1.0, False),
    "matrices": (matrices, 8, 10, 1000, 1.0, False),
    "shared slips": (shared_slips, 4, 30, 1200, 0.9, True),
    "two classes": (matrices, 2, 20, 600, 0.2, False),
}


def crowd(sort: str, labels: int, seed: int, copies: bool = False) -> tuple[Annotations, np.ndarray]:
    """Annotations, and how often each annotator is right, [R]."""
    make, classes, annotators, tasks, ratio, uneven = SORTS[sort]
    rng = np.random.default_rng(seed)
    shares = ratio ** np.arange(classes)
    shares /= shares.sum()
    truth, confusions = rng.choice(classes, tasks, p=shares), make(rng, classes, annotators)
    activity = rng.pareto(1.2, annotators) + 0.1 if uneven else np.ones(annotators)
    order = np.argsort(rng.gumbel(size=(tasks, annotators)) + np.log(activity), axis=1)
    limits = confusions[:, truth].cumsum(axis=2).transpose(1, 0, 2)
    said = np.minimum((rng.random((tasks, annotators, 1)) > limits).sum(axis=2), classes - 1)
    seen = np.zeros((tasks, annotators), bool)
    np.put_along_axis(seen, order[:, :labels], True, axis=1)
    right = np.einsum("k,rkk->r", shares, confusions)
    if copies:
        said[:, 1], seen[:, 1] = said[:, 0], seen[:, 0]
        right[:2] = (said[:, 0] == truth)[seen[:, 0]].mean()
    rows, who = np.nonzero(seen)
    names = {"tasks": range(tasks), "annotators": range(annotators), "classes": range(classes)}
    return Annotations.from_arrays(rows, who, said[rows, who], **names), right


def found(annotations: Annotations) -> np.ndarray:
    """Reliability of each annotator, and the ends of its interval, [3, R]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = annotator_table(annotations, Robust().fit(annotations))
    return np.array([table[f"reliability{end}"].to_numpy() for end in ("", "_low", "_high")])


def measured(sort: str, labels: int, copies: bool = False) -> Iterator[dict[str, float]]:
    """Figures of a cell."""
    rows = []
    for seed in range(FIRST, FIRST + CROWDS):
        annotations, right = crowd(sort, labels, seed, copies)
        rows.append(np.array([*found(annotations), right])[:, : 2 if copies else None])
    yield figures(np.concatenate(rows, axis=1))


def figures(rows: np.ndarray) -> dict[str, float]:
    """Figures of estimates, lower and upper ends, and true values, [4, R]."""
    value, low, high, right = rows
    known = np.isfinite(value)
    inside = ((low <= right) & (right <= high))[known].mean()
    bias, width = (value - right)[known].mean(), (high - low)[known].mean()
    return {"covers": round(inside, 4), "bias": round(bias, 4), "width": round(width, 4)}


def of_real_crowds() -> Iterator[dict[str, float]]:
    """Figures of real crowds, means over families."""
    families: dict[str, list[list[float]]] = {}
    for crowd, answers, gold in real_crowds.read():
        if len(answers) > MOST_LABELS:
            continue
        columns = found(answers)
        who, known = answers.annotator_ids, gold[answers.task_ids] >= 0
        counts = np.bincount(who[known], minlength=answers.num_annotators)
        right = np.bincount(who, known & (gold[answers.task_ids] == answers.labels)) / np.maximum(counts, 1)
        rows = np.array([*columns, right])[:, (counts >= LEAST_GOLD) & np.isfinite(columns[0])]
        if rows.size:
            families.setdefault(crowd.family, []).append([*figures(rows).values()])
    means = np.mean([np.mean(each, axis=0) for each in families.values()], axis=0)
    yield dict(zip(KEYS, np.round(means, 4).tolist(), strict=True)) | {"families": float(len(families))}


PARTS: Parts = {
    "simulated": {
        **{f"{sort}, {labels} labels": partial(measured, sort, labels) for labels in LABELS for sort in SORTS},
        "copies, 4 labels": partial(measured, "coins", 4, copies=True),
    },
    "real": {"real": of_real_crowds},
}


def show_table() -> None:
    """Prints all cells, and means over the sorts."""
    saved = read(RESULTS)
    cells = {name: row["runs"][0] for part in saved.values() for name, row in part.items()}
    for labels in LABELS:
        rows = [cells[f"{sort}, {labels} labels"] for sort in SORTS]
        cells[f"mean, {labels} labels"] = {key: float(np.mean([row[key] for row in rows])) for key in KEYS}
    print(grid(("crowd", *KEYS), [(name, *(f"{row[key]:.3f}" for key in KEYS)) for name, row in cells.items()]))


if __name__ == "__main__":
    run(RESULTS, PARTS, __doc__, show_table, keras=False)
