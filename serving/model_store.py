"""Follows a folder of versions: loads the newest, keeps the old one until the new one answers."""

import gc
import logging
import threading
import time
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdzoo.errors import ServingError
from crowdzoo.files.name_difference import name_difference
from crowdzoo.files.version_folders import version_folders
from crowdzoo.serving.loaded_model import LoadedModel, read_features, read_signature_defs
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.signature_difference import signature_difference
from crowdzoo.serving.version_files import Contents, check_readable, contents, what_is_missing, without_paths
from crowdzoo.serving.version_policy import VersionPolicy

__all__ = ["ModelStore", "VersionStatus"]

log = logging.getLogger("crowdzoo.serving")

# A folder whose files did not change for so long is taken as written to the end.
SETTLE_SECONDS = 1.0

# A version that did not load is tried again after so long, or as soon as its files or their permissions change.
RETRY_SECONDS = 300.0
# A version is given up when reading its files makes no progress for so long.
STALL_SECONDS = 30.0
# Stopping does not wait longer for a disk that does not answer.
STOP_SECONDS = 2.0


@dataclass(frozen=True)
class VersionStatus:
    """State of a version in TF Serving's words: `START`, `LOADING`, `AVAILABLE`, `END`.

    `error` says why it is not served, or, of one that is, that its folder is gone or cannot be read.
    """

    version: int
    state: str
    error: str = ""

    def described(self) -> dict[str, Any]:
        """A `ModelVersionStatus`, as JSON but for the number."""
        status = {"error_code": "UNKNOWN" if self.error else "OK", "error_message": self.error}
        return {"version": self.version, "state": self.state, "status": status}


@dataclass(frozen=True)
class _Failure:
    """Why a version is left out; it is tried again when `contents` or `beside` change, or after RETRY_SECONDS."""

    contents: Contents
    beside: int | None  # the version whose signatures it does not fit
    reason: str
    at: float


