"""Errors that a user can fix: the command line prints them without a traceback."""

import contextlib
import difflib
import re
import reprlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "BadRow",
    "BusyError",
    "ConditionError",
    "ConfigError",
    "CrowdzooError",
    "DataError",
    "DataWarning",
    "PipelineError",
    "ServingError",
    "Setting",
]


def __dir__() -> list[str]:
    return __all__


SHOWN = 10
LONGEST_VALUE = 80
LONGEST_LINE = 1000
MOST_NAMES = 2000  # with more names, no similar one is searched
MOST_LISTED = 50
# Unlike an apostrophe, an opening quote does not follow a letter, and a closing one does not precede one.
_QUOTED = re.compile(r"""(?<!\w)(['"])(?!\s)((?:(?!\1)[^\n]){81,})\1(?!\w)""")
_WORD = re.compile(r"\S{201,}")


class Setting(NamedTuple):
    """A setting in a message, which each interface writes in its own form, so that a user can paste it.

    `f"{Setting('on_bad_rows', 'reject')}"` is `on_bad_rows='reject'` in Python, `--on-bad-rows reject` on the command
    line and `data.on_bad_rows: reject` for a pipeline's YAML file; see `settings_as`.

    Attributes:
        name: the argument in Python. Without a name, the value is written alone.
        value: text, a number, a flag, None, a list or a mapping. Without a value, the name is written alone.
    """

    name: str
    value: object = ...

    def __str__(self) -> str:
        return _form(self.name, self.value)


def as_argument(name: str, value: object) -> str:
    """A setting as an argument in Python; see `Setting`."""
    return name if value is ... else f"{name}={value!r}".removeprefix("=")


_form: Callable[[str, object], str] = as_argument


@contextlib.contextmanager
def settings_as(form: Callable[[str, object], str]) -> Iterator[None]:
    """Within this context, messages write settings in the given form, in all threads.

    Args:
        form: function from name and value of a `Setting` to its text.
    """
    global _form
    earlier, _form = _form, form
    try:
        yield
    finally:
        _form = earlier


class CrowdzooError(Exception):
    """Parent of all errors that crowdzoo raises on purpose. Long values in messages are shortened.

    Args:
        message: what is wrong, and how to fix it.
        setting: name of the rejected setting, if the error is about one.
        value: the rejected value.
        fix: a setting that the message advises.

    Attributes:
        exit_code: exit code of the command `crowdzoo` for this error.
    """

    exit_code = 1

    def __init__(self, message: str = "", *, setting: str | None = None, value: Any = None, fix: Setting | None = None):
        super().__init__(short_message(message))
        self.setting, self.value, self.fix = setting, value, fix


@dataclass(eq=False, slots=True)
class BadRow:
    """One bad value in a file, with the place and the fix.

    Attributes:
        file: name of the file, or of the argument if there is no file.
        row: line number in the file, from 1, including the header; for arrays and Parquet the row's position, from 0.
            None for the whole file.
        column: name of the column, or None.
        value: the value found there.
        reason: what is wrong and how to fix it, as the end of a sentence.
    """

    file: str
    row: int | None
    column: str | None
    value: object
    reason: str

    def __str__(self) -> str:
        place = self.file
        if self.row is not None:
            place += f", row {self.row}"
        if self.column is not None:
            place += f", column '{self.column}'"
        return f"{place}: {short_repr(self.value)} {self.reason}"


class DataError(CrowdzooError, ValueError):
    """Data that cannot be used. Lists the first ten bad rows and counts the rest.

    Args:
        message: one sentence.
        rows: bad rows, first ones first; only the first ten are shown.
        total: number of all bad rows, if `rows` holds only the first ones.
        **about: `setting`, `value` and `fix`, see `CrowdzooError`.
    """

    exit_code = 3

    def __init__(self, message: str, rows: Sequence[BadRow] = (), total: int | None = None, **about: Any):
        self.rows = tuple(rows)
        self.total = len(self.rows) if total is None else total
        lines = [message, *(f"  {row}" for row in self.rows[:SHOWN])]
        left = self.total - min(len(self.rows), SHOWN)
        if self.rows and left > 0:
            lines.append(f"  ... and {left:,} more")
        super().__init__("\n".join(lines), **about)


class NotedWarning(UserWarning):
    """A warning that a result or a report may repeat in its notes.

    Args:
        message: what is shown.
        notes: sentences of it as notes have them, without the file, the method or rows.
    """

    def __init__(self, message: str, notes: Iterable[str] = ()):
        super().__init__(message)
        self.notes = tuple(notes)


class DataWarning(NotedWarning):
    """Data that can be used but should be checked: a guess was made, or there may be a mistake."""


class ConfigError(CrowdzooError, ValueError):
    """A setting that is missing, unknown or out of range."""

    exit_code = 4


def keep_one() -> str:
    """The settings that keep one of several labels by the same annotator."""
    return f"{Setting('on_duplicate', 'first')} or {Setting('on_duplicate', 'last')}"


