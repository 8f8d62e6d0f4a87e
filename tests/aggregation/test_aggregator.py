"""What aggregators of all kinds share: scikit-learn's settings, and crowd-kit's fit_predict."""

import numpy as np
import pandas as pd
import pytest
from crowdkit import aggregation as crowdkit
from refusals import about, bad_row
from sklearn.base import clone
from slow_cases import quick

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import BradleyTerry, DawidSkene, MajorityVote, RatingEM, SpanMajorityVote, create
from crowdzoo.aggregation.registry import METHODS_OF

EVERY = [(kind, name) for kind, methods in METHODS_OF.items() for name in methods]


@pytest.mark.parametrize("aggregator", [create(name, kind=kind) for kind, name in EVERY], ids=map("-".join, EVERY))
def test_every_aggregator_is_cloned_by_scikit_learn(aggregator):
    copy = clone(aggregator)
    assert copy is not aggregator
    assert copy == aggregator
    assert copy.get_params() == aggregator.get_params()


@pytest.mark.parametrize("given", [np.zeros((3, 2), int), {"task": [1]}], ids=["array", "mapping"])
@pytest.mark.parametrize("aggregator", [DawidSkene(), create("mean", kind="regression")], ids=["classes", "ratings"])
def test_fit_names_what_to_write_for_what_are_no_annotations(aggregator, given):
    with pytest.raises(DataError, match=r"got .*fit_predict\(frame\).*from_dense\(matrix\)"):
        aggregator.fit(given)


def test_set_params_changes_all_or_nothing():
    aggregator = DawidSkene(prior=0.5)
    assert aggregator.set_params(max_iter=np.int64(7), tol=0.5) is aggregator
    assert aggregator == DawidSkene(prior=0.5, max_iter=7, tol=0.5)
    assert type(aggregator.max_iter) is int
    with pytest.raises(ConfigError, check=about("max_iter")):
        aggregator.set_params(prior=2.0, max_iter=0)
    with pytest.raises(ConfigError, match=r"DawidSkene: .*'priors'.*prior"):
        aggregator.set_params(tol=1.0, priors=1)
    assert aggregator == DawidSkene(prior=0.5, max_iter=7, tol=0.5)


def frame(**columns):
    return pd.DataFrame(columns)


def votes():
    """Each task has one class that two of three annotators named."""
    return frame(
        task=["b", "b", "b", "a", "a", "a", "c", "c", "c"],
        worker=["w", "v", "u"] * 3,
        label=["x", "x", "y", "y", "y", "x", "x", "x", "x"],
    )


@pytest.mark.parametrize("name", quick("MajorityVote", "Wawa", "DawidSkene", slow=["OneCoinDawidSkene", "GLAD"]))
@pytest.mark.filterwarnings("ignore:.*converge")
def test_fit_predict_gives_what_crowd_kit_gives(name):
    import crowdzoo.aggregation

    theirs = getattr(crowdkit, name)().fit_predict(votes()).sort_index()
    ours = getattr(crowdzoo.aggregation, name)().fit_predict(votes())
    pd.testing.assert_series_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_fit_predict_takes_annotations_and_gold():
    crowd = Annotations.from_frame(votes())
    assert MajorityVote().fit_predict(crowd).to_dict() == {"a": "y", "b": "x", "c": "x"}
    assert MajorityVote().fit_predict(crowd, gold=[0, -1, -1]).to_dict() == {"a": "x", "b": "x", "c": "x"}


