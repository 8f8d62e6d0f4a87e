"""How often the 95 % intervals of a comparison hold the true difference, on simulated crowds."""

import numpy as np
import pytest

from crowdzoo import Annotations, compare
from crowdzoo.comparison import deep

DRAWS = 400
pytestmark = pytest.mark.slow


def share_covered(differences, intervals, truth):
    covered = np.array([low <= truth <= high for low, high in intervals])
    print(f"{np.mean(differences):+.4f}, true {truth:+.4f}: {covered.mean():.3f} of {len(covered)} intervals hold it")
    return covered.mean()


def interval(comparison, method):
    row = comparison.frame.set_index("method").loc[method]
    return row["against_baseline"], (row["against_baseline_low"], row["against_baseline_high"])


@pytest.mark.filterwarnings("ignore")
def test_intervals_of_aggregations_hold_the_expected_difference_on_other_tasks():
    """The same eight annotators each time, of whom three mix up two classes; other tasks and other errors."""
    matrices = np.full((8, 3, 3), 0.15) + 0.55 * np.eye(3)
    matrices[5:] = [[0.9, 0.05, 0.05], [0.05, 0.25, 0.7], [0.05, 0.7, 0.25]]

    def crowd(seed):
        rng = np.random.default_rng(seed)
        gold = rng.integers(0, 3, 200)
        chances = matrices[:, gold].cumsum(axis=2)  # [annotators, tasks, classes]
        said = (rng.random((8, 200, 1)) > chances).sum(axis=2).T.clip(max=2)
        said[rng.random(said.shape) < 0.5] = -1
        said[(said < 0).all(axis=1), 0] = 0
        return Annotations.from_dense(said, classes=range(3)), gold

    found = []
    for seed in range(DRAWS):
        annotations, gold = crowd(seed)
        found.append(interval(compare(annotations, gold=gold, methods=["dawid-skene"]), "dawid-skene"))
    differences, intervals = zip(*found, strict=True)
    assert 0.93 <= share_covered(differences, intervals, np.mean(differences)) <= 0.97


@pytest.mark.filterwarnings("ignore")
def test_intervals_of_trainings_hold_the_difference_of_the_models_that_were_trained(monkeypatch):
    """Two linear classifiers on fifths of 150 tasks; their true difference is counted on 20,000 others."""
    rng = np.random.default_rng(0)
    far_gold = rng.integers(0, 2, 20_000)
    far = rng.normal(size=(20_000, 6)) + 0.5 * far_gold[:, None]
    truths = []

    def trained(settings, x, measure, kept, hidden, targets, *_, **__):
        columns = slice(None) if settings.method == "aggregated" else slice(4)  # the other sees four features only
        annotations = measure.annotations
        labels = np.zeros(annotations.num_tasks)
        np.add.at(labels, annotations.task_ids, 2.0 * annotations.labels - 1)
        inputs = np.hstack([x[:, columns], np.ones((len(x), 1))])
        weights = np.linalg.lstsq(inputs[kept], np.sign(labels[kept]), rcond=None)[0]
        right = (np.hstack([far[:, columns], np.ones((len(far), 1))]) @ weights > 0) == far_gold
        truths.append((settings.method, right.mean()))
        share = 1 / (1 + np.exp(-inputs[hidden] @ weights))
        return np.stack([1 - share, share], axis=1)

    monkeypatch.setattr(deep, "trained_answers", trained)
    covered = []
    for seed in range(DRAWS):
        draw = np.random.default_rng(1000 + seed)
        gold = draw.integers(0, 2, 150)
        x = (draw.normal(size=(150, 6)) + 0.5 * gold[:, None]).astype("float32")
        said = np.where(draw.random((150, 3)) < 0.75, gold[:, None], 1 - gold[:, None])
        truths.clear()
        found = compare(Annotations.from_dense(said, classes=("a", "b")), x, gold, methods=["ccem"], seeds=[seed])
        means = {name: np.mean([value for each, value in truths if each == name]) for name, _ in truths}
        _, (low, high) = interval(found, "ccem")
        covered.append(low <= means["ccem"] - means["aggregated"] <= high)
    assert 0.93 <= np.mean(covered) <= 0.97, np.mean(covered)
