"""Labels as text, whatever JSON holds."""

import math
from typing import Any

from crowdzoo.files.text import is_text
from crowdzoo.reading.platforms.bad_value import BadValue


def label_text(key: str, value: Any) -> str | None:
    """A label as text: 4 and 4.0 are "4", true is "true"; None where there is none (null, NaN, "").

    Raises:
        BadValue: a list or an object, an infinite number, text with a NUL or half a character.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isinf(value):
            raise BadValue(key, value, "is not a finite number.")
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise BadValue(key, value, "is not a label: a string or a number.")
    if not is_text(value):
        raise BadValue(key, value, "holds a NUL or half a character.")
    return value if value.strip() else None
