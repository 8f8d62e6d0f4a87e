"""What is deprecated works, says once per call what to use, and is gone when it was promised to be."""

import re
from pathlib import Path

import pytest

import crowdzoo
from crowdzoo.deprecation import deprecated, renamed_argument
from crowdzoo.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("crowdzoo", "components", "pipelines", "serving")


def test_a_deprecated_function_works_and_names_its_successor():
    @deprecated("crowdzoo.quality.raw_agreement", since="1.2", removed_in="1.4")
    def agreement(first, second=2):
        """Docstring."""
        return first + second

    with pytest.warns(FutureWarning) as warnings:
        assert agreement(1, second=3) == 4
    (warning,) = warnings
    for part in ("agreement()", "since crowdzoo 1.2", "removed in 1.4", "Use crowdzoo.quality.raw_agreement"):
        assert part in str(warning.message)
    assert warning.filename == __file__
    assert agreement.__doc__ == "Docstring."


def test_an_argument_is_taken_under_its_earlier_name():
    @renamed_argument("task", "kind", since="1.2", removed_in="1.4")
    def read(path, kind="classes"):
        return path, kind

    assert read("a.csv", kind="ratings") == read("a.csv", "ratings") == ("a.csv", "ratings")
    with pytest.warns(FutureWarning, match="task= of .* will be removed in 1.4. Use kind= instead."):
        assert read("a.csv", task="ratings") == ("a.csv", "ratings")
    with pytest.raises(ConfigError, match="got both kind= and its earlier name, task="):
        read("a.csv", kind="ratings", task="ratings")


def test_an_argument_of_a_class_is_renamed_and_the_class_stays_one():
    class Reader:
        @renamed_argument("task", "kind", since="1.2", removed_in="1.4")
        def __init__(self, kind):
            self.kind = kind

    class Child(Reader):
        pass

    with pytest.warns(FutureWarning, match=r"task= of \S+\.Reader\(\) is deprecated") as warnings:
        assert isinstance(Child(task="ratings"), Reader)
    assert warnings[0].filename == __file__


def test_nothing_outlives_the_release_that_should_remove_it():
    sources = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if path.name != "deprecation.py"]
    assert [
        (path.name, late) for path in sources for late in late_in(path.read_text("utf-8"), crowdzoo.__version__)
    ] == []


def test_the_test_above_finds_what_is_late():
    source = '@deprecated("that", since="1.2", removed_in="1.4")\n@deprecated("this", since="1.4", removed_in="1.10")'
    assert [late_in(source, version) for version in ("1.3.9", "1.4.0", "1.10.1")] == [[], ["1.4"], ["1.4", "1.10"]]


def late_in(source: str, version: str) -> list[str]:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".")]

    return [end for end in re.findall(r'removed_in="([\d.]+)"', source) if numbers(end) <= numbers(version)]
