"""The name under which a served model takes a column."""

import re

# "annotator" is an input of the signature `annotators`, "instances" the one input of models of other instances;
# TensorFlow takes no argument called "self"
_TAKEN = ("annotator", "instances", "self")


def served_name(column: str) -> str:
    """The name of a column as an input of a served model, which may hold ASCII letters, digits and underscores only.

    Args:
        column: name of the column in the file, such as "age (years)".

    Returns:
        The same name where it is possible. Otherwise blanks and signs become `_`, a letter beyond ASCII becomes `u` and
        its code point, and what is no first letter gets a `c` before it: "age__years_", "gru00f6u00dfe", "c2nd".
    """
    name = re.sub(r"[^\W\d_]", lambda found: found[0] if found[0].isascii() else f"u{ord(found[0]):04x}", column)
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not name[:1].isalpha():
        name = f"c{name}"
    return f"{name}_" if name in _TAKEN else name
