"""What 50 to 500 random gold tasks do for labels and probabilities, on real crowds and on independent ones.

    python benchmarks/gold.py                      # the rows that the results do not have
    python benchmarks/gold.py --fit                # the constants of PRIOR in crowdzoo/aggregation/calibration.py
    python benchmarks/gold.py --print              # the tables of the saved results

**Protocol, fixed before the first run of figures.** `calibrate` is given `robust` and 50 gold tasks (also 200 and
500) that are drawn at random from those of known class. All is measured on the other tasks of known class, on every
crowd of `real_crowds.py` that has at least 50 of them; 20 draws per crowd with 50, 5 with 200, 3 with 500 (before the
first run: 20 each, and also 20 gold tasks; there was no time for more).

- *Families left out.* `robust` has weights, and the prior of `calibrate` has constants, that were fitted without the
  crowd's family (six folds). Families of UNSEEN are never fitted to. Constants are fitted, and forms compared, on the
  other families, by draws with other seeds (1,000 and up) than those that are shown (0 to 19). Families count as one.
- *Labels are not made worse.* For each task, the share of the draws (in which it is not gold) with a correct calibrated
  label, less the same for the label without gold. Mean over tasks; 95 % interval by 2,000 bootstrap samples of tasks. A
  crowd is clearly below if the upper end is under -.01. Goal: none.
- *Sure.* Labels with a probability of .95 or more: the share that is correct (pooled over a crowd's draws; crowds with
  20 sure labels or more in all), goal .95 or more; and their share of all labels, goal .35 or more. Both over families.
- *Probabilities.* Log loss, and the gap between mean probability and accuracy, before and after.
- *The interval of the accuracy*: share of draws in which it contains the accuracy on the other tasks, goal about .95.
  (Seen in the first run: it speaks of all tasks, so only crowds count where nine in ten annotated tasks have gold.)
- *Independent crowds*: annotators with matrices of their own, as `interval_coverage.py` simulates them, and equal
  annotators that are correct with probability .85 (5 classes, 300 tasks, 4 labels per task, 12 annotators). Log
  loss of calibrated posteriors above that of the posterior under the true matrices and class shares, in nats per task;
  goal .03 or less. Seeds 20,000 and up; forms are compared on seeds 30,000 and up.
- *More gold.* With 200 and 500 gold tasks the accuracy and the log loss are not worse than those of the calibration
  before (kernel logistic regression alone), over families; paired, by the same draws.
"""

import argparse
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from real_crowds import CROWDS, FOLDS, family_mean, fold_of, read, weights_without
from scipy.special import log_softmax, softmax

from crowdzoo import Annotations
from crowdzoo.aggregation import Aggregation, HierarchicalDawidSkene, Robust, VotesWarning, calibrate
from crowdzoo.report.tables import print_table

calibration = sys.modules["crowdzoo.aggregation.calibration"]
RESULTS = Path(__file__).parent / "results" / "gold.json"
DRAWS = {50: 20, 200: 5, 500: 3}  # gold tasks -> draws
LEAST_KNOWN = 0.9
LEAST_OTHERS, SURE, LEAST_SURE, BELOW, SAMPLES = 50, 0.95, 20, -0.01, 2000
WEAK, INTERCEPT, ROUNDS, LEAST_FITTED = 2.0, 0.5, 200, 40  # of --fit
SEEDS = range(20_000, 20_020)


# === Real crowds, and the prior that is fitted to them ===


def fitted() -> Iterator[tuple[str, Annotations, np.ndarray, Aggregation]]:
    """Each crowd with robust's result, by weights that were trained without its family."""
    for crowd, annotations, gold in read():
        with weights_without(crowd.family):
            found = Robust().fit(annotations)
        yield crowd.name, annotations, np.where(annotations.redundancy > 0, gold, -1), found


