"""Fuzzing of the readers of annotations: sound files of every format, and what can be done to their bytes."""

import contextlib
import copy
import csv
import gzip
import io
import json
import os
import tempfile
import warnings
import zipfile
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from target import Target

from crowdzoo import Annotations
from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import CrowdzooError
from crowdzoo.reading.tables import csv as csv_files
from crowdzoo.reading.tables import jsonl

COLUMNS = ("task", "annotator", "label", "position", "confidence", "timestamp", "other")
# what means something to a parser, an id, a number or a date
TEXTS = st.sampled_from(
    ["a", "b", "7", "007", "-1", "1.5", "1e3", "1e999", "nan", "inf", "NULL", "null", "true", "", " ", " a ", "a b",
     "\u00e9", "\ufeff", "\u2028", "\x85", "\x1c", "\0", "\r", "\n", '"', '""', "'", ",", "\t", "\\", "0x10", "1_000",
     "+1", "\u0663", "2020-01-01", "2020-01-01T00:00:00Z", "9" * 19, "9" * 400, "x" * 300, "{", "}", "[", "]", "\ud800"]
)  # fmt: skip
PIECES = st.sampled_from(
    [b'"', b",", b"\t", b"\n", b"\r\n", b"\r", b"\0", b"\xef\xbb\xbf", b"\xff", b"\xc3", b" ", b"{", b"}", b"[", b"]",
     b"null", b"NaN", b"-Infinity", b"1", b"\\", b"\\ud800", b":", b"{}", b"[[[[", b"PAR1", b"\x1f\x8b", b"\n\n",
     b'{"task":1,"annotator":2,"label":3}', b"task", b"[" * 200]
)  # fmt: skip
ROWS = st.lists(st.tuples(*[TEXTS | st.integers(-(2**70), 2**70)] * 3), min_size=1, max_size=8)


def encoded(text):
    return text.encode("utf-8", "surrogatepass")


@st.composite
def damaged(draw, contents):
    """Bytes with up to three places cut out, doubled or replaced."""
    content = draw(contents)
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from([0, 1, 2, 8, 1000])))
        content = content[:start] + draw(PIECES | st.binary(max_size=4)) + content[end:]
    return content


@st.composite
def separated(draw, delimiter=","):
    """CSV, some of it rightly quoted."""
    names = draw(st.permutations(COLUMNS).map(lambda names: names[: draw(st.integers(3, 7))]))
    names = [*{"task", "annotator", "label"} - set(names), *names]
    rows = draw(st.lists(st.lists(TEXTS, min_size=len(names), max_size=len(names)), max_size=6))
    quoted = draw(st.booleans())

    def cell(text):
        return '"' + text.replace('"', '""') + '"' if quoted and any(mark in text for mark in '",\n\r\t') else text

    lines = [delimiter.join(cell(text) for text in row) for row in [names, *rows]]
    return encoded(draw(st.sampled_from(["\n", "\n", "\r\n"])).join(lines) + draw(st.sampled_from(["", "\n"])))


VALUES = st.recursive(
    TEXTS | st.integers(-(2**70), 2**70) | st.floats() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)


def places(value, before=()):
    """The way to each value inside a value."""
    yield before
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*before, key))


