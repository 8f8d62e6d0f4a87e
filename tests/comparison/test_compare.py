"""Methods compared on one's own data: by gold, by hidden annotations, with runs that are kept."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import crowdzoo
from crowdzoo import Annotations, ConfigError, DataError, compare
from crowdzoo.aggregation import Aggregation, Aggregator, DawidSkene, MajorityVote, Wawa, create
from crowdzoo.comparison.intervals import bootstrap
from crowdzoo.metrics import expected_calibration_error

# twenty tasks of two annotators who are right, and gold
ODD_AND_EVEN = Annotations.from_arrays([*range(20)] * 2, [0] * 20 + [1] * 20, [0, 1] * 20), np.arange(20) % 2


def crowd(num_tasks=300, seed=0, swapped=0.35):
    """Three classes; a careful annotator, and four who mix up two classes."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 3, num_tasks)
    said = np.repeat(gold[:, None], 5, axis=1)
    for annotator in range(4):
        rows = (gold > 0) & (rng.random(num_tasks) < swapped)
        said[rows, annotator] = 3 - gold[rows]
    careless = rng.random(said.shape) < 0.1
    said[careless] = rng.integers(0, 3, careless.sum())
    said[rng.random(said.shape) < 0.3] = -1
    said[(said < 0).all(axis=1), 0] = 0
    return Annotations.from_dense(said, classes=("a", "b", "c")), gold


def by_method(comparison):
    return comparison.frame.set_index("method")


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_a_note_of_each_part_is_there_once():
    said = [0] * 40 + [0, 1] * 20 + [2] * 40
    annotations = Annotations.from_arrays([*range(40)] * 3, [0] * 40 + [1] * 40 + [2] * 40, said, classes=[0, 1, 2])
    notes = by_method(compare(annotations, methods=["one-coin"])).loc["one-coin", "notes"]
    assert notes.count("is the label of no task") == 1


def test_with_gold_scores_and_intervals_are_those_of_numpy():
    annotations, gold = crowd()
    gold[::3] = -1
    found = by_method(compare(annotations, gold=gold, methods=["dawid-skene", "wawa"]))
    known = gold >= 0
    vote, dawid_skene = MajorityVote().fit(annotations), DawidSkene().fit(annotations)
    assert found.loc["majority-vote", "score"] == pytest.approx(vote.accuracy(gold))
    assert found.loc["dawid-skene", "score"] == pytest.approx(dawid_skene.accuracy(gold))
    row = found.loc["dawid-skene"]
    right = dawid_skene.posteriors[known].argmax(axis=1) == gold[known]
    assert row["balanced accuracy"] == pytest.approx(np.mean([right[gold[known] == k].mean() for k in range(3)]))
    assert row["log loss"] == pytest.approx(
        -np.log(np.clip(dawid_skene.posteriors[known, gold[known]], 1e-7, 1)).mean()
    )
    assert row["calibration error"] == pytest.approx(expected_calibration_error(gold, dawid_skene.posteriors))
    best = vote.posteriors == vote.posteriors.max(axis=1, keepdims=True)
    of_vote = (best / best.sum(axis=1, keepdims=True))[known, gold[known]]
    mean, low, high = bootstrap([right], [of_vote])
    assert row[["against_baseline", "against_baseline_low", "against_baseline_high"]].tolist() == pytest.approx(
        [mean, low, high]
    )
    assert low > 0
    assert found.index[0] == "dawid-skene"
    assert bool(row["level"])


@pytest.mark.slow
def test_the_normal_interval_of_many_tasks_is_the_drawn_one():
    gains = np.random.default_rng(0).normal(0.1, 1, (2, 4000))
    drawn = bootstrap(gains, np.zeros_like(gains))
    normal = bootstrap(np.tile(gains, 2), np.zeros((2, 8000)))
    assert normal[0] == pytest.approx(drawn[0])
    assert (normal[2] - normal[1]) * np.sqrt(2) == pytest.approx(drawn[2] - drawn[1], rel=0.03)


def test_a_method_that_does_not_suit_the_data_is_listed_last_with_its_reason(failing_method):
    annotations, gold = crowd(60)
    found = compare(annotations, gold=gold, methods=[failing_method])
    assert found.frame["method"].tolist() == ["majority-vote", failing_method]
    assert found.frame["notes"].iloc[1].startswith("failed: for two classes, got 3 classes")
    assert found.table()[2][1][1] == "-"
    assert found.best.name == "majority-vote"


