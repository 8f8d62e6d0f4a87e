"""Fixtures of the tests of aggregation."""

import numpy as np
import pytest

from crowdzoo import Annotations


@pytest.fixture(scope="session")
def rare_crowd():
    """Of a class that one task in twenty has; three of ten annotators a task, who find it in .7 and see it in .04."""

    def crowd(seed, num_tasks):
        rng = np.random.default_rng(seed)
        truth = (rng.random(num_tasks) < 0.05).astype(int)
        annotators = np.concatenate([rng.choice(10, 3, replace=False) for _ in range(num_tasks)])
        tasks = np.repeat(np.arange(num_tasks), 3)
        labels = (rng.random(len(tasks)) < np.where(truth[tasks] == 1, 0.7, 0.04)).astype(int)
        odds = np.full(num_tasks, np.log(0.05 / 0.95))
        np.add.at(odds, tasks, np.where(labels == 1, np.log(0.7 / 0.04), np.log(0.3 / 0.96)))
        names = {"tasks": range(num_tasks), "annotators": range(10), "classes": (0, 1)}
        return Annotations.from_arrays(tasks, annotators, labels, **names), truth, odds > 0

    return crowd


@pytest.fixture(scope="session")
def flaggers():
    """Three of seven voters a task, right in .75, and eight who only say 1: on .35 of the 1s, .08 of the 0s."""

    def crowd(seed):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 400)
        rows = []
        for task in range(400):
            for annotator in rng.choice(7, 3, replace=False):
                rows.append((task, annotator, truth[task] if rng.random() < 0.75 else 1 - truth[task]))
            for annotator in range(7, 15):
                if rng.random() < (0.35 if truth[task] else 0.08):
                    rows.append((task, annotator, 1))
        names = {"tasks": range(400), "annotators": range(15), "classes": (0, 1)}
        return Annotations.from_arrays(*np.array(rows).T, **names), truth

    return crowd
