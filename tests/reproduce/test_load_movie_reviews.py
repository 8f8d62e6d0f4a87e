"""MovieReviews: counts and quality as published, on the raw data where they are; broken folders everywhere."""

import numpy as np
import pytest

from crowdzoo.aggregation import create
from crowdzoo.datasets import data_folder
from crowdzoo.errors import DataError
from crowdzoo.metrics import r2_score

needs_data = pytest.mark.skipif(not (data_folder() / "movie-reviews-amt").is_dir(), reason="CROWDZOO_DATA is not there")


@pytest.fixture(scope="module")
def load_movie_reviews(reproduce):
    return reproduce("load_movie_reviews").load_movie_reviews


@pytest.mark.slow
@needs_data
def test_counts_and_quality_are_those_of_the_set(load_movie_reviews):
    reviews = load_movie_reviews()
    assert (len(reviews.annotations), reviews.annotations.num_tasks, reviews.annotations.num_annotators) == (
        7440,
        1500,
        135,
    )
    assert (len(reviews.text_annotations), len(reviews.texts)) == (7430, 1498)
    assert len(reviews.test_gold) == len(reviews.test_words) == 3506
    # both releases hold the same reviews: the same answers for the same gold
    mean = create("mean", kind="regression").fit(reviews.annotations)
    assert r2_score(reviews.gold, mean.estimates) == pytest.approx(0.830, abs=0.0005)
    x, test = reviews.tf_idf()
    assert (x.shape, test.shape) == ((1500, 7600), (3506, 7600))
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-5)


def test_a_folder_without_the_files_is_named(load_movie_reviews, tmp_path):
    with pytest.raises(DataError, match=r"answers\.txt\.gz does not exist"):
        load_movie_reviews(tmp_path)
