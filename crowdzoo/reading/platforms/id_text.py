"""Names of tasks and annotators as text."""

from typing import Any

from crowdzoo.files.text import is_text
from crowdzoo.reading.platforms.bad_value import BadValue


def id_text(key: str, value: Any, missing: str) -> str:
    """An id, a string or an integer, as text.

    Args:
        key: where it stands, for messages.
        value: the id.
        missing: what to do where it is missing, as the end of a sentence.

    Raises:
        BadValue: no id.
    """
    if value is None or value == "":
        raise BadValue(key, None, missing)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise BadValue(key, value, "is not an id: a string or an integer.")
    text = str(value)
    if not text.strip() or not is_text(text):
        raise BadValue(key, value, "is empty, or holds a NUL or half a character.")
    return text
