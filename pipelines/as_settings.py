"""as_settings: a message of the library in the words of the pipeline's YAML file."""

import re

# Arguments of readers that the section data has under the same name
_KEYS = (
    "annotator_separator|classes|columns|decimal|encoding|exclude|field|header|high|image|instance_columns|"
    "label_separator|low|missing|on_bad_rows|on_bad_tags|on_duplicate|outside_images|platform|rename|separator|sheet|wide"
)
_LISTS = ("classes", "exclude", "missing")
_MAPPINGS = ("columns", "instance_columns", "rename")
_ARGUMENT = re.compile(rf"(?<![\w/'\"=.,-])({_KEYS})=('[^'\n]*'|[^\s;)]*[^\s;).,])")


def as_settings(message: str) -> str:
    """A message that names Python's arguments as who wrote the YAML file needs it.

    Args:
        message: of an error or a warning, such as "pass on_duplicate='first'".

    Returns:
        The same with dotted keys and YAML's values: "pass data.on_duplicate: 'first'". Rejected rows need no key, as
        the pipeline always keeps them.
    """
    message = message.replace(" (rejects=FILE keeps them)", "")
    message = re.sub(r"(?<![\w.])inputs: \{", "model.inputs: {", message)
    return _ARGUMENT.sub(_setting, message)


def _setting(found: re.Match[str]) -> str:
    key, value = found.groups()
    plain = value.strip("'")
    if key in _MAPPINGS:
        pairs = (pair.split("=", 1) for pair in re.split(r",(?=\w+=)", plain))
        value = "{" + ", ".join(f"{name}: '{column}'" for name, column in pairs) + "}"
    elif key in _LISTS:
        value = "[" + ", ".join(plain.split(",")) + "]"
    elif value in ("True", "False"):
        value = value.lower()
    return f"data.{key}: {value}"
