"""The documentation site: every page is in it, and it builds without a warning."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import crowdzoo

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MKDOCS = ROOT / ".venv-site" / "bin" / "mkdocs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
WRITTEN = {"index.md", "changelog.md", "contributing.md", "cards/", "api/", "gallery/"}  # by docs/site/pages.py


def pages_of(entry):
    """Pages named in a part of the nav."""
    if isinstance(entry, str):
        return [entry]
    return [page for each in (entry.values() if isinstance(entry, dict) else entry) for page in pages_of(each)]


def test_the_nav_lists_every_page_once():
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = pages_of(settings["nav"])
    there = {path.relative_to(DOCS).as_posix() for path in [*DOCS.rglob("*.md"), *NOTEBOOKS]}
    assert sorted(listed) == sorted(there | WRITTEN)
    assert settings["strict"] is True
    assert set(settings["validation"].values()) == {"warn"}
    assert {"omitted_files", "unrecognized_links", "anchors"} <= set(settings["validation"])


def test_pictures_exist_have_an_alternative_text_and_are_small():
    shown = set()
    for page in [ROOT / "README.md", *DOCS.glob("*.md")]:
        for text, path in re.findall(r"!\[(.*?)\]\((.*?)\)", page.read_text(encoding="utf-8")):
            assert len(text) > 20, f"{page.name}: {path}"
            shown.add((page.parent / path).resolve())
    assert shown == set((DOCS / "pictures").iterdir())
    for path in shown:
        assert path.stat().st_size < 90_000, path
        if path.suffix == ".svg":
            drawing = path.read_text(encoding="utf-8")
            assert {"<title", "<desc"} <= set(re.findall("<[a-z]+", drawing)), path
            assert "prefers-color-scheme: dark" in drawing, path
            assert set(re.findall(r"https?://[^\"]*", drawing)) == {"http://www.w3.org/2000/svg"}, path


def test_the_environment_of_the_site_is_locked():
    lists = [(DOCS / "site" / f"requirements.{form}").read_text(encoding="utf-8") for form in ("in", "txt")]
    wanted, locked = ({re.match(r"[\w-]+", line)[0] for line in text.splitlines() if line[0] != "#"} for text in lists)
    assert wanted < locked
    assert all("==" in line for line in lists[1].splitlines())


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 5
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


@pytest.mark.slow
@pytest.mark.skipif(not MKDOCS.exists(), reason="no .venv-site; `make site` makes it")
def test_the_site_builds_without_a_warning(tmp_path):
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    for command in (
        [sys.executable, "-W", "ignore", "docs/site/pages.py"],
        [str(MKDOCS), "build", "--site-dir", str(tmp_path)],
    ):
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    names_in_the_reference(tmp_path)
    cards_of_all_methods(tmp_path)
    nothing_is_asked_of_another_machine(tmp_path)
    layers = (tmp_path / "api" / "crowdzoo.layers" / "index.html").read_text(encoding="utf-8")
    assert "<blockquote>" not in layers  # of which the >>> of an example would be three
    assert '<span class="option">--out</span>' in (tmp_path / "commands" / "index.html").read_text(encoding="utf-8")
    reports = sorted((tmp_path / "gallery").glob("*.html"))
    assert len(reports) == 4  # three, and their list
    assert all(report.stat().st_size < 2_000_000 for report in reports)
    assert not list(tmp_path.rglob("*.py"))


def names_in_the_reference(site):
    """Every public name has an entry, with its docstring or a link to it."""
    text = {page.parent.name: page.read_text(encoding="utf-8") for page in (site / "api").glob("*/index.html")}
    for room in crowdzoo.__all__:
        module = getattr(crowdzoo, room)
        if isinstance(module, ModuleType) and room not in ("components", "pipelines"):
            for name in getattr(module, "__all__", ()):
                heading = rf"<h3[^>]*>(<[^>]*>|\s)*crowdzoo\.{room}\.{name}\b"
                assert re.search(heading, text[f"crowdzoo.{room}"]), f"crowdzoo.{room}.{name}"
    assert "CrowdModel" in text["crowdzoo"]
    (summary, *_) = crowdzoo.layers.CrowdsourcedLayer.__doc__.splitlines()
    assert summary in text["crowdzoo.layers"]


def cards_of_all_methods(site):
    """A page a method."""
    method_cards = importlib.import_module("crowdzoo.report.cards").method_cards
    for card in method_cards():
        page = (site / "cards" / card.name / "index.html").read_text(encoding="utf-8")
        assert f"For {card.kind} labels" in page
        for figure in card.figures:
            assert f"{figure['accuracy']:.3f}" in page


def nothing_is_asked_of_another_machine(site):
    """Pages load their scripts, fonts and pictures from the site."""
    loaded = re.compile(
        r'<(?:script|img|link rel="(?:stylesheet|preconnect|icon)")[^>]*(?:src|href)="(?:https?:)?//[^"]*"'
    )
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text(encoding="utf-8")), page
