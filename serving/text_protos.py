"""Files in protobuf's text format, as TF Serving takes its settings."""

from __future__ import annotations

import os
import re
from typing import Any

from google.protobuf import text_format

from crowdzoo.errors import ConfigError
from crowdzoo.files.configuration_text import configuration_text

__all__ = ["read_text_proto"]

# The line of the file that protobuf quotes in some of its messages
_LINE = re.compile(r"^'.*': (?=[A-Z])", re.DOTALL)
_LONGEST = 300


def read_text_proto(path: str | os.PathLike[str], kind: Any) -> Any:
    """Reads a file in protobuf's text format.

    Args:
        path: a regular file of UTF-8, 256 KiB at most.
        kind: class of the message.

    Returns:
        The message.

    Raises:
        ConfigError: no such file, or it is not that message; names file, line and column.
    """
    name = os.fspath(path)
    try:
        return text_format.Parse(configuration_text(path), kind())
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        place = f", line {line}, column {column}" if line is not None else ""
        said = _LINE.sub("", str(error).split(" : ", 1)[-1]).rstrip(".")[:_LONGEST]
        raise ConfigError(f"{name}{place}: not a {kind.DESCRIPTOR.name} in text format: {said}.") from None
