"""The choice of a deep method for ratings by hidden ratings."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from crowdzoo.aggregation import create
from crowdzoo.data.annotations import Annotations
from crowdzoo.models import TrainingSettings, choose_method, train
from crowdzoo.training.held_out_ratings import RatingEvidence, rating_scores


def crowd(num_tasks=240, seed=0):
    """Ratings of a linear truth by six annotators with biases; each rates half of the tasks."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_tasks, 3)).astype("float32")
    truth = 5 + 2 * x[:, 0]
    said = truth[:, None] + np.array([-3.0, -2, -1, 1, 2, 3]) + rng.normal(0, 0.4, (num_tasks, 6))
    said[rng.random(said.shape) < 0.5] = np.nan
    said[np.isnan(said).all(axis=1), 0] = truth[np.isnan(said).all(axis=1)]
    task, who = np.nonzero(~np.isnan(said))
    names = {"tasks": range(num_tasks), "annotators": range(6)}
    return x, Annotations.from_arrays(task, who, said[task, who], kind="regression", **names), truth


def test_a_task_has_the_density_of_its_ratings_around_the_prediction(monkeypatch):
    """Against a multivariate normal distribution, for the spread that is best and the level that is best."""
    monkeypatch.setattr("crowdzoo.training.held_out_ratings.SPREADS", np.array([0.7]))
    precisions, biases = np.array([4.0, 1.0, 0.5]), np.array([0.3, -0.2, 0.0])
    ratings = np.array([[1.0, 2.0, 0.5], [3.0, 2.2, 2.0]])
    corrected = ratings - biases
    weight = np.full(2, precisions.sum())
    mean = (corrected * precisions).sum(axis=1) / weight
    constant = (np.log(precisions / (2 * np.pi)) - precisions * (corrected - mean[:, None]) ** 2).sum(axis=1) / 2
    answers = np.array([0.5, 3.5])
    found = rating_scores(answers, RatingEvidence(weight, mean, constant, 2.0))
    level = (mean - answers).mean()  # both tasks weigh the same
    covariance = np.diag(1 / precisions) + 1.4**2
    expected = [
        multivariate_normal.logpdf(own, np.full(3, answer + level), covariance)
        for own, answer in zip(corrected, answers, strict=True)
    ]
    np.testing.assert_allclose(found, expected)


@pytest.mark.slow
def test_a_method_for_ratings_is_chosen_and_trains():
    x, annotations, truth = crowd(1000)
    settings = TrainingSettings(task="regression", hidden=(8,), epochs=8, batch_size=32, learning_rate=0.02, seed=1)
    counted = []
    tried = (("aggregated", {}), ("crowdsourced-layer", {"connection": "B"}))
    choice = choose_method(settings, x, annotations, candidates=tried, on_training=lambda: counted.append(1))
    assert (len(counted), choice.num_hidden) == (2, 200)
    assert choice.candidates[0].behind == 0
    given = {"annotations": annotations, "tasks": annotations.tasks}
    if choice.settings.method == "aggregated":
        given = {"ratings": create("rating-em", kind="regression").fit(annotations).estimates}
    model, _ = train(choice.settings, x, **given)
    assert np.corrcoef(model.predict(x, verbose=0)[:, 0], truth)[0, 1] > 0.9
