"""Writes the pages of the documentation site that are made from the package: `docs/site/pages.py [FOLDER]`.

Run by `make site` in the package's own environment, by default into build/site-pages:

- index.md, changelog.md, contributing.md: README.md, CHANGELOG.md and CONTRIBUTING.md
- cards/: a page a method, from `crowdzoo.report.cards`
- api/: a page a public package or module, which mkdocstrings fills from the docstrings
- gallery/: what `crowdzoo report` writes of the data sets that ship
- notebooks/: the notebooks of docs/notebooks, which have no outputs
- source/: the package as it is installed, for mkdocstrings
"""

import importlib
import json
import os
import pkgutil
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import crowdzoo
from crowdzoo.commands.main import main as command
from crowdzoo.report import MethodCard, method_cards

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {"components": "components", "pipelines": "pipelines", "serving": "serving"}  # in the wheel: crowdzoo.NAME
FROM_ROOT = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
# Parts of the pipeline are used through `crowdzoo run` and its configuration file, and in docs/components.md
NOT_IN_REFERENCE = ("components", "pipelines")
GALLERY = {
    "labelme": ("labelme-images", ["--instances", "images"], "LabelMe: photographs, eight kinds of scene"),
    "labelme-glad": ("labelme", ["--method", "glad"], "LabelMe again, aggregated by GLAD"),
    "ratings": ("generated-ratings", ["--kind", "regression"], "Ratings by simulated harsh and mild annotators"),
}


