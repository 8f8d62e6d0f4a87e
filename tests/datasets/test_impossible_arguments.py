"""What makes no sense is refused by every simulation, with the argument, its range and what came."""

import re

import pytest

from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.datasets.generated_ratings import generated_ratings

CASES = {
    "generated_ner: redundancy must be an integer": lambda: generated_ner(redundancy=21),
    "generated_ratings: num_tasks must be an integer of at least 4, got 3": lambda: generated_ratings(
        3, 5, redundancy=1
    ),
}


@pytest.mark.parametrize("message", CASES)
def test_what_makes_no_sense_is_refused(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        CASES[message]()
