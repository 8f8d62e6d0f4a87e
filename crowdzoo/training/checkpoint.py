"""Saves the state of a training after each epoch, so that an interrupted training can continue."""

import contextlib
import fcntl
import json
import logging
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import keras
import numpy as np

from crowdzoo.backend import KerasBatches
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.files.json import FORMAT_VERSION, check_format, read_json
from crowdzoo.files.paths import local_path
from crowdzoo.files.regular import open_regular
from crowdzoo.files.writing import atomic_file, write_json
from crowdzoo.training.same_training import difference, identity_of
from crowdzoo.training.settings import Settings
from crowdzoo.training.training_state import (
    exact_array,
    replay,
    restore_state,
    restore_variables,
    state_of,
    variables_of,
)

IDENTITY = "checkpoint.json"
ARRAY = "array of this file"  # key that replaces an array by its name
LOCK = ".lock"  # contains the id of the training process

_log = logging.getLogger(__name__)


class Checkpoint:
    """Saves the state of one training in a folder.

    After each epoch it writes the weights, the optimizer's variables, the state of the callbacks, the history and the
    random states of NumPy and Python, one file per phase of the method; files are written atomically. A training that
    starts with such a folder continues after the last saved epoch, and ends as if it had not been interrupted.

    A method trains in phases, each a call of `CrowdModel.fit_batches`. A completed phase is not trained again: its
    final state is read, and computations between phases are repeated.

    Args:
        folder: a new or empty folder, or one with a checkpoint of the same training.
        data: training data, which `begin` compares: arrays, `Annotations`, paths of files, and lists and dictionaries
            of them. None: set by `checkpoint_of`.
        settings: settings of the model, such as its method and seed, which `begin` compares and names.

    Attributes:
        resumed: number of epochs, over all phases, that were not trained again.
    """

    def __init__(self, folder: str | os.PathLike[str], data: Any = None, settings: Mapping[str, Any] | None = None):
        self.folder = local_path(folder)
        self.data = data
        self.settings = settings
        self.resumed = 0
        self._phase = -1

    @contextlib.contextmanager
    def begin(
        self,
        model: keras.Model,
        *,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        validation: object | None = None,
        **arguments: Any,
    ) -> Iterator[None]:
        """Compares the folder's checkpoint with this training, or starts one, and locks the folder.

        Args:
            model: a compiled and built model, before its first epoch.
            callbacks: Keras callbacks.
            validation: validation data: arrays and `Annotations`; None for none, or for custom batches.
            **arguments: arguments of the training, such as `epochs`.

        Raises:
            ConfigError: the folder has the checkpoint of another training, or other files; another process uses it; or
                `data` is missing.
            DataError: the folder's files are damaged, or were written by a later version of crowdzoo.
        """
        if self.data is None:
            raise ConfigError("Checkpoint: pass the training data, Checkpoint(folder, data).")
        self._phase, self.resumed = -1, 0
        identity = identity_of(model, arguments, [self.data, validation], self.settings, callbacks=callbacks)
        self.on_begin(identity)
        with _lock(self.folder):
            self._compare(identity)
            yield

    def _compare(self, identity: dict[str, Any]) -> None:
        place = self.folder / IDENTITY
        if place.exists():
            stored = read_json(place)
            if not isinstance(stored, dict):
                raise DataError(f"{place}: is not a checkpoint. Remove the folder to train from the beginning.")
            check_format(stored.pop("format_version", None), place)
            if clause := difference(stored, identity):
                raise ConfigError(
                    f"{self.folder}: holds the checkpoint of another training: {clause}. Repeat that "
                    "training to continue it, name another folder, or remove this one to train from the beginning."
                )
            return
        write_json(place, {**identity, "format_version": FORMAT_VERSION})
        self.on_write(place)

    def on_begin(self, identity: Mapping[str, object]) -> None:
        """Called when the training is identified, before `folder` is read; for subclasses.

        Args:
            identity: identity of the training, see `identity_of`.
        """

    def on_write(self, path: Path) -> None:
        """Called when a file has been written; for subclasses that store copies elsewhere."""

    def fit(
        self,
        fit: Callable[..., keras.callbacks.History],
        model: keras.Model,
        batches: KerasBatches,
        *,
        epochs: int = 1,
        initial_epoch: int = 0,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Runs the next phase, `fit(batches, ...)`, from its last saved epoch.

        Args:
            fit: Keras' `fit` of the model.
            model: the model.
            batches: `tf.data.Dataset` or `keras.utils.PyDataset` that has not been iterated yet.
            epochs: see `keras.Model.fit`, as for the following arguments.
            initial_epoch: the first epoch.
            callbacks: Keras callbacks.
            **kwargs: further arguments.

        Returns:
            Keras' `History`, of all epochs of the phase.
        """
        self._phase += 1
        path = self.folder / f"phase-{self._phase}.npz"
        callbacks = keras.tree.flatten(callbacks or [])
        stored = _read(path) if path.exists() else None
        keeper = _Keeper(path, callbacks, stored, self.on_write)
        start = initial_epoch
        if stored is not None:
            done = len(keeper.epochs)
            self.resumed += done
            start = epochs if stored["ended"] or stored["stopped"] else initial_epoch + done
            _log.info("%s: phase %d continues after epoch %d.", self.folder, self._phase + 1, done)
            if start < epochs:
                replay(batches, done)
        history = fit(batches, epochs=epochs, initial_epoch=start, callbacks=[*callbacks, keeper], **kwargs)
        history.epoch, history.history = list(keeper.epochs), {key: list(of) for key, of in keeper.history.items()}
        model.history = history
        if stored is not None and start == epochs:
            model.stop_training = stored["stopped"]
        if stored is None or not stored["ended"]:
            keeper.write(ended=True)
        return history


def checkpoint_of(
    place: str | os.PathLike[str] | Checkpoint | None, data: object, settings: Settings | None = None
) -> Checkpoint | None:
    """Creates a checkpoint for given training data.

    Args:
        place: its folder, or a checkpoint, whose own settings take precedence; None saves nothing.
        data: see `Checkpoint`.
        settings: `crowdzoo.training.settings.Settings`; None if unknown.
    """
    if place is None:
        return None
    keep = place if isinstance(place, Checkpoint) else Checkpoint(place)
    keep.data = data
    if settings is not None:
        keep.settings = {**asdict(settings), **(keep.settings or {})}
    return keep


@contextlib.contextmanager
def keep_checkpoint(
    model: keras.Model, checkpoint: str | os.PathLike[str] | Checkpoint | None, data: object, **arguments: Any
) -> Iterator[None]:
    """Within this context, the state of a `CrowdModel` is saved after each epoch of training."""
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        arrays = getattr(data, "arrays", data)
        if not isinstance(arrays, tuple):
            raise ConfigError(
                "fit: checkpoint is for arrays and annotations. With your own batches use "
                "callbacks=[keras.callbacks.BackupAndRestore(FOLDER)]."
            )
        checkpoint = checkpoint_of(checkpoint, arrays)
    context = contextlib.nullcontext() if checkpoint is None else checkpoint.begin(model, **arguments)
    with context:
        model._checkpoint = checkpoint
        try:
            yield
        finally:
            model._checkpoint = None


def remove_checkpoint(folder: str | os.PathLike[str]) -> None:
    """Removes a checkpoint's files, and the folder if nothing else is in it.

    Args:
        folder: folder of a `Checkpoint` whose result has been saved elsewhere.
    """
    place = local_path(folder)
    for path in [*place.glob("phase-*.npz"), place / IDENTITY, place / LOCK]:
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the folder has other files
        place.rmdir()


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Locks a folder against other processes. The system releases the lock when the process ends, however it ends."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file. Name a new or empty folder.")
    names = os.listdir(folder) if folder.exists() else []
    if IDENTITY not in names and any(not name.startswith(".") for name in names):
        raise ConfigError(f"{folder}: has files that are not a checkpoint. Name a new or empty folder.")
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read(20).strip()
            raise ConfigError(
                f"{folder}: another training{f' (process {owner})' if owner else ''} is using this checkpoint. "
                "Wait for it, end it, or name another folder."
            ) from None
        except OSError:  # a network file system without locks
            _log.info("%s: cannot be locked.", folder)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


class _Keeper(keras.callbacks.Callback):
    """The last callback of a phase: restores a stored state, and writes the state after each epoch."""

    def __init__(
        self,
        path: Path,
        callbacks: Sequence[keras.callbacks.Callback],
        stored: dict[str, Any] | None,
        on_write: Callable[[Path], None],
    ):
        super().__init__()
        self.path = path
        self.on_write = on_write
        self.callbacks = callbacks
        self.stored = stored
        self.epochs: list[int] = [] if stored is None else list(stored["epochs"])
        self.history: dict[str, list[Any]] = {} if stored is None else stored["history"]

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Restores a stored state, after the other callbacks have begun."""
        stored = self.stored
        if stored is None:
            return
        restore_variables(self.model, stored["variables"])
        states = defaultdict(list)
        for name, state in stored["callbacks"]:
            states[name].append(state)
        for callback in self.callbacks:
            if queue := states[type(callback).__name__]:  # others only observe, as `Checkpoint.begin` has checked
                state = queue.pop(0)
                getattr(callback, "restore_state", lambda state, of=callback: restore_state(of, state))(state)
        kind, keys, *rest = stored["numpy"]
        np.random.set_state((kind, np.asarray(keys, "uint32"), *rest))
        version, numbers, last = stored["python"]
        random.setstate((version, tuple(numbers), last))

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Writes the state after the epoch."""
        self.epochs.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(float(value) if np.ndim(value) == 0 else np.asarray(value))
        self.write()

    def write(self, ended: bool = False) -> None:
        """Writes the current state."""
        model = self.model
        version, numbers, last = random.getstate()
        state = {
            "variables": variables_of(model),
            "callbacks": [
                [type(callback).__name__, getattr(callback, "state", lambda of=callback: state_of(of))()]
                for callback in self.callbacks
            ],
            "epochs": self.epochs,
            "history": self.history,
            "stopped": bool(model.stop_training),
            "ended": ended,
            "numpy": list(np.random.get_state()),
            "python": [version, list(numbers), last],
        }
        arrays: dict[str, np.ndarray] = {}

        def put_aside(value: Any) -> Any:
            if not isinstance(value, np.ndarray):
                return value.item()  # a NumPy scalar
            name = f"array_{len(arrays)}"
            arrays[name] = exact_array(value)
            return {ARRAY: name}

        text = json.dumps({"state": state, "format_version": FORMAT_VERSION}, default=put_aside)
        with atomic_file(self.path) as file:
            np.savez(file, json=np.frombuffer(text.encode(), "uint8"), **arrays)
        self.on_write(self.path)


# === Files ===


def _read(path: Path) -> dict[str, Any]:
    """Reads the state of a phase."""
    try:
        with open_regular(path, unzip=False) as file, np.load(file, allow_pickle=False) as arrays:
            stored = json.loads(
                arrays["json"].tobytes(),
                object_hook=lambda part: arrays[part[ARRAY]] if {*part} == {ARRAY} else part,
            )
            version, state = stored["format_version"], dict(stored["state"])
    except Exception as error:  # zipfile and NumPy raise many kinds of errors for damaged files
        raise DataError(
            f"{path}: is damaged ({error}). Remove the folder {path.parent} to train from the beginning."
        ) from error
    check_format(version, path)
    return state
