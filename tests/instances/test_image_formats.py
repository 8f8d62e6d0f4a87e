"""Images are opened in the formats that are named, and in no other: Pillow gives PostScript to the program gs."""

import ast
import contextlib
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from crowdzoo.errors import CrowdzooError
from crowdzoo.instances import IMAGES, read_instances
from crowdzoo.kinds import kind_of
from crowdzoo.report.page_instances import instance_views

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "components", "crowdzoo", "docs", "examples", "pipelines", "serving")
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n0 0 9 9 rectfill showpage\n%%EOF\n"


def openings(code):
    """Calls that open an image by what its bytes are: whether each of them names formats."""
    names = {"open": ("Image",), "imread": None, "load_img": None}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module == "PIL.Image":
            assert "open" not in {name.name for name in node.names}, "call it Image.open"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
            owner = ast.unparse(node.func.value).rpartition(".")[2]
            if names[node.func.attr] is None or owner in names[node.func.attr]:
                yield any(keyword.arg == "formats" for keyword in node.keywords)


def test_every_image_is_opened_in_formats_that_are_named():
    assert [*openings("Image.open(a)\nPIL.Image.open(a, formats=('PNG',))\nopen(a)\ncv2.imread(a)")] == [0, 1, 0]
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    found = {str(file.relative_to(ROOT)): [*openings(file.read_text(encoding="utf-8"))] for file in files}
    assert sum(map(len, found.values())) >= 4
    assert [name for name, named in found.items() if not all(named)] == []


@pytest.fixture
def ghostscript(tmp_path, monkeypatch):
    """A program gs that leaves a file behind where it is started; Pillow looks for it anew."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "bin" / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    return tmp_path / "started"


def test_postscript_by_the_name_of_an_image_starts_no_program(tmp_path, ghostscript):
    pytest.importorskip("pycocotools")
    for who in ("ann", "bob"):
        (tmp_path / "masks" / who).mkdir(parents=True)
        Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "masks" / who / "a.png")
    regions = kind_of("region")
    crowd = regions.reading.read(tmp_path / "masks", platform="png-masks")
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(photos / "a.png")
    images = read_instances(photos, IMAGES)
    (photos / "a.png").write_bytes(POSTSCRIPT)
    (tmp_path / "masks" / "ann" / "a.png").write_bytes(POSTSCRIPT)
    readers = (
        lambda: regions.reading.read(tmp_path / "masks", platform="png-masks"),
        lambda: regions.reading.gold_of(crowd, tmp_path / "masks" / "ann"),
        lambda: read_instances(photos, IMAGES),
        lambda: instance_views(images, [0], 1000),
    )
    for read in readers:
        with pytest.raises(CrowdzooError, match=r"not a valid image|not a readable image"):
            read()
    assert not ghostscript.exists()


def test_pillow_alone_would_start_the_program(write, ghostscript):
    """Otherwise the test above could not fail."""
    with contextlib.suppress(OSError), Image.open(write("a.png", POSTSCRIPT)) as image:
        image.load()
    assert ghostscript.exists()
