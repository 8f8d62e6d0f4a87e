"""Watches a folder of versions: loads the newest, and serves the old one until the new one is ready."""

import gc
import logging
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdzoo.errors import ServingError, short_repr
from crowdzoo.files.version_folders import version_folders
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.loaded_model import LoadedModel
from crowdzoo.serving.model_settings import ModelSettings
from crowdzoo.serving.request_error import RequestError

log = logging.getLogger("crowdzoo.serving")

# (path in the folder, size, time of last change of the contents, and of the file's metadata such as permissions)
Contents = tuple[tuple[str, int, int, int], ...]
# A folder whose files did not change for this long is considered complete.
SETTLE_SECONDS = 1.0
# A version that did not load is tried again after this long, or when its files or their permissions change.
RETRY_SECONDS = 300.0
_INDEX = "variables/variables.index"
_WAITS = "waits for {}, which does not exist yet"
_GONE = "its folder is gone; it is served from memory"


@dataclass(frozen=True)
class VersionStatus:
    """State of a version in TF Serving's words: `START`, `LOADING`, `AVAILABLE`, `END`.

    `error` is the reason why it is not served; or, for a served version, that its folder is gone or cannot be read.
    """

    version: int
    state: str
    error: str = ""

    def described(self) -> dict[str, Any]:
        """A `ModelVersionStatus` for JSON, without the number."""
        status = {"error_code": "UNKNOWN" if self.error else "OK", "error_message": self.error}
        return {"version": self.version, "state": self.state, "status": status}


