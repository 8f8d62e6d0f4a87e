"""Strings that a file can hold, and strings that a message can show."""

from crowdzoo.errors import shorten

LONGEST_LINE = 64 << 20  # bytes of a line that a reader takes


def is_utf8(value: str) -> bool:
    """Whether UTF-8 can write a string, which holds no half of a surrogate pair then."""
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_text(value: str) -> bool:
    """Whether a text file can hold a string: UTF-8 without a NUL."""
    return "\0" not in value and is_utf8(value)


def readable(value: str | bytes) -> str:
    """Text that can be printed, whatever it holds; bytes without the line end."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace").rstrip("\r\n")
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def shown(value: object) -> object:
    """A value of a JSON line for a message: numbers and the like as they are, the rest as short text."""
    if isinstance(value, str):
        return shorten(readable(value))
    return shorten(str(value)) if isinstance(value, (list, dict)) else value