@st.composite
def changed(draw, value, values=VALUES, keys=TEXTS):
    """JSON with up to four values in it replaced, removed or moved to another key."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(0, 4))):
        ways = [way for way in places(value) if way]
        if not ways:
            break
        *way, key = draw(st.sampled_from(ways))
        holder = value
        for step in way:
            holder = holder[step]
        if draw(st.integers(0, 3)) == 0:
            del holder[key]
        elif isinstance(holder, dict) and draw(st.integers(0, 5)) == 0:
            holder[draw(keys)] = holder.pop(key)
        else:
            holder[key] = draw(values | keys)
    return value


@st.composite
def json_lines(draw):
    """Objects a line, some of another shape."""
    lines = []
    for _ in range(draw(st.integers(0, 6))):
        row = {name: draw(TEXTS | st.integers(0, 3)) for name in COLUMNS[:3]}
        row |= draw(st.dictionaries(st.sampled_from(COLUMNS), VALUES, max_size=3))
        value = row if draw(st.integers(0, 5)) else draw(VALUES)
        lines.append(json.dumps(value, ensure_ascii=draw(st.booleans())))
    return encoded("\n".join(lines) + draw(st.sampled_from(["", "\n"])))


TYPES = st.recursive(
    st.sampled_from(
        [pa.string(), pa.large_string(), pa.int64(), pa.int8(), pa.uint64(), pa.float64(), pa.float32(), pa.float16(),
         pa.bool_(), pa.null(), pa.binary(), pa.date32(), pa.date64(), pa.time32("s"), pa.timestamp("s"),
         pa.timestamp("ns", "Europe/Rome"), pa.duration("ms"), pa.decimal128(10, 2), pa.decimal256(60, 0),
         pa.binary(3)]
    ),
    lambda inner: st.one_of(
        inner.map(pa.list_), inner.map(pa.large_list), inner.map(lambda kind: pa.list_(kind, 2)),
        inner.map(lambda kind: pa.struct([("a", kind), ("b", pa.int8())])),
        inner.map(lambda kind: pa.dictionary(pa.int32(), kind)),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
    ),
    max_leaves=2,
)  # fmt: skip


def columns_of(kind, values):
    """An array of a type, of whichever of the values it can hold."""
    with contextlib.suppress(Exception):
        return pa.array(values).cast(kind)
    with contextlib.suppress(Exception):
        return pa.array(values, type=kind)
    with contextlib.suppress(Exception):
        return pa.array([None if value is None else [value] * 2 for value in values], type=kind)
    with contextlib.suppress(Exception):
        return pa.nulls(len(values), kind)
    return pa.nulls(len(values))


@st.composite
def parquet(draw, names=COLUMNS):
    """A Parquet file whose columns have any types, and whose metadata may claim to be crowdzoo's."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names)))
    chosen = [*[name for name in names[:3] if name not in chosen], *chosen] if draw(st.booleans()) else chosen
    length = draw(st.integers(0, 5))
    simple = st.sampled_from([pa.string(), pa.int64(), pa.float64()])
    values = st.sampled_from([None, 0, 1, 2, -1, 2**31, 1.5, float("nan"), float("inf"), "a", "b", "1", " a", "\0"])
    arrays = [
        columns_of(draw(simple | TYPES), draw(st.lists(values, min_size=length, max_size=length))) for _ in chosen
    ]
    arrays = [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in arrays]
    metadata = None
    if draw(st.booleans()):
        kinds = st.sampled_from(["string", "integer", 3])
        listed = st.none() | VALUES | st.fixed_dictionaries({"type": kinds, "names": VALUES})
        known = st.dictionaries(st.sampled_from(["task", "left", "right", "annotator", "label", "x"]), listed)
        about = {"version": 1, "kind": draw(st.sampled_from([*LABEL_KINDS, "x", 1])), "names": draw(known | VALUES)}
        text = json.dumps(draw(st.just(about) | VALUES))
        metadata = {b"crowdzoo.annotations": draw(st.just(encoded(text)) | st.binary(max_size=5))}
    table = pa.Table.from_arrays(
        arrays, schema=pa.schema([(n, a.type) for n, a in zip(chosen, arrays, strict=True)], metadata)
    )
    buffer = io.BytesIO()
    try:
        pq.write_table(table, buffer)
    except Exception:  # no such type in Parquet
        buffer = io.BytesIO()
        pq.write_table(pa.table({"task": ["a"], "annotator": ["b"], "label": ["c"]}), buffer)
    return buffer.getvalue()


OPTIONS = st.fixed_dictionaries(
    {"kind": st.sampled_from(list(LABEL_KINDS))},
    optional={
        "on_bad_rows": st.just("reject"),
        "on_duplicate": st.sampled_from(["first", "last", "all"]),
        "classes": st.sampled_from([["a", "b"], ["a", "b", "7"]]),
        "rejects": st.just(True),
        "columns": st.dictionaries(st.sampled_from(COLUMNS), st.sampled_from([*COLUMNS, "1", "2", "3"]), max_size=3),
        "encoding": st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-16-le", "cp1252", "shift_jis", "gb18030"]),
        "decimal": st.just(","),
        "missing": st.sampled_from(["a", "-1,b"]),
        "label_separator": st.sampled_from(["|", " ", "a", ";"]),
    },
)
# of CSV alone
CSV_OPTIONS = st.tuples(
    OPTIONS,
    st.fixed_dictionaries(
        {}, optional={"separator": st.sampled_from(",;\t|x"), "header": st.just(False), "wide": st.just(True)}
    ),
).map(lambda both: both[0] | both[1])


