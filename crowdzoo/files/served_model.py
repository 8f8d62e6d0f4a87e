"""Files of a served model, and how it is loaded and its answers are put together; without Keras."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

# TF Serving looks for warm-up requests here, and nowhere else.
WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
MODEL_CARD_FILE = "assets.extra/model_card.json"
BLESSING_FILE = "assets.extra/blessing.json"  # why it was pushed; its copies do not share this and the next two
DRIFT_FOLDER = "assets.extra/drift"  # schema and statistics of the run that pushed it
ORIGIN_FILE = "assets.extra/origin.json"  # names of the files, commit and MLflow run that it was made with
# One real request a signature, so that a `curl` line can be pasted whatever the length of an instance.
REQUEST_FILES = {
    "serving_default": "assets.extra/request.json",
    "annotators": "assets.extra/request_annotators.json",
    "spans": "assets.extra/request_spans.json",
    "pairs": "assets.extra/request_pairs.json",
}


def load_saved_model(folder: str | Path) -> Any:
    """Loads a SavedModel; where its graph cuts text into tokens, tensorflow-text is imported first, which it needs.

    Raises:
        ValueError: it needs tensorflow-text, which is not installed.
        OSError, tf.errors.OpError: it cannot be loaded.
    """
    import tensorflow as tf

    if b"RegexSplitWithOffsets" in (Path(folder) / "saved_model.pb").read_bytes():
        try:
            import tensorflow_text  # noqa: F401  registers the operations
        except ImportError as error:
            raise ValueError("its graph needs tensorflow-text: pip install 'crowdzoo[text]'") from error
    return tf.saved_model.load(str(folder))


def as_text(array: np.ndarray) -> np.ndarray:
    """The UTF-8 bytes of a string tensor as `str`; any other array as it is."""
    if array.dtype != object:
        return array
    return np.array([cell.decode("utf-8", errors="replace") for cell in array.flat], dtype=str).reshape(array.shape)


def stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Answers to several requests, one below the other; what each has padded to its longest, to the longest of all."""
    shapes = [part.shape[1:] for part in parts]
    if len(set(shapes)) == 1 or len({len(shape) for shape in shapes}) > 1:
        return np.concatenate(parts)
    widest = np.max(shapes, axis=0)
    filler: Any = {"O": b"", "U": ""}.get(parts[0].dtype.kind, 0)
    padding = ([(0, 0), *((0, int(more)) for more in widest - part.shape[1:])] for part in parts)
    padded = (np.pad(part, widths, constant_values=filler) for part, widths in zip(parts, padding, strict=True))
    return np.concatenate([*padded])


# "annotator" is an input of the signature `annotators`, "instances" the one input of models of other instances;
# TensorFlow takes no argument called "self"
_TAKEN = ("annotator", "instances", "self")


def served_name(column: str) -> str:
    """The name of a column as an input of a served model, which may hold ASCII letters, digits and underscores only.

    Args:
        column: name of the column in the file, such as "age (years)".

    Returns:
        The same name where it is possible. Otherwise blanks and signs become `_`, a letter beyond ASCII becomes `u` and
        its code point, and what is not a first letter gets a `c` before it: "age__years_", "gru00f6u00dfe", "c2nd".
    """
    name = re.sub(r"[^\W\d_]", lambda letter: letter[0] if letter[0].isascii() else f"u{ord(letter[0]):04x}", column)
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not name[:1].isalpha():
        name = f"c{name}"
    return f"{name}_" if name in _TAKEN else name
