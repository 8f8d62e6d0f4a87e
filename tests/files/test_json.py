"""Strict JSON: one rule for every reader."""

import pytest

from crowdzoo.errors import DataError
from crowdzoo.files.json import MAX_DEPTH, JsonError, parse_json, parse_row, read_json


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "a": 2}', "holds the key 'a' twice"),
        ('[{"a": {"b": 1, "\\u0062": 2}}]', "holds the key 'b' twice"),
        ('{"a": NaN}', "is not JSON: NaN is not a number"),
        ("-Infinity", "is not JSON: -Infinity is not a number"),
        ("[" * 10_000 + "]" * 10_000, f"is nested deeper than {MAX_DEPTH} levels"),
        ('{"a":' * 10_000, f"is nested deeper than {MAX_DEPTH} levels"),
        (b'{"a": "\xff"}', "is not UTF-8"),
        ('{"a": 1,}', "is not JSON: "),  # the reason is Python's, and 3.13 has another than 3.10
        ('{"a": 1} x', "is not JSON: Extra data at character 10"),
        ("", "is not JSON: Expecting value at character 1"),
        ("9" * 5000, "is not JSON: Exceeds the limit"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_the_reason(text, reason):
    with pytest.raises(JsonError) as caught:
        parse_json(text)
    assert str(caught.value).startswith(reason)


def test_a_row_is_judged_by_the_keys_that_count():
    line = '{"task": 1, "note": 2, "note": NaN, "label": 3}'
    assert parse_row(line, frozenset({"task", "label"}))["label"] == 3
    with pytest.raises(JsonError, match="holds the key 'note' twice"):
        parse_row(line, frozenset({"note"}))
    with pytest.raises(JsonError, match="is not a JSON object"):
        parse_row("[1]", frozenset())


def test_a_file_names_the_line(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{\n "a": 1,\n "b" 2\n}')
    with pytest.raises(DataError, match=r"a\.json, row 3: is not JSON: Expecting ':' delimiter at character 6"):
        read_json(path)
    path.write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(path) == [1]
