"""What other packages and one's own scripts add by name: aggregators, layers, platforms, bases and data sets.

A package names them in its entry points, in a group for each sort: `crowdzoo.aggregators`, `crowdzoo.layers` and so on.
Nothing of it is imported before its name is asked for, or a list of all names.
"""

import functools
import hashlib
import importlib.util
import inspect
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from crowdzoo.errors import ConfigError, unknown

__all__ = ["register"]

SORTS = ("aggregator", "layer", "platform", "base", "dataset")
_Thing = TypeVar("_Thing")
# (sort, name) -> what a script registered, and what stands for its source where that is in no file
_registered: dict[tuple[str, str], tuple[Any, str]] = {}


def register(sort: str, name: str) -> Callable[[_Thing], _Thing]:
    """Makes a method of one's own known by a name, in this process: a decorator for a script or a notebook.

    The name then works wherever crowdzoo's own do: `create`, `train`, `compare`, `method_cards`. The command line does
    not see a script; a package with entry points works there, too (docs/own_method.md).

    Args:
        sort: "aggregator" (a class with `fit`, such as an `Aggregator`), "layer" (a `CrowdLayer`), "base" (a function
            of a `BaseContext` that gives a Keras model), "dataset" (a function that gives a `CrowdDataset`) or
            "platform" (a `Platform`: `register("platform", "mine")(MINE)`).
        name: a new one; a class or function that is defined again takes the place of the former.

    Returns:
        The decorator, which gives back what it decorates.

    Raises:
        ConfigError: another sort, or another class or function has the name.

    Example:
        >>> @crowdzoo.register("aggregator", "first-vote")
        ... @dataclass(frozen=True)
        ... class FirstVote(crowdzoo.aggregation.Aggregator):
        ...     def fit(self, annotations):
        ...         first = np.unique(annotations.task_ids, return_index=True)[1]
        ...         return crowdzoo.aggregation.MajorityVote().fit(annotations.select_rows(first))
        >>> crowdzoo.compare(annotations, gold=gold, methods=["first-vote"])
    """
    if sort not in SORTS:
        raise ConfigError(unknown("sort of what is registered", sort, SORTS))

    def add(thing: _Thing) -> _Thing:
        before = _registered.get((sort, name))
        if before is not None and _place(before[0], name) != _place(thing, name):
            raise ConfigError(
                f"{sort} {name!r}: {_place(before[0], name)} has that name already. Give {_place(thing, name)} another."
            )
        _registered[sort, name] = thing, uuid.uuid4().hex
        return thing

    return add


class Table(Mapping[str, Any]):
    """What there is of a sort by name: crowdzoo's own, then what scripts and other packages add.

    Whether there is a name, and what it stands for, imports that of no other package; a list of all imports all of
    them, and warns of what cannot be used.

    Args:
        sort: one of `SORTS`.
        own: crowdzoo's own.
        made_of: from what a package names to what the table holds; None where that belongs into another table of the
            sort. Raises ConfigError where it cannot be used.
    """

    def __init__(self, sort: str, own: Mapping[str, Any], made_of: Callable[[Any], Any]):
        self.sort, self.own, self._made_of = sort, own, made_of

    def __getitem__(self, name: str) -> Any:
        thing, points = self._claims(name)
        claims = [*([] if thing is None else [_place(thing, name)]), *map(_shown, points)]
        if name in self.own:
            for claim in claims:
                warnings.warn(
                    f"{self.sort} {name!r} is crowdzoo's own, which is used, and {claim} has that name, too. Rename "
                    "the other, or uninstall its package.",
                    UserWarning,
                    stacklevel=2,
                )
            return self.own[name]
        if not claims:
            raise KeyError(name)
        if len(claims) > 1:
            raise ConfigError(
                f"{self.sort} {name!r}: {' and '.join(claims)} have that name. Rename one, or uninstall its package."
            )
        made = _called(
            f"{self.sort} {name!r} of {claims[0]}",
            lambda: self._made_of(points[0].load() if thing is None else thing),
        )
        if made is None:
            raise KeyError(name)
        return made

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        for name in dict.fromkeys([*(name for sort, name in _registered if sort == self.sort), *_points(self.sort)]):
            try:
                if name in self and name not in self.own:
                    yield name
            except ConfigError as error:
                warnings.warn(str(error), UserWarning, stacklevel=2)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def is_added(self, name: str) -> bool:
        """Whether a name is not crowdzoo's own and a script or package has it; nothing is imported."""
        return name not in self.own and any(self._claims(name))

    def files(self, name: str) -> list[Path]:
        """The sources of what `is_added`: the script, or all modules of the package."""
        thing, points = self._claims(name)
        if thing is not None:
            try:
                file = Path(inspect.getsourcefile(thing) or "")
            except TypeError:  # defined in a notebook, or no class or function
                return []
            return [file] if file.is_file() else []
        spec = importlib.util.find_spec(_top(points[0].module))
        if spec is None:
            return []
        folders = spec.submodule_search_locations
        return sorted(file for folder in folders or () for file in Path(folder).rglob("*.py")) or [
            Path(spec.origin or "")
        ]

    def version(self, name: str) -> str:
        """What a result of an added name depends on: `distribution==version` or `module:name`, and a hash of `files`.

        Empty for crowdzoo's own names.
        """
        if not self.is_added(name):
            return ""
        (thing, points), files = self._claims(name), self.files(name)
        where = _distribution(points[0]) if thing is None else _place(thing, name)
        if not files:  # no run of a notebook's method is taken for one of another
            return f"{where} {_registered.get((self.sort, name), (thing, ''))[1]}"
        digest = hashlib.sha256()
        for file in files:
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
        return f"{where} {digest.hexdigest()[:16]}"

    def _claims(self, name: str) -> tuple[Any, list[EntryPoint]]:
        """What a script registered under a name, and entry points of that name for something else."""
        thing, _ = _registered.get((self.sort, name), (None, ""))
        points = _points(self.sort).get(name, [])
        return thing, [each for each in points if thing is None or each.value != _place(thing, name)]


def package_of(thing: Any) -> str:
    """`distribution==version` of the package that a class is in, if it adds to crowdzoo; else nothing."""
    points = (point for sort in SORTS for same in _points(sort).values() for point in same)
    top = _top(thing.__module__)
    return next((_distribution(point) for point in points if _top(point.module) == top), "")


def registered_layers() -> dict[str, Callable[[], Any]]:
    """The layers of packages by the names that Keras has to know them by in a saved model, and what imports each."""
    points = [point for same in _points("layer").values() for point in same]
    return {
        f"{_top(point.module)}>{point.attr}": functools.partial(_called, f"layer of {_shown(point)}", point.load)
        for point in points
    }


def _called(what: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (Exception, SystemExit) as error:  # whatever importing a package raises
        reason = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        raise ConfigError(f"{what} cannot be used: {reason.rstrip('.')}. Correct it, or uninstall it.") from error


def _points(sort: str) -> dict[str, list[EntryPoint]]:
    return _points_on(sort, tuple(sys.path))


@functools.cache  # reading what is installed takes some 20 ms
def _points_on(sort: str, path: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=f"crowdzoo.{sort}s"):
        found.setdefault(point.name, []).append(point)
    return found


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name}=={point.dist.version}" if point.dist else point.module


def _shown(point: EntryPoint) -> str:
    return f"{_distribution(point)} (entry point {point.name} = {point.value})"


def _top(module: str) -> str:
    return module.partition(".")[0]


def _place(thing: Any, name: str) -> str:
    """A class or function as an entry point writes it."""
    return f"{thing.__module__}:{getattr(thing, '__qualname__', name)}"
