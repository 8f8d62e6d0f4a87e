"""Mean, trimmed mean and median of ratings, by hand; what all aggregators of ratings share."""

import numpy as np
import pytest
from refusals import bad_row

from crowdzoo.aggregation import RATING_METHODS, RatingAggregation, create
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError

NAN = np.nan
DENSE = np.array([[1.0, 2.0, 9.0, NAN, NAN], [4.0, NAN, NAN, NAN, NAN], [NAN] * 5, [0.0, 1.0, 2.0, 3.0, 10.0]])
ANNOTATIONS = Annotations.from_dense(DENSE, kind="regression")


@pytest.mark.parametrize(
    ("method", "settings", "expected"),
    [
        ("mean", {}, [4.0, 4.0, 3.733333, 3.2]),
        ("mean", {"trim": 0.2}, [4.0, 4.0, 10 / 3, 2.0]),  # of three ratings none is cut, of five one at either end
        ("mean", {"trim": 0.4}, [2.0, 4.0, 8 / 3, 2.0]),
        ("median", {}, [2.0, 4.0, 8 / 3, 2.0]),
    ],
)
def test_estimates_are_those_by_hand_and_an_unrated_task_has_their_mean(method, settings, expected):
    found = create(method, kind="regression", **settings).fit(ANNOTATIONS)
    np.testing.assert_allclose(found.estimates, expected, rtol=1e-6)
    assert (found.biases, found.precisions, found.history) == (None, None, ())
    assert found.annotations_per_task.tolist() == [3, 1, 0, 5]
    assert found.annotations_per_annotator.tolist() == [3, 2, 2, 1, 1]


def test_standard_errors_share_the_deviation_within_tasks():
    found = create("mean", kind="regression").fit(ANNOTATIONS)
    # squares about the task's mean: 38 of three ratings, 62.8 of five, 0 of one; 2 + 4 degrees of freedom
    deviation = np.sqrt((38 + 62.8) / 6)
    spread = np.std([4.0, 4.0, 3.2])
    expected = [deviation / np.sqrt(3), deviation, spread, deviation / np.sqrt(5)]
    np.testing.assert_allclose(found.standard_errors, expected, rtol=1e-12)
    median = create("median", kind="regression").fit(ANNOTATIONS)
    assert median.standard_errors[0] == pytest.approx(expected[0] * np.sqrt(np.pi / 2))


def test_reliability_compares_with_the_others_of_the_task():
    dense = np.array([[0.0, 0.0, 3.0], [2.0, 2.0, NAN], [4.0, 4.0, NAN]])
    found = create("mean", kind="regression").fit(Annotations.from_dense(dense, kind="regression"))
    spread = np.var([1.0, 2.0, 4.0])
    errors = np.array([1.5**2 / 3, 1.5**2 / 3, 3.0**2])
    np.testing.assert_allclose(found.skills, spread / (spread + errors), rtol=1e-12)


LITTLE = {
    "all equal": np.full((3, 2), 1.5),
    "one annotator": np.array([[1.0], [2.0], [4.0]]),
    "one rating": np.array([[2.0]]),
    "one rating per task, one rating per annotator": np.array([[1.0, NAN], [NAN, 2.0]]),
    "perfect agreement": np.repeat(np.arange(6.0)[:, None], 3, axis=1),
    "sizes far apart": np.array([[0.0, 1e-300], [1e8, 5.0]]),
}


@pytest.mark.parametrize("method", RATING_METHODS)
@pytest.mark.parametrize("dense", LITTLE.values(), ids=LITTLE)
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_every_method_gives_finite_numbers_for_ratings_that_tell_little(method, dense):
    found = create(method, kind="regression").fit(Annotations.from_dense(dense, kind="regression"))
    for name in ("estimates", "standard_errors", "skills", "biases", "precisions", "history"):
        value = getattr(found, name)
        assert value is None or np.isfinite(value).all(), name
    assert ((found.skills >= 0) & (found.skills <= 1)).all()
    seen = dense[~np.isnan(dense)]
    least, most = seen.min() - 1e-9, seen.max() * (1 + 1e-12) + 1e-9
    assert ((found.estimates >= least) & (found.estimates <= most)).all()