def test_a_class_that_a_method_never_gives_is_noted():
    said = np.full((100, 5), 0)
    said[80:] = [1, 1, 0, 0, 0]  # outvoted
    found = compare(Annotations.from_dense(said, classes=("often", "rare")), gold=np.repeat([0, 1], [80, 20]))
    assert by_method(found).loc["majority-vote", "notes"].startswith("Class 'rare' is the label of no task")


def test_without_gold_what_was_hidden_is_not_seen_and_scores_are_the_equation():
    annotations, _ = crowd()
    found = compare(annotations, methods=["dawid-skene"])
    assert not found.has_gold
    row = by_method(found).loc["dawid-skene"]
    # by hand: each fifth of the annotations from the result on the others, with one temperature a fifth
    confusions = np.maximum(create("hierarchical-dawid-skene").fit(annotations).confusions, 1e-6)
    total = count = 0
    part_of = np.random.default_rng([0, 5]).permutation(len(annotations)) % 5
    for part in range(5):
        hidden = part_of == part
        left = np.bincount(annotations.task_ids[~hidden], minlength=annotations.num_tasks)
        hidden &= left[annotations.task_ids] > 0
        posteriors = DawidSkene().fit(annotations.select_rows(~hidden)).posteriors
        logs = np.zeros((annotations.num_tasks, 3))
        for place in np.flatnonzero(hidden):
            logs[annotations.task_ids[place]] += np.log(
                confusions[annotations.annotator_ids[place], :, annotations.labels[place]]
            )
        asked = np.unique(annotations.task_ids[hidden])
        tried = []
        for temperature in np.geomspace(0.25, 8, 16):
            p = np.maximum(posteriors[asked], 1e-6) ** (1 / temperature)
            tried.append(np.log((p / p.sum(axis=1, keepdims=True) * np.exp(logs[asked])).sum(axis=1)).sum())
        total, count = total + max(tried), count + hidden.sum()
    assert row["score"] == pytest.approx(total / count)
    assert found.frame["method"].tolist() == ["dawid-skene", "majority-vote"]


def test_ratings_are_scored_by_their_errors():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    said = truth[:, None] + rng.normal(size=5) + rng.normal(size=(200, 5)) * [0.1, 0.3, 0.5, 1, 2]
    annotations = Annotations.from_dense(said, kind="regression")
    found = by_method(compare(annotations, gold=truth))
    errors = create("rating-em", kind="regression").fit(annotations).estimates - truth
    assert found.loc["rating-em", "score"] == pytest.approx(-np.abs(errors).mean())
    assert found.loc["rating-em", "RMSE"] == pytest.approx(np.sqrt((errors**2).mean()))
    assert found.index[0] == "rating-em"
    hidden = by_method(compare(annotations, methods=["median"]))
    assert np.isfinite(hidden["score"]).all()


class Counted:
    """`compare` with the numbers of its progress."""

    def __init__(self):
        self.seen = []

    def __call__(self, *arguments, **named):
        self.seen.clear()
        return compare(*arguments, **named, on_run=lambda *step: self.seen.append(step))


def test_a_comparison_goes_on_from_its_runs_and_takes_more_methods_and_seeds(tmp_path):
    annotations, gold = crowd(100)
    counted = Counted()
    first = counted(annotations, gold=gold, methods=["dawid-skene"], folder=tmp_path)
    assert counted.seen == [(1, 2), (2, 2)]
    again = counted(annotations, gold=gold, methods=["dawid-skene"], folder=tmp_path)
    assert counted.seen == []
    pd.testing.assert_frame_equal(again.frame, first.frame)
    more = counted(annotations, gold=gold, methods=["dawid-skene", "wawa"], folder=tmp_path, seeds=(0, 1))
    assert counted.seen == [(number, 6) for number in range(3, 7)]
    fresh = compare(annotations, gold=gold, methods=["dawid-skene", "wawa"], seeds=(0, 1))
    pd.testing.assert_frame_equal(more.frame.drop(columns="seconds"), fresh.frame.drop(columns="seconds"))
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    assert sorted(runs["method"].unique()) == ["dawid-skene", "majority-vote", "wawa"]
    other = np.where(np.arange(100) < 50, gold, -1)  # runs do not depend on gold
    counted(annotations, gold=other, methods=["dawid-skene"], folder=tmp_path)
    assert counted.seen == []


