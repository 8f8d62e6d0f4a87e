"""Names that packages and scripts add: aggregators, layers, platforms, bases and data sets.

A package declares them as entry points, with a group for each sort: `crowdzoo.aggregators`, `crowdzoo.layers` and so
on. It is imported when one of its names, or the list of all names, is used.
"""

import re
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import EntryPoint, distributions, entry_points
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from crowdzoo.errors import ConfigError, unknown

__all__ = ["register"]

RESERVED = ("all", "gold", "quick")  # have a meaning in place of names of methods
SORTS = ("aggregator", "layer", "platform", "base", "dataset")
_Thing = TypeVar("_Thing")


class _Added(NamedTuple):
    """An object that a script or package adds under a name.

    Attributes:
        value: `module:name`, as in entry points.
        load: function that imports it.
        package: `distribution==version`; empty for a script.
        token: represents the source of objects that are in no file.
    """

    value: str
    load: Callable[[], Any]
    package: str
    token: str

    def __str__(self) -> str:
        return f"{self.package} ({self.value})" if self.package else self.value

    @property
    def top(self) -> str:
        """The package or module that is imported first."""
        return self.value.partition(":")[0].partition(".")[0]


_registered: dict[tuple[str, str], _Added] = {}


def register(sort: str, name: str) -> Callable[[_Thing], _Thing]:
    """Registers a custom method under a name in this process; a decorator for scripts and notebooks.

    The name then works wherever crowdzoo's own names do: `create`, `train`, `compare`, `method_cards`. The command line
    does not see scripts; a package with entry points works there as well (docs/own_method.md).

    Args:
        sort: "aggregator" (a class with `fit`, such as an `Aggregator`), "layer" (a `CrowdLayer`), "base" (a function
            of a `BaseContext` that returns a Keras model), "dataset" (a function that returns a `CrowdDataset`) or
            "platform" (a `Platform`: `register("platform", "mine")(MINE)`).
        name: a new name; a class or function that is defined again replaces the earlier one.

    Returns:
        The decorator, which returns its argument unchanged.

    Raises:
        ConfigError: an unknown sort, an invalid name, or a name that another class or function has.

    Example:
        >>> import numpy as np
        >>> import crowdzoo
        >>> @crowdzoo.register("aggregator", "three-rounds")
        ... class ThreeRounds(crowdzoo.aggregation.Aggregator):
        ...     def fit(self, annotations):
        ...         return crowdzoo.aggregation.Wawa(num_rounds=3).fit(annotations)
        >>> annotations = crowdzoo.Annotations.from_dense(np.stack([np.arange(40) % 2] * 3, axis=1))
        >>> sorted(crowdzoo.compare(annotations, methods=["three-rounds", "dawid-skene"]).frame["method"])
        ['dawid-skene', 'majority-vote', 'three-rounds']
    """
    if sort not in SORTS:
        raise ConfigError(unknown("sort to register", sort, SORTS))
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", name) or name in RESERVED:
        raise ConfigError(
            f"{sort} {name!r}: a name consists of small letters, digits and -, and is not one of {', '.join(RESERVED)}."
        )

    def add(thing: _Thing) -> _Thing:
        value = f"{thing.__module__}:{getattr(thing, '__qualname__', name)}"
        before = _registered.get((sort, name))
        if before is not None and before.value != value:
            raise ConfigError(f"{sort} {name!r}: {before} already has that name. Give {value} another one.")
        _registered[sort, name] = _Added(value, lambda: thing, "", uuid.uuid4().hex)
        return thing

    return add


