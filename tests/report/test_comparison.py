import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from crowdzoo.aggregation import DawidSkene, MajorityVote
from crowdzoo.datasets import CrowdDataset, simulate_annotations
from crowdzoo.report import comparison as module
from crowdzoo.report.comparison import COMPARED, Comparison, compare
from crowdzoo.training.settings import TrainingSettings

QUICK = TrainingSettings(hidden=(8,), dropout=0.0, epochs=2, batch_size=32, learning_rate=0.01)


def make_dataset(num_tasks=120, noise=0.5, seed=0):
    """Three Gaussian blobs, labelled by four annotators of whom one is hostile."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(3, size=num_tasks)
    good = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    hostile = np.roll(good, 1, axis=1)
    return CrowdDataset(
        name="blobs",
        annotations=simulate_annotations(gold, [good, good, good, hostile], redundancy=3, seed=seed),
        instances=(np.eye(3)[gold] + rng.normal(0, noise, (num_tasks, 3))).astype(np.float32),
        gold=gold,
        split=np.where(np.arange(num_tasks) % 4 == 3, "eval", "train"),
        licence="none",
        citation="nobody",
        description="made up",
    )


@pytest.fixture(scope="module")
def dataset():
    return make_dataset()


def by_hand():
    return Comparison(
        dataset="set",
        seeds=(0, 1),
        accuracies={"majority": np.array([0.5, 0.7]), "MW": np.array([0.8, 0.8])},
        label_accuracy={"majority": 0.75, "dawid-skene": 0.8},
        seconds={"majority": 1.0, "MW": 2.0},
        curves={"majority": {"loss": [1.0, 0.5]}, "MW": {"loss": [2.0, 1.5]}},
        confusions={"MW": np.eye(2)[None]},
        aggregation_history=(-10.0, -9.0),
        settings=QUICK,
        num_train=3,
        num_eval=1,
    )


def test_differences_are_paired_by_seed():
    assert by_hand().differences()["MW"] == pytest.approx([0.3, 0.1])
    assert set(by_hand().differences()) == {"MW"}


@pytest.fixture
def given(monkeypatch):
    """What each training is given. Nothing is trained: every model says class 0."""
    calls = []

    def train(settings, x, **labels):
        calls.append((settings, x.copy(), labels))
        model = SimpleNamespace(
            base=lambda x, training: np.eye(3)[np.zeros(len(x), int)],
            calibrated_confusions=lambda *_, **__: np.full((4, 3, 3), 1 / 3),
            history=SimpleNamespace(history={"loss": [2.0, 1.0]}),
        )
        return model, None

    monkeypatch.setattr(module, "train", train)
    return calls


def test_every_method_is_given_its_own_labels_and_is_scored(dataset, given):
    seen = []
    result = compare(dataset, tuple(COMPARED), seeds=[3], settings=QUICK, progress=lambda *step: seen.append(step))
    held_out = dataset.split == "eval"
    assert {method: values.tolist() for method, values in result.accuracies.items()} == {
        method: [(dataset.gold[held_out] == 0).mean()] for method in COMPARED
    }
    assert list(result.accuracies) == list(COMPARED)
    assert seen == [(method, 3, number, len(COMPARED)) for number, method in enumerate(COMPARED, start=1)]
    assert set(result.confusions) == {"VW", "VB", "VW+B", "S", "MW"}
    assert result.curves == {method: {"loss": [2.0, 1.0]} for method in COMPARED}
    assert (result.num_train, result.num_eval) == (90, 30)
    annotations = dataset.annotations.select_tasks(np.flatnonzero(~held_out))
    soft = MajorityVote().fit(annotations).posteriors
    expected = {
        "majority-soft": soft,
        "dawid-skene": np.eye(3)[DawidSkene().fit(annotations).labels],
        "dawid-skene-soft": DawidSkene().fit(annotations).posteriors,
        "gold": np.eye(3)[dataset.gold[~held_out]],
    }
    for method, (settings, _, labels) in zip(COMPARED, given, strict=True):
        assert settings.seed == 3
        assert settings.epochs == QUICK.epochs
        if method in result.confusions:
            assert (settings.method, settings.arguments) == ("crowdsourced-layer", {"connection": method, "scale": 1.0})
            assert labels["annotations"] == annotations
        elif method == "majority":  # one of the classes with most votes
            assert settings.method == "aggregated"
            assert (soft[labels["label_distribution"] == 1] == soft.max(axis=1)).all()
        else:
            assert settings.method == "aggregated"
            np.testing.assert_array_equal(labels["label_distribution"], expected[method])


def test_instances_that_have_an_encoder_are_encoded_wherever_the_model_is_asked(dataset, monkeypatch):
    """The model's own matrices were once asked about images as the bytes of their files."""
    asked = []

    def train(settings, x, **labels):
        model = SimpleNamespace(
            base=lambda x, training: (asked.append(x), np.eye(3)[np.zeros(len(x), int)])[1],
            calibrated_confusions=lambda x, *_, **__: (asked.append(x), np.full((4, 3, 3), 1 / 3))[1],
            history=None,
        )
        return model, SimpleNamespace(to_numpy=lambda values: values + 1000)

    monkeypatch.setattr(module, "train", train)
    compare(dataset, ("MW",), seeds=[0], settings=QUICK)
    held_out = dataset.split == "eval"
    expected = [dataset.instances[held_out] + 1000, dataset.instances[~held_out] + 1000]
    assert all(np.array_equal(*pair) for pair in zip(asked, expected, strict=True))


