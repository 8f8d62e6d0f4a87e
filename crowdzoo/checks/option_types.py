"""Types of the command line's options."""

import argparse
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from crowdzoo.errors import ConfigError, shorten
from crowdzoo.files.paths import local_path


def path(text: str) -> Path:
    """A local path, as it was given.

    Raises:
        ArgumentTypeError: a URL, or characters that no path has.
    """
    try:
        local_path(text, "the path")
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def integer(low: int, high: int) -> Callable[[str], int]:
    """The type of an option that takes an integer from low to high."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not an integer from {low:,} to {high:,}")
        return value

    return read


def number(low: float = -math.inf, high: float = math.inf) -> Callable[[str], float]:
    """The type of an option that takes a finite number from low to high."""
    limits = "" if low == -math.inf else f" of at least {low:g}" if high == math.inf else f" from {low:g} to {high:g}"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (low <= value <= high and math.isfinite(value)):
            raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a finite number{limits}")
        return value

    return read


def setting_value(text: str) -> Any:
    """The value of a setting: JSON where the text is that, also with numbers such as .3 and 1.; else the text itself.

    Raises:
        RecursionError: nested too deep.
    """
    for form in (text, re.sub(r"(?<![\w.])\.(?=\d)", "0.", re.sub(r"(?<=\d)\.(?!\d)", ".0", text))):
        try:
            return json.loads(form)
        except ValueError:
            continue
    return text


def date(text: str) -> float:
    """A date, or a time, in ISO 8601 as seconds since 1970; UTC, where it names no zone but Z or UTC.

    Raises:
        ArgumentTypeError: another text.
    """
    try:
        day = datetime.fromisoformat(re.sub(" ?(Z|UTC)$", "", text))  # Python 3.10 does not read Z
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a date such as 2026-03-01") from None
    return (day if day.tzinfo else day.replace(tzinfo=timezone.utc)).timestamp()
