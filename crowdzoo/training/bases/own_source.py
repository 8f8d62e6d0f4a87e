"""The user's function that makes a base model: its import, and a hash of it and its modules. Does not import Keras."""

import ast
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from crowdzoo.errors import ConfigError, did_you_mean, shorten
from crowdzoo.plugins import Table

_WRITE = "write package.module:function or path/to/file.py:function"
_INSTALLED = ("site-packages", "dist-packages")


ADDED = Table("base", {})  # functions registered by packages and scripts


def is_own(base: str) -> bool:
    """Whether a base names a function that does not belong to crowdzoo.

    It is `package.module:function`, `file.py:function`, or the name under which a package or script registers the
    function.
    """
    return ":" in base or ADDED.is_added(base)


def own_function(reference: str) -> Callable[..., Any]:
    """Imports the function; modules are searched as Python does, and in the current folder.

    Args:
        reference: `package.module:function`, or `path/to/file.py:function`.

    Raises:
        ConfigError: a module, file or function does not exist; or importing it fails, with the line.
    """
    if ADDED.is_added(reference):
        return ADDED[reference]
    where, name = _split(reference)
    own_modules: dict[str, ModuleType] = {}
    module = call_own(reference, _import_module, where, reference, own_modules)
    function = getattr(module, name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise ConfigError(f"base {reference}: {where} has no function {name!r}.{did_you_mean(name, functions)}")
    if not where.endswith(".py"):
        return function

    @functools.wraps(function)
    def with_own_modules(*arguments: Any, **keywords: Any) -> Any:
        with _beside(_file_of(where, reference), reference, own_modules):  # the function may import modules when called
            return function(*arguments, **keywords)

    return with_own_modules


def call_own(reference: str, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Calls the user's function; errors name its last line.

    Raises:
        ConfigError: the code raises an exception.
    """
    try:
        return function(*arguments, **keywords)
    except ConfigError:
        raise
    except Exception as error:
        files = {str(file) for file in own_files(reference)}
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
        place = f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""
        reason = str(error).strip() or "no message"
        raise ConfigError(f"base {reference}: {place}{type(error).__name__}: {reason[:1000]}") from error


def source_hash(reference: str) -> str:
    """Hash of the function's file and of the modules that it imports from the same package or folder.

    For a name registered by a package or script, `Table.version`.

    Args:
        reference: see `own_function`; only the packages above the module are imported.

    Returns:
        32 hexadecimal digits, which depend on the sources and not on their location.

    Raises:
        ConfigError: the module or file does not exist.
    """
    if ADDED.is_added(reference):
        return ADDED.version(reference)
    where, _ = _split(reference)
    files, top = own_files(reference), _folder_of(_file_of(where, reference), where)
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(top)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def own_files(reference: str) -> list[Path]:
    """The function's file, and files of the same package or folder that its import runs.

    Raises:
        ConfigError: the module or file does not exist.
    """
    if ADDED.is_added(reference):
        return ADDED.files(reference)
    where, _ = _split(reference)
    first = _file_of(where, reference)
    top = _folder_of(first, where)
    # modules of the same package; for a single file those in its folder, unless the file was installed
    alone = "." not in where and not where.endswith(".py") and top.name in _INSTALLED
    package = where.partition(".")[0] if "." in where and not where.endswith(".py") else None
    files: list[Path] = []
    waiting = [*(_modules(top, where.split(".")[:-1]) if package else ()), first]
    while waiting:
        file = waiting.pop()
        if file in files:
            continue
        files.append(file)
        for names in () if alone else _imports(file, top):
            if package is None or names[0] == package:
                waiting += _modules(top, names)
    return files


def _split(reference: str) -> tuple[str, str]:
    where, _, name = reference.rpartition(":")
    if not where or not name.isidentifier():
        raise ConfigError(f"base {shorten(reference)!r}: {_WRITE}.")
    return where, name


def _file_of(where: str, reference: str) -> Path:
    if where.endswith(".py"):
        path = Path(where).expanduser().absolute()
        if not path.is_file():
            raise ConfigError(f"base {reference}: the file {path} does not exist.")
        return path
    # unlike `python -m`, the installed command does not search modules in the current folder
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(where)
    except (ImportError, ValueError):
        spec = None
    except Exception as error:  # raised by a package above the module, which Python runs to find it
        raise ConfigError(f"base {reference}: {type(error).__name__} in a package above it: {error}") from error
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise ConfigError(
            f"base {reference}: there is no module {where!r} in {Path.cwd()} or among the installed packages; {_WRITE}."
        )
    return Path(spec.origin).absolute()


def _folder_of(file: Path, where: str) -> Path:
    """The folder that names are relative to."""
    if where.endswith(".py"):
        return file.parent
    up = len(where.split(".")) - (file.name != "__init__.py")
    return file.parents[up]


def _import_module(where: str, reference: str, own_modules: dict[str, ModuleType]) -> ModuleType:
    """The function's module; a file and the modules of its folder, in `own_modules`, are imported each time."""
    if not where.endswith(".py"):
        _file_of(where, reference)
        return importlib.import_module(where)
    path = _file_of(where, reference)
    name = f"crowdzoo_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as `import` does; dataclasses and pickle need it
    try:
        with _beside(path, reference, own_modules):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


_last_own: dict[str, ModuleType] = {}  # modules from folders of bases, as last imported


@contextlib.contextmanager
def _beside(path: Path, reference: str, own_modules: dict[str, ModuleType]) -> Iterator[None]:
    """Imports modules from a file's folder, even if modules of the same names were imported from elsewhere.

    Args:
        path: the file.
        reference: reference of the base.
        own_modules: modules of the folder imported so far, by name; new ones are added.
    """
    files = (file.relative_to(path.parent).with_suffix("") for file in own_files(reference) if file != path)
    parts = (file.parts[:-1] if file.name == "__init__" else file.parts for file in files)
    names = {".".join(part) for part in parts if part and part[0] not in sys.stdlib_module_names}
    displaced = {name: sys.modules.pop(name) for name in names & {*sys.modules}}
    sys.modules.update(own_modules)
    sys.path.insert(0, str(path.parent))
    importlib.invalidate_caches()
    setting, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # compiled files store time in seconds
    try:
        yield
    finally:
        sys.dont_write_bytecode = setting
        sys.path.remove(str(path.parent))
        own_modules.update({name: sys.modules[name] for name in names & {*sys.modules}})
        # modules of an earlier base are removed, as Keras searches here for classes of a saved model
        sys.modules.update({name: module for name, module in displaced.items() if module is not _last_own.get(name)})
        _last_own.update(own_modules)


def _imports(file: Path, top: Path) -> Iterator[list[str]]:
    """Names of modules that a file imports, in parts, relative ones made absolute."""
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError:  # importing it reports the error
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = list(file.parent.relative_to(top).parts)
            names = (above[: len(above) - node.level + 1] if node.level else []) + (node.module or "").split(".")
            names = [name for name in names if name]
            yield from ([*names, alias.name] for alias in node.names)


def _modules(top: Path, names: list[str]) -> list[Path]:
    """Files that importing modules runs: those of their packages and their own; other names are ignored."""
    files = []
    for number in range(1, len(names) + 1):
        place = top.joinpath(*names[:number])
        files += [file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()]
    return files
