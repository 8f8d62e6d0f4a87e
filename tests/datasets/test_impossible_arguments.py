"""What makes no sense is refused by every simulation, with the argument, its range and what came."""

import re

import numpy as np
import pytest

from crowdzoo.datasets.circles import ask_annotators, make_circles, neighbour_annotators
from crowdzoo.datasets.common_confusions import simulate_common_confusions
from crowdzoo.datasets.generated_abstracts import generated_abstracts
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.datasets.generated_ratings import generated_ratings
from crowdzoo.datasets.simulated import simulate_annotations

POINTS, GOLD = np.zeros((20, 2)), np.repeat([0, 1], 10)
CASES = {
    "num_circles must be an integer of at least 2, got 1": lambda: make_circles(1),
    "noise must be a number of at least 0, got -1": lambda: make_circles(2, 5, noise=-1),
    "known must be from 1 to 20": lambda: neighbour_annotators(POINTS, GOLD, 2, known=21),
    "one code of 2": lambda: ask_annotators(POINTS, [lambda points: GOLD + 1], 2),
    "num_classes must be an integer of at least 2, got 1": lambda: simulate_common_confusions(0, num_classes=1),
    "unknown pattern 'circular': choose one of": lambda: simulate_common_confusions(0, pattern="circular"),
    "common_share must be a number from 0 to 1": lambda: simulate_common_confusions(0, common_share=2),
    "generated_ner: redundancy must be an integer": lambda: generated_ner(redundancy=21),
    "generated_abstracts": lambda: generated_abstracts(0),
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