def bad_setting(name: str, reason: str, value: object, where: str = "") -> ConfigError:
    """The error about an invalid value of a setting: "separator must be one character, got 'ab'.".

    Args:
        name: name of the setting.
        reason: valid values, such as "must be one character".
        value: the given value.
        where: class or function that has the setting, with which the message begins.
    """
    place = f"{where}: " if where else ""
    return ConfigError(f"{place}{Setting(name)} {reason}, got {short_repr(value)}.", setting=name, value=value)


class PipelineError(CrowdzooError, RuntimeError):
    """A component of the pipeline failed; its own message and the log's path are in the text."""

    exit_code = 5


class BusyError(PipelineError):
    """Another run of the pipeline uses the same folder."""

    exit_code = 10


class ServingError(CrowdzooError, RuntimeError):
    """A model that cannot be served, or a server that answered with an error."""

    exit_code = 6


class ConditionError(CrowdzooError, RuntimeError):
    """A condition of `--fail-if` holds: the data are worse than required."""

    exit_code = 7


def did_you_mean(
    name: object, known: Iterable[object], cutoff: float = 0.6, also: Mapping[str, object] | None = None
) -> str:
    """Suggestion for a misspelt name, as the end of a message.

    Args:
        name: the given name; case is ignored.
        known: the valid names.
        cutoff: least similarity of the nearest name, from 0 to 1 (`difflib.get_close_matches`).
        also: synonyms in lower case -> the valid names that they mean.

    Returns:
        " Did you mean 'nearest'?"; empty if no name is similar, or there are more than 2,000.
    """
    names = list(known)
    text = name if isinstance(name, str) else short_repr(name)
    if len(names) > MOST_NAMES or len(text) > LONGEST_VALUE:
        return ""
    if (meant := (also or {}).get(text.casefold())) is not None:
        return f" Did you mean {short_repr(meant)}?"
    folded = {str(one).casefold(): one for one in names}
    near = difflib.get_close_matches(text.casefold(), list(folded), 1, cutoff)
    return f" Did you mean {short_repr(folded[near[0]])}?" if near else ""


def unknown(what: str, name: object, known: Iterable[object], also: Mapping[str, object] | None = None) -> str:
    """The message about an unknown name: "unknown method 'x': choose one of a, b, c. Did you mean 'b'?".

    Args:
        what: sort of the name, such as "method".
        name: the given name.
        known: the valid names; long lists are cut.
        also: as for `did_you_mean`.
    """
    names = list(known)
    listed = ", ".join(map(str, names[:MOST_LISTED]))
    if len(names) > MOST_LISTED:
        listed += f", ... {len(names) - MOST_LISTED:,} more"
    return f"unknown {what} {short_repr(name)}: choose one of {listed}.{did_you_mean(name, names, also=also)}"


def option_text(option: str, value: str) -> str:
    """An option of the command line with its value, quoted for a shell: "--missing=-1", "--columns 'task=my id'"."""
    quoted = shlex.quote(value)
    quoted = quoted if quoted != value or re.search(r"\w", value) else f"'{value}'"  # a lone mark is easily overlooked
    return f"{option}{'=' if value.startswith('-') else ' '}{quoted}"


def shorten(text: str) -> str:
    """Text for an error message, 80 characters at most."""
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def short_repr(value: object) -> str:
    """`repr(value)` for an error message, about 80 characters at most; a NumPy scalar as the number or text it is."""
    if value is None or isinstance(value, bool):
        return str(Setting("", value))  # null, true and false in YAML
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()  # type: ignore[attr-defined]  # a NumPy scalar
    if isinstance(value, str):
        return repr(shorten(value))
    if isinstance(value, bytes):
        return shorten(repr(value[:LONGEST_VALUE]))
    try:
        return shorten(_REPR.repr(value))
    except ValueError:  # Python does not convert integers of more than 4,300 digits
        return f"a {type(value).__name__} too long to show"


_REPR = reprlib.Repr()  # does not traverse values further than shown
_REPR.maxlevel = 4
for _limit in ("tuple", "list", "array", "dict", "set", "frozenset", "deque"):
    setattr(_REPR, f"max{_limit}", LONGEST_VALUE // 2)
for _limit in ("string", "long", "other"):
    setattr(_REPR, f"max{_limit}", 2 * LONGEST_VALUE)


def short_message(text: str) -> str:
    """Shortens long quoted values, long words and long lines of a message."""
    if len(text) <= LONGEST_VALUE:
        return text
    text = _QUOTED.sub(lambda found: f"{found[1]}{shorten(found[2])}{found[1]}", text)
    # a path may be long
    text = _WORD.sub(lambda found: found[0] if "/" in found[0] and len(found[0]) < 4096 else shorten(found[0]), text)
    if len(text) <= LONGEST_LINE:
        return text
    half = LONGEST_LINE // 2
    return "\n".join(
        line if len(line) <= LONGEST_LINE else f"{line[:half]} ... {line[-half:]}" for line in text.split("\n")
    )