class ModelStore:
    """The versions of one model, in a folder.

    A version is a subfolder named by an integer, with `saved_model.pb` and all shards of its variables, whose files no
    longer change. The highest version that loads and answers its warm-up requests is served. A version that cannot be
    loaded is logged, and tried again when its files or their permissions change, or after five minutes; meanwhile the
    served version stays. Holders of a `LoadedModel` may finish with it after the switch.

    Args:
        settings: the model's name, folder, labels and policy. The highest version of the policy answers requests
            without a version.
        poll_seconds: time between checks of the folder.
        limits: limits of warm-up requests; None for the defaults.
        current: function that returns the current labels and policy, called at each check; None uses those of
            `settings`.
    """

    def __init__(
        self,
        settings: ModelSettings,
        *,
        poll_seconds: float = 2.0,
        limits: Limits | None = None,
        current: Callable[[], ModelSettings] | None = None,
    ):
        self.folder, self.name = settings.folder, settings.name
        self._labels: Mapping[str, int] = settings.labels
        self._current = current or (lambda: settings)
        self._poll_seconds, self._limits = poll_seconds, limits
        self._settle_seconds = min(SETTLE_SECONDS, poll_seconds)
        self._lock = threading.Lock()
        self._models: dict[int, LoadedModel] = {}
        self._latest: int | None = None
        self._statuses: dict[int, VersionStatus] = {}
        self._failures: dict[int, tuple[Contents, str, float]] = {}  # files, reason, when
        self._seen: dict[int, tuple[Contents, float]] = {}
        self._problems: dict[int, str] = {}  # folders that exist but cannot be read
        self._said: dict[str, str] = {}  # subject -> last warning about it
        self._moving = False  # is a version being written?
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, *, wait: bool = False) -> None:
        """Loads the newest version, then watches the folder in its own thread.

        Args:
            wait: continue without a version, and serve the first one that appears.

        Raises:
            ServingError: no folder, no version, or none that loads.
        """
        # a version that is being written gets time to be completed
        deadline, is_late = time.monotonic() + 2 * self._settle_seconds, False
        while (not self.refresh() or self._moving) and self._seen and not is_late:
            is_late = time.monotonic() >= deadline  # loading takes time: the last check starts after the deadline
            time.sleep(self._settle_seconds / 4)
        if self._latest is None and not wait:
            raise ServingError(f"{self.folder}: {self._why_none()}")
        for label, version in self._labels.items():
            if version not in self._models:
                log.warning("crowdzoo serve: model %s, label %s: no version %s (yet)", self.name, label, version)
        self._thread = threading.Thread(target=self._follow, name="crowdzoo-model-store", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops watching. Loaded versions stay usable."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(2.0)  # a disk may not respond

    def get(self, version: int | None = None, label: str | None = None) -> LoadedModel:
        """Returns the latest version, or the requested one.

        Raises:
            RequestError: not served.
        """
        with self._lock:
            if label is not None:
                if label not in self._labels:
                    known = f"labels are {', '.join(sorted(self._labels))}" if self._labels else "no labels are set"
                    raise RequestError(f"model {self.name!r} has no version label {label!r}; {known}", "NOT_FOUND")
                version = self._labels[label]
            version = self._latest if version is None else version
            if version is None:
                raise RequestError(f"model {self.name!r} has no version yet; try again later", "UNAVAILABLE")
            if version not in self._models:
                served = ", ".join(map(str, sorted(self._models))) or "none"
                raise RequestError(f"model {self.name!r} does not serve version {version}, only {served}", "NOT_FOUND")
            return self._models[version]

    def statuses(self, version: int | None = None, label: str | None = None) -> list[VersionStatus]:
        """Returns the state of all known versions, newest first, or of the requested one.

        Raises:
            RequestError: an unknown version or label.
        """
        if label is not None:
            version = self.get(label=label).version
        with self._lock:
            statuses = [self._statuses[key] for key in sorted(self._statuses, reverse=True) if version in (None, key)]
        if version is not None and not statuses:
            raise RequestError(f"model {self.name!r} has no version {version}", "NOT_FOUND")
        return statuses

    @property
    def is_ready(self) -> bool:
        """Whether a version is ready to answer."""
        return self._latest is not None

    def refresh(self) -> bool:
        """Checks the folder once and loads new versions.

        Returns:
            Whether there is a version to serve.
        """
        folders, problem = self._folders()
        complete = self._complete_versions(folders)
        settings = self._current()
        for version in set(settings.labels.values()) & set(complete):
            self._load(version, *complete[version])
        self._move_labels(settings.labels)
        kept: list[int] = []
        for version in sorted(complete, reverse=True):
            if len(kept) == settings.policy.latest:
                break
            if settings.policy.only is None or version in settings.policy.only:
                kept += [version] * self._load(version, *complete[version])
        # served versions stay if nothing in the folder is usable
        newest, kept = (kept[0], kept) if kept else (self._latest, list(self._models))
        self._switch(newest, kept)
        with self._lock:
            # versions whose folder is gone are removed from the status, or marked in it if they are still served
            gone = set() if problem else self._statuses.keys() - folders.keys()
            for version in self._models:
                error = _GONE if version in gone else problem or self._problems.get(version, "")
                self._statuses[version] = VersionStatus(version, "AVAILABLE", error)
            for version in gone - self._models.keys():
                del self._statuses[version]
                self._failures.pop(version, None)
        for version in gone & self._models.keys():
            self._say_once(f"version {version} in {self.folder}", _GONE)
        return newest is not None

    def _move_labels(self, labels: Mapping[str, int]) -> None:
        """Updates labels; a label whose new version is not ready yet keeps its version."""
        with self._lock:
            waiting = {
                label: self._labels[label]
                for label, version in labels.items()
                if version not in self._models and label in self._labels
            }
            before, self._labels = self._labels, {**labels, **waiting}
            for label, version in self._labels.items():
                if before.get(label) != version:
                    log.info("crowdzoo serve: model %s, label %s: version %s", self.name, label, version)

    def _follow(self) -> None:
        while not self._stopping.wait(self._poll_seconds):
            try:
                self.refresh()
            except Exception:  # serving continues whatever the file system does
                log.exception("crowdzoo serve: looking for new versions in %s failed", self.folder)

    def _switch(self, newest: int | None, kept: Iterable[int]) -> None:
        with self._lock:
            before, self._latest = self._latest, newest
            retired = self._models.keys() - {newest, *kept, *self._labels.values()}
            for version in retired:
                # current requests hold the model and finish with it
                del self._models[version]
                self._statuses[version] = VersionStatus(version, "END")
        if newest != before:
            log.info("crowdzoo serve: model %s, version %s is served", self.name, newest)
        if retired:
            gc.collect()  # a loaded graph is full of reference cycles

    def _load(self, version: int, files: Contents, folder: Path) -> bool:
        """Tries to load the version; returns whether it is in memory."""
        if version in self._models:
            return True
        started = time.monotonic()
        before = self._failures.get(version)
        if before is not None and before[0] == files and started - before[2] < RETRY_SECONDS:
            return False
        self._set_status(version, "LOADING")
        try:
            for name, *_ in files:
                if not stat.S_ISREG((folder / name).stat().st_mode):  # loading a pipe would block
                    raise OSError(f"{name} is not a regular file")
            model = LoadedModel(folder, version, self._limits)
        except Exception as error:  # TensorFlow raises many kinds of errors for a broken model
            lines = [error.reason] if isinstance(error, RequestError) else str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {lines[-1] if lines else ''}"
            self._failures[version] = (files, reason, started)
            if _INDEX not in {file[0] for file in files}:  # only models without variables have no index
                self._set_status(version, "START", _WAITS.format(_INDEX))
                return False
            self._set_status(version, "END", without_paths(reason, folder))
            if before is None or before[:2] != (files, reason):
                log.error("crowdzoo serve: version %s in %s cannot be loaded: %s", version, folder, reason)
            return False
        self._failures.pop(version, None)
        with self._lock:
            self._models[version] = model
            self._statuses[version] = VersionStatus(version, "AVAILABLE")
        seconds, requests = time.monotonic() - started, model.num_warmup_requests
        text = "crowdzoo serve: model %s, version %s loaded in %.1f s, %s warm-up requests answered"
        log.info(text, self.name, version, seconds, requests)
        return True

    def _set_status(self, version: int, state: str, error: str = "") -> None:
        with self._lock:
            self._statuses[version] = VersionStatus(version, state, error)

    def _say_once(self, what: str, complaint: str) -> None:
        if self._said.get(what) != complaint:
            self._said[what] = complaint
            log.warning("crowdzoo serve: %s: %s", what, complaint)

    def _folders(self) -> tuple[dict[int, Path], str]:
        """Version folders by number, and the reason why the folder itself cannot be read, or ""."""
        try:
            folders, refused = version_folders(self.folder)
        except OSError as error:
            if self._models:
                text = f"cannot be read ({error.strerror}); versions that are loaded are still served"
                self._say_once(str(self.folder), text)
            return {}, f"the folder of the versions cannot be read ({error.strerror}); it is served from memory"
        self._said.pop(str(self.folder), None)
        for name in refused:
            reason = "is left out: a version is a number from 0 to 2^63 - 1 in plain digits, and each number once"
            self._say_once(f"folder {short_repr(name)} in {self.folder}", reason)
        return folders, ""

    def _complete_versions(self, folders: Mapping[int, Path]) -> dict[int, tuple[Contents, Path]]:
        """Versions whose files are complete and no longer change."""
        now = time.monotonic()
        seen: dict[int, tuple[Contents, float]] = {}
        complete: dict[int, tuple[Contents, Path]] = {}
        self._moving, self._problems = False, {}
        for version, folder in folders.items():
            named = f"version {version} in {self.folder}"
            loaded = version in self._models
            try:
                files, last_change = contents(folder)
            except OSError as error:
                reason = self._problems[version] = f"its folder cannot be read ({error.strerror or error})"
                self._say_once(named, reason)
                if loaded:  # loaded versions are still served
                    complete[version] = ((), folder)
                else:
                    self._set_status(version, "END", reason)
                continue
            self._said.pop(named, None)
            before = self._seen.get(version)
            since = before[1] if before is not None and before[0] == files else now
            seen[version] = (files, since)
            # unlike the modification time, the time of metadata change cannot be set by copying
            at_rest = max(now - since, time.time() - last_change) >= self._settle_seconds
            missing = what_is_missing(files)
            self._moving |= not at_rest and not loaded
            if loaded or (at_rest and not missing):
                complete[version] = (files, folder)
            elif missing:
                self._set_status(version, "START", _WAITS.format(missing))
        self._seen = seen
        return complete

    def _why_none(self) -> str:
        if self.folder.suffix == ".keras":
            return f"is a saved model. Run `crowdzoo export {self.folder} FOLDER`, and serve that folder"
        if not self.folder.is_dir():
            return (
                "the folder does not exist. `crowdzoo run` and `crowdzoo export` write one; with --wait the server "
                "starts without it"
            )
        if errors := [status for status in self._statuses.values() if status.error]:
            return "no version can be loaded" + "".join(f"\n  version {one.version}: {one.error}" for one in errors)
        if (self.folder / "saved_model.pb").is_file():
            return "is one version of a model. Serve the folder above it; its versions are named by numbers, such as 1"
        return (
            "holds no complete model: a subfolder named by a number with saved_model.pb and its variables. "
            "`crowdzoo run` and `crowdzoo export` write one; with --wait the server starts without one"
        )


Stores = Mapping[str, ModelStore]  # by the names of the models


def store_of(stores: Stores, name: str) -> ModelStore:
    """The model of that name.

    Raises:
        RequestError: it does not exist; the message names existing ones.
    """
    if name not in stores:
        names = [repr(one) for one in stores]
        known = f"the model's name is {names[0]}"
        if len(names) > 1:
            known = f"the models are {', '.join(names[:10])}" + f" and {len(names) - 10} more" * (len(names) > 10)
        raise RequestError(f"model {short_repr(name)} is not served here; {known}", "NOT_FOUND")
    return stores[name]


# === Files ===


def contents(folder: Path) -> tuple[Contents, float]:
    """The files of a version, and the time of the last change (wall clock, in seconds).

    Raises:
        OSError: the folder, or one below it, cannot be read.
    """
    stats = []
    last = folder.stat().st_ctime

    def refuse(error: OSError) -> None:
        raise error

    for parent, folders, files in os.walk(folder, onerror=refuse):
        for name in sorted(folders + files):
            path = Path(parent, name)
            try:
                state = path.stat()
            except FileNotFoundError:  # deleted since it was listed
                continue
            last = max(last, state.st_ctime)
            if not stat.S_ISDIR(state.st_mode):
                stats.append((path.relative_to(folder).as_posix(), state.st_size, state.st_mtime_ns, state.st_ctime_ns))
    return tuple(sorted(stats)), last


def what_is_missing(contents: Contents) -> str:
    """The first missing file of a SavedModel; "" if it is complete."""
    names = {file[0] for file in contents}
    if "saved_model.pb" not in names:
        return "saved_model.pb"
    shards = sorted(name for name in names if name.startswith("variables/variables.data-"))
    if "variables/variables.index" not in names:
        return "variables/variables.index" if shards else ""
    if not shards:
        return "variables/variables.data-*"
    wanted = int(match[1]) if (match := re.search(r"-of-(\d{5})$", shards[0])) else 0
    return "" if len(shards) == wanted else f"variables/variables.data-* ({len(shards)} of {wanted} are there)"


def without_paths(text: str, folder: Path) -> str:
    """Removes paths of this machine from `text`, for answers over the network."""
    for path in sorted({str(folder), str(folder.absolute()), os.path.realpath(folder)}, key=len, reverse=True):
        text = text.replace(path + "/", "").replace(path, folder.name)
    return re.sub(r"(?<![\w.:/])(?:/[^\s/'\":;,()\[\]]+)+/([^\s/'\":;,()\[\]]+)", r"\1", text)
