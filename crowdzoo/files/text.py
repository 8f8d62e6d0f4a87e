"""Strings that a file can hold, strings that a message can show, and the text of a configuration."""

import os

from crowdzoo.errors import ConfigError, DataError, Setting, shorten
from crowdzoo.files.regular import check_regular

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


def not_utf8(content: bytes = b"") -> str:
    """What is wrong with a value that is not UTF-8."""
    try:
        content.decode("utf-8")
        byte = ""
    except UnicodeDecodeError as error:
        byte = f" (byte 0x{content[error.start]:02X})"
    fix = f"Save the file as UTF-8, or give its encoding, such as {Setting('encoding', 'latin-1')}."
    return f"is not UTF-8{byte}. {fix}"


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


MAX_CHARACTERS = 1 << 18


def configuration_text(path: str | os.PathLike[str]) -> str:
    """Reads a configuration.

    Args:
        path: a regular file of UTF-8, 256 KiB at most.

    Raises:
        ConfigError: no such file, a longer one, or not UTF-8; names the file.
    """
    name = os.fspath(path)
    try:
        check_regular(path)
        with open(path, "rb") as file:
            content = file.read(MAX_CHARACTERS + 1)
    except DataError as error:
        raise ConfigError(str(error)) from None
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read ({error.strerror}).") from None
    if len(content) > MAX_CHARACTERS:
        raise ConfigError(f"{name}: is larger than 256 KiB, which no configuration is.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: not UTF-8 at byte {error.start}; save the file as UTF-8.") from None
