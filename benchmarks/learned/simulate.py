"""Simulated crowds for the network of `robust`: what is known to mislead methods, in all mixtures.

An annotator's answer is drawn by logits: skill times the truth, a confusion that the crowd shares (pairs of classes,
neighbours, one class that attracts), one's own confusion and bias, and a pull of the task that a group of annotators
feels alike (which makes them depend on each other, and some tasks misleading). Some annotators answer at random or
with one class; some only ever say one class, or nothing (rules, flaggers).
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["Sample", "augment", "simulate"]

MOST_ANNOTATIONS = 6000


@dataclass(frozen=True)
class Sample:
    """Codes of A annotations, known classes [N] (-1: unknown), and the numbers of tasks, annotators and classes."""

    tasks: np.ndarray
    annotators: np.ndarray
    labels: np.ndarray
    gold: np.ndarray
    num_annotators: int
    num_classes: int


def simulate(rng: np.random.Generator, plain: float = 0.0) -> Sample:
    """One crowd, drawn anew in every respect; with the chance `plain` one that Dawid and Skene's model describes."""
    if rng.random() < plain:
        return _plain(rng)
    k = int(rng.choice([2, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10, 12, 16, 20]))
    n = int(np.exp(rng.uniform(np.log(20), np.log(1500))))
    prior = _prior(rng, k)
    sort = rng.choice(["people", "dense", "many", "models", "rules"], p=[0.45, 0.12, 0.1, 0.2, 0.13])
    if sort == "rules":
        return _rules(rng, k, n, rng.choice(k, n, p=prior))
    tasks, who, n, r = _assignments(rng, n, sort)
    truth = rng.choice(k, n, p=prior)
    skill = _skills(rng, r, k, sort)
    shared = _confusion(rng, k) * rng.choice([0, 0.5, 1, 2])
    own = rng.normal(size=(r, k, k)) * rng.choice([0, 0.3, 0.7, 1.2])
    bias = rng.normal(size=(r, k)) * rng.choice([0, 0.3, 0.8, 1.5], p=[0.35, 0.3, 0.2, 0.15])
    if rng.random() < (0.5 if sort == "models" else 0.15):  # many lean to one class
        leaning = rng.random(r) < rng.uniform(0.2, 0.9)
        bias[leaning, rng.integers(k)] += rng.exponential(1.5)
    if rng.random() < 0.3:  # subtypes: of some tasks of a class others' marks are seen
        hidden = rng.random(n) < rng.uniform(0.05, 0.35)
        seen = np.where(hidden, rng.integers(k, size=n) if rng.random() < 0.5 else (truth + 1) % k, truth)
        strength = np.where(hidden, rng.uniform(0, 1.2), 1.0)
    else:
        seen, strength = truth, np.ones(n)
    ease = strength * np.exp(rng.normal(0, rng.choice([0, 0.4, 0.8]), n))
    groups = int(rng.choice([1, 1, 2, 4]))
    group = rng.integers(groups, size=r)
    pull = rng.normal(size=(groups, n, k)) * rng.choice([0, 0.5, 1.0, 1.7], p=[0.35, 0.25, 0.25, 0.15])
    if sort == "models":
        pull *= rng.choice([0.5, 1, 1.5])
    feels = rng.uniform(0.3, 1.3, r)
    logits = bias[who] + own[who, truth[tasks]] + shared[truth[tasks]] + feels[who, None] * pull[group[who], tasks]
    logits[np.arange(len(who)), seen[tasks]] += skill[who] * ease[tasks]
    kinds = rng.random(r)
    limits = np.cumsum(rng.dirichlet([12, rng.choice([0.2, 2, 5]), rng.choice([0.2, 1]), rng.choice([0.1, 0.6])]))
    random, constant, against = kinds > limits[0], kinds > limits[1], kinds > limits[2]
    logits[random[who]] = (rng.normal(size=(r, k)) * rng.choice([0, 0.5]))[who[random[who]]]
    favourite = rng.integers(k, size=r)
    logits[constant[who] & ~against[who], favourite[who[constant[who] & ~against[who]]]] += 6
    turned = against[who]  # consistently exchanges classes
    logits[turned, (truth[tasks[turned]] + 1) % k] += rng.uniform(1, 4)
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    if rng.random() < 0.15:  # some of them flag one class, and say nothing otherwise
        flags = rng.random(r) < rng.uniform(0.2, 0.7)
        target = rng.integers(k, size=r) if rng.random() < 0.3 else np.full(r, rng.integers(k))
        keep = ~flags[who] | (labels == target[who])
        tasks, who, labels = tasks[keep], who[keep], labels[keep]
    return Sample(tasks, who, labels, truth, r, k)


