"""REGION_METHODS: the algorithms for regions of images by name."""

from crowdzoo.aggregation.regions.matched_objects import MatchedObjects
from crowdzoo.aggregation.regions.pixel_vote import PixelVote
from crowdzoo.aggregation.regions.staple import STAPLE

REGION_METHODS: dict[str, type] = {method.name: method for method in (MatchedObjects, PixelVote, STAPLE)}