def best_slopes(offsets: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes that fit all gold of a crowd, [M], and their precision, [M, M]; the classes have intercepts."""
    number, classes, methods = offsets.shape
    intercepts = np.broadcast_to(np.eye(classes) - 1 / classes, (number, classes, classes))
    columns, truth = np.concatenate([offsets, intercepts], axis=2), np.eye(classes)[codes]
    prior = np.diag([1 / WEAK**2] * methods + [1 / INTERCEPT**2] * classes)

    def loss(values: np.ndarray) -> float:
        return float(values @ prior @ values / 2 - (truth * log_softmax(columns @ values, axis=1)).sum())

    values = np.zeros(len(prior))
    for _ in range(50):
        found = softmax(columns @ values, axis=1)
        means = np.einsum("nk,nkp->np", found, columns)
        hessian = np.einsum("nk,nkp,nkq->pq", found, columns, columns, optimize=True) - means.T @ means + prior
        step = np.linalg.solve(hessian, np.einsum("nk,nkp->p", found - truth, columns) + prior @ values)
        while loss(values - step) > loss(values) and np.abs(step).max() > 1e-6:
            step /= 2
        values -= step
    posterior = np.linalg.inv(np.linalg.inv(hessian)[:methods, :methods])
    precision = posterior - np.eye(methods) / WEAK**2 + 1e-6 * np.eye(methods)
    return np.linalg.solve(precision, posterior @ values[:methods]), precision


def prior_of(slopes: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the slopes over crowds, by expectation maximisation; families count as one."""
    families = [CROWDS[name].family for name in slopes]
    weights = [1 / families.count(family) for family in families]
    mean = np.average([values for values, _ in slopes.values()], axis=0, weights=weights)
    covariance = np.eye(len(mean)) * 0.1
    for _ in range(ROUNDS):
        precision = np.linalg.inv(covariance)
        spreads = [np.linalg.inv(own + precision) for _, own in slopes.values()]
        means = [
            spread @ (own @ values + precision @ mean)
            for spread, (values, own) in zip(spreads, slopes.values(), strict=True)
        ]
        mean = np.average(means, axis=0, weights=weights)
        parts = [np.outer(one - mean, one - mean) + spread for one, spread in zip(means, spreads, strict=True)]
        covariance = np.average(parts, axis=0, weights=weights)
    return mean, covariance


def fit() -> dict[str, Any]:
    """The prior without each fold of families, and ("None") without those of UNSEEN alone."""
    slopes = {}
    for name, annotations, gold, result in fitted():
        known = np.flatnonzero(gold >= 0)
        if fold_of(CROWDS[name].family) is not None and known.size >= LEAST_FITTED:
            candidates = calibration._candidates(result, annotations, 0)
            offsets = calibration._features(candidates.values(), annotations).offsets
            slopes[name] = best_slopes(offsets[known], gold[known])
    priors = {}
    for fold in (None, *range(FOLDS)):
        rest = {name: own for name, own in slopes.items() if fold_of(CROWDS[name].family) != fold}
        priors[str(fold)] = [np.round(part, 4).tolist() for part in prior_of(rest)]
    return priors


# === What is measured ===


def loss_of(posteriors: np.ndarray, codes: np.ndarray) -> float:
    return float(-np.log(np.maximum(posteriors[np.arange(len(codes)), codes], 1e-6)).mean())


def figures(annotations: Annotations, gold: np.ndarray, raw: Aggregation, number: int) -> dict[str, float]:
    """One crowd, with so many gold tasks; means over draws."""
    known = np.flatnonzero(gold >= 0)
    changes, counts = np.zeros(len(gold)), np.zeros(len(gold))
    rows = defaultdict(list)
    sure = right_and_sure = 0
    for seed in range(DRAWS[number]):
        drawn = np.random.default_rng(seed).permutation(known)
        some, others = np.full(len(gold), -1), drawn[number:]
        some[drawn[:number]] = gold[drawn[:number]]
        found = calibrate(raw, annotations, some, seed=seed)
        right, before = (each.labels[others] == gold[others] for each in (found, raw))
        changes[others] += right.astype(float) - before
        counts[others] += 1
        probability = found.posteriors[others].max(axis=1)
        sure += int((probability >= SURE).sum())
        right_and_sure += int((right & (probability >= SURE)).sum())
        value, low, high = found.accuracy_interval
        for key, figure in {
            "accuracy": right.mean(), "before": before.mean(), "loss": loss_of(found.posteriors[others], gold[others]),
            "loss before": loss_of(raw.posteriors[others], gold[others]), "gap": probability.mean() - right.mean(),
            "gap before": raw.posteriors[others].max(axis=1).mean() - before.mean(),
            "sure": (probability >= SURE).mean(), "covered": low <= right.mean() <= high, "width": high - low,
            "bias": value - right.mean(),
        }.items():  # fmt: skip
            rows[key].append(float(figure))
    own = changes[counts > 0] / counts[counts > 0]
    rng = np.random.default_rng(0)
    samples = [own[rng.integers(0, own.size, own.size)].mean() for _ in range(SAMPLES)]
    return {
        **{key: round(float(np.mean(values)), 4) for key, values in rows.items()},
        "known": round(known.size / int((annotations.redundancy > 0).sum()), 4),
        "worst draw": round(min(np.subtract(rows["accuracy"], rows["before"])), 4),
        "change": round(float(own.mean()), 4), "low": round(float(np.quantile(samples, 0.025)), 4),
        "high": round(float(np.quantile(samples, 0.975)), 4), "sure labels": sure,
        "correct when sure": round(right_and_sure / max(sure, 1), 4),
    }  # fmt: skip


def real(priors: Mapping[str, Any], numbers: list[int], results: dict[str, Any]) -> None:
    """Adds the figures of each real crowd that are missing."""
    for name, annotations, gold, raw in fitted():
        prior = priors[str(fold_of(CROWDS[name].family))]
        candidates = calibration._candidates(raw, annotations, 0)  # the same in every draw
        for number in numbers:
            rows = results.setdefault(f"real, {number} gold tasks", {})
            if name not in rows and (gold >= 0).sum() >= number + LEAST_OTHERS:
                with patch.multiple(calibration, _candidates=lambda *_, candidates=candidates: candidates, PRIOR=prior):
                    rows[name] = figures(annotations, gold, raw, number)
                save(results)


# === Independent crowds ===

Simulated = tuple[Annotations, np.ndarray, np.ndarray]


def answers(rng: np.random.Generator, truth: np.ndarray, matrices: np.ndarray, who: np.ndarray) -> Simulated:
    """Answers of annotators `who` [N, n] to each task, the true classes, and the posterior by the true matrices."""
    tasks, classes = len(truth), matrices.shape[1]
    shares = np.bincount(truth, minlength=classes) / tasks
    task, annotator = np.repeat(np.arange(tasks), who.shape[1]), who.ravel()
    limits = np.cumsum(matrices[annotator, truth[task]], axis=1)
    said = np.minimum((rng.random(task.size)[:, None] > limits).sum(axis=1), classes - 1)
    names = {"tasks": range(tasks), "annotators": range(len(matrices)), "classes": range(classes)}
    logs = np.tile(np.log(np.maximum(shares, 1e-12)), (tasks, 1))
    np.add.at(logs, task, np.log(np.maximum(matrices[annotator, :, said], 1e-12)))
    return Annotations.from_arrays(task, annotator, said, **names), truth, softmax(logs, axis=1)


def equal(seed: int, classes: int, tasks: int, annotators: int, labels: int, right: float) -> Simulated:
    """Annotators who are all correct with the same probability."""
    rng = np.random.default_rng(seed)
    matrix = np.where(np.eye(classes) > 0, right, (1 - right) / (classes - 1))
    who = np.argsort(rng.random((tasks, annotators)), axis=1)[:, :labels]
    return answers(rng, rng.integers(classes, size=tasks), np.tile(matrix, (annotators, 1, 1)), who)


def different(seed: int, classes: int, tasks: int, annotators: int, labels: int) -> Simulated:
    """Annotators whose matrices are drawn around one pattern of confusions; some label far more than others."""
    rng = np.random.default_rng(seed)
    shares = 0.9 ** np.arange(classes)
    truth = rng.choice(classes, tasks, p=shares / shares.sum())
    slips = rng.dirichlet(np.full(classes, 0.7), classes) * (1 - np.eye(classes)) + 1e-9
    slips /= slips.sum(axis=1, keepdims=True) - 1e-9
    skill = rng.beta(4, 2, annotators)[:, None, None]
    means = np.where(np.eye(classes) > 0, skill, slips * (1 - skill))
    matrices = np.array([[rng.dirichlet(30 * row + 1e-3) for row in one] for one in means])
    activity = rng.pareto(1.2, annotators) + 0.1
    chosen = [rng.choice(annotators, labels, replace=False, p=activity / activity.sum()) for _ in range(tasks)]
    return answers(rng, truth, matrices, np.array(chosen))


SORTS: dict[str, tuple[Callable[..., Simulated], tuple[float, ...]]] = {
    "equal: 5 classes, 4 labels, .85": (equal, (5, 300, 12, 4, 0.85)),
    "equal: 2 classes, 4 labels, .75": (equal, (2, 300, 25, 4, 0.75)),
    "different: 4 classes, 30 annotators, 3 labels": (different, (4, 1200, 30, 3)),
    "different: 2 classes, 30 annotators, 5 labels": (different, (2, 1200, 30, 5)),
    "different: 4 classes, 15 annotators, 5 labels": (different, (4, 600, 15, 5)),
}


def simulated(sort: str, number: int = 50) -> dict[str, float]:
    """Losses above that of the generating model, means over seeds."""
    make, settings = SORTS[sort]
    rows = defaultdict(list)
    for seed in SEEDS:
        annotations, truth, posteriors = make(seed, *settings)
        raw = Robust().fit(annotations)
        others = np.random.default_rng(seed).permutation(len(truth))[number:]
        some = truth.copy()
        some[others] = -1
        found = calibrate(raw, annotations, some, seed=seed)
        least = loss_of(posteriors[others], truth[others])
        right, value = (found.labels == truth)[others], found.accuracy_interval
        assert value is not None
        matrices = HierarchicalDawidSkene().fit(annotations).posteriors[others]
        for key, figure in {
            "least": least, "above": loss_of(found.posteriors[others], truth[others]) - least,
            "above before": loss_of(raw.posteriors[others], truth[others]) - least,
            "above, by hierarchical-dawid-skene": loss_of(matrices, truth[others]) - least,
            "change": right.mean() - (raw.labels == truth)[others].mean(),
            "sure": (found.posteriors[others].max(axis=1) >= SURE).mean(),
            "covered": value[1] <= right.mean() <= value[2],
        }.items():  # fmt: skip
            rows[key].append(float(figure))
    return {key: round(float(np.mean(values)), 4) for key, values in rows.items()}


# === Command line ===


def save(results: dict[str, Any]) -> None:
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def over_families(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Means over families of the figures of crowds."""
    keys = ("before", "accuracy", "change", "loss before", "loss", "sure", "width")
    means = {key: family_mean({name: row[key] for name, row in rows.items()}) for key in keys}
    for key in ("covered", "bias"):
        means[key] = family_mean({name: row[key] for name, row in rows.items() if row["known"] >= LEAST_KNOWN})
    for key in ("gap before", "gap"):
        means[key] = family_mean({name: abs(row[key]) for name, row in rows.items()})
    sure = {name: row["correct when sure"] for name, row in rows.items() if row["sure labels"] >= LEAST_SURE}
    return means | {"correct when sure": family_mean(sure)}


def below(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Crowds whose labels gold made clearly worse."""
    return [f"{name} {row['change']:+.3f}" for name, row in rows.items() if row["high"] < BELOW]


def shown(rows: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """The same in words, for tables."""
    means = over_families(rows)
    return {
        "crowds": f"{len(rows)}", "correct without gold": f"{means['before']:.3f}", "with": f"{means['accuracy']:.3f}",
        "clearly above": f"{sum(row['low'] > -BELOW for row in rows.values())}", "clearly below": f"{len(below(rows))}",
        "correct when sure": f"{means['correct when sure']:.3f}", "share sure": f"{means['sure']:.2f}",
        "log loss without": f"{means['loss before']:.3f}", "with gold": f"{means['loss']:.3f}",
        "interval covers": f"{means['covered']:.3f}", "its width": f"{means['width']:.2f}",
    }  # fmt: skip


def show(results: dict[str, Any]) -> None:
    for part, rows in results.items():
        if part == "simulated":
            header = next(iter(rows.values()))
            lines = [(sort, *(f"{figure:.4f}" for figure in row.values())) for sort, row in rows.items()]
            print_table(part, ("sort", *header), lines)
        elif part != "prior":
            words = {"clearly below": ", ".join(below(rows)) or "none"}
            more = {key: f"{over_families(rows)[key]:.4f}" for key in ("gap before", "gap", "bias")}
            print_table(f"{part}, over families", ("", ""), [*(shown(rows) | words | more).items()])


if __name__ == "__main__":
    warnings.simplefilter("ignore", VotesWarning)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit the prior, save and print it, and stop")
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    parser.add_argument("--numbers", nargs="+", type=int, default=[*DRAWS], help="of gold tasks (default: all)")
    args = parser.parse_args()
    saved: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    if args.fit or "prior" not in saved:
        saved["prior"] = fit()
        save(saved)
        print(saved["prior"]["None"])
    if not args.fit and not args.only_print:
        for sort in SORTS.keys() - saved.setdefault("simulated", {}).keys():
            saved["simulated"][sort] = simulated(sort)
            save(saved)
        real(saved["prior"], args.numbers, saved)
    show(saved)