def test_runs_of_other_data_are_refused_and_damaged_ones_named(tmp_path):
    annotations, gold = crowd(100)
    compare(annotations, gold=gold, folder=tmp_path, methods=["wawa"])
    with pytest.raises(ConfigError, match=r"runs\.parquet: its runs are of other annotations"):
        compare(crowd(100, seed=1)[0], gold=gold, folder=tmp_path, methods=["wawa"])
    with pytest.raises(ConfigError, match=r"its runs are of other way of scoring"):
        compare(annotations, folder=tmp_path, methods=["wawa"])
    file = next((tmp_path / "runs.parquet").iterdir())
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataError, match=rf"{file.name}: holds no run of a comparison\. Remove it"):
        compare(annotations, gold=gold, folder=tmp_path, methods=["wawa"])


def test_what_cannot_be_compared_is_said():
    annotations, gold = crowd(60)
    for given, error, words in (
        ({"methods": ["dawid-sken"]}, ConfigError, "unknown method 'dawid-sken'.*Did you mean 'dawid-skene'"),
        ({"methods": ["dawid-skene prior"]}, ConfigError, "write settings as NAME=VALUE"),
        ({"methods": ["dawid-skene prior=-1"]}, ConfigError, "prior must be a number from 0"),
        ({"gold": gold[:5]}, DataError, r"gold must have a value for each of the 60 tasks, got shape \(5,\)"),
        ({"gold": np.full(60, -1)}, DataError, "no task has gold"),
        ({"gold": gold + 1}, DataError, "gold must be class codes, whole numbers from 0 to 2, -1"),
        ({"gold": np.array(["a", "b", "c"])[gold]}, DataError, "gold must be class codes"),
        ({"seeds": ()}, ConfigError, "seeds is empty"),
        (
            {"methods": ["rating-em"]},
            ConfigError,
            "rating-em is for ratings, not for classes: choose one of",
        ),
        ({"methods": ["ccem"]}, ConfigError, "ccem is a deep method: give instances, too"),
        ({"low": 0}, ConfigError, "low: is not for classes; leave it out"),
        ({"gold": np.where(np.arange(60) < 19, gold, -1)}, DataError, "19 tasks have gold, but intervals need 20"),
        ({"gold": dict(enumerate(gold))}, DataError, "its keys seem to be tasks. For one class a task write"),
        ({"base": object()}, ConfigError, "are for deep methods: give instances, too"),
    ):
        with pytest.raises(error, match=words):
            compare(annotations, **given)
    alone = Annotations.from_dense(gold[:, None])
    with pytest.raises(DataError, match="0 tasks have two annotations, but 20 are needed"):
        compare(alone)
    with pytest.raises(DataError, match="compare needs Annotations, got ndarray"):
        compare(gold)


