"""PREFERENCE_METHODS: the algorithms for preferences by name."""

from crowdzoo.aggregation.preferences.annotator_bradley_terry import AnnotatorBradleyTerry
from crowdzoo.aggregation.preferences.bradley_terry import BradleyTerry
from crowdzoo.aggregation.preferences.crowd_bt import CrowdBT
from crowdzoo.aggregation.preferences.noisy_bradley_terry import NoisyBradleyTerry

PREFERENCE_METHODS: dict[str, type] = {
    "bradley-terry": BradleyTerry,
    "noisy-bradley-terry": NoisyBradleyTerry,
    "crowd-bt": CrowdBT,
    "annotator-bradley-terry": AnnotatorBradleyTerry,
}
