"""Fuzzing of small files that stand for much work: workbooks, wide tables, folders of data sets, archives, masks."""

import contextlib
import functools
import io
import json
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
from fuzz_annotations import PIECES, damaged, file_of, read, zipped
from fuzz_platforms import DOCCANO
from hypothesis import strategies as st
from PIL import EpsImagePlugin, Image
from target import Target

from crowdzoo import Annotations, plugins
from crowdzoo.errors import CrowdzooError
from crowdzoo.kinds import kind_of

SECONDS = 8.0  # of CPU, an input; the largest sound ones here take less than one

# === Workbooks ===

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_RELATIONS = f'<Relationships xmlns="{_PACKAGE}/relationships">'
_OVERRIDE = '<Override PartName="/xl/{}.xml" ContentType="' + _TYPE + '.{}+xml"/>'
_RELATION = '<Relationship Id="{}" Type="' + _OFFICE + '/{}" Target="{}.xml"/>'
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType="'
    'application/vnd.openxmlformats-package.relationships+xml"/>'
    + _OVERRIDE.format("workbook", "sheet.main")
    + _OVERRIDE.format("worksheets/sheet1", "worksheet")
    + _OVERRIDE.format("sharedStrings", "sharedStrings")
    + _OVERRIDE.format("styles", "styles")
    + "</Types>",
    "_rels/.rels": _RELATIONS + _RELATION.format("r1", "officeDocument", "xl/workbook") + "</Relationships>",
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets><sheet name="s" sheetId="1" r:id="r1"/>'
    "</sheets></workbook>",
    "xl/_rels/workbook.xml.rels": _RELATIONS
    + _RELATION.format("r1", "worksheet", "worksheets/sheet1")
    + _RELATION.format("r2", "sharedStrings", "sharedStrings")
    + _RELATION.format("r3", "styles", "styles")
    + "</Relationships>",
    "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}"><si><t>task</t></si><si><t>annotator</t></si><si><t>label</t></si>'
    "<si><r><t>a</t></r><r><t>b</t></r></si></sst>",
    "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><cellXfs><xf/><xf numFmtId="14"/><xf numFmtId="46"/></cellXfs>'
    "</styleSheet>",
}
_HEADER = "<row>" + "".join(f'<c t="s"><v>{place}</v></c>' for place in range(3)) + "</row>"
_NUMBERS = [None] * 12 + ["2", "3", "4", "5", "9", "0", "-1", "1.5", "x", "1048577", "50000000", "1000000000"]
_CELLS = [None] * 12 + ["A2", "B2", "C2", "C9", "D2", "XFD2", "XFE2", "ZZZ2", "AAAA2", "??", "A0", "", "2", "A"]
_FAR = [None] * 12 + ["B2", "C9", "XFD2", "XFE2", "ZZZ2"]
_VALUES = ["0", "1", "2", "3", "4", "99", "-1", "1.5", "1e999", "nan", "a", "b", "", "true", "45000", "1e9", "9" * 5000,
           "2024-03-02", "T25:00", "&#0;", "&lt;", "#N/A"]  # fmt: skip
_OTHERS = ["<row/>" * 3, "<c/>" * 9, "</row>", "<mergeCells/>", "</sheetData>", "<sheetData/>", "<x>" * 50, "&e;"]


def attribute(name, value):
    return "" if value is None else f' {name}="{value}"'


@st.composite
def _cell(draw, sound):
    if sound:
        number = draw(st.integers(0, 3))
        return f'<c{attribute("r", draw(st.sampled_from(_FAR)))} t="n"><v>{number}</v></c>'
    kind = draw(st.sampled_from([None, "n", "s", "str", "inlineStr", "b", "d", "e", "x"]))
    value = draw(st.sampled_from(_VALUES))
    inner = f"<is><t>{value}</t></is>" if kind == "inlineStr" else f"<v>{value}</v>"
    style = draw(st.sampled_from([None, None, "0", "1", "2", "7", "x"]))
    return f"<c{attribute('r', draw(st.sampled_from(_CELLS)))}{attribute('t', kind)}{attribute('s', style)}>{inner}</c>"


