"""Fuzzing of the readers of annotations: any bytes in a file of any format."""

import contextlib
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from target import Target

from crowdzoo import Annotations
from crowdzoo.errors import CrowdzooError

_PIECES = [
    b"task,annotator,label\n",
    b"a,b,c\n",
    b'"',
    b",",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xef\xbb\xbf",
    b"1,2,3\n",
    b"\xff",
]


def _read(name):
    def check(content):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(content)
            with contextlib.suppress(CrowdzooError):
                Annotations.read(path)

    return check


TARGETS = {
    "annotations-csv": Target(
        st.lists(st.sampled_from(_PIECES) | st.binary(max_size=20), max_size=20).map(b"".join), _read("answers.csv")
    ),
}