def read(name, content, options):
    """The annotations, or the message."""
    options = dict(options)
    if options["kind"] == "regression":
        options.pop("classes", None)
    if options["kind"] == "preference":
        options.setdefault("columns", {"left": "task", "right": "other"})
    with tempfile.TemporaryDirectory() as folder, inside(folder):
        Path(name).write_bytes(content)
        if options.pop("rejects", False):
            options["rejects"] = "rejects.csv"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of rows that were left out
                return Annotations.read(name, **options)
        except CrowdzooError as error:
            return str(error)


@contextlib.contextmanager
def inside(folder):
    """The folder as working directory, so that messages name files alike."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def file_of(content, name):
    """A path of a file with the content; what is done with it may be refused, or warned of."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(CrowdzooError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, name)
        path.write_bytes(content)
        yield path


def reads(name):
    def check(given):
        read(name, *given)

    return check


def both_parsers_agree(name):
    """Arrow's and Python's parsers give the same table, or the same message."""

    def check(given):
        fast = read(name, *given)
        with (
            mock.patch.object(csv_files.CsvSource, "_fast", return_value=None),
            mock.patch.object(jsonl.JsonlSource, "_fast", return_value=None),
        ):
            slow = read(name, *given)
        assert fast == slow, (fast, slow)

    return check


def table_comes_back(columns):
    """What is written to Parquet and read again is equal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            annotations = Annotations.from_arrays(*columns, on_duplicate="first")
    except CrowdzooError:
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = annotations.to_parquet(Path(folder) / "t.parquet")
        except CrowdzooError:
            return
        assert Annotations.from_parquet(path) == annotations


def pairs(contents, options=OPTIONS):
    return st.tuples(contents, options)


def zipped(parts, method=zipfile.ZIP_DEFLATED):
    """An archive of names and contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in parts:
            archive.writestr(name, content)
    return buffer.getvalue()


@st.composite
def orders(draw):
    """CSV of lists in order, and how it is read."""
    marks = st.sampled_from([">", "=", "[", "]", "(", ")", ", ", "'a'", '"b"', "1", "{", "None"])
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["annotator", "ranking"])
    for cells in draw(st.lists(st.lists(TEXTS | marks, max_size=9), max_size=5)):
        rows.writerow(["ann", "".join(cells).replace("\0", "\ufffd")])
    options = {"kind": "preference", "columns": {"ranking": "ranking"}, "on_duplicate": "all"}
    return encoded(text.getvalue()), options | draw(st.sampled_from([{}, {"on_bad_rows": "reject"}]))


TARGETS = {
    "annotations-orders": Target(orders(), both_parsers_agree("a.csv"), 60),
    "annotations-csv": Target(pairs(damaged(separated()), CSV_OPTIONS), both_parsers_agree("a.csv"), 60),
    "annotations-semicolons": Target(pairs(damaged(separated(";")), CSV_OPTIONS), both_parsers_agree("a.csv"), 30),
    "annotations-encoded": Target(
        pairs(damaged(separated().map(lambda content: content.decode("utf-8", "replace").encode("utf-16")))),
        both_parsers_agree("a.csv"),
        30,
    ),
    "annotations-zip": Target(
        pairs(damaged(separated().map(lambda content: zipped([("a.csv", content)])))), reads("a.zip"), 30
    ),
    "annotations-tsv": Target(pairs(damaged(separated("\t"))), both_parsers_agree("a.tsv"), 30),
    "annotations-jsonl": Target(pairs(damaged(json_lines())), both_parsers_agree("a.jsonl"), 60),
    "annotations-gzip": Target(pairs(damaged(separated().map(gzip.compress))), reads("a.csv.gz"), 30),
    "annotations-parquet": Target(pairs(parquet()), reads("a.parquet"), 60),
    "annotations-parquet-damaged": Target(pairs(damaged(parquet())), reads("a.parquet"), 60),
    "annotations-comes-back": Target(
        ROWS.map(lambda rows: tuple(map(list, zip(*rows, strict=True)))), table_comes_back, 40
    ),
}