@st.composite
def workbooks(draw):
    """A workbook with rows and cells of any number and type, with some bytes of a part changed, or without a part."""
    rows = []
    sound = draw(st.booleans())
    for _ in range(draw(st.integers(0, 5))):
        cells = "".join(draw(st.lists(_cell(sound), max_size=4)))
        rows.append(f"<row{attribute('r', draw(st.sampled_from(_NUMBERS)))}>{cells}</row>")
    if not draw(st.integers(0, 5)):
        rows.insert(draw(st.integers(0, len(rows))), draw(st.sampled_from(_OTHERS)))
    size = draw(st.sampled_from(["", "", '<dimension ref="A1:C3"/>', '<dimension ref="A1:ZZZ1000000000"/>']))
    sheet = f'<worksheet xmlns="{_MAIN}">{size}<sheetData>{_HEADER}{"".join(rows)}</sheetData></worksheet>'
    parts = {name: text.encode() for name, text in {**PARTS, "xl/worksheets/sheet1.xml": sheet}.items()}
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        name = draw(st.sampled_from(sorted(parts)))
        parts[name] = draw(damaged(st.just(parts[name])))
    if not draw(st.integers(0, 9)):
        del parts[draw(st.sampled_from(sorted(parts)))]
    kinds, policies = st.sampled_from(["classification", "regression"]), st.sampled_from(["error", "reject"])
    return zipped(parts.items()), {"kind": draw(kinds), "on_bad_rows": draw(policies)}


# === Wide tables ===


@st.composite
def wide_tables(draw):
    """A wide table, whose columns have labels of their own, or those of others."""
    width = draw(st.integers(1, 5))
    columns = [
        draw(st.sampled_from([["a", "b"], ["a"], ["x{}"], ["0", "0", "{}0"], [""], ["{}"], ["1.5", "2"], ["a,b"]]))
        for _ in range(width)
    ]
    rows = [
        ",".join(texts[(row + draw(st.integers(0, 1))) % len(texts)].format(row) for texts in columns)
        for row in range(draw(st.integers(0, 14)))
    ]
    header = draw(st.booleans())
    names = ["task", *map(str, range(1, 6))] if draw(st.booleans()) else ["id", "7", "ann", "bob", "", "gold"]
    lines = [",".join(names[:width]), *rows] if header else rows
    columns = draw(
        st.sampled_from([None, "task=", "task=1", "task=id", "task=1,2", "task=,annotator=2,3", "task=1,annotator=*",
                         "annotator=1", "task=9", "task=*", "task=0", "task=-1", "task=1*,annotator=,"])
    )  # fmt: skip
    options = {"kind": draw(st.sampled_from(["classification", "regression"])), "wide": True, "header": header}
    return "\n".join(lines).encode(), options | ({} if columns is None else {"columns": columns})


# === Folders of data sets ===

_NAMES = st.sampled_from(["train", "train", "test", ".", "..", "", "a/b", "../train", "loop", "\0", "x" * 300, 5, None])
_FILES = st.sampled_from(["d.arrow", "d.arrow", "e.arrow", ".", "..", "", "loop", "../d.arrow", "x" * 300, 5, None])


@functools.cache
def arrow_bytes(other):
    table = pa.table({"task": [1, 2], "annotator": ["a", "b"], "label": [0.5, 2.0] if other else ["x", "y"]})
    made = io.BytesIO()
    with pa.ipc.new_stream(made, table.schema) as writer:
        writer.write_table(table)
    return made.getvalue()


@st.composite
def dataset_folders(draw):
    """What two JSON files name, and the bytes of the parts."""
    splits = draw(st.none() | st.lists(_NAMES, max_size=2) | st.sampled_from(["train", 3, {"train": 1}]))
    files = draw(st.lists(_FILES, max_size=2) | st.sampled_from(["d", 3]))
    state = {"_data_files": [{"filename": name} for name in files] if isinstance(files, list) else files}
    contents = [arrow_bytes(draw(st.booleans())) for _ in range(2)]
    if not draw(st.integers(0, 4)):
        contents[0] = draw(damaged(st.just(contents[0])))
    return splits, json.dumps(draw(st.sampled_from([state, state, state, {}, [], None]))), contents