def test_training_sees_training_tasks_only(dataset, given):
    """Whatever is changed about the held-out tasks, what the trainings are given stays the same."""
    methods = ("majority", "dawid-skene", "MW", "gold")
    compare(dataset, methods, seeds=[0], settings=QUICK)
    held_out = dataset.split == "eval"
    dense = dataset.annotations.to_dense()
    dense[held_out] = -1
    spoilt = dataclasses.replace(
        dataset,
        annotations=type(dataset.annotations).from_dense(dense, annotators=range(4), classes=range(3)),
        instances=np.where(held_out[:, None], 1e6, dataset.instances).astype(np.float32),
        gold=np.where(held_out, 0, dataset.gold),
    )
    compare(spoilt, methods, seeds=[0], settings=QUICK)
    assert len(given) == 8
    for (settings, x, labels), (settings_2, x_2, labels_2) in zip(given[:4], given[4:], strict=True):
        assert settings == settings_2
        assert len(x) == 90
        assert np.array_equal(x, x_2)
        assert np.array_equal(
            np.asarray(labels.get("label_distribution")), np.asarray(labels_2.get("label_distribution"))
        )
        assert labels.get("annotations") == labels_2.get("annotations")


@pytest.mark.slow
def test_only_the_method_gold_sees_gold(dataset):
    methods = ("majority", "dawid-skene", "VW", "gold")
    training = dataset.split == "train"
    wrong = dataclasses.replace(dataset, gold=np.where(training, (dataset.gold + 1) % 3, dataset.gold))
    longer = dataclasses.replace(QUICK, epochs=10)
    right_run = compare(dataset, methods, seeds=[0], settings=longer).accuracies
    wrong_run = compare(wrong, methods, seeds=[0], settings=longer).accuracies
    for method in methods[:-1]:
        assert np.array_equal(right_run[method], wrong_run[method])
    assert right_run["gold"] > wrong_run["gold"] + 0.3


@pytest.mark.slow
def test_twice_gives_the_same_numbers(dataset):
    first, again = (compare(dataset, ("majority", "MW"), seeds=[1, 2], settings=QUICK) for _ in range(2))
    for method in ("majority", "MW"):
        assert np.array_equal(first.accuracies[method], again.accuracies[method])
    assert np.array_equal(first.confusions["MW"], again.confusions["MW"])
