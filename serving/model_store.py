"""Follows a folder of versions: loads the newest, keeps the old one until the new one answers."""

import gc
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crowdzoo.errors import ServingError
from crowdzoo.serving.loaded_model import LoadedModel
from crowdzoo.serving.request_error import RequestError

__all__ = ["ModelStore", "VersionStatus"]

log = logging.getLogger("crowdzoo.serving")

# A folder whose files did not change for so long is taken as written to the end.
SETTLE_SECONDS = 1.0

# (path in the folder, size, time of last change) of every file
Contents = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class VersionStatus:
    """State of a version in TF Serving's words: `LOADING`, `AVAILABLE`, `END`; `error` says why it is not served."""

    version: int
    state: str
    error: str = ""


class ModelStore:
    """The versions of one model below `folder`.

    A version is a subfolder named by an integer, with `saved_model.pb` and all shards of its variables, whose files
    have come to rest. The highest such version that loads and answers its warm-up requests is served. A version
    that cannot be loaded is logged, and tried again only when its files change; what is served stays. Whoever holds
    a `LoadedModel` may finish with it after the switch.

    Args:
        folder: holds the versions.
        name: the model's name in requests.
        poll_seconds: time between looks at the folder.
        labels: label -> version; these versions are served as well, under `/labels/<label>`.
    """

    def __init__(self, folder: Path, *, name: str, poll_seconds: float = 2.0, labels: Mapping[str, int] | None = None):
        self.folder = folder
        self.name = name
        self._poll_seconds = poll_seconds
        self._labels = dict(labels or {})
        self._settle_seconds = min(SETTLE_SECONDS, poll_seconds)
        self._lock = threading.Lock()
        self._models: dict[int, LoadedModel] = {}
        self._latest: int | None = None
        self._statuses: dict[int, VersionStatus] = {}
        self._broken: dict[int, Contents] = {}
        self._seen: dict[int, tuple[Contents, float]] = {}
        self._moving = False  # is a version being written?
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, *, wait: bool = False) -> None:
        """Loads the newest version, then follows the folder in a thread of its own.

        Args:
            wait: go on without a version, and serve the first that appears.

        Raises:
            ServingError: no folder, no version, or none that loads.
        """
        if not wait:
            self._check_folder()
        # a version that is being written right now gets the time to come to rest
        deadline = time.monotonic() + 2 * self._settle_seconds
        while (not self.refresh() or self._moving) and self._seen and time.monotonic() < deadline:
            time.sleep(self._settle_seconds / 4)
        if self._latest is None and not wait:
            raise ServingError(self._why_none())
        self._thread = threading.Thread(target=self._follow, name="crowdzoo-model-store", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops following. Loaded versions stay usable."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def get(self, version: int | None = None, label: str | None = None) -> LoadedModel:
        """The latest version, or the one asked for.

        Raises:
            RequestError: not served.
        """
        with self._lock:
            if label is not None:
                if label not in self._labels:
                    known = f"labels are {', '.join(sorted(self._labels))}" if self._labels else "no labels are set"
                    raise RequestError(f"model {self.name!r} has no version label {label!r}; {known}", "NOT_FOUND")
                version = self._labels[label]
            if version is None:
                if self._latest is None:
                    raise RequestError(f"model {self.name!r} has no version yet; try again later", "UNAVAILABLE")
                version = self._latest
            if version not in self._models:
                served = ", ".join(map(str, sorted(self._models))) or "none"
                raise RequestError(f"model {self.name!r} does not serve version {version}, only {served}", "NOT_FOUND")
            return self._models[version]

    def statuses(self, version: int | None = None, label: str | None = None) -> list[VersionStatus]:
        """State of all versions known, newest first, or of the one asked for.

        Raises:
            RequestError: a version or label never seen.
        """
        if label is not None:
            version = self.get(label=label).version
        with self._lock:
            found = [self._statuses[key] for key in sorted(self._statuses, reverse=True) if version in (None, key)]
        if version is not None and not found:
            raise RequestError(f"model {self.name!r} has no version {version}", "NOT_FOUND")
        return found

    def refresh(self) -> bool:
        """Looks at the folder once and loads what is new.

        Returns:
            Whether there is a version to serve.
        """
        folders = self._complete_versions()
        for version in set(self._labels.values()) & set(folders):
            self._load(version, folders[version])
        newest = None
        for version in sorted(folders, reverse=True):
            if self._load(version, folders[version]):
                newest = version
                break
        if newest is None:  # nothing usable in the folder: keep what is served
            newest = self._latest
        self._switch(newest)
        return newest is not None

    def _follow(self) -> None:
        while not self._stopping.wait(self._poll_seconds):
            try:
                self.refresh()
            except Exception:  # whatever the file system does, serving goes on
                log.exception("crowdzoo serve: looking for new versions in %s failed", self.folder)

    def _switch(self, newest: int | None) -> None:
        with self._lock:
            before = self._latest
            wanted = {newest, *self._labels.values()}
            retired = [version for version in self._models if version not in wanted]
            for version in retired:
                # requests under way hold the model itself and finish on it
                del self._models[version]
                self._statuses[version] = VersionStatus(version, "END")
            self._latest = newest
        if newest != before:
            log.info("crowdzoo serve: model %s, version %s is served", self.name, newest)
        if retired:
            gc.collect()  # a loaded graph is full of reference cycles

    def _load(self, version: int, contents_and_folder: tuple[Contents, Path]) -> bool:
        contents, folder = contents_and_folder
        if version in self._models:
            return True
        if self._broken.get(version) == contents:
            return False
        self._set_status(VersionStatus(version, "LOADING"))
        started = time.monotonic()
        try:
            model = LoadedModel(folder, version)
        except Exception as error:  # TensorFlow raises many kinds for a broken model
            reason = error.reason if isinstance(error, RequestError) else str(error).strip().splitlines()
            text = f"{type(error).__name__}: {reason if isinstance(reason, str) else ' '.join(reason[-1:])}"
            self._broken[version] = contents
            self._set_status(VersionStatus(version, "END", text))
            log.error("crowdzoo serve: version %s in %s cannot be loaded and is left out: %s", version, folder, text)
            return False
        with self._lock:
            self._models[version] = model
            self._statuses[version] = VersionStatus(version, "AVAILABLE")
        log.info(
            "crowdzoo serve: version %s loaded in %.1f s, %s warm-up requests answered",
            version, time.monotonic() - started, model.num_warmup_requests,
        )  # fmt: skip
        return True

    def _set_status(self, status: VersionStatus) -> None:
        with self._lock:
            self._statuses[status.version] = status

    def _complete_versions(self) -> dict[int, tuple[Contents, Path]]:
        """Versions whose files are all there and at rest."""
        now = time.monotonic()
        seen: dict[int, tuple[Contents, float]] = {}
        complete: dict[int, tuple[Contents, Path]] = {}
        self._moving = False
        for version, folder in self._version_folders().items():
            contents, last_change = _contents(folder)
            before = self._seen.get(version)
            since = before[1] if before is not None and before[0] == contents else now
            seen[version] = (contents, since)
            # the file system's time of change cannot be set back by a copy, unlike the time of modification
            at_rest = now - since >= self._settle_seconds or time.time() - last_change >= self._settle_seconds
            if not at_rest and version not in self._models:
                self._moving = True
            elif _has_all_files(contents):
                complete[version] = (contents, folder)
        self._seen = seen
        return complete

    def _version_folders(self) -> dict[int, Path]:
        try:
            children = sorted(self.folder.iterdir())
        except OSError:
            return {}
        return {int(child.name): child for child in children if child.name.isdecimal() and child.is_dir()}

    def _check_folder(self) -> None:
        if not self.folder.is_dir():
            raise ServingError(f"{self.folder}: there is no such folder")
        if not self._version_folders():
            if (self.folder / "saved_model.pb").is_file():
                raise ServingError(
                    f"{self.folder}: is one version of a model. Serve the folder above it; "
                    f"the versions in it are named by numbers, as in {self.folder.parent / '1'}"
                )
            raise ServingError(f"{self.folder}: {_NO_VERSION}")

    def _why_none(self) -> str:
        errors = [status for status in self._statuses.values() if status.error]
        if errors:
            lines = "".join(f"\n  version {status.version}: {status.error}" for status in errors)
            return f"{self.folder}: no version can be loaded{lines}"
        return f"{self.folder}: {_NO_VERSION}"


_NO_VERSION = (
    "holds no complete model: a subfolder named by a number with saved_model.pb and its variables. "
    "`crowdzoo run` and `crowdzoo export` write one; --wait starts the server without"
)


def _contents(folder: Path) -> tuple[Contents, float]:
    """The files of a version, and when the last of them changed (seconds of the wall clock)."""
    found = []
    last = 0.0
    for path in sorted(folder.rglob("*")):
        try:
            stat = path.stat()
        except OSError:  # gone since it was listed
            continue
        last = max(last, stat.st_ctime)
        if path.is_file():
            found.append((path.relative_to(folder).as_posix(), stat.st_size, stat.st_mtime_ns))
    return tuple(found), last


def _has_all_files(contents: Contents) -> bool:
    names = {name for name, _, _ in contents}
    if "saved_model.pb" not in names:
        return False
    shards = [name for name in names if name.startswith("variables/variables.data-")]
    if not shards:
        return "variables/variables.index" not in names
    return "variables/variables.index" in names and shards[0].endswith(f"-of-{len(shards):05d}")
