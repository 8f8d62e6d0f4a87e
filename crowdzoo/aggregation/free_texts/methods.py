"""TEXT_METHODS: the algorithms for free texts by name."""

from crowdzoo.aggregation.free_texts.chosen_text import MostFrequentText, TextMedoid, TextMethod
from crowdzoo.aggregation.free_texts.rover import ROVER
from crowdzoo.aggregation.free_texts.text_rasa import TextHRRASA, TextRASA

_ALL: tuple[type[TextMethod], ...] = (MostFrequentText, TextMedoid, ROVER, TextRASA, TextHRRASA)
TEXT_METHODS: dict[str, type] = {method.name: method for method in _ALL}
