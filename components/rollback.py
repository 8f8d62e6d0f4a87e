"""Takes served versions back, with vetoes that keep the same models from being pushed again."""

import datetime
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from crowdzoo.components.serving_folder import fingerprint, lock_folder
from crowdzoo.errors import DataError, PipelineError, ServingError
from crowdzoo.files.json import FORMAT_VERSION, read_json
from crowdzoo.files.model_files import read_model_card
from crowdzoo.files.served_model import BLESSING_FILE, MODEL_CARD_FILE
from crowdzoo.files.version_folders import WITHDRAWN, complete_versions, version_folders
from crowdzoo.files.writing import write_json

VETOES = f"{WITHDRAWN}/vetoes.json"
LEAST_TIME = 10**9  # the Pusher's version numbers are times of pushes, seconds since 1970


@dataclass(frozen=True)
class Veto:
    """Why a version was taken back.

    Attributes:
        version: its number.
        fingerprint: fingerprint of its files, see `fingerprint`.
        inputs: SHA-256 of the content of each input file of its training, by its key in `data`.
        settings: SHA-256 of the settings of its training; None if its card does not have it.
        reason: reason given by the user.
        time: time, UTC, ISO 8601.
    """

    version: int
    fingerprint: str
    inputs: Mapping[str, str]
    settings: str | None
    reason: str
    time: str

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"version {self.version} was taken back on {self.time[:16].replace('T', ' at ')} UTC{reason}"

    def undo(self, folder: str | Path) -> str:
        """The command that puts the version back into its serving folder, in backticks."""
        return f"`crowdzoo rollback {shlex.quote(str(folder))} --undo {self.version}`"


def take_back(folder: str | Path, to: int | None = None, reason: str = "") -> tuple[list[Veto], Path]:
    """Makes an earlier version the newest one again.

    The vetoes are written first. Then each newer version is moved into the subfolder `withdrawn` by one rename, the
    served one last, so that a server switches from the newest version directly to the earlier one. If this is
    interrupted, the same call completes it.

    Args:
        folder: the serving folder, on this machine.
        to: version to go back to; None is the one before the newest.
        reason: reason for the veto.

    Returns:
        The vetoes of the versions that were taken back, oldest first, and the folder of the version that is served now.

    Raises:
        ServingError: the version does not exist, or there is no version before the newest.
        PipelineError: a version cannot be moved.
    """
    folder = Path(folder)
    target = target_of(folder, to)
    with lock_folder(folder):
        target = target_of(folder, target)  # another process may have taken it back meanwhile
        versions = _versions(folder)
        newer = [number for number in sorted(versions) if number > target]
        vetoes = [_veto(number, versions[number], reason) for number in newer]
        _write(folder, [*(veto for veto in vetoes_of(folder) if veto.version not in newer), *vetoes])
        for number in newer:  # the newest, which is served, last
            _move(versions[number], folder / WITHDRAWN / versions[number].name)
    return vetoes, versions[target]


def target_of(folder: str | Path, to: int | None) -> int:
    """The version that `take_back` goes back to; arguments and errors as there."""
    versions = _versions(Path(folder))
    if to is not None and to not in versions:
        raise ServingError(f"{folder}: has no version {to}; its versions are {_listed(versions)}.")
    if to is None and len(versions) == 1:
        raise ServingError(
            f"{folder}: {_listed(versions)} is the only version, so there is no earlier one to go back to. Stop the "
            "server, or push another model."
        )
    return sorted(versions)[-2] if to is None else to


def lift_veto(folder: str | Path, version: int) -> Path:
    """Moves a withdrawn version back into the serving folder, and removes its veto.

    Returns:
        The version's folder. It is served if no other version has a higher number.

    Raises:
        ServingError: the version was not withdrawn.
        PipelineError: it cannot be moved.
    """
    folder = Path(folder)
    vetoes = vetoes_of(folder)
    if version not in {veto.version for veto in vetoes}:
        known = _listed(veto.version for veto in vetoes) or "none"
        raise ServingError(f"{folder}: version {version} was not taken back. Versions that were: {known}.")
    target = folder / str(version)
    with lock_folder(folder):
        if (folder / WITHDRAWN / str(version)).exists():
            _move(folder / WITHDRAWN / str(version), target)
        _write(folder, [veto for veto in vetoes_of(folder) if veto.version != version])
    return target


