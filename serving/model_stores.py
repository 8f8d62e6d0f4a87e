"""All models of a server, by name."""

from __future__ import annotations

import contextlib
import gc
import logging
import threading
from collections.abc import Iterable, Iterator

from crowdzoo.errors import ServingError, short_repr
from crowdzoo.serving.model_settings import ModelSettings
from crowdzoo.serving.model_store import ModelStore
from crowdzoo.serving.request_error import RequestError

__all__ = ["ModelStores"]

log = logging.getLogger("crowdzoo.serving")

# Names of models in a message
_SHOWN = 10


class ModelStores:
    """The models, each with its folder of versions.

    Args:
        settings: the models.
        poll_seconds: time between looks at the folders.
        new_signatures: whether a version may take over whose signatures differ from those that are served.
    """

    def __init__(self, settings: Iterable[ModelSettings], *, poll_seconds: float, new_signatures: bool):
        self._poll_seconds = poll_seconds
        self._new_signatures = new_signatures
        self._stores = {one.name: self._make(one) for one in settings}
        self._reloading = threading.Lock()

    def __iter__(self) -> Iterator[ModelStore]:
        return iter(self._stores.values())

    @property
    def names(self) -> list[str]:
        """The models' names."""
        return list(self._stores)

    def get(self, name: str) -> ModelStore:
        """The model of that name.

        Raises:
            RequestError: there is none; names those there are.
        """
        store = self._stores.get(name)
        if store is None:
            names = list(self._stores)
            known = f"the model's name is {names[0]!r}"
            if len(names) > 1:
                more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
                known = f"the models are {', '.join(map(repr, names[:_SHOWN]))}{more}"
            raise RequestError(f"model {short_repr(name)} is not served here; {known}", "NOT_FOUND")
        return store

    def start(self, *, wait: bool = False) -> None:
        """Loads all models, then follows their folders.

        Args:
            wait: go on without versions.

        Raises:
            ServingError: a model has no version that loads.
        """
        for store in self:
            store.start(wait=wait)
            for label, version in store.missing_labels().items():
                log.warning(
                    "crowdzoo serve: model %s, label %s: version %s is not there (yet)", store.name, label, version
                )

    def stop(self) -> None:
        """Stops following. Loaded versions stay usable."""
        for store in self:
            store.stop()

    def reload(self, settings: Iterable[ModelSettings]) -> None:
        """Serves these models instead: new ones are loaded first, those that are not named are dropped.

        Nothing changes where one of them cannot be served. Requests under way finish on the model they began with.

        Raises:
            RequestError: FAILED_PRECONDITION, a model without a usable version, or a label of a version that is not
                there.
        """
        settings = list(settings)
        with self._reloading, contextlib.ExitStack() as undo:
            followed = {store.name: store.folder for store in self}
            made: dict[str, ModelStore] = {}
            # new models first: those that are served change only when all others can be served
            for one in sorted(settings, key=lambda one: followed.get(one.name) == one.folder):
                if followed.get(one.name) == one.folder:
                    store = self._stores[one.name]
                    undo.callback(store.configure, store.labels, store.policy)
                    store.configure(one.labels, one.policy)
                else:
                    store = self._make(one)
                    undo.callback(store.stop)
                    try:
                        store.start()
                    except ServingError as error:
                        raise RequestError(f"model {one.name!r}: {error}", "FAILED_PRECONDITION") from error
                if missing := store.missing_labels():
                    label, version = next(iter(missing.items()))
                    reason = f"model {one.name!r}: label {short_repr(label)}: version {version} is not there"
                    raise RequestError(reason, "FAILED_PRECONDITION")
                made[one.name] = store
            undo.pop_all()
            before, self._stores = self._stores, {one.name: made[one.name] for one in settings}
            dropped = [store for name, store in before.items() if self._stores.get(name) is not store]
        del before, store  # nothing here may keep a dropped model; requests may still look through the dictionary
        has_dropped = bool(dropped)
        while dropped:
            dropped.pop().stop()
        log.info("crowdzoo serve: the models are now %s", ", ".join(self.names))
        if has_dropped:
            gc.collect()  # a loaded graph is full of reference cycles

    def _make(self, settings: ModelSettings) -> ModelStore:
        return ModelStore(
            settings.folder, name=settings.name, poll_seconds=self._poll_seconds, labels=settings.labels,
            new_signatures=self._new_signatures, policy=settings.policy,
        )  # fmt: skip