class Table(Mapping[str, Any]):
    """All names of a sort: crowdzoo's own, then those of scripts and other packages.

    Looking up a name imports no other package; listing all names imports all packages, and warns about unusable ones.

    Args:
        sort: one of `SORTS`.
        own: crowdzoo's own.
        made_of: function from a package's object to the table's value; None for objects of another table of the sort.
            Raises ConfigError for unusable objects.
    """

    def __init__(self, sort: str, own: Mapping[str, Any], made_of: Callable[[Any], Any] = lambda thing: thing):
        self.sort, self.own, self._made_of = sort, own, made_of

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str):  # possible in a file of settings
            raise KeyError(name)
        added = _added(self.sort, name)
        if name in self.own:
            for package in added:
                problem = f"{self.sort} {name!r} is crowdzoo's own, which is used, and {package} has the same name"
                warnings.warn(f"{problem}. Rename the other, or uninstall its package.", UserWarning, stacklevel=2)
            return self.own[name]
        if not added:
            raise KeyError(name)
        if len(added) > 1:
            packages = " and ".join(map(str, added))
            raise ConfigError(f"{self.sort} {name!r}: {packages} have that name. Rename one, or uninstall its package.")
        value = _called(f"{self.sort} {name!r} of {added[0]}", lambda: self._made_of(added[0].load()))
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        names = [*(name for sort, name in _registered if sort == self.sort), *_installed(self.sort)]
        for name in dict.fromkeys(names):
            try:
                if name in self and name not in self.own:
                    yield name
            except ConfigError as error:
                warnings.warn(str(error), UserWarning, stacklevel=2)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def is_added(self, name: str) -> bool:
        """Whether a script or package adds the name; nothing is imported."""
        return name not in self.own and bool(_added(self.sort, name))

    def files(self, name: str) -> list[Path]:
        """Source files of an added name: the script, or all modules of the package; none for a notebook."""
        self[name]  # imports it, or raises an error
        module = sys.modules[_added(self.sort, name)[0].top]
        modules = [file for folder in getattr(module, "__path__", ()) for file in Path(folder).rglob("*.py")]
        return sorted(modules) or list(map(Path, filter(None, [getattr(module, "__file__", None)])))

    def version(self, name: str) -> str:
        """Identity of an added name's code: `distribution==version` or `module:name`, and a hash of `files`.

        Empty for crowdzoo's own names and those of other tables.
        """
        if name in self.own or name not in self:
            return ""
        added = _added(self.sort, name)[0]
        code = b"\0".join(file.read_bytes() for file in self.files(name)) or added.token.encode()
        return f"{added.package or added.value} {sha256(code).hexdigest()[:16]}"


def package_of(thing: object) -> str:
    """`distribution==version` of a class' package, if it adds to crowdzoo; else empty."""
    top = thing.__module__.partition(".")[0]
    every = (plugin for sort in SORTS for same in _installed(sort).values() for plugin in same)
    return next((plugin.package for plugin in every if plugin.top == top), "")


def registered_layers() -> dict[str, Callable[[], Any]]:
    """Layers of packages: name in Keras' saved models -> function that imports the layer."""
    every = [(name, plugin) for name, same in _installed("layer").items() for plugin in same]
    return {
        f"{plugin.top}>{plugin.value.rpartition(':')[2]}": partial(_called, f"layer {name!r} of {plugin}", plugin.load)
        for name, plugin in every
    }


def _called(what: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (Exception, SystemExit) as error:  # importing a package may raise anything
        reason = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        raise ConfigError(f"{what} cannot be used: {reason.rstrip('.')}. Correct it, or uninstall it.") from error


def _added(sort: str, name: str) -> list[_Added]:
    """All objects of scripts and packages under a name, each once."""
    plugins = [*filter(None, [_registered.get((sort, name))]), *_installed(sort).get(name, ())]
    return list({plugin.value: plugin for plugin in plugins}.values())


def _installed(sort: str) -> dict[str, list[_Added]]:
    return _installed_on(sort, tuple(sys.path))


@cache  # reading installed packages takes some 20 ms
def _installed_on(sort: str, path: tuple[str, ...]) -> dict[str, list[_Added]]:
    installed: dict[str, list[_Added]] = {}
    for point in _entry_points(f"crowdzoo.{sort}s"):
        package = f"{point.dist.name}=={point.dist.version}" if point.dist else ""
        installed.setdefault(point.name, []).append(_Added(point.value, point.load, package, ""))
    return installed


def _entry_points(group: str) -> Iterator[EntryPoint]:
    """The entry points of installed packages; packages with a malformed file are skipped."""
    try:
        yield from entry_points(group=group)
    except Exception:  # of any package, even one that adds nothing to crowdzoo
        for distribution in distributions():
            try:
                yield from distribution.entry_points.select(group=group)
            except Exception as error:
                place = f"{getattr(distribution, '_path', 'a package')}: entry_points.txt cannot be read"
                problem = f"{place} ({type(error).__name__}: {error}). Install that package again, or uninstall it."
                warnings.warn(problem, UserWarning, stacklevel=2)
