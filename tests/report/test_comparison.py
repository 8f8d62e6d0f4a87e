import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from crowdzoo.aggregation import DawidSkene, MajorityVote
from crowdzoo.datasets import CrowdDataset, load, simulate_annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.report import comparison as module
from crowdzoo.report.comparison import COMPARED, Comparison, compare
from crowdzoo.training.settings import ImageSettings, TrainingSettings

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


def test_rows_hold_mean_and_sample_deviation():
    # of .5 and .7: mean .6, standard deviation .2 / sqrt 2 = .141; the same for the differences .3 and .1
    assert by_hand().rows() == [
        ("majority", "0.600 ± 0.141", "", COMPARED["majority"]),
        ("MW", "0.800 ± 0.000", "+0.200 ± 0.141", COMPARED["MW"]),
    ]


def test_text_names_the_sizes_and_the_vote_itself():
    text = by_hand().to_text()
    assert text.startswith("set: 3 training tasks, 1 held out; mean ± standard deviation of 2 seeds\n")
    assert text.endswith("Aggregated labels of the training tasks: majority 0.750, dawid-skene 0.800")


def test_json_holds_the_numbers(tmp_path):
    read = json.loads(by_hand().to_json(tmp_path / "new" / "comparison.json").read_text())
    assert read["accuracies"] == {"majority": [0.5, 0.7], "MW": [0.8, 0.8]}
    assert read["std"]["majority"] == pytest.approx(0.1414, abs=1e-4)
    assert read["settings"]["epochs"] == 2


def test_a_single_seed_has_no_deviation():
    one = dataclasses.replace(by_hand(), seeds=(0,), accuracies={"majority": np.array([0.5])})
    assert one.rows() == [("majority", "0.500 ± 0.000", "", COMPARED["majority"])]


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


@pytest.mark.slow
def test_every_method_trains(dataset):
    result = compare(dataset, tuple(COMPARED), seeds=[3], settings=QUICK)
    assert all(0 <= values[0] <= 1 for values in result.accuracies.values())
    for confusions in result.confusions.values():
        np.testing.assert_allclose(confusions.sum(axis=2), np.ones((4, 3)), atol=1e-6)
    assert all(len(curve["loss"]) == QUICK.epochs for curve in result.curves.values())


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


@pytest.mark.slow
def test_ways_of_training_are_compared_on_image_files():
    dataset = load("labelme-images")
    kept = np.sort(np.random.default_rng(0).choice(len(dataset.gold), 80, replace=False))
    few = dataclasses.replace(
        dataset,
        annotations=dataset.annotations.select_tasks(kept),
        instances=dataset.instances[kept],
        gold=dataset.gold[kept],
        split=dataset.split[kept],
    )
    settings = ImageSettings(height=8, width=8, stages=(4,), epochs=1, batch_size=32)
    result = compare(few, ("majority", "VW", "MW", "gold"), seeds=[0], settings=settings)
    assert all(0 <= values[0] <= 1 for values in result.accuracies.values())
    assert {name: found.shape[1:] for name, found in result.confusions.items()} == {"VW": (8, 8), "MW": (8, 8)}


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


def test_another_split_can_be_given(dataset, given):
    split = np.where(np.arange(120) < 20, "eval", "train")
    result = compare(dataset, ("gold",), seeds=[0], settings=QUICK, split=split)
    assert (result.num_train, result.num_eval) == (100, 20)
    assert len(given[0][1]) == 100


@pytest.mark.slow
def test_a_hostile_annotator_is_found_out():
    """The learned diagonal of the annotator who is mostly wrong is the lowest."""
    settings = dataclasses.replace(QUICK, epochs=30)
    result = compare(make_dataset(400, noise=0.2), ("gold", "MW"), seeds=[0], settings=settings)
    assert result.accuracies["gold"][0] > 0.9
    assert [len(curve["loss"]) for curve in result.curves.values()] == [30, 30]
    np.testing.assert_allclose(result.confusions["MW"].sum(axis=2), np.ones((4, 3)), atol=1e-6)
    diagonal = np.diagonal(result.confusions["MW"], axis1=1, axis2=2).mean(axis=1)
    assert diagonal.argmin() == 3
    assert diagonal[3] < diagonal[:3].min() - 0.1


def test_unknown_methods_are_refused(dataset):
    with pytest.raises(ConfigError, match=r"no method 'MV'; methods are majority, "):
        compare(dataset, ("MV",), settings=QUICK)


def test_nothing_held_out_is_refused(dataset):
    with pytest.raises(DataError, match="120 training and 0 held-out"):
        compare(dataset, ("gold",), settings=QUICK, split=np.full(120, "train"))
