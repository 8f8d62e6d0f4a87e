import json

import pytest

from crowdzoo.errors import DataError
from crowdzoo.report.training_history import read_history, shown_history


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "is no history"),
        ("{}", "is no history"),
        ('{"loss": 1}', "is no history"),
        ('{"loss": [1, 2], "accuracy": [1]}', r"different numbers of epochs \(1 to 2\)"),
        ('{"loss": [1, "x"]}', "'loss', epoch 2: 'x' is no number"),
        ('{"loss": [true]}', "'loss', epoch 1: True is no number"),
        (json.dumps({str(name): [1.0] for name in range(41)}), "holds 41 metrics"),
        ("{", "is not JSON"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path, text, message):
    (tmp_path / "h.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read_history(tmp_path / "h.json")


def test_values_that_are_no_numbers_are_gaps(tmp_path):
    (tmp_path / "h.json").write_text('{"loss": [0.5, NaN, null, Infinity, 1' + 400 * "0" + ", 2]}")
    found = shown_history(read_history(tmp_path / "h.json"))
    assert found["metrics"] == {"loss": [0.5, None, None, None, None, 2]}
    assert found["shown"] == [1, 2, 3, 4, 5, 6]


def test_of_a_long_training_the_page_has_two_hundred_epochs_with_the_first_and_the_last():
    found = shown_history({"loss": [float(epoch) for epoch in range(1000)]})
    assert found["epochs"] == 1000
    assert len(found["shown"]) == len(found["metrics"]["loss"]) == 200
    assert (found["shown"][0], found["shown"][-1]) == (1, 1000)
    assert found["metrics"]["loss"] == [epoch - 1 for epoch in found["shown"]]


def test_a_training_of_no_epoch_has_none():
    assert shown_history({"loss": []}) == {"epochs": 0, "shown": [], "metrics": {"loss": []}}
