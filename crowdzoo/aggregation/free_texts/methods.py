"""TEXT_METHODS: the algorithms for free texts by name."""

from crowdzoo.aggregation.free_texts.medoid import TextMedoid
from crowdzoo.aggregation.free_texts.most_frequent import MostFrequentText
from crowdzoo.aggregation.free_texts.rover import ROVER
from crowdzoo.aggregation.free_texts.text_hrrasa import TextHRRASA
from crowdzoo.aggregation.free_texts.text_method import TextMethod
from crowdzoo.aggregation.free_texts.text_rasa import TextRASA

_ALL: tuple[type[TextMethod], ...] = (MostFrequentText, TextMedoid, ROVER, TextRASA, TextHRRASA)
TEXT_METHODS: dict[str, type] = {method.name: method for method in _ALL}
