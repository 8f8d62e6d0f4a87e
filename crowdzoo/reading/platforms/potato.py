"""Potato: annotated_instances.jsonl in the folder of each annotator.

The format: https://potatoannotator.readthedocs.io and `save_user_state` of https://github.com/davidjurgens/potato.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.reading.platforms.platform import Answer, Platform, of_forms
from crowdzoo.reading.platforms.record import BadValue

_ANSWERS = "label_annotations"
_NOT_CHOSEN = (None, False, "", "0", "false", "False")


def _answers(entry: Mapping[str, Any]) -> Iterator[Answer]:
    """Yield one answer: the value of a scale or a text field, else the options that have a value."""
    form = dict[str, list[Any]]()
    for question, options in entry[_ANSWERS].items() if isinstance(entry[_ANSWERS], dict) else [("", None)]:
        if not isinstance(options, dict):
            raise BadValue(f"{_ANSWERS}.{question}", options, "is not an object of options.")
        chosen = [(name, value) for name, value in options.items() if value not in _NOT_CHOSEN]
        form[question] = [value if name.startswith(("scale_", "text_box")) else name for name, value in chosen]
    yield _ANSWERS, entry.get("user_id"), form, None, None


POTATO = Platform(
    name="potato",
    title="Potato",
    suffixes=(".jsonl",),
    menu="Give the folder annotation_output, which holds a folder for each annotator.",
    is_own=lambda entry: {"displayed_text", _ANSWERS} <= entry.keys(),
    **of_forms(lambda entry: ("id", entry.get("id"), {"text": entry["displayed_text"]}), _answers),
)
