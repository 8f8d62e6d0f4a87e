import json

import numpy as np
import pytest

from crowdzoo.errors import DataError
from crowdzoo.report.training_history import read_history, shown_history


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "is not a history"),
        ("{}", "is not a history"),
        ('{"loss": 1}', "is not a history"),
        ('{"loss": [1, 2], "accuracy": [1]}', r"different numbers of epochs \(1 to 2\)"),
        ('{"loss": [1, "x"]}', "'loss', epoch 2: 'x' is not a number"),
        ('{"loss": [true]}', "'loss', epoch 1: True is not a number"),
        (json.dumps({str(name): [1.0] for name in range(41)}), "holds 41 metrics"),
        ("{", "is not JSON"),
    ],
)
def test_what_is_no_history_is_refused(write, text, message):
    with pytest.raises(DataError, match=message):
        read_history(write("h.json", text))


def test_a_likelihood_that_begins_with_the_second_e_step_has_gaps_before(write):
    place = write("history.json", '{"loss": [3, 2, 1], "log_likelihood": [-5.0, -4.0]}')
    read = read_history(place)
    assert read["loss"] == [3, 2, 1]
    assert np.isnan(read["log_likelihood"][0])
    assert read["log_likelihood"][1:] == [-5, -4]
    given = shown_history({"loss": [3.0, 2.0, 1.0], "log_likelihood": [-5.0, -4.0]})  # as Keras has it
    assert given["metrics"] == {"loss": [3, 2, 1], "log_likelihood": [None, -5, -4]}
    with pytest.raises(DataError, match=r"different numbers of epochs \(2 to 3\)"):
        shown_history({"loss": [3.0, 2.0, 1.0], "val_loss": [3.0, 2.0]})


def test_of_a_long_training_the_page_has_two_hundred_epochs_with_the_first_and_the_last():
    found = shown_history({"loss": [float(epoch) for epoch in range(1000)]})
    assert found["epochs"] == 1000
    assert len(found["shown"]) == len(found["metrics"]["loss"]) == 200
    assert (found["shown"][0], found["shown"][-1]) == (1, 1000)
    assert found["metrics"]["loss"] == [epoch - 1 for epoch in found["shown"]]