@pytest.mark.parametrize("method", RATING_METHODS)
def test_every_method_refuses_classes_nothing_and_ratings_off_the_scale(method):
    aggregator = create(method, kind="regression", low=0, high=9)
    with pytest.raises(DataError, check=bad_row(8, "label", 10.0)):
        aggregator.fit(ANNOTATIONS)
    with pytest.raises(DataError, match="at least one rating"):
        aggregator.fit(Annotations.from_dense(np.full((1, 1), NAN), kind="regression"))
    with pytest.raises(DataError, match="needs annotations of kind 'regression'"):
        aggregator.fit(Annotations.from_dense(np.array([[0, 1]])))


@pytest.mark.parametrize("method", RATING_METHODS)
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_a_result_is_written_and_read(method, tmp_path):
    settings = {} if method in ("mean", "median") else {"max_iter": 20}
    found = create(method, kind="regression", **settings).fit(ANNOTATIONS)
    assert found.method == method
    again = RatingAggregation.from_parquet(found.to_parquet(tmp_path / "out"))
    for name, value in vars(found).items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)


# === The scale ===


def test_all_ratings_outside_are_counted_and_ten_are_shown():
    many = Annotations.from_dense(np.full((4, 5), 11.0), kind="regression")
    with pytest.raises(DataError, match=r"and 10 more") as error:
        many.check_scale(high=10)
    assert error.value.total == 20
    assert "the scale (at most 10). Fix the rating or remove it" in str(error.value)


def test_an_impossible_scale_is_refused():
    for low, high, message in (
        (1, 1, "low must be below high"),
        ("0", 1, "low must be a finite number"),
        (0, np.inf, "high must be"),
    ):
        with pytest.raises(ConfigError, match=message):
            ANNOTATIONS.check_scale(low, high)
    with pytest.raises(DataError, match="a scale belongs to annotations of kind 'regression'"):
        Annotations.from_dense(np.array([[0, 1]])).check_scale(0, 1)


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        ([1, 2, 1, 2, 1e17], "annotator 'c' gave task 3 1e\\+17, next to which the usual 2 loses all precision"),
        ([0, 0, 0, 1, 1e17], "annotator 'c' gave task 3 1e\\+17, next to which the usual 1 loses all precision"),
        ([1, 2, 1, 2, 1e308], "row 4, column 'label': 1e\\+308 is beyond 1e100: squares of ratings must fit"),
        ([1e160, 2e160, 1e160, 2e160, 1e160], "row 0, column 'label': 1e\\+160 is beyond 1e100"),
        ([1e-160, 2e-160, 1e-160, 2e-160, 0], "no rating is larger than 2e-160, and their squares are 0"),
    ],
)
@pytest.mark.parametrize("method", RATING_METHODS)
def test_ratings_that_float64_does_not_carry_are_refused(method, ratings, message):
    with pytest.raises(DataError, match=message):
        create(method, kind="regression").fit(
            Annotations.from_arrays([1, 1, 2, 2, 3], ["a", "b", "a", "b", "c"], ratings, kind="regression")
        )


@pytest.mark.parametrize("unit", [1e-98, 1.0, 1e98])
def test_ratings_in_another_unit_give_the_same_means(unit):
    ratings = np.array([1, 2, 1, 2, 5.0]) * unit
    found = create("mean", kind="regression").fit(
        Annotations.from_arrays([1, 1, 2, 2, 3], ["a", "b", "a", "b", "c"], ratings, kind="regression")
    )
    np.testing.assert_allclose(found.estimates / unit, [1.5, 1.5, 5], rtol=1e-12)


def test_other_tasks_keep_their_digits_beside_a_huge_rating():
    ratings = Annotations.from_arrays([0, 0, 0, 1, 1], [*"abcab"], [0, 1e8, 1e17, 0, 1], kind="regression")
    assert create("mean", kind="regression").fit(ratings).estimates[1] == 0.5