def check_dataset_folder(given):
    """A folder of parts is read, or refused; what is next to it is not."""
    splits, state, contents = given
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer, "set")
        for place in (Path(outer), folder, folder / "train", folder / "test"):
            place.mkdir(exist_ok=True)
            for name, content in zip(("d.arrow", "e.arrow"), contents, strict=True):
                (place / name).write_bytes(content)
            (place / "state.json").write_text(state)
        outside = pa.table({"task": [1], "annotator": ["outside"], "label": ["z"]})
        with pa.ipc.new_stream(Path(outer) / "d.arrow", outside.schema) as writer:
            writer.write_table(outside)
        (folder / "loop").symlink_to(".")
        if splits is not None:
            (folder / "dataset_dict.json").write_text(json.dumps({"splits": splits}))
        with contextlib.suppress(CrowdzooError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = Annotations.read(folder, on_duplicate="first")
            assert "outside" not in found.annotators.tolist()


# === Archives of many files ===


@functools.cache
def _archive(count, kind):
    make = {
        "masks": lambda number: (f"a{number % 2}/{number // 2}.png", _mask("uint8", 4, 2)),
        "doccano": lambda number: (f"{number}.jsonl", json.dumps(DOCCANO[number % len(DOCCANO)])),
        "bomb": lambda number: (f"{number}.jsonl", b" " * (1 << 20)),
    }[kind]
    return zipped(map(make, range(count)))


@st.composite
def archives(draw):
    """An archive of few or many files, perhaps damaged."""
    count = draw(st.sampled_from([1, 2, 3, 4, 5, 8] * 12 + [3000]))
    if count > 9:
        return _archive(count, draw(st.sampled_from(["masks", "doccano"])))
    return draw(damaged(st.just(_archive(count, draw(st.sampled_from(["masks", "doccano", "bomb"]))))))


def check_archive(content):
    for platform, kind in (("doccano", "classification"), ("png-masks", "region")):
        with file_of(content, "a.zip") as path:
            kind_of(kind).reading.read(path, platform=platform)


# === Masks ===

POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n%%EOF\n"


@functools.cache
def _mask(kind, side, classes):
    pixels = np.arange(side * side).reshape(side, side) % classes
    made = io.BytesIO()
    image = Image.fromarray(pixels.astype("uint16" if kind == "uint16" else "uint8"))
    (image if kind == "uint16" else image.convert({"uint8": "L"}.get(kind, kind))).save(made, "PNG")
    return made.getvalue()


@st.composite
def masks(draw):
    """A mask of few or many values, damaged, or of another format."""
    side, classes = draw(st.sampled_from([(3, 2), (9, 5), (16, 250), (20, 300), (4, 1)] * 8 + [(256, 65_536)]))
    content = _mask(draw(st.sampled_from(["uint8", "uint16", "1", "P", "RGB", "LA"])), side, classes)
    content = draw(st.sampled_from([content] * 9 + [POSTSCRIPT]))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, min(90, len(content) - 1)))
        content = content[:place] + draw(PIECES | st.binary(max_size=2)) + content[place + draw(st.integers(0, 3)) :]
    return content


def check_mask(content):
    """A mask is read or refused, and no program is started."""
    with (
        tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(),
        mock.patch.object(EpsImagePlugin, "Ghostscript") as started,
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        for who, own in (("ann", content), ("bob", _mask("uint8", 9, 5))):
            Path(folder, who).mkdir()
            Path(folder, who, "a.png").write_bytes(own)
        with contextlib.suppress(CrowdzooError):
            kind_of("region").reading.read(folder, platform="png-masks")
    assert not started.called, started.call_args


# === Entry points ===

_LINES = [
    "[crowdzoo.layers]",
    "[crowdzoo.aggregators]",
    "[",
    "]",
    "mine",
    "mine = a:B",
    "= a",
    "mine =",
    "# x",
    "\xff",
    "",
]


def check_entry_points(lines):
    """Whatever a package's file holds, the names of others are found."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Path(folder, "broken-1.dist-info").mkdir()
        Path(folder, "broken-1.dist-info", "METADATA").write_text("Name: broken\nVersion: 1\n")
        Path(folder, "broken-1.dist-info", "entry_points.txt").write_bytes("\n".join(lines).encode("latin-1"))
        with mock.patch("sys.path", [folder]):
            for sort in plugins.SORTS:
                plugins._installed(sort)


TARGETS = {
    "workbooks": Target(workbooks(), lambda given: read("a.xlsx", *given), 40, SECONDS),
    "wide-tables": Target(wide_tables(), lambda given: read("a.csv", *given), 40, SECONDS),
    "dataset-folders": Target(dataset_folders(), check_dataset_folder, 40, SECONDS),
    "archives-of-many": Target(archives(), check_archive, 40, SECONDS),
    "masks": Target(masks(), check_mask, 40, SECONDS),
    "entry-points": Target(st.lists(st.sampled_from(_LINES), max_size=4), check_entry_points, 30, SECONDS),
}
