"""Packages and description of the distribution; all else is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

# Top-level folders are one import name: `components/` is `crowdzoo.components`, and so on.
FOLDERS = {f"crowdzoo.{folder}": folder for folder in ("components", "pipelines", "serving")}

HERE = Path(__file__).parent


def description() -> str:
    """README.md with links to the repository at this version's tag: an index of packages shows the page alone."""
    version = re.search(r'__version__ = "(.*)"', (HERE / "crowdzoo" / "__init__.py").read_text(encoding="utf-8"))[1]
    text = (HERE / "README.md").read_text(encoding="utf-8")
    pages = f"https://github.com/crowdzoo/crowdzoo/blob/v{version}/"
    pictures = f"https://raw.githubusercontent.com/crowdzoo/crowdzoo/v{version}/"
    link = r"(!?)(\[[^]]*\]\()(?!https?:|#)"
    return re.sub(link, lambda found: found[1] + found[2] + (pictures if found[1] else pages), text)


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    packages=[
        *find_packages(include=["crowdzoo", "crowdzoo.*"]),
        *FOLDERS,
        *(f"{name}.{inner}" for name, folder in FOLDERS.items() for inner in find_packages(folder)),
    ],
    package_dir={"crowdzoo": "crowdzoo", **FOLDERS},
)
