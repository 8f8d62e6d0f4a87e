"""Fuzzing of what other targets leave out: single bytes, members of archives, sizes, extreme ratings, slow clients."""

import contextlib
import functools
import io
import shutil
import socket
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_annotations import file_of
from hypothesis import strategies as st
from served_model import PREDICT, once_it_runs, served_folder, server, still_answers
from target import Target

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, MajorityVote, create
from crowdzoo.errors import CrowdzooError

BYTES = st.sampled_from([0, 1, 2, 127, 128, 255])
TABLE = "task,annotator,label\n1,ann,cat\n1,bob,dog\n2,ann,dog\n2,bob,dog\n"


def read(name, content, **options):
    """Reads a file of these bytes, or refuses it."""
    with file_of(content, name) as path:
        Annotations.read(path, **options)


# === Single bytes of Parquet files ===


@functools.cache
def parquet(version, compression, group, dictionary):
    """A sound file of eight rows."""
    made = io.BytesIO()
    rows = {"task": [f"t{i}" for i in range(8)], "annotator": ["a", "b"] * 4, "label": ["x", "y"] * 4}
    pq.write_table(
        pa.table(rows), made, data_page_version=version, compression=compression, row_group_size=group,
        use_dictionary=dictionary,
    )  # fmt: skip
    return made.getvalue()


_files = st.builds(
    parquet, st.sampled_from(["1.0", "2.0"]), st.sampled_from(["none", "snappy"]), st.sampled_from([2, 4, 8]),
    st.booleans(),
)  # fmt: skip


@st.composite
def _one_byte(draw):
    content = draw(_files)
    place = draw(st.integers(4, len(content) - 1))
    return content[:place] + bytes([draw(BYTES)]) + content[place + 1 :]


# === Members of archives ===


@st.composite
def _archives(draw):
    """An archive of one table, by any method of compression, with a strange name, one flag or some bytes changed."""
    made = io.BytesIO()
    method = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    with zipfile.ZipFile(made, "w", method) as archive:
        member = zipfile.ZipInfo("x")
        member.filename, member.compress_type = draw(st.sampled_from(["a.csv", "", "é.csv", "/", "a/"])), method
        archive.writestr(member, TABLE * draw(st.sampled_from([1, 50])))
    content = bytearray(made.getvalue())
    for _ in range(draw(st.integers(0, 4))):
        content[draw(st.integers(0, len(content) - 1))] = draw(BYTES)
    if draw(st.booleans()):
        content = content.replace(b"a.csv", b"\xff.csv")
        content[content.find(b"PK\x01\x02") + 9] |= 8  # says that names are UTF-8
    return bytes(content)


def check_archive(content):
    read("a.zip", content)
    read("a.zip", content, platform="toloka")


# === Sizes ===


