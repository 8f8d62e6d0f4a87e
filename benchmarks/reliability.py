"""How often the 95 % intervals of annotators' reliability hold the true accuracy, on simulated crowds, copies included.

    python benchmarks/reliability.py --save after    # two minutes
    python benchmarks/reliability.py --real          # real crowds of at most 60,000 labels, with --save likewise
    python benchmarks/reliability.py --print         # the table of the saved results

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

- `real`: means over families of real crowds; annotators with twenty labels of tasks with gold, whose share of right
  ones is the true value. Real crowds share mistakes, so that this is no target.

Columns: `covers`, the share of annotators whose interval holds the accuracy; `bias`, of the estimate; `width`, means.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import real_crowds

from crowdzoo import Annotations
from crowdzoo.aggregation import Robust
from crowdzoo.quality import annotator_table
from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parent / "results" / "reliability.json"
FIRST, CROWDS, LABELS = 10_000, 60, (2, 3, 5)
MOST_LABELS, LEAST_GOLD = 60_000, 20


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


def measured(sort: str, labels: int, copies: bool = False) -> dict[str, float]:
    """Figures of a cell."""
    rows = []
    for seed in range(FIRST, FIRST + CROWDS):
        annotations, right = crowd(sort, labels, seed, copies)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = annotator_table(annotations, Robust().fit(annotations))
        columns = [table[f"reliability{end}"].to_numpy() for end in ("", "_low", "_high")]
        rows.append(np.array([*columns, right])[:, : 2 if copies else None])
    return figures(np.concatenate(rows, axis=1))


def figures(rows: np.ndarray) -> dict[str, float]:
    """Figures of estimates, lower and upper ends, and true values, [4, R]."""
    value, low, high, right = rows
    known = np.isfinite(value)
    inside = ((low <= right) & (right <= high))[known].mean()
    bias, width = (value - right)[known].mean(), (high - low)[known].mean()
    return {"covers": round(inside, 4), "bias": round(bias, 4), "width": round(width, 4)}


def of_real_crowds() -> dict[str, dict[str, float]]:
    """Figures of real crowds, means over families."""
    families: dict[str, list[list[float]]] = {}
    for crowd, answers, gold in real_crowds.read():
        if len(answers) > MOST_LABELS:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = annotator_table(answers, Robust().fit(answers))
        who, known = answers.annotator_ids, gold[answers.task_ids] >= 0
        counts = np.bincount(who[known], minlength=answers.num_annotators)
        right = np.bincount(who, known & (gold[answers.task_ids] == answers.labels)) / np.maximum(counts, 1)
        columns = [table[f"reliability{end}"].to_numpy() for end in ("", "_low", "_high")]
        rows = np.array([*columns, right])[:, (counts >= LEAST_GOLD) & np.isfinite(columns[0])]
        if rows.size:
            families.setdefault(crowd.family, []).append([*figures(rows).values()])
    means = np.mean([np.mean(each, axis=0) for each in families.values()], axis=0)
    keys = ("covers", "bias", "width")
    return {f"real, {len(families)} families": dict(zip(keys, np.round(means, 4).tolist(), strict=True))}


def run() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", metavar="NAME", help="save the table under this name, such as after")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--print", action="store_true")
    arguments = parser.parse_args()
    saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not arguments.print:
        if arguments.real:
            found = of_real_crowds()
        else:
            found = {f"{sort}, {labels} labels": measured(sort, labels) for labels in LABELS for sort in SORTS}
            found["copies, 4 labels"] = measured("coins", 4, copies=True)
        name = arguments.save or "now"
        saved[name] = {**saved.get(name, {}), **found}
        if arguments.save:
            RESULTS.write_text(json.dumps(saved, indent=1) + "\n")
    for name, found in saved.items():
        keys = ("covers", "bias", "width")
        for labels in LABELS:
            cells = [found[cell] for sort in SORTS if (cell := f"{sort}, {labels} labels") in found]
            if cells:
                found[f"mean, {labels} labels"] = {key: float(np.mean([row[key] for row in cells])) for key in keys}
        print_table(
            name, ("crowd", *keys), [(cell, *(f"{row[key]:.3f}" for key in keys)) for cell, row in found.items()]
        )


if __name__ == "__main__":
    run()
