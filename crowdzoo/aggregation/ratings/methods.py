"""RATING_METHODS: the algorithms for ratings by name."""

from crowdzoo.aggregation.ratings.plain_ratings import RatingMean, RatingMedian
from crowdzoo.aggregation.ratings.rating_em import RatingEM

RATING_METHODS: dict[str, type] = {"mean": RatingMean, "median": RatingMedian, "rating-em": RatingEM}
