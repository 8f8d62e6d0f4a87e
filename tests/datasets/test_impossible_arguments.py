"""What makes no sense is refused by every simulation, with the argument, its range and what came."""

import re

import numpy as np
import pytest

from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.datasets.generated_ratings import generated_ratings
from crowdzoo.datasets.simulated import simulate_annotations

CASES = {
    "generated_ner: redundancy must be an integer": lambda: generated_ner(redundancy=21),
    "generated_ratings: num_tasks must be an integer of at least 4, got 3": lambda: generated_ratings(
        3, 5, redundancy=1
    ),
    "class codes, 0 to 1": lambda: simulate_annotations([0, 3], [np.eye(2)], 1, seed=0),
    "sum is 1": lambda: simulate_annotations([0], [np.eye(2) * 0.9], 1, seed=0),
}


@pytest.mark.parametrize("message", CASES)
def test_what_makes_no_sense_is_refused(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        CASES[message]()
