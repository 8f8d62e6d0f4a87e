"""Strings that a file can store, strings that a message can show, and the text of a configuration."""

import os

from crowdzoo.errors import ConfigError, DataError, Setting, shorten
from crowdzoo.files.regular import check_regular

LONGEST_LINE = 64 << 20  # bytes of a line that readers accept


def is_utf8(value: str) -> bool:
    """Whether a string can be encoded as UTF-8, that is, has no half of a surrogate pair."""
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_text(value: str) -> bool:
    """Whether a text file can store a string: UTF-8 without a NUL."""
    return "\0" not in value and is_utf8(value)


def not_utf8(content: bytes = b"") -> str:
    """The reason and fix for a value that is not UTF-8."""
    try:
        content.decode("utf-8")
        byte = ""
    except UnicodeDecodeError as error:
        byte = f" (byte 0x{content[error.start]:02X})"
    fix = f"Save the file as UTF-8, or give its encoding, such as {Setting('encoding', 'latin-1')}."
    return f"is not UTF-8{byte}. {fix}"


def readable(value: str | bytes) -> str:
    """Converts any text to a printable one; bytes lose the line end."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace").rstrip("\r\n")
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def shown(value: object) -> object:
    """Converts a value of a JSON line for a message: numbers and the like are unchanged, others become short text."""
    if isinstance(value, str):
        return shorten(readable(value))
    return shorten(str(value)) if isinstance(value, (list, dict)) else value


MAX_CHARACTERS = 1 << 18


def configuration_text(path: str | os.PathLike[str]) -> str:
    """Reads a configuration.

    Args:
        path: path of a regular file in UTF-8, at most 256 KiB.

    Raises:
        ConfigError: the file does not exist, is longer, or not UTF-8; the message names it.
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
        raise ConfigError(f"{name}: is larger than 256 KiB, the maximum for a configuration.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: not UTF-8 at byte {error.start}; save the file as UTF-8.") from None