def _plain(rng: np.random.Generator) -> Sample:
    """Annotators with a matrix each, independent given the truth; often all but one class are rare."""
    k = int(rng.choice([2, 2, 2, 3, 4, 6]))
    n = int(np.exp(rng.uniform(np.log(100), np.log(2000))))
    prior = _prior(rng, k) if rng.random() < 0.3 else np.full(k, rng.uniform(0.01, 0.15) / (k - 1))
    common = int(rng.integers(k))
    prior[common] += 1 - prior.sum()
    tasks, who, n, r = _assignments(rng, n, "people" if rng.random() < 0.8 else "dense")
    truth = rng.choice(k, n, p=prior / prior.sum())
    means = np.where(np.arange(k) == common, rng.uniform(0.85, 0.99), rng.uniform(0.45, 0.95))
    strength = rng.choice([5, 20, 100])
    right = rng.beta(strength * means, strength * (1 - means), size=(r, k))
    matrices = rng.dirichlet(np.full(k, rng.choice([0.5, 3])), size=(r, k)) * (1 - np.eye(k)) + 1e-9 * (1 - np.eye(k))
    matrices *= ((1 - right) / matrices.sum(axis=2))[:, :, None]
    matrices[:, np.arange(k), np.arange(k)] = right
    limits = np.cumsum(matrices[who, truth[tasks]], axis=1)
    labels = np.minimum((rng.random(len(who))[:, None] > limits).sum(axis=1), k - 1)
    return Sample(tasks, who, labels, truth, r, k)


def _prior(rng: np.random.Generator, k: int) -> np.ndarray:
    draw = rng.random()
    if draw < 0.3:
        return np.full(k, 1 / k)
    if draw < 0.65:
        return rng.dirichlet(np.full(k, rng.choice([1.0, 3.0, 8.0])))
    if draw < 0.8:
        shares = rng.uniform(0.4, 0.9) ** rng.permutation(k)
        return shares / shares.sum()
    rare = rng.uniform(0.01, 0.12)  # all but one class are rare
    shares = np.full(k, rare / max(k - 1, 1))
    shares[rng.integers(k)] = 1 - rare
    return shares / shares.sum()


def _assignments(rng: np.random.Generator, n: int, sort: str) -> tuple[np.ndarray, np.ndarray, int, int]:
    if sort == "people":
        r = int(np.exp(rng.uniform(np.log(5), np.log(400))))
        redundancy = min(float(rng.choice([1.3, 1.8, 2.5, 3, 3, 5, 5, 7, 10, 15])), r)
        activity = rng.pareto(rng.choice([0.8, 1.2, 3.0]), r) + 0.05
    elif sort == "many":  # very many answers per task
        r = int(np.exp(rng.uniform(np.log(20), np.log(150))))
        redundancy, activity = float(rng.uniform(0.4, 1) * r if rng.random() < 0.5 else r), np.ones(r)
    else:
        r = int(rng.integers(3, 14 if sort == "models" else 12)) if rng.random() < 0.7 else int(rng.integers(12, 60))
        redundancy, activity = float(r) if rng.random() < 0.8 else float(rng.uniform(1.5, r)), np.ones(r)
    n = max(20, min(n, int(MOST_ANNOTATIONS / redundancy)))
    # Efraimidis-Spirakis: the largest keys are a weighted sample without replacement
    keys = np.log(rng.random((n, r))) / activity
    counts = np.full(n, int(redundancy)) + (rng.random(n) < redundancy % 1)
    if rng.random() < 0.3:
        counts = rng.poisson(redundancy, n)
    counts = np.clip(counts, 0, r)
    order = np.argsort(-keys, axis=1)
    in_use = np.arange(r) < counts[:, None]
    return np.repeat(np.arange(n), counts), order[in_use], n, r


def _skills(rng: np.random.Generator, r: int, k: int, sort: str) -> np.ndarray:
    mean = rng.uniform(0.0, 2.2) if sort == "models" else rng.uniform(0.5, 4.5)
    spread = rng.choice([0.2, 0.6, 1.2])
    return np.maximum(mean + spread * rng.normal(size=r), -0.3) + 0.5 * np.log(max(k - 1, 1))


