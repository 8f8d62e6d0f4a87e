"""RATING_METHODS: the algorithms for ratings by name."""

from crowdzoo.aggregation.ratings.rating_em import RatingEM
from crowdzoo.aggregation.ratings.rating_mean import RatingMean
from crowdzoo.aggregation.ratings.rating_median import RatingMedian

RATING_METHODS: dict[str, type] = {
    "mean": RatingMean,
    "median": RatingMedian,
    "rating-em": RatingEM,
}
