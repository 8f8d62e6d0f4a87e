"""Messages stay short, whatever value they quote."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from crowdzoo.errors import (
    BadRow,
    ConfigError,
    CrowdzooError,
    DataError,
    PipelineError,
    ServingError,
    Setting,
    bad_setting,
    did_you_mean,
    settings_as,
    short_repr,
    unknown,
)

LONG = "long value " * 6000


@pytest.mark.parametrize("error", [ConfigError, DataError, ServingError])
def test_a_value_of_60_kb_is_shortened_in_a_message(error):
    start, end = "prior is a number. Received: prior=", ". Choose one of 'a', 'b'. The annotators' labels don't change."
    for value in (repr(LONG), repr(LONG.replace(" ", "")), LONG.replace(" ", ""), repr("it's " + LONG)):
        message = str(error(start + value + end))
        assert message.startswith(start + value[:70])
        assert message.endswith(end)
        assert len(message) < len(start) + len(end) + 90
    message = str(error(start + LONG + end))
    assert message.startswith(start)
    assert message.endswith(end)
    assert len(message) < 1100


def test_bad_rows_show_80_characters_of_a_value():
    deep = []
    for _ in range(10_000):
        deep = [deep]
    wide = ["x"] * 9
    for _ in range(9):  # "billion laughs"
        wide = [wide] * 9
    for value in (LONG, LONG.encode(), list(LONG), deep, wide, {"a": wide}, 10**9000, [10**9000]):
        assert len(str(BadRow("a.csv", 2, "label", value, "is bad."))) < 130
    assert str(BadRow("a.csv", 2, "label", "cat", "is bad.")) == "a.csv, row 2, column 'label': 'cat' is bad."
    assert [short_repr(value) for value in ([1, [2.5, None]], {"a": (True,)}, b"x", "ü\n")] == [
        "[1, [2.5, None]]", "{'a': (True,)}", "b'x'", r"'ü\n'",
    ]  # fmt: skip


def test_a_near_name_is_found_in_spite_of_upper_and_lower_case_and_stands_as_it_is_written():
    assert did_you_mean("CAT", ["dog", "Cat"]) == " Did you mean 'Cat'?"
    assert did_you_mean(1112, [1111, "b"]) == " Did you mean 1111?"
    assert did_you_mean("a1", [f"a{number}" for number in range(5000)]) == ""


def test_an_unknown_name_is_told_with_all_the_known_ones_and_the_nearest():
    message = "unknown method 'mve': choose one of em, mace, mv. Did you mean 'mv'?"
    assert unknown("method", "mve", ["em", "mace", "mv"]) == message
    assert unknown("method", 7, ["em"]) == "unknown method 7: choose one of em."
    assert unknown("class", "z", range(60)).endswith(" 48, 49, ... 10 more.")


def test_each_error_has_its_exit_code():
    kinds = [CrowdzooError, DataError, ConfigError, PipelineError, ServingError]
    assert [kind.exit_code for kind in kinds] == [1, 3, 4, 5, 6]


def test_errors_can_be_sent_between_processes():
    fix = Setting("on_bad_rows", "reject")
    error = pickle.loads(pickle.dumps(DataError("bad", [BadRow("a.csv", 2, "label", LONG, "is bad.")], fix=fix)))
    assert str(error).startswith("bad\n  a.csv, row 2")
    assert (error.rows[0].row, error.fix) == (2, fix)


def test_messages_write_settings_as_the_interface_in_use_does():
    def written():
        return f"{Setting('header', False)}, {Setting('tol')}, {short_repr(None)}"

    assert written() == "header=False, tol, None"
    with settings_as(lambda name, value: f"<{name} {value}>"), ThreadPoolExecutor() as pool:
        assert pool.submit(written).result() == "<header False>, <tol Ellipsis>, < None>"
        error = bad_setting("tol", "must be a number", "x")
    assert written() == "header=False, tol, None"
    assert (str(error), error.setting, error.value) == ("<tol Ellipsis> must be a number, got 'x'.", "tol", "x")
