"""PREFERENCE_METHODS: the algorithms for preferences by name."""

from crowdzoo.aggregation.preferences.annotator_bradley_terry import AnnotatorBradleyTerry
from crowdzoo.aggregation.preferences.bradley_terry import BradleyTerry
from crowdzoo.aggregation.preferences.crowd_bt import CrowdBT
from crowdzoo.aggregation.preferences.noisy_bradley_terry import NoisyBradleyTerry
from crowdzoo.aggregation.preferences.preference_method import PreferenceMethod

_ALL: tuple[type[PreferenceMethod], ...] = (BradleyTerry, NoisyBradleyTerry, CrowdBT, AnnotatorBradleyTerry)
PREFERENCE_METHODS: dict[str, type] = {method.name: method for method in _ALL}
