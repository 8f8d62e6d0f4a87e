"""The text of a configuration."""

import os

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.files.regular import check_regular

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
