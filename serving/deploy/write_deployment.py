"""Writes files that run TensorFlow Serving in containers, from templates."""

from __future__ import annotations

import json
import re
from pathlib import Path

import crowdzoo
from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.files.paths import local_path, scheme_of
from crowdzoo.files.served_model import MODEL_CARD_FILE
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.files.writing import atomic_folder

_TEMPLATES = Path(__file__).with_name("templates")
_CONFIGS = ("models.config", "monitoring.config")
_MORE = {
    "kubernetes": ("monitoring.yaml", "network.yaml", "dashboard.json"),
    "prometheus": ("rules.yaml", "dashboard.json"),
}
# Places that each target supports; a folder is on this machine, or on every node
_PLACES = {
    "pvc": r"pvc://(?P<claim>[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)(?:/(?P<path>[A-Za-z0-9][A-Za-z0-9._/-]*))?",
    "gs": r"gs://[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9._~@%+=-]+)*/?",
    "s3": r"s3://[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9._~@%+=-]+)*/?",
}
_TAKES = {"compose": "folder", "kubernetes": "folder pvc gs", "kserve": "pvc gs s3", "prometheus": "folder pvc gs s3"}
# Part of an address, of a line of TensorFlow Serving's configuration, and of names in Kubernetes, which append to it
_MODEL, _OBJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}"), re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:-]*?(:(?!latest\Z)\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})")

# The last release of TensorFlow Serving for each TensorFlow, from PyPI's `tensorflow-serving-api`
_RELEASES = ("2.16.1", "2.17.1", "2.18.1", "2.19.1", "2.20.0", "2.21.0")


def write_deployment(
    target: str, model: str, place: str, image: str, folder: Path, *, replace: bool = False
) -> list[str]:
    """Writes the files of a target atomically.

    Args:
        target: `compose`, `kubernetes`, `kserve` or `prometheus`.
        model: its name in URLs.
        place: its folder of versions: a path, `pvc://CLAIM/FOLDER`, `gs://BUCKET/FOLDER` or `s3://BUCKET/FOLDER`.
        image: image of TensorFlow Serving, with a tag or a digest.
        folder: folder to create.
        replace: whether to replace an existing folder.

    Returns:
        Names of the files.

    Raises:
        ConfigError: an invalid name, or a place that the target does not support.
        OSError: the folder cannot be written, or is not empty and `replace` is false.
    """
    values, kind = _values(target, model, place, image)
    texts = {name: _filled(name, values, kind) for name in _CONFIGS}
    indented = {name: re.sub(r"(?m)^", "    ", text.rstrip()) for name, text in texts.items()}
    rules = _filled("rules.yaml", values, kind).partition("\n")[2]
    values["rules.yaml"] = re.sub(r"(?m)^", "  ", rules.rstrip())
    files = {f"{target}.yaml": _filled(f"{target}.yaml", {**values, **indented}, kind)}
    if target == "compose":
        files |= {f"config/{name}": text for name, text in texts.items()}
    files |= {name: _filled(name, values, kind) for name in _MORE.get(target, ())}
    head = f"# Written by `crowdzoo deploy` {crowdzoo.__version__}.\n"
    with atomic_folder(folder, replace=replace) as new:
        for name, text in files.items():
            (new / name).parent.mkdir(exist_ok=True)
            (new / name).write_text(text if name.endswith(".json") else head + text, encoding="utf-8")
    return list(files)


def _filled(name: str, values: dict[str, str], kind: str) -> str:
    """Fills values into a template, without the lines of other kinds of places, such as `#[pvc]...`."""
    text = (_TEMPLATES / name).read_text(encoding="utf-8").replace(f"#[{kind}]", "")
    text = re.sub(r"(?m)^#\[\w+\].*\n", "", text)
    return re.sub(r"\{\{([\w.]+)\}\}", lambda field: values[field[1]], text)


def _values(target: str, model: str, place: str, image: str) -> tuple[dict[str, str], str]:
    """The values to fill in, and the kind of the place."""
    if not _MODEL.fullmatch(model):
        raise ConfigError(f"model {short_repr(model)}: a name has letters, digits and . _ - only; begin with no sign.")
    if not _IMAGE.fullmatch(image):
        due = "a tag or a digest, such as tensorflow/serving:2.16.1; `latest` is another image tomorrow."
        raise ConfigError(f"image {short_repr(image)}: must have {due}")
    name = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:40].rstrip("-")
    name = name if _OBJECT.fullmatch(name) else f"model-{name}"[:40].rstrip("-")
    if target == "kserve" and name != model:
        raise ConfigError(f"model {model}: KServe's paths have the name of the InferenceService: name it {name}.")
    kind, source, match = scheme_of(place) or "folder", place, None
    if kind == "folder":
        source = str(local_path(place, "--model").absolute())
    elif kind not in _PLACES or not (match := re.fullmatch(_PLACES[kind], place)) or ".." in place.split("/"):
        raise ConfigError(
            f"model {model}: {short_repr(place)} is not a place. Use a folder, pvc://CLAIM/FOLDER, gs://BUCKET/FOLDER, "
            "or s3://BUCKET/FOLDER, of letters, digits and . _ - only."
        )
    if kind not in (places := _TAKES[target].split()):
        known = ", ".join(scheme if scheme == "folder" else f"{scheme}://" for scheme in places)
        raise ConfigError(f"model {model}: {place} is not read by {target}; it reads {known}.")
    if target == "compose" and not complete_versions(source):
        raise ConfigError(
            f"model {model}: {source} has no version with a saved_model.pb. Name the folder that `crowdzoo export` "
            "writes, which holds a folder a version, such as 1."
        )
    base = "/mnt/models" if target == "kserve" else place.rstrip("/") if kind == "gs" else f"/models/{model}"
    claim, path = (match["claim"], (match["path"] or "").strip("/")) if kind == "pvc" and match else ("", "")
    quoted = json.dumps(source.replace("$", "$$") if target == "compose" else source.rstrip("/"))
    values = {"model": model, "name": name, "image": image, "place": quoted, "base_path": base}
    return {**values, "claim": claim, "path": json.dumps(path)}, kind


def image_for(version: str) -> str:
    """The image that reads models of this version of TensorFlow.

    Args:
        version: version of TensorFlow, such as "2.16.2".

    Returns:
        Name and tag, such as "tensorflow/serving:2.16.1".

    Raises:
        ConfigError: not a version, or no release of TensorFlow Serving is known for it.
    """
    match = re.match(r"(\d{1,4}\.\d{1,4})(\.|$)", version, re.ASCII)
    if match is None:
        raise ConfigError(f"TensorFlow {short_repr(version)}: is not a version such as 2.16.2.")
    release = next((release for release in _RELEASES if release.startswith(f"{match[1]}.")), None)
    if release is None:
        raise ConfigError(
            f"no release of TensorFlow Serving is known here for TensorFlow {match[1]}: name an image that is not "
            "older than it."
        )
    return f"tensorflow/serving:{release}"


def tensorflow_of(version_folder: Path) -> str | None:
    """The version of TensorFlow in a model's card; None without a card."""
    try:
        card = json.loads((version_folder / MODEL_CARD_FILE).read_text("utf-8"))
        version = card["software"]["tensorflow"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # another exporter's model
        return None
    return version if isinstance(version, str) else None
