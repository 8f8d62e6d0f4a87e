"""Files of a deployment, written at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

import crowdzoo
from crowdzoo.files.writing import atomic_folder

__all__ = ["write_deployment"]


def write_deployment(files: Mapping[str, Any], folder: Path, *, replace: bool = False) -> None:
    """Writes files, complete or not at all.

    Args:
        files: path in the folder -> text, or an object for a YAML file.
        folder: is made.
        replace: an earlier folder is replaced.

    Raises:
        OSError: the folder cannot be written, or holds something and `replace` is false.
    """
    head = f"# Written by `crowdzoo deploy` {crowdzoo.__version__}. Write it again with other options and --force.\n"
    with atomic_folder(folder, replace=replace) as new:
        for name, content in files.items():
            path = new / name
            path.parent.mkdir(exist_ok=True)
            text = content if isinstance(content, str) else _as_yaml(content)
            path.write_text(head + text, encoding="utf-8")


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stand as they are, and nothing is a reference to something above."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _as_yaml(content: Any) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