@pytest.mark.slow
def test_preferences_name_the_better_task_as_in_crowd_kit():
    rows = ["aba", "aba", "bab", "bcb", "cbb", "bcc", "aca"]  # left, right, the better one
    left, right, label = map(list, zip(*rows, strict=True))
    data = frame(left=left, right=right, worker=list("uvuuuvu"), label=label)
    ours, theirs = BradleyTerry().fit_predict(data), crowdkit.BradleyTerry(100).fit_predict(data)
    assert ours.name == theirs.name == "agg_score"
    assert ours.index.name is theirs.index.name is None
    assert ours.sort_values().index.tolist() == theirs.sort_values().index.tolist() == ["c", "b", "a"]
    sides = data.assign(label=["left", "left", "left", "left", "right", "right", "left"])
    pd.testing.assert_series_equal(BradleyTerry().fit_predict(sides), ours)
    with pytest.raises(DataError, check=bad_row(2, "label", "d")):
        BradleyTerry().fit_predict(data.assign(label=["a", "a", "d", "b", "b", "c", "a"]))


def test_preferences_may_be_a_dictionary_of_columns_and_nothing_else_without_names():
    columns = {"left": ["a", "b"], "right": ["b", "a"], "worker": ["u", "v"], "label": ["left", "right"]}
    found = BradleyTerry().fit_predict(columns)
    pd.testing.assert_series_equal(found, BradleyTerry().fit_predict(pd.DataFrame(columns)))
    with pytest.raises(DataError):
        BradleyTerry().fit_predict(np.zeros((3, 4)))


def test_ratings_and_sentences_have_answers_of_their_own():
    ratings = frame(task=[2, 2, 1, 1], worker=["u", "v"] * 2, label=[3.0, 5.0, 1.0, 2.0])
    found = RatingEM(low=0, high=10).fit_predict(ratings)
    assert found.name == "agg_label"
    assert found.index.tolist() == [1, 2]
    assert 0 < found[1] < found[2] < 10
    said = ["B-LOC", "I-LOC", "O"]
    tags = frame(task=["s"] * 6, worker=["u"] * 3 + ["v"] * 3, position=[0, 1, 2] * 2, label=said * 2)
    assert SpanMajorityVote().fit_predict(tags).to_dict() == {("s", place): tag for place, tag in enumerate(said)}
    with pytest.raises(DataError, match="RatingEM has no class probabilities"):
        RatingEM().fit_predict_proba(ratings)


def test_a_polars_frame_comes_back_as_one():
    polars = pytest.importorskip("polars")
    data = polars.from_dict(votes().to_dict("list"))
    found = MajorityVote().fit_predict(data)
    assert found.to_dict(as_series=False) == {"task": ["a", "b", "c"], "agg_label": ["y", "x", "x"]}
    shares = MajorityVote().fit_predict_proba(data)
    assert shares.columns == ["task", "x", "y"]
    np.testing.assert_allclose(shares["x"], [1 / 3, 2 / 3, 1])
    with pytest.raises(DataError, match="a class has the name of the column 'task'"):
        MajorityVote().fit_predict_proba(polars.DataFrame({"task": ["a"], "worker": ["w"], "label": ["task"]}))
    crowd = Annotations.from_frame(data)
    assert Annotations.from_frame(crowd.to_polars()) == crowd
    result = MajorityVote().fit(crowd)
    assert result.to_polars().to_dict(as_series=False) == result.to_frame().to_dict("list")


def test_fit_predict_says_where_options_of_reading_go():
    twice = pd.concat([votes(), votes().iloc[:1]])
    with pytest.raises(DataError, match=r"(?s)Pass options of reading to .*from_frame\(frame, on_dup"):
        DawidSkene().fit_predict(twice)
    with pytest.raises(DataError, match="kind='regression', on_duplicate"):
        create("mean", kind="regression").fit_predict({"task": [1, 1], "worker": [0, 0], "label": [1.0, 2.0]})


def test_gold_by_name_is_refused_with_how_to_make_codes():
    result = DawidSkene().fit_predict(votes())
    found = DawidSkene().fit(Annotations.from_frame(votes()))
    with pytest.raises(DataError, match=r"class code .*result\.classes\.tolist\(\)\.index\(name\)"):
        found.accuracy(result.to_numpy())
    codes = [found.classes.tolist().index(name) for name in result[found.tasks.tolist()]]
    assert found.accuracy(codes) == 1