def _confusion(rng: np.random.Generator, k: int) -> np.ndarray:
    draw, places = rng.random(), np.arange(k)
    if draw < 0.3:
        return np.asarray(-np.abs(places[:, None] - places) * rng.uniform(0.3, 1.5))
    logits = np.zeros((k, k))
    if draw < 0.6:
        for true, answer in zip(rng.permutation(k), rng.permutation(k), strict=True):
            if true != answer:
                logits[true, answer] += rng.uniform(0.5, 2.5)
        return logits
    if draw < 0.8:
        logits[:, rng.integers(k)] += rng.uniform(0, 2)
        return logits
    return rng.normal(size=(k, k))


def _rules(rng: np.random.Generator, k: int, n: int, truth: np.ndarray) -> Sample:
    """Label functions: each says one class (a few any class) where it fires, and depends on its neighbours."""
    r = int(rng.integers(4, 80)) if rng.random() < 0.6 else int(rng.integers(4, 15))
    target = rng.integers(k, size=r)
    precise = np.clip(rng.beta(rng.uniform(1.5, 8), 2, r), 0.02, 0.98)
    cover = np.exp(rng.uniform(np.log(0.01), np.log(0.5), r))
    pull = rng.normal(size=(4, n)) * rng.choice([0, 0.7, 1.5])
    group = rng.integers(4, size=r)
    tasks, who, labels = [], [], []
    shares = np.bincount(truth, minlength=k) / n
    for rule in range(r):
        hit = truth == target[rule]
        share = np.clip(shares[target[rule]], 0.01, 0.99)
        rate = np.where(hit, cover[rule] * precise[rule] / share, cover[rule] * (1 - precise[rule]) / (1 - share))
        logit = np.log(np.clip(rate, 1e-4, 0.97)) - np.log1p(-np.clip(rate, 1e-4, 0.97)) + pull[group[rule]]
        fired = np.flatnonzero(rng.random(n) < 1 / (1 + np.exp(-logit)))
        tasks.append(fired)
        who.append(np.full(len(fired), rule))
        labels.append(np.full(len(fired), target[rule]))
    if rng.random() < 0.5:  # and some annotators who answer with any class
        for rule in range(r, r + int(rng.integers(1, 8))):
            answered = np.flatnonzero(rng.random(n) < rng.uniform(0.2, 1))
            right = rng.random(len(answered)) < rng.uniform(0.5, 0.9)
            tasks.append(answered)
            who.append(np.full(len(answered), rule))
            labels.append(np.where(right, truth[answered], rng.integers(k, size=len(answered))))
            r = rule + 1
    t, w, y = np.concatenate(tasks), np.concatenate(who), np.concatenate(labels)
    if len(t) > MOST_ANNOTATIONS:
        keep = t < n * MOST_ANNOTATIONS / len(t)
        t, w, y = t[keep], w[keep], y[keep]
    return Sample(t, w, y, truth, r, k)


def augment(rng: np.random.Generator, sample: Sample) -> Sample:
    """A part of a crowd: some annotators, some answers per task, some tasks."""
    keep = np.ones(len(sample.tasks), bool)
    if rng.random() < 0.5:
        keep &= (rng.random(sample.num_annotators) < rng.uniform(0.3, 1))[sample.annotators]
    if rng.random() < 0.4:
        keep &= rng.random(len(keep)) < rng.uniform(0.2, 1)
    n = len(sample.gold)
    rate = len(sample.tasks) / max(n, 1)
    share = min(1.0, MOST_ANNOTATIONS / max(keep.sum(), 1)) * (rng.uniform(0.3, 1) if n > 100 else 1.0)
    chosen = rng.random(n) < share
    known = sample.gold >= 0
    if known.mean() < 0.3 and rate:  # keep those that one learns from
        chosen |= known & (rng.random(n) < min(1.0, 3 * share))
    keep &= chosen[sample.tasks]
    places = np.cumsum(chosen) - 1
    used, who = np.unique(sample.annotators[keep], return_inverse=True)
    return Sample(
        places[sample.tasks[keep]], who, sample.labels[keep], sample.gold[chosen], len(used), sample.num_classes
    )
