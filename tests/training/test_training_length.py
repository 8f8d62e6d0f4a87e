import logging

import pytest

from crowdzoo.models import TaggerSettings, TextSettings, TrainingSettings
from crowdzoo.training.length import with_length

# by hand: the largest power of two, 4 to 64, with ten steps an epoch; then epochs so that there are ten times the usual
# number of steps. 30 documents: 8 steps of 4, so 60 * 10 / 8 = 75 epochs.
ROWS = [
    (TrainingSettings, {}, 1000, 60, 64),
    (TrainingSettings, {}, 750, 60, 64),
    (TrainingSettings, {}, 640, 60, 64),
    (TrainingSettings, {}, 639, 60, 32),
    (TaggerSettings, {}, 2845, 30, 64),
    (TaggerSettings, {}, 151, 30, 8),
    (TextSettings, {}, 1498, 15, 64),
    (TrainingSettings, {}, 30, 75, 4),
    (TrainingSettings, {}, 1, 600, 4),
    (TrainingSettings, {"batch_size": 64}, 151, 200, 64),
    (TrainingSettings, {"epochs": 3}, 151, 3, 8),
    (TrainingSettings, {"epochs": 3, "batch_size": 500}, 151, 3, 500),
]


@pytest.mark.parametrize(("kind", "given", "num_examples", "epochs", "batch_size"), ROWS)
def test_small_sets_get_smaller_batches_and_given_values_stand(kind, given, num_examples, epochs, batch_size, caplog):
    caplog.set_level(logging.INFO)
    settings = with_length(kind(**given), num_examples)
    assert (settings.epochs, settings.batch_size) == (epochs, batch_size)
    chosen = f"{epochs} epochs in batches of {batch_size}, for {num_examples} examples"
    assert (chosen in caplog.text) == (len(given) < 2)