def vetoes_of(folder: str | Path) -> list[Veto]:
    """The vetoes of a serving folder, oldest first; an empty list without the file."""
    place = Path(folder, VETOES)
    if not place.exists():
        return []
    try:
        return [Veto(**veto) for veto in read_json(place)["vetoes"]]
    except (KeyError, TypeError) as error:
        raise DataError(f"{place}: not a list of vetoes, as `crowdzoo rollback` writes it: {error}") from None


def veto_of(model: str | Path, folder: str | Path) -> Veto | None:
    """The veto against pushing a model, by its files or by its training's inputs and settings; or None.

    Args:
        model: folder of a SavedModel.
        folder: the serving folder.
    """
    vetoes = vetoes_of(folder)
    if not vetoes:
        return None
    digest, (inputs, settings) = fingerprint(model), _inputs_and_settings(Path(model))
    for veto in reversed(vetoes):
        trained_alike = settings is not None and (veto.inputs, veto.settings) == (inputs, settings)
        if trained_alike or veto.fingerprint == digest:
            return veto
    return None


def describe_versions(folder: str | Path) -> list[tuple[int, str, str, str, str, str]]:
    """Facts about each version, newest first.

    Returns:
        Rows of number; state (`served`, `older`, `withdrawn` or `incomplete`); time of the push, UTC, or of its files
        if the number is not a time; outcome of its evaluation and its main figure, "-" if `crowdzoo run` did not push
        it; and its veto, or "".

    Raises:
        ServingError: the folder has no complete version.
    """
    folder = Path(folder)
    complete, places = _versions(folder), version_folders(folder)[0]
    states = {number: "older" if number in complete else "incomplete" for number in places} | {max(complete): "served"}
    withdrawn = version_folders(folder / WITHDRAWN)[0] if (folder / WITHDRAWN).is_dir() else {}
    states = dict.fromkeys(withdrawn, "withdrawn") | states
    vetoes = {veto.version: str(veto) for veto in vetoes_of(folder)}
    rows = []
    for number, state in sorted(states.items(), reverse=True):
        place = {**withdrawn, **places}[number]
        seconds = number if number >= LEAST_TIME else place.stat().st_mtime
        pushed = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(" ", "minutes")[:16]
        blessing = read_json(place / BLESSING_FILE) if (place / BLESSING_FILE).exists() else {}
        metric, scores = blessing.get("metric"), blessing.get("candidate") or {}
        figure = f"{metric} {scores[metric]:.4f}" if metric in scores else "-"
        rows.append((number, state, pushed, blessing.get("outcome", "-"), figure, vetoes.get(number, "")))
    return rows


def _versions(folder: Path) -> dict[int, Path]:
    versions = {int(path.name): path for path in complete_versions(folder)}
    if not versions:
        raise ServingError(f"{folder}: holds no served version. Give the folder that has one subfolder per version.")
    return versions


def _veto(number: int, place: Path, reason: str) -> Veto:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    inputs, settings = _inputs_and_settings(place)
    return Veto(number, fingerprint(place), inputs, settings, reason, now)


def _inputs_and_settings(model: Path) -> tuple[dict[str, str], str | None]:
    """SHA-256 of the inputs and of the settings of a training, from the model's card."""
    card = read_model_card(model / MODEL_CARD_FILE) if (model / MODEL_CARD_FILE).exists() else {}
    lineage = card.get("lineage") or {}
    return lineage.get("inputs", {}), lineage.get("settings")


def _write(folder: Path, vetoes: list[Veto]) -> None:
    (folder / WITHDRAWN).mkdir(exist_ok=True)
    content = {"vetoes": [asdict(veto) for veto in vetoes], "format_version": FORMAT_VERSION}
    write_json(folder / VETOES, content)


def _move(source: Path, target: Path) -> None:
    try:
        os.rename(source, target)
    except OSError as error:
        raise PipelineError(f"{source}: cannot be moved to {target}: {error.strerror}") from error


def _listed(versions: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(versions)))
