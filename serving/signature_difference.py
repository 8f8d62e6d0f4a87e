"""What a client of one version would notice in the signatures of another."""

from typing import Any

import tensorflow as tf

__all__ = ["signature_difference"]


def signature_difference(old: Any, new: Any) -> str:
    """Where requests that fit the old version do not fit the new one, or its answers have another form.

    A signature that only the new version has is no difference.

    Args:
        old: `SignatureDefMap` of the version that is served.
        new: `SignatureDefMap` of the version to be served.

    Returns:
        One clause for each difference, joined by "; ", or "".
    """
    found = []
    for key, before in sorted(old.signature_def.items()):
        if key.startswith("__"):  # TensorFlow's own, such as its initialiser
            continue
        if key not in new.signature_def:
            found.append(f"signature {key!r} is missing")
            continue
        after = new.signature_def[key]
        for side in ("inputs", "outputs"):
            was = {name: _form(info) for name, info in getattr(before, side).items()}
            now = {name: _form(info) for name, info in getattr(after, side).items()}
            for name in sorted(was.keys() | now.keys()):
                if was.get(name) != now.get(name):
                    here, there = now.get(name, "missing"), was.get(name, "missing")
                    found.append(f"{key!r} {side[:-1]} {name!r} is {here}, was {there}")
    return "; ".join(found)


def _form(info: Any) -> str:
    shape = "any shape" if info.tensor_shape.unknown_rank else str([dim.size for dim in info.tensor_shape.dim])
    return f"{tf.dtypes.as_dtype(info.dtype).name} {shape}"