@pytest.fixture(scope="module")
def clouds():
    """Two clouds of points, a careful annotator, and four who say class 1 for half of class 0."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 150)
    x = (rng.normal(size=(150, 4)) + 2.5 * gold[:, None]).astype("float32")
    said = np.repeat(gold[:, None], 5, axis=1)
    for annotator in range(1, 5):
        said[(gold == 0) & (rng.random(150) < 0.5), annotator] = 1
    said[rng.random(said.shape) < 0.4] = -1
    said[(said < 0).all(axis=1), 0] = 0
    return x, Annotations.from_dense(said, classes=("no", "yes")), gold


def base():
    import keras

    return keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(2, activation="softmax")
    ])  # fmt: skip


def quick(**given):
    from crowdzoo.models import TrainingSettings

    return TrainingSettings(**{"epochs": 2, "learning_rate": 0.02, "batch_size": 32} | given)


@pytest.mark.usefixtures("eager")
def test_each_training_is_given_its_own_labels_and_no_hidden_task(clouds, answer_for_models):
    x, annotations, gold = clouds
    held_out = np.arange(150) >= 120
    given = []

    def trained(settings, x, measure, kept, hidden, targets, *_, **__):
        given.append((settings, kept, hidden, targets))
        return np.eye(2)[gold[hidden]] if settings.method == "ccem" else np.eye(2)[1 - gold[hidden]]

    answer_for_models(trained)
    found = compare(
        annotations, x, gold, base=base(), settings=quick(), held_out=held_out, seeds=[3], methods=["ccem", "gold"]
    )
    assert [settings.method for settings, *_ in given] == ["aggregated", "ccem", "aggregated"]
    for settings, kept, hidden, _ in given:
        assert settings.seed == 3
        assert kept.tolist() == list(range(120))
        assert hidden.tolist() == list(range(120, 150))
    np.testing.assert_allclose(
        given[0][3], MajorityVote().fit(annotations.select_tasks(given[0][1])).posteriors, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(given[2][3], np.eye(2)[gold[:120]])
    assert by_method(found)["score"].to_dict() == {"ccem": 1, "majority-vote": 0, "gold": 0}
    assert by_method(found)["level"].to_dict() == {"ccem": True, "majority-vote": False, "gold": False}
    assert found.num_tasks == 30
    assert found.best.name == "ccem"


@pytest.mark.usefixtures("eager")
def test_gold_is_no_method_to_take_and_the_others_are_compared_with_the_best_of_them(clouds, answer_for_models):
    x, annotations, gold = clouds

    def trained(settings, x, measure, kept, hidden, targets, *_, **__):
        wrong = 0 if targets is not None and set(np.unique(targets)) == {0, 1} else 5  # gold is one-hot
        said = gold[hidden].copy()
        said[:wrong] = 1 - said[:wrong]
        return np.eye(2)[said]

    answer_for_models(trained)
    found = compare(annotations, x, gold, settings=quick(), methods=["ccem", "gold"])
    assert found.frame["method"].iloc[0] == "gold"
    assert found.best.name == "majority-vote"
    rows = by_method(found)
    assert rows.loc["ccem", "behind_best"] == 0
    assert rows.loc["gold", "behind_best"] > 0
    assert "the best: majority-vote" in repr(found)


def test_without_gold_models_are_scored_by_the_annotations_of_their_hidden_tasks(clouds, answer_for_models):
    x, annotations, gold = clouds
    share = np.where(np.arange(2) == gold[:, None], 0.8, 0.2)
    answer_for_models(lambda settings, x, crowd, kept, hidden, *_, **__: share[hidden])
    found = by_method(compare(annotations, x, settings=quick(), methods=["ccem"]))
    confusions = np.maximum(create("hierarchical-dawid-skene").fit(annotations).confusions, 1e-6)
    logs = np.zeros((150, 2))
    np.add.at(logs, annotations.task_ids, np.log(confusions[annotations.annotator_ids, :, annotations.labels]))
    order = np.random.default_rng([0, 5]).permutation(150)
    total = 0
    for part in np.array_split(order, 5):
        tempered = [share[part] ** (1 / t) for t in np.geomspace(0.25, 8, 16)]
        total += max(
            np.log((p / p.sum(axis=1, keepdims=True) * np.exp(logs[part])).sum(axis=1)).sum() for p in tempered
        )
    assert found.loc["ccem", "score"] == pytest.approx(total / len(annotations))


def test_a_run_that_failed_is_made_again_and_where_all_fail_the_reason_is_the_error(tmp_path, failing_method):
    annotations, gold = crowd(60)
    found = compare(annotations, gold=gold, methods=[failing_method], folder=tmp_path)
    assert pd.read_parquet(tmp_path / "runs.parquet")["method"].tolist() == ["majority-vote"]
    assert found.frame["notes"].iloc[1].startswith("failed: ")
    import keras

    x = np.zeros((60, 2), "float32")
    wrong = keras.Sequential([keras.Input((2,)), keras.layers.Dense(5, activation="softmax")])
    with pytest.raises(DataError, match=r"majority-vote: base given: gives shape \[2, 5\] for 2"):
        compare(annotations, x, gold, base=wrong, settings=quick(), methods=["ccem"])


def test_runs_that_learn_from_gold_are_those_of_the_same_gold(clouds, tmp_path, answer_for_models):
    x, annotations, gold = clouds
    made = []

    def trained(settings, x, annotations, kept, hidden, targets, *_, **__):
        made.append(settings.method)
        return np.full((len(hidden), 2), 0.5)

    answer_for_models(trained)
    how = {"settings": quick(), "held_out": np.arange(150) >= 100, "methods": ["ccem", "gold"], "folder": tmp_path}
    compare(annotations, x, gold, **how)
    assert len(made) == 3
    compare(annotations, x, 1 - gold, **how)
    assert len(made) == 4  # gold alone


def test_what_a_method_warns_of_is_noted(clouds, answer_for_models):
    annotations, gold = crowd(swapped=0.5)
    with pytest.warns(UserWarning, match="dawid-skene: The labels differ from the plurality"):
        DawidSkene().fit(annotations)
    found = by_method(compare(annotations, gold=gold, methods=["dawid-skene"]))
    assert found.loc["dawid-skene", "notes"].startswith("The labels differ from the plurality of the votes")
    x, annotations, gold = clouds
    constant = np.array([0.4, 0.6])
    answer_for_models(lambda *given, **_: np.tile(constant, (len(given[4]), 1)))
    found = by_method(compare(annotations, x, gold, settings=quick(), methods=["ccem"]))
    assert found.loc["ccem", "notes"] == "never says no"


def test_fifths_of_the_tasks_are_hidden_in_turns(clouds, answer_for_models):
    x, annotations, _ = clouds
    asked = []

    def trained(settings, x, measure, kept, hidden, targets, *_, **__):
        assert not set(kept) & set(hidden)
        asked.append(hidden)
        return np.full((len(hidden), 2), 0.5)

    answer_for_models(trained)
    found = compare(annotations, x, settings=quick(), methods=["ccem"])
    assert sorted(np.concatenate(asked[::2])) == list(range(150))
    assert [len(part) for part in asked] == [30] * 10
    assert by_method(found).loc["ccem", "behind_best"] == 0


@pytest.mark.slow
def test_a_model_of_ones_own_is_trained_anew_each_time(clouds):
    x, annotations, gold = clouds
    own = base()
    before = [weight.copy() for weight in own.get_weights()]
    given = {"base": own, "settings": quick(epochs=10), "held_out": np.arange(150) >= 110, "methods": ["ccem"]}
    found = compare(annotations, x, gold, **given)
    assert all(map(np.array_equal, before, own.get_weights()))
    assert by_method(found).loc["ccem", "score"] > 0.8
    assert found.scores["ccem"].shape == (1, 40)
    again = compare(annotations, x, gold, **given)
    assert np.array_equal(found.scores["ccem"], again.scores["ccem"])


@pytest.mark.parametrize(
    ("inputs", "last", "message"),
    [
        (4, None, r"probabilities sum to 1: end it in Dense\(2, activation='softmax"),
        (7, "softmax", "base given: does not take a batch of"),
    ],
)
def test_a_model_of_ones_own_that_does_not_fit_is_refused(clouds, inputs, last, message):
    import keras

    x, annotations, gold = clouds
    own = keras.Sequential([keras.Input((inputs,)), keras.layers.Dense(2, last)])
    with pytest.raises(DataError, match=f"every method failed.*{message}"):
        compare(annotations, x, gold, base=own, settings=quick(), methods=["ccem"])


def test_too_few_tasks_and_settings_of_another_kind_are_said(clouds):
    x, annotations, gold = clouds
    few = np.arange(150) >= 140
    with pytest.raises(
        DataError,
        match=r"10 tasks of the split eval .* 140 labelled .* 20 of each",
    ):
        compare(annotations, x, gold, settings=quick(), held_out=few)
    with pytest.raises(DataError, match=r"held_out must be True or False for each of the 150 rows"):
        compare(annotations, x, gold, settings=quick(), held_out=np.arange(40))
    with pytest.raises(ConfigError, match=r"patience holds out annotations.*Set epochs"):
        compare(annotations, x, gold, settings=quick(patience=2))
    with pytest.raises(ConfigError, match="base must be a Keras model, or a function that makes one"):
        compare(annotations, x, gold, settings=quick(), base="f.py:make")
    with pytest.raises(ConfigError, match="settings are an object, such as TrainingSettings"):
        compare(annotations, x, gold, settings={"epochs": 1})
    with pytest.raises(DataError, match="settings are of kind regression"):
        compare(annotations, x, gold, settings=dataclasses.replace(quick(), kind="regression", method=None))


# === What a reader who had not written it found ===


def own_method(name, fit):
    crowdzoo.register("aggregator", name)(type("Own", (Aggregator,), {"fit": fit, "__module__": __name__}))


def test_runs_of_classes_are_not_those_of_several_labels(tmp_path):
    table, gold = ODD_AND_EVEN
    compare(table, gold=gold, methods=["wawa"], folder=tmp_path)
    with pytest.raises(ConfigError, match="score"):
        compare(table, gold={0: np.ones(20, int)}, methods=["wawa"], folder=tmp_path)


@pytest.mark.usefixtures("nothing_registered")
def test_a_method_of_ones_own_that_fails_is_named_and_the_others_go_on():
    table, gold = ODD_AND_EVEN

    def fail(self, annotations):
        raise ValueError("boom")

    def no_numbers(self, annotations):
        found = Wawa().fit(annotations)
        return dataclasses.replace(found, posteriors=found.posteriors * np.nan)

    own_method("fails", fail)
    own_method("no-numbers", no_numbers)
    own_method("no-result", lambda self, annotations: np.full((20, 2), 1 / 2))
    own_method("nothing-said", lambda self, annotations: Aggregation.of("x", annotations, np.full((20, 3), 1 / 3)))
    methods = ["fails", "no-numbers", "no-result", "nothing-said", "wawa"]
    frame = compare(table, gold=gold, methods=methods).frame.set_index("method")
    assert frame.index[:2].tolist() == ["majority-vote", "wawa"]
    assert frame.loc["fails", "notes"] == "failed: ValueError: boom"
    assert frame.loc["no-numbers", "notes"] == "failed: some of its answers are not numbers"
    assert "fit must return a result, such as Aggregation.of" in frame.loc["no-result", "notes"]
    assert "posteriors must have shape (20, 2), got (20, 3)" in frame.loc["nothing-said", "notes"]


@pytest.mark.usefixtures("nothing_registered")
def test_a_method_of_ones_own_that_takes_annotations_alone_aggregates_several_labels():
    table, gold = ODD_AND_EVEN
    own_method("mine", lambda self, annotations: Wawa().fit(annotations))
    holds = {label: (gold == label).astype(int) for label in (0, 1)}
    frame = compare(table, gold=holds, methods=["mine", "wawa"]).frame.set_index("method")
    assert frame.loc["mine", "score"] == frame.loc["wawa", "score"] == 1


def test_gold_of_another_order_and_of_impossible_codes_is_refused():
    table, gold = ODD_AND_EVEN
    series = pd.Series(gold, index=table.tasks)
    turned = series.iloc[::-1]
    with pytest.raises(DataError, match=r"gold\.reindex\(annotations\.tasks\)"):
        compare(table, gold=turned, methods=["wawa"])
    for right in (series, turned.reindex(table.tasks), turned.to_numpy()[::-1]):
        assert compare(table, gold=right, methods=["wawa"]).frame["score"].tolist() == [1, 1]
    with pytest.raises(DataError, match=r"make codes: annotations\.classes\.tolist\(\)\.index\(name\)"):
        compare(table, gold=gold.astype(str), methods=["wawa"])
    with pytest.raises(DataError, match="class codes"):
        compare(table, gold=np.where(gold, gold, -7), methods=["wawa"])


@pytest.mark.parametrize("word", [Wawa(), "", ("wawa",)])
def test_what_is_no_method_is_refused_with_what_one_is(word):
    table, gold = ODD_AND_EVEN
    with pytest.raises(ConfigError, match="a method is a name"):
        compare(table, gold=gold, methods=[word])


@pytest.mark.usefixtures("nothing_registered")
def test_what_a_method_of_ones_own_warns_of_comes_without_the_name_in_its_result():
    table, gold = ODD_AND_EVEN
    one_class = np.eye(2)[np.zeros(20, int)]
    own_method("always-one", lambda self, annotations: Aggregation.of("x", annotations, one_class))
    notes = by_method(compare(table, gold=gold, methods=["always-one"])).loc["always-one", "notes"]
    assert notes.startswith("The labels differ from the plurality of the votes on 50% of the annotated tasks")