def main() -> None:
    """Writes all pages; what was in the folder goes."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build" / "site-pages"
    shutil.rmtree(folder, ignore_errors=True)
    for write in (_pages_from_root, _cards, _reference, _gallery, _notebooks, _source):
        write(folder)
    print(folder)


def _pages_from_root(folder: Path) -> None:
    for name, page in FROM_ROOT.items():
        _write(folder / page, _seen_from_docs((ROOT / name).read_text(encoding="utf-8")))


def _seen_from_docs(text: str) -> str:
    """Links of a page in the root, as a page in docs/ writes them."""

    def link(found: re.Match) -> str:
        path, anchor = found.groups()
        path = FROM_ROOT.get(path) or (path[5:] if path.startswith("docs/") else f"../{path}")
        return f"]({path}{anchor or ''})"

    return re.sub(r"\]\((?![a-z]+:)([^)#]+)(#[^)]*)?\)", link, text)


def _cards(folder: Path) -> None:
    cards: dict[str, list[MethodCard]] = {}
    for card in method_cards():
        cards.setdefault(card.name, []).append(card)
    for name, of in cards.items():
        _write(folder / "cards" / f"{name}.md", "\n\n".join([f"# {name}", *map(_card, of)]))
    lines = [
        "# Cards of all methods",
        "",
        "A card says what a method needs, where it comes from, and what it reached on the data sets that ship. "
        "`crowdzoo methods` prints the same cards.",
    ]
    for sort, title in (("deep", "Deep methods: train a model"), ("aggregation", "Aggregation: labels alone")):
        lines += ["", f"## {title}", "", "| name | labels | LabelMe | what it does |", "|---|---|---:|---|"]
        for name, of in cards.items():
            if chosen := [card for card in of if card.sort == sort]:
                figure = f"{chosen[0].figures[0]['accuracy']:.3f}" if chosen[0].figures else ""
                kinds = ", ".join(card.kind for card in chosen)
                lines.append(f"| [{name}]({name}.md) | {kinds} | {figure} | {_cell(chosen[0].summary)} |")
    lines += ["", "LabelMe: accuracy against gold with the defaults, of deep methods on the held-out photographs."]
    _write(folder / "cards" / "index.md", "\n".join(lines))


def _card(card: MethodCard) -> str:
    sort = {"deep": "a deep method", "aggregation": "an aggregation"}[card.sort]
    rows = [
        ("Paper", card.source),
        ("Needs", card.needs),
        ("Can use", ", ".join(card.extras)),
        ("Settings", ", ".join(f"`{name}`" for name in card.settings)),
        ("Class", f"[`{card.class_name}`][{_place(card.class_name)}]" if card.class_name else ""),
    ]
    shown = [f"| {title} | {_cell(text)} |" for title, text in rows if text]
    lines = [f"## For {card.kind} labels, {sort}", "", card.summary, "", shown[0], "|---|---|", *shown[1:]]
    lines += ["", "```python", card.python, "```", "", f"    {card.command}", ""]
    if card.figures:
        lines += ["| set | variant | accuracy | CPU-seconds | versions |", "|---|---|---:|---:|---|"]
        lines += [_figure(figure) for figure in card.figures]
    else:
        lines.append("No figure is saved on a data set that ships.")
    return "\n".join(lines)


def _figure(figure: dict[str, Any]) -> str:
    spread = "" if figure["spread"] is None else f" ± {figure['spread']:.3f} ({figure['runs']} seeds)"
    versions = ", ".join(f"{name} {version}" for name, version in figure["versions"].items())
    cells = (
        figure["set"],
        figure["variant"] or "",
        f"{figure['accuracy']:.3f}{spread}",
        figure["cpu_seconds"],
        versions,
    )
    return f"| {' | '.join(map(str, cells))} |"


def _cell(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|")


def _place(public: str) -> str:
    """Where a public name is defined: "crowdzoo.layers.crf.CRF" of "crowdzoo.layers.CRF"."""
    room, _, name = public.rpartition(".")
    return _defined(getattr(importlib.import_module(room), name), name)


def _defined(value: Any, name: str) -> str:
    if hasattr(value, "__qualname__") and value.__module__.startswith("crowdzoo"):  # which may go by another name there
        return f"{value.__module__}.{value.__qualname__}"
    for module_name, module in sorted(sys.modules.items()):  # a constant, which does not know its module
        if not module_name.startswith("crowdzoo.") or vars(module).get(name) is not value:
            continue
        if re.search(rf"^{name}\b.*=", Path(str(module.__file__)).read_text(encoding="utf-8"), re.M):
            return f"{module_name}.{name}"
    raise LookupError(f"{name}: not found in any module of crowdzoo")


def public_names() -> dict[str, list[str]]:
    """The names of each public package and module, as "crowdzoo.layers" -> ["CRF", ...]."""
    rooms = {name: value for name in crowdzoo.__all__ if isinstance(value := getattr(crowdzoo, name), ModuleType)}
    found = {}
    for name, room in rooms.items():
        if name in NOT_IN_REFERENCE:
            continue
        if held := getattr(room, "__all__", None):
            found[room.__name__] = sorted(held, key=str.lower)
            continue
        for _, module_name, is_package in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            if not is_package and (held := getattr(importlib.import_module(module_name), "__all__", None)):
                found[module_name] = sorted(held, key=str.lower)
    found["crowdzoo"] = [name for name in crowdzoo.__all__ if name not in rooms and not name.startswith("__")]
    return found


def _reference(folder: Path) -> None:
    shown: dict[str, str] = {}  # where a name is defined -> the page that documents it
    pages: dict[str, list[str]] = {}
    for room, names in public_names().items():
        page = ".".join(room.split(".")[:2])
        summary = (importlib.import_module(room).__doc__ or "").partition("\n\n")[0]
        lines = pages.setdefault(page, [f"# {page}", ""])
        lines += [*([f"## {room}", ""] if room != page else []), " ".join(summary.split()), ""]
        for name in names:
            place = _place(f"{room}.{name}")
            if place in shown:
                lines += [f"### {room}.{name} {{ #{room}.{name}-there }}", "", f"See [`{shown[place]}`][{place}].", ""]
                continue
            shown[place] = f"{room}.{name}"
            lines += [f"::: {place}", "    options:", f"      heading: {room}.{name}", f"      toc_label: {name}", ""]
    for room, lines in pages.items():
        _write(folder / "api" / f"{room}.md", "\n".join(lines))
    listed = [f"- [`{room}`]({room}.md)" for room in sorted(pages)]
    text = "The public names of each package. What is not listed may change without notice.\n\n"
    _write(folder / "api" / "index.md", f"# API reference\n\n{text}" + "\n".join(listed))


def _gallery(folder: Path) -> None:
    lines = [
        "# Gallery of reports",
        "",
        "`crowdzoo report` wrote these pages when this site was built. Each is one file that asks for nothing outside.",
        "[Data quality](../quality.md#one-page-to-look-at) says how to read a report.",
    ]
    for name, (data, options, title) in GALLERY.items():
        files = folder / "data" / data
        if not files.exists():
            _run("datasets", data, "--write", str(files))
        words = ["report", "annotations.csv", *options, "--title", title, "--out", f"{name}.html"]
        (folder / "gallery").mkdir(exist_ok=True)
        here = os.getcwd()
        os.chdir(files)  # so that commands on the page name no folder of this machine
        _run(*words[:-1], str(folder / "gallery" / words[-1]))
        os.chdir(here)
        shown = " ".join(f'"{word}"' if " " in word else word for word in words)
        lines += ["", f"## {title}", "", f"[Open the report]({name}.html), [its numbers]({name}.json)", ""]
        lines += [f"    crowdzoo datasets {data} --write .", f"    crowdzoo {shown}"]
    _write(folder / "gallery" / "index.md", "\n".join(lines))
    shutil.rmtree(folder / "data")


def _run(*words: str) -> None:
    if code := command(words):
        raise SystemExit(f"crowdzoo {' '.join(words)}: exit code {code}")


def _notebooks(folder: Path) -> None:
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        parts = []
        for cell in cells:
            text = "".join(cell["source"])
            parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
        parts.insert(1, f"[The notebook]({path.name}) runs from top to bottom.")
        _write(folder / "notebooks" / f"{path.stem}.md", "\n\n".join(parts))


def _source(folder: Path) -> None:
    for name, place in {
        "crowdzoo": "crowdzoo",
        **{room: f"crowdzoo/{inside}" for room, inside in ROOMS.items()},
    }.items():
        ignored = shutil.ignore_patterns("__pycache__", "labelme*.zip", "*.npz", "*.csv", "*.json")
        shutil.copytree(ROOT / name, folder / "source" / place, ignore=ignored)
    for path in (folder / "source").rglob("*.py"):  # under "Examples" mkdocstrings shows code, under "Example" text
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"^( +)Example:$", r"\1Examples:", text, flags=re.MULTILINE), encoding="utf-8")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
