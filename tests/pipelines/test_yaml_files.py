"""YAML as the pipeline reads it: scalars as the YAML 1.2 specification has them, and what is refused."""

import math
import os

import pytest

from crowdzoo.errors import ConfigError
from crowdzoo.pipelines.yaml_files import read_value, read_yaml

# YAML 1.2.2, section 10.3.2 (core schema); what YAML 1.1 makes of them is in the comments
CORE = {
    "010": 10,  # 8
    "0o17": 15,
    "0xFF": 255,
    "-12": -12,
    "+0012": 12,
    "1:30": "1:30",  # 90
    "1_000": "1_000",  # 1000
    "0b11": "0b11",  # 3
    "1e-3": 0.001,  # text
    "1e3": 1000.0,
    ".5": 0.5,
    "-1.": -1.0,
    "-.inf": -math.inf,
    "yes": "yes",  # True
    "No": "No",
    "on": "on",
    "off": "off",
    "y": "y",
    "true": True,
    "FALSE": False,
    "~": None,
    "Null": None,
    "": None,
    "2001-12-14": "2001-12-14",  # a date
    "=": "=",
    "<<": "<<",
    "'010'": "010",
    "!!str 010": "010",
    "!!float 3": 3.0,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
}


@pytest.mark.parametrize("text", CORE)
def test_scalars_are_those_of_the_core_schema(text):
    value = read_value(text, "x")
    assert value == CORE[text]
    assert type(value) is type(CORE[text])


def test_an_alias_stands_for_a_copy():
    value = read_value("{a: &a [1, 2], b: *a}", "x")
    assert value == {"a": [1, 2], "b": [1, 2]}
    assert value["a"] is not value["b"]


def laughs(times):
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, times)]
    return "\n".join(lines)


REFUSED = {
    "a key twice": ("a: 1\nb: {c: 2,\n  c: 3}", ", line 3, column 3: not valid YAML: the key 'c' appears twice"),
    "a billion laughs": (laughs(10), "aliases make more than 256 KiB of this document; write it without aliases."),
    "one long text many times": (f"a: &a '{'x' * 100_000}'\nb: [{'*a, ' * 20}]", "aliases make more than 256 KiB"),
    "an alias in what it names": ("a: &a [1, *a]", "nested deeper than 50 levels, or an alias is inside"),
    "an unknown alias": ("a: *b", "found undefined alias 'b'"),
    "lists in lists": ("[" * 10_000, ", line 1, column 51: not valid YAML: nested deeper than 50 levels."),
    "mappings in mappings": ("{a: " * 10_000, "nested deeper than 50 levels."),
    "lists by dashes": ("- " * 10_000, "nested deeper than 50 levels."),
    "a number as a key": ("{1: 2}", ", line 1, column 2: not valid YAML: the key 1 is not text; put quotes round it."),
    "a boolean as a key": ("true: 2", "the key True is not text; put quotes round it."),
    "a list as a key": ("? [a]\n: 1", "the key ['a'] is not text; put quotes round it."),
    "nothing as a key": ("~: 1", "the key None is not text; put quotes round it."),
    "an integer beyond 64 bits": ("9223372036854775808", "'9223372036854775808' is beyond 64 bits; put quotes"),
    "an integer that Python refuses": ("-" + "9" * 5000, "is beyond 64 bits; put quotes round a name of digits."),
    "an object": ("!!python/object/apply:os.getcwd []", "tag 'tag:yaml.org,2002:python/object/apply:os.getcwd' is not"),
    "a tag of YAML 1.1": ("!!set {a, b}", "tag 'tag:yaml.org,2002:set' is not supported here."),
    "a tag that its text is not": ("!!int many", "'many' is not a number."),
    "a boolean that is none": ("!!bool maybe", "tag 'tag:yaml.org,2002:bool' is not supported here."),
    "a NUL": ("a: 1\nb: x\0y", ", line 2: not valid YAML: the character U+0000 is not allowed."),
    "a NUL by its escape": ('"a\\0b"', "has a NUL or half a surrogate pair in it."),
    "half a surrogate pair": ('"\\ud800"', "has a NUL or half a surrogate pair in it."),
    "no character": ('"\\U00110000"', "an escape such as \\U00110000 is not a character."),
    "two documents": ("a: 1\n---\nb: 2", "expected a single document in the stream, but found another"),
    "a long text": ("x" * (1 << 18) + "y", "larger than 256 KiB"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why_in_one_short_line(case):
    text, message = REFUSED[case]
    with pytest.raises(ConfigError) as caught:
        read_value(text, "x.yaml")
    said = str(caught.value)
    assert said.startswith("x.yaml")
    assert message in said
    assert "\n" not in said
    assert len(said) < 400


def test_files_are_regular_and_of_utf_8(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes("\ufeffname: Zoë".encode())
    assert read_yaml(path) == {"name": "Zoë"}
    path.write_bytes(b"name: caf\xe9")
    with pytest.raises(ConfigError, match=r"x.yaml: not UTF-8 at byte 9; save the file as UTF-8."):
        read_yaml(path)
    path.write_bytes(b"# " + b"x" * (1 << 18))
    with pytest.raises(ConfigError, match=r"x.yaml: is larger than 256 KiB"):
        read_yaml(path)
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ConfigError, match=r"pipe.yaml is a pipe. Give the path of a file."):
        read_yaml(tmp_path / "pipe.yaml")
    with pytest.raises(ConfigError, match=r"x.yml does not exist. Did you mean 'x.yaml'\?"):
        read_yaml(tmp_path / "x.yml")
