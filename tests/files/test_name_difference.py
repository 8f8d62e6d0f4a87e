import pytest

from crowdzoo.files.model_files import name_difference


@pytest.mark.parametrize(
    ("what", "now", "before", "said"),
    [
        ("class", ["a", "b"], ["a", "b"], ""),
        ("class", [], [], ""),
        ("class", ["a", "b"], ["a"], "class 'b' is new"),
        ("class", ["a"], ["a", "b", "c"], "classes 'b', 'c' are missing"),
        ("column", ["a", "x"], ["a", "b"], "column 'x' is new, column 'b' is missing"),
        ("column", ["b", "a", "c"], ["a", "b", "c"], "the order differs: column 0 is 'b', was 'a'"),
        ("column", list("abcde"), [], "columns 'a', 'b', 'c' and 2 more are new"),
    ],
)
def test_what_is_new_missing_or_elsewhere_is_named(what, now, before, said):
    assert name_difference(what, now, before) == said


def test_a_name_that_stands_there_twice_is_a_difference():
    assert name_difference("column", ["a", "a"], ["a"]) == "there are 2 columns, were 1"
