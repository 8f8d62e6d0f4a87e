"""A hash of training data. Does not import Keras."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.files.regular import open_regular
from crowdzoo.reading.instances.upright_image import opened

ROWS = 256  # number of texts or images hashed at a time
BYTES = 1 << 20  # bytes of a file read at a time


def digest_of(data: object) -> str:
    """A hash of arrays, `Annotations`, paths of files, and lists and dictionaries of them."""
    digest = hashlib.sha256()
    _add(digest, data)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, Annotations):  # hashes of texts and regions are older than `values`
            del parts["values"]
            parts["classes"] = value.label_names
        value = parts
    if isinstance(value, Mapping):
        for name in sorted(value, key=str):
            digest.update(f"{name}:".encode())
            _add(digest, value[name])
    elif isinstance(value, Path):
        with open_regular(value, unzip=False) as file:
            while part := file.read(BYTES):
                digest.update(part)
    elif isinstance(value, (list, tuple)):
        digest.update(f"[{len(value)}".encode())
        for part in value:
            _add(digest, part)
    elif hasattr(value, "dtype") and hasattr(value, "__len__") and value.dtype == object:  # in memory, or in a file
        digest.update(f"{value.shape}".encode())
        for start in range(0, len(value), ROWS):
            for part in np.asarray(opened(value[start : start + ROWS]), object).flat:
                content = part if isinstance(part, bytes) else repr(part).encode()
                digest.update(f"{len(content)}:".encode() + content)
    elif hasattr(value, "dtype"):
        array = np.asarray(value)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data if array.size else b"")
    else:
        digest.update(repr(value).encode())
