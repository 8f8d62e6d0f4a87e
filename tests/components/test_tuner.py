"""The space of the Tuner, in KerasTuner's words."""

import keras_tuner
import pytest

from crowdzoo.components import tuner
from crowdzoo.training.tuned_values import tuned_values

RANGE = {"min": 16, "max": 64, "step": 16, "log": False}
DIMENSIONS = {
    "model.hidden": {"values": [[8], [16, 8]]},
    "training.batch_size": RANGE,
    "training.learning_rate": {"min": 0.001, "max": 0.1, "step": None, "log": True},
    "model.dropout": {"values": [0, 0.5]},
    "training.epochs": {"values": [None, 20]},
}
OWN = {"model.hidden": [16, 8], "training.batch_size": 32, "training.learning_rate": 0.01, "model.dropout": 0,
       "training.epochs": 20}  # fmt: skip


def space():
    found = keras_tuner.HyperParameters()
    for key, dimension in DIMENSIONS.items():
        tuner._add(found, key, dimension)
    return found


def oracle(algorithm="random", trials=30):
    first = {key: tuner._drawn(dimension, OWN[key]) for key, dimension in DIMENSIONS.items()}
    return tuner._oracle({"algorithm": algorithm, "trials": trials}, space(), 0, first)


@pytest.mark.parametrize(
    ("algorithm", "trials"), [("random", 30), pytest.param("bayesian", 18, marks=pytest.mark.slow)]
)
def test_the_first_trial_has_the_configurations_values_and_all_lie_in_the_space(algorithm, trials, tmp_path):
    search = oracle(algorithm, trials)
    search._set_project_dir(tmp_path, "search")
    search.verbose = 0
    found = []
    for number in range(trials):
        trial = search.create_trial("here")
        found.append(tuned_values(trial.hyperparameters.values))
        search.update_trial(trial.trial_id, {"score": -abs(found[-1]["training.learning_rate"] - 0.03)})
        trial.status = "COMPLETED"
        search.end_trial(trial)
        if number == 0:
            assert found[0] == OWN
    assert {tuple(each["model.hidden"]) for each in found} == {(8,), (16, 8)}
    assert {each["training.batch_size"] for each in found} == {16, 32, 48, 64}
    assert {each["training.epochs"] for each in found} == {None, 20}
    assert {each["model.dropout"] for each in found} == {0.0, 0.5}
    rates = [each["training.learning_rate"] for each in found]
    assert 0.001 <= min(rates) < 0.005
    assert 0.02 < max(rates) <= 0.1
    assert all(isinstance(each["training.batch_size"], int) for each in found)


def test_two_searches_with_one_seed_draw_the_same(tmp_path):
    drawn = []
    for number in range(2):
        search = oracle()
        search._set_project_dir(tmp_path, str(number))
        search.verbose = 0
        drawn.append([search.populate_space(str(each))["values"] for each in range(3)])
    assert drawn[0] == drawn[1]