class ModelStore:
    """The versions of one model below `folder`.

    A version is a subfolder named by an integer, with `saved_model.pb` and all shards of its variables, whose files
    have come to rest. The highest such version that loads and answers its warm-up requests is served. A version
    that cannot be loaded is logged, and tried again when its files or their permissions change, or after five minutes;
    what is served stays. So it does where a newer version's signatures are not those that are served. Whoever holds
    a `LoadedModel` may finish with it after the switch.

    Args:
        folder: holds the versions.
        name: the model's name in requests.
        poll_seconds: time between looks at the folder.
        labels: label -> version; these versions are served as well, under `/labels/<label>`.
        new_signatures: whether a version may take over whose signatures differ from those that are served.
        policy: which versions are served; None for the newest. The highest of them answers requests without a version.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        poll_seconds: float = 2.0,
        labels: Mapping[str, int] | None = None,
        new_signatures: bool = False,
        policy: VersionPolicy | None = None,
    ):
        self.folder = folder
        self.name = name
        self._poll_seconds = poll_seconds
        self._labels = dict(labels or {})
        self._new_signatures = new_signatures
        self._policy = policy or VersionPolicy()
        self._refreshing = threading.Lock()
        self._settle_seconds = min(SETTLE_SECONDS, poll_seconds)
        self._lock = threading.Lock()
        self._models: dict[int, LoadedModel] = {}
        self._latest: int | None = None
        self._statuses: dict[int, VersionStatus] = {}
        self._failures: dict[int, _Failure] = {}
        self._seen: dict[int, tuple[Contents, float]] = {}
        self._unreadable: dict[int, str] = {}
        self._said: dict[str, str] = {}  # what was complained of -> the last complaint
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
            self._thread.join(STOP_SECONDS)

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

    @property
    def labels(self) -> dict[str, int]:
        """Label -> version."""
        return dict(self._labels)

    @property
    def policy(self) -> VersionPolicy:
        """Which versions are served."""
        return self._policy

    @property
    def is_ready(self) -> bool:
        """Whether there is a version that answers."""
        return self._latest is not None

    def configure(self, labels: Mapping[str, int], policy: VersionPolicy) -> None:
        """Takes other labels and another policy, and loads and drops versions accordingly."""
        with self._lock:
            self._labels = dict(labels)
            self._policy = policy
        self.refresh()

    def missing_labels(self) -> dict[str, int]:
        """Labels whose version is not loaded, and these versions."""
        with self._lock:
            return {label: version for label, version in self._labels.items() if version not in self._models}

    def refresh(self) -> bool:
        """Looks at the folder once and loads what is new.

        Returns:
            Whether there is a version to serve.
        """
        with self._refreshing:
            folders, problem = self._folders()
            complete = self._complete_versions(folders)
            for version in set(self._labels.values()) & set(complete):
                self._load(version, complete[version])
            newest, kept = self._load_wanted(complete)
            if newest is None:  # nothing usable in the folder: keep what is served
                newest, kept = self._latest, set(self._models)
            self._switch(newest, kept)
            self._forget(folders, problem)
            return newest is not None

    def _load_wanted(self, complete: Mapping[int, tuple[Contents, Path]]) -> tuple[int | None, set[int]]:
        """Loads what the policy wants: the version that answers by default, and all that are served."""
        policy = self._policy
        newest: int | None = None
        kept: set[int] = set()
        for version in policy.candidates(complete):
            if policy.is_full(len(kept)):
                break
            if newest is None and self._load(version, complete[version], beside=self._latest):
                newest = version
                kept.add(version)
            elif (newest is not None or policy.latest is None) and self._load(version, complete[version]):
                kept.add(version)  # served by its number
        return newest, kept

    def _follow(self) -> None:
        while not self._stopping.wait(self._poll_seconds):
            try:
                self.refresh()
            except Exception:  # whatever the file system does, serving goes on
                log.exception("crowdzoo serve: looking for new versions in %s failed", self.folder)

    def _switch(self, newest: int | None, kept: Set[int]) -> None:
        with self._lock:
            before = self._latest
            wanted = {newest, *kept, *self._labels.values()}
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

    def _forget(self, folders: Mapping[int, Path], problem: str) -> None:
        """Takes versions whose folder is gone out of the status; those that are still served say so in it."""
        with self._lock:
            gone = set() if problem else self._statuses.keys() - folders.keys()
            for version in self._models:
                error = _GONE if version in gone else problem or self._unreadable.get(version, "")
                self._statuses[version] = VersionStatus(version, "AVAILABLE", error)
            for version in gone - self._models.keys():
                del self._statuses[version]
                self._failures.pop(version, None)
            gone &= self._models.keys()
        for version in gone:
            self._say_once(f"version {version} in {self.folder}", _GONE)

    def _load(self, version: int, contents_and_folder: tuple[Contents, Path], beside: int | None = None) -> bool:
        """Whether the version is in memory, after trying to load it.

        Args:
            version: its number.
            contents_and_folder: its files and where they are.
            beside: version that it would follow, whose signatures it has to have.
        """
        files, folder = contents_and_folder
        if version in self._models and (beside is None or version == beside):
            return True
        model = self._models.get(version)
        failed = self._failures.get(version)
        if failed is not None and failed.contents == files and failed.beside in (None, beside):
            if time.monotonic() - failed.at < RETRY_SECONDS:
                return False
        else:
            failed = None
        if model is None:
            self._set_status(VersionStatus(version, "LOADING"))
        started = time.monotonic()
        try:
            if model is None:
                check_readable(folder, files, STALL_SECONDS)
            if reason := self._signatures_differ(folder, model, beside):
                self._leave_out(version, folder, _Failure(files, beside, reason, started), failed)
                return False
            if model is not None:
                return True
            model = LoadedModel(folder, version)
        except Exception as error:  # TensorFlow raises many kinds for a broken model
            lines = [error.reason] if isinstance(error, RequestError) else str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {lines[-1] if lines else ''}"
            if model is None and INDEX not in {file[0] for file in files}:  # only a model without variables has none
                self._failures[version] = _Failure(files, None, reason, started)
                self._set_status(VersionStatus(version, "START", WAITS.format(INDEX)))
                return False
            self._leave_out(version, folder, _Failure(files, None, reason, started), failed)
            return False
        self._failures.pop(version, None)
        with self._lock:
            self._models[version] = model
            self._statuses[version] = VersionStatus(version, "AVAILABLE")
        log.info(
            "crowdzoo serve: model %s, version %s loaded in %.1f s, %s warm-up requests answered",
            self.name, version, time.monotonic() - started, model.num_warmup_requests,
        )  # fmt: skip
        return True

    def _signatures_differ(self, folder: Path, model: LoadedModel | None, beside: int | None) -> str:
        """Why the new version must not take over from version `beside`, or ""."""
        served = None if beside is None else self._models.get(beside)
        if self._new_signatures or served is None:
            return ""
        definitions = read_signature_defs(folder) if model is None else model.signature_defs
        features = read_features(folder) if model is None else model.features
        what, difference = "signatures", signature_difference(served.signature_defs, definitions)
        if not difference and features and served.features:
            what, difference = "columns", name_difference("column", features, served.features)
        if not difference:
            return ""
        return (
            f"its {what} are not those of version {beside}, which is served: {difference}. "
            "--new-signatures (Server(new_signatures=True)), or a restart, serves it"
        )

    def _leave_out(self, version: int, folder: Path, failure: _Failure, before: _Failure | None) -> None:
        self._failures[version] = failure
        if version not in self._models:  # it may be served under a label
            self._set_status(VersionStatus(version, "END", without_paths(failure.reason, folder)))
        if before is not None and before.reason == failure.reason:
            return
        what, hint = "does not take over", ""
        if failure.beside is None:
            what = "cannot be loaded and is left out"
            hint = "; if it is still being copied, it is tried again when its files change"
        log.error("crowdzoo serve: version %s in %s %s: %s%s", version, folder, what, failure.reason, hint)

    def _set_status(self, status: VersionStatus) -> None:
        with self._lock:
            self._statuses[status.version] = status

    def _say_once(self, what: str, complaint: str) -> None:
        if self._said.get(what) != complaint:
            self._said[what] = complaint
            log.warning("crowdzoo serve: %s: %s", what, complaint)

    def _folders(self) -> tuple[dict[int, Path], str]:
        """Version folders by number, and why the folder itself cannot be read, or ""."""
        try:
            folders, refused = version_folders(self.folder)
        except OSError as error:
            self._say_once(str(self.folder), f"cannot be read ({error.strerror}); what is in memory is served on")
            return {}, f"the folder of the versions cannot be read ({error.strerror}); it is answered from memory"
        self._said.pop(str(self.folder), None)
        for name in refused:
            shown = name if len(name) <= 40 else name[:37] + "..."
            self._say_once(
                f"folder {shown!r} in {self.folder}",
                "is left out: a version is a number from 0 to 2^63 - 1 in plain digits, and each number once",
            )
        return folders, ""

    def _complete_versions(self, folders: Mapping[int, Path]) -> dict[int, tuple[Contents, Path]]:
        """Versions whose files are all there and at rest."""
        now = time.monotonic()
        seen: dict[int, tuple[Contents, float]] = {}
        complete: dict[int, tuple[Contents, Path]] = {}
        self._moving = False
        self._unreadable = {}
        for version, folder in folders.items():
            before = self._seen.get(version)
            try:
                files, last_change = contents(folder)
            except OSError as error:
                reason = self._unreadable[version] = f"its folder cannot be read ({error.strerror or error})"
                self._say_once(f"version {version} in {self.folder}", reason)
                if version in self._models:  # what is in memory is served on
                    complete[version] = ((), folder)
                else:
                    self._set_status(VersionStatus(version, "END", reason))
                continue
            self._said.pop(f"version {version} in {self.folder}", None)
            since = before[1] if before is not None and before[0] == files else now
            seen[version] = (files, since)
            # the file system's time of change cannot be set back by a copy, unlike the time of modification
            at_rest = now - since >= self._settle_seconds or time.time() - last_change >= self._settle_seconds
            missing = what_is_missing(files)
            if not at_rest and version not in self._models:
                self._moving = True
            if version in self._models or (at_rest and not missing):
                complete[version] = (files, folder)
            elif missing:
                self._set_status(VersionStatus(version, "START", WAITS.format(missing)))
        self._seen = seen
        return complete

    def _check_folder(self) -> None:
        if not self.folder.is_dir():
            raise ServingError(f"{self.folder}: the folder does not exist")
        if not self._folders()[0]:
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


INDEX = "variables/variables.index"
WAITS = "waits for {}, which is not there yet"
_GONE = "its folder is gone; it is answered from memory"
_NO_VERSION = (
    "holds no complete model: a subfolder named by a number with saved_model.pb and its variables. "
    "`crowdzoo run` and `crowdzoo export` write one; with --wait the server starts without one"
)
