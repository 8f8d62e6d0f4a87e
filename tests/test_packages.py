"""The wheel holds every package."""

import re
from pathlib import Path

TOP = Path(__file__).parents[1]


def test_every_folder_of_code_is_in_the_wheel():
    listed = re.search(r"^packages = \[(.*?)\]", (TOP / "pyproject.toml").read_text(), flags=re.M | re.S)
    packages = set(re.findall(r'"([\w.]+)"', listed[1]))
    folders = {path.parent.relative_to(TOP) for path in (TOP / "crowdzoo").rglob("__init__.py")}
    mapped = {path.parent.relative_to(TOP) for name in ("components", "pipelines", "serving")
              for path in (TOP / name).rglob("__init__.py")}  # fmt: skip
    names = {".".join(folder.parts) for folder in folders} | {
        ".".join(("crowdzoo", *folder.parts)) for folder in mapped
    }
    assert packages == names
