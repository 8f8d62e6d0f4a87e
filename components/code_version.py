"""A hash of the code of a component, because TFX's cache key has parameters and inputs but not code."""

import ast
import functools
import hashlib
import re
from importlib.util import find_spec
from pathlib import Path

_NAME = re.compile(r"crowdzoo(\.\w+)+")
# Components that do not train, and modules that train models
DO_NOT_TRAIN = {
    f"crowdzoo.components.{name}"
    for name in ("annotation_example_gen", "crowd_aggregator", "crowd_report", "drift_validator")
}
TRAINING = ("crowdzoo.training.", "crowdzoo.layers.", "crowdzoo.losses.", "crowdzoo.records.training.")


def code_version(*modules: str) -> str:
    """Hashes the source of modules and of everything in crowdzoo that they import, directly or not.

    Imports inside functions are included, and strings that are names of modules, as in tables of lazy names, or of
    pages (.html) in the module's folder. A package imported by its name includes all its modules, except for the
    top-level package. For a component that does not train, modules that train models are ignored, although the kinds of
    labels import them.

    Args:
        modules: dotted names below `crowdzoo`.

    Returns:
        32 hexadecimal digits, equal for equal sources, wherever they are installed.
    """
    unused = TRAINING if DO_NOT_TRAIN.issuperset(modules) else ()
    sources: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = _source(name)
        if name in sources or path is None or f"{name}.".startswith(unused):
            continue
        sources[name] = path
        waiting.extend(_imports(path.read_bytes()))
        sources |= {f"{name}/{page}": path.with_name(page) for page in _pages(path)}
        if path.name == "__init__.py":
            waiting.extend(f"{name}.{file.stem}" for file in path.parent.glob("*.py") if file.stem != "__init__")
    digest = hashlib.sha256()
    for name, path in sorted(sources.items()):
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _source(name: str) -> Path | None:
    """Path of a module's source; None if it is not a module below `crowdzoo`."""
    if not name.startswith("crowdzoo."):
        return None
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:  # `from module import function` may look like a submodule
        return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _pages(path: Path) -> list[str]:
    """Templates of pages in a module's folder that the module names."""
    names = sorted(page.name for page in path.parent.glob("*.html"))
    return [name for name in names if f'"{name}"'.encode() in path.read_bytes()]


@functools.cache  # components share many modules
def _imports(source: bytes) -> list[str]:
    names: list[str] = []
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):  # not executed
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # tables of lazy names
            names += [node.value] if _NAME.fullmatch(node.value) else []
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in submodules if _source(name) is not None]
            names += modules if len(modules) == len(submodules) else [*modules, node.module]
    return names
