"""The arrows between the rooms run down, and nowhere in a circle."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"crowdzoo": "crowdzoo", "components": "crowdzoo.components", "pipelines": "crowdzoo.pipelines",
           "serving": "crowdzoo.serving"}  # fmt: skip
# From the bottom: a room imports from the lines above its own, and from itself; not from its neighbours in a line
ROOMS = [
    ["errors", "lazy_names", "process"],
    ["deprecation", "plugins"],
    ["backend", "files"],
    ["checks"],
    ["data"],
    ["reading", "saving"],
    ["losses"],
    ["aggregation", "layers"],
    ["large", "optimizers", "quality"],
    ["metrics", "networks"],
    ["training"],
    ["datasets", "export"],
    ["records"],
    ["kinds", "testing"],
    ["asking", "report"],
    ["comparison"],
    ["label_studio"],
    ["components", "serving"],
    ["pipelines"],
    ["commands"],
    ["beam", "instances", "models", "sequences", "tables"],  # doors: names alone
]
LEVELS = {room: level for level, line in enumerate(ROOMS) for room in line}
# `CrowdModel.export` and `Annotations.read` are methods, so that they are found where a user looks for them
EXCEPTIONS = {("training", "export"), ("data", "reading")}


def modules() -> dict[str, Path]:
    """Name of each module of the package -> its file."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join([package, *parts]).removesuffix(".__init__")] = path
    return found


MODULES = modules()


@functools.cache
def imported(module: str, *, for_types: bool) -> list[tuple[str, str]]:
    """(module, name in it or "") for each import of a module of the package, those inside functions too."""
    return [(other, name) for other, name in _imports(module, for_types) if other in MODULES and other != module]


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def _imports(module: str, for_types: bool) -> Iterator[tuple[str, str]]:
    nodes: list[ast.AST] = [tree(module)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING") and not for_types:
            nodes += node.orelse
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: a relative import"
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield (whole, "") if whole in MODULES else (str(node.module), name.name)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def below(module: str, arrows: dict[str, set[str]]) -> frozenset[str]:
    """All modules that are reached from one, along one arrow at least."""
    found: set[str] = set()
    nodes = [module]
    while nodes:
        new = arrows[nodes.pop()] - found
        found |= new
        nodes += new
    return frozenset(found)


def no(problems: list[str]) -> None:
    assert not problems, "\n".join(sorted(problems))


def test_every_room_has_its_place():
    no(list({room(module) for module in MODULES} - {"", "__main__"} - set(LEVELS)))


def test_rooms_import_only_what_is_below_them():
    arrows = {(module, other) for module in MODULES for other, _ in imported(module, for_types=True)}
    no([
        f"{module} imports {other}"
        for module, other in arrows
        if room(module) in LEVELS and room(other) in LEVELS and room(module) != room(other)
        if LEVELS[room(other)] >= LEVELS[room(module)] and (room(module), room(other)) not in EXCEPTIONS
    ])  # fmt: skip


def test_no_imports_run_in_a_circle():
    arrows = {
        module: {
            other for other, _ in imported(module, for_types=False) if (room(module), room(other)) not in EXCEPTIONS
        }
        for module in MODULES
    }
    for module, path in MODULES.items():
        # the table of contents of a room stands above the room's files
        if path.name == "__init__.py" and module != "crowdzoo":
            arrows[module] |= {other for other in MODULES if other.rpartition(".")[0] == module}
    reached = {module: below(module, arrows) for module in MODULES}
    circles = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in MODULES
        if module in reached[module]
    }
    no([" <-> ".join(sorted(circle)) for circle in circles])


def test_private_names_stay_in_their_folder():
    def is_private(name: str) -> bool:
        return name.startswith("_") and not name.startswith("__")

    names = {(module, other, name) for module in MODULES for other, name in imported(module, for_types=True)}
    no([
        f"{module} imports {other} {name}"
        for module, other, name in names
        if MODULES[other].parent != MODULES[module].parent and any(map(is_private, [name, *other.split(".")]))
    ])  # fmt: skip


def test_one_file_imports_tfx():
    no([
        f"{name} imports {line.strip()!r}: take it from crowdzoo.components.tfx_internals"
        for name, path in modules().items()
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.lstrip().startswith(("from tfx.", "from tfx ", "import tfx"))
        and name != "crowdzoo.components.tfx_internals"
    ])  # fmt: skip


def test_no_room_imports_one_kind_of_label_by_name():
    folders = {path.parent.name for path in (ROOT / "crowdzoo" / "kinds").glob("*/kind.py")}
    assert len(folders) >= 7
    no([
        f"{module} imports {other}: ask `crowdzoo.kinds.kind_of`"
        for module in MODULES
        if room(module) != "kinds"
        for other, _ in imported(module, for_types=True)
        if other.startswith("crowdzoo.kinds.") and other.split(".")[2] in folders
    ])  # fmt: skip
