"""Measures of agreement as their definitions say, pair by pair, for small tables."""

from collections import defaultdict
from itertools import permutations

import numpy as np


def by_task(annotations):
    """Labels of each task, in rows' order; tasks without annotations are not there."""
    tasks = defaultdict(list)
    for task, label in zip(annotations.task_ids.tolist(), annotations.labels.tolist(), strict=True):
        tasks[task].append(label)
    return tasks


def distance(metric, values, pool):
    """d(c, k) of Krippendorff; `pool` is every pairable code."""
    count = {code: pool.count(code) for code in set(pool)}

    def between(c, k):
        c, k = sorted((c, k), key=lambda code: values[code])
        inside = [code for code in count if values[c] <= values[code] <= values[k]]
        return sum(count[code] for code in inside) - (count[c] + count[k]) / 2

    def ratio(c, k):
        total = values[c] + values[k]
        return ((values[c] - values[k]) / total) ** 2 if total else 0.0

    return {
        "nominal": lambda c, k: float(c != k),
        "ordinal": lambda c, k: between(c, k) ** 2 if c != k else 0.0,
        "interval": lambda c, k: (values[c] - values[k]) ** 2,
        "ratio": ratio,
    }[metric]


def alpha(annotations, metric, values=None):
    """Krippendorff's alpha, or None where it is not defined."""
    units = [labels for labels in by_task(annotations).values() if len(labels) > 1]
    pool = [label for labels in units for label in labels]
    values = {code: code for code in pool} if values is None else dict(enumerate(values))
    if len({values[code] for code in pool}) < 2:
        return None
    d = distance(metric, values, pool)
    number = len(pool)
    observed = sum(d(*pair) / (len(labels) - 1) for labels in units for pair in permutations(labels, 2)) / number
    expected = sum(d(*pair) for pair in permutations(pool, 2)) / (number * (number - 1))
    return 1 - observed / expected


def coincidences(annotations):
    matrix = np.zeros((annotations.num_classes, annotations.num_classes))
    for labels in by_task(annotations).values():
        for left, right in permutations(labels, 2):
            matrix[left, right] += 1 / (len(labels) - 1)
    return matrix


def fleiss(annotations):
    units = [labels for labels in by_task(annotations).values() if len(labels) > 1]
    if len({label for labels in units for label in labels}) < 2:
        return None
    agreement = np.mean([np.mean([a == b for a, b in permutations(labels, 2)]) for labels in units])
    shares = [np.mean([labels.count(k) / len(labels) for labels in units]) for k in range(annotations.num_classes)]
    chance = sum(share**2 for share in shares)
    return (agreement - chance) / (1 - chance)