def check_size(given):
    """Many labels in a cell, columns of a wide table, or classes are read and aggregated, or refused at once."""
    what, count = given
    names = [f"x{i}" for i in range(count)]
    if what == "cell":
        read(
            "a.csv",
            f"task,annotator,label\n1,ann,{';'.join(names)}\n".encode(),
            label_separator=";",
            on_duplicate="all",
        )
    elif what == "columns":
        read("a.csv", f"task,{','.join(names)}\n1,{','.join('x' * count)}\n".encode(), wide=True)
    else:
        crowd = Annotations.from_arrays([0] * count, [f"a{i % 20}" for i in range(count)], names, on_duplicate="all")
        for method in (MajorityVote(), DawidSkene(max_iter=2)):
            with contextlib.suppress(CrowdzooError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                method.fit(crowd)


_sizes = st.tuples(st.sampled_from(["cell", "columns", "classes"]), st.sampled_from([1, 30, 300, 30_000]))


# === Extreme ratings ===

_ratings = st.lists(
    st.sampled_from([0.0, 1.0, 2.0, 3.5, -1.0, 1e8, 1e17, 1e160, 1e308, -1e308, 1e-160, 5e-324]), min_size=3, max_size=9
)


def check_ratings(ratings):
    """Estimates and reliabilities are finite, and a task that others do not touch has the mean of its ratings."""
    tasks, annotators = [i // 3 for i in range(len(ratings))], [f"a{i % 3}" for i in range(len(ratings))]
    for method in ("mean", "median", "rating-em"):
        with contextlib.suppress(CrowdzooError), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            crowd = Annotations.from_arrays(tasks, annotators, ratings, kind="regression")
            found = create(method, kind="regression").fit(crowd)
            assert np.isfinite(found.estimates).all(), found.estimates
            assert np.isfinite(found.skills).all(), found.skills
            if method == "mean":
                expected = [np.mean(ratings[3 * task : 3 * task + 3]) for task in crowd.tasks.tolist()]
                np.testing.assert_allclose(
                    found.estimates, expected, rtol=1e-4, atol=1e-4 * (1 + np.median(np.abs(ratings)))
                )


# === The server: clients that stop in the middle, many rows and keys, versions without some of their files ===


def check_half_sent(given):
    """Others are answered while clients of either protocol keep back the rest of their bodies."""
    count, length, sent = given
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Length: {length + sent}\r\n\r\n".encode()
    with contextlib.ExitStack() as open_:
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", server().rest_port), timeout=10)
            open_.callback(connection.close)
            with contextlib.suppress(ConnectionError):
                connection.sendall(head + b" " * sent)
        still_answers()


def check_body(body):
    """A body of many rows or keys gets its answer or a reason, and is not lost."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server().rest_port, timeout=10)
    with contextlib.closing(connection):
        connection.request("POST", PREDICT, body)
        answer = connection.getresponse()
        text = answer.read()
    assert answer.status in (200, 400, 413), (answer.status, text[:500])


_bodies = st.builds(
    lambda count, row, key: b'{"instances": [%s]}' % (
        b",".join([row] * count) if row else b"{%s}" % b",".join(b'"%s%d":1' % (key, i) for i in range(count))
    ),
    st.sampled_from([1, 100, 40_000, 100_000]),
    st.sampled_from([b"[1,2,3,4]", b'{"instances":[1,2,3,4]}', b""]),
    st.sampled_from([b"", b"x"]),
)  # fmt: skip


@functools.cache
def _version():
    """The files of the served version."""
    folder = served_folder() / "1"
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()), folder


def check_version(left_out):
    """A version without some files is served, or waits for the first of them that it needs."""
    from crowdzoo.serving.model_settings import ModelSettings
    from crowdzoo.serving.model_store import ModelStore

    names, folder = _version()
    with tempfile.TemporaryDirectory() as root:
        for name in names:
            if not any(str(name).startswith(one) for one in left_out):
                Path(root, "1", name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / name, Path(root, "1", name))
        Path(root, "1").mkdir(exist_ok=True)
        store = ModelStore(ModelSettings("pets", Path(root)), poll_seconds=0.001)  # files are soon at rest
        store.refresh()
        time.sleep(0.01)
        store.refresh()
        (status,) = store.statuses()
        needed = any(str(name).startswith(one) for one in left_out for name in names if "assets" not in str(name))
        assert status.state == ("START" if needed else "AVAILABLE"), (status, left_out)


_left_out = st.lists(
    st.sampled_from(["saved_model.pb", "variables", "variables/variables.index", "variables/variables.data", "assets"]),
    max_size=3, unique=True,
)  # fmt: skip

TARGETS = {
    "parquet-one-byte": Target(_one_byte(), functools.partial(read, "a.parquet"), 40),
    "archives": Target(_archives(), check_archive, 40),
    "sizes": Target(_sizes, check_size, 4),
    "ratings": Target(_ratings, check_ratings, 40),
    "half-sent": Target(
        once_it_runs(st.tuples(st.sampled_from([1, 20, 80]), st.integers(1, 1000), st.integers(0, 100))),
        check_half_sent, 3,
    ),
    "rows-and-keys": Target(once_it_runs(_bodies), check_body, 4),
    "version-files": Target(once_it_runs(_left_out), check_version, 3),
}  # fmt: skip
