"""Loads a configuration: the file, overrides and paths."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from crowdzoo.errors import ConfigError, settings_as, shorten
from crowdzoo.files.paths import scheme_of
from crowdzoo.pipelines.config.checks import outside_problems, setting_problems
from crowdzoo.pipelines.config.kubeflow_checks import kubeflow_problems, vertex_problems
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig, backbone_files
from crowdzoo.pipelines.config.problems import config_error, sentences
from crowdzoo.pipelines.config.sections import as_key
from crowdzoo.pipelines.yaml_files import read_yaml

_PATHS = {"data": ("annotations", "instances", "gold"), "output": ("root", "serving")}
_DEEPEST_KEY = 10


@settings_as(as_key)
def load_config(
    path: str | Path, overrides: Mapping[str, Any] | None = None, *, on: Literal["kubeflow", "vertex"] | None = None
) -> PipelineConfig:
    """Reads and checks a pipeline's configuration.

    Relative paths in the file are relative to the file's folder; those in `overrides`, and the default `output.root` of
    `runs/<name>`, are relative to the current folder. Checks that input files exist and have the required columns, and
    that names of methods and arguments are known.

    Args:
        path: a YAML file.
        overrides: values that replace those of the file, by dotted key: `{"training.epochs": 5}`.
        on: "kubeflow" or "vertex" if the pipeline is compiled for them: input files are URIs or paths on volumes, which
            are not checked, and the section `kubeflow` must be complete.

    Returns:
        The checked configuration.

    Raises:
        ConfigError: names the file, each invalid key, its value and the fix; ten are shown, the rest are counted.
    """
    path = Path(path)
    values = read_yaml(path)
    if not isinstance(values, dict):
        problem = "is empty" if values is None else f"holds a {type(values).__name__}"
        raise ConfigError(f"{path}: {problem}; a configuration is a mapping that begins like 'name: labelme'.")
    _resolve_paths(values, path.parent)
    _resolve_model(values, path.parent)
    for key, value in (overrides or {}).items():
        _override(values, key, value)
    _fill_output(values)
    _resolve_paths(values, Path.cwd())
    _resolve_model(values, Path.cwd())
    try:
        # an empty section is None in YAML
        sections = {key: value for key, value in values.items() if value is not None}
        config = PipelineConfig.model_validate(sections, context={"kubeflow": on is not None})
    except ValidationError as error:
        raise config_error(path, sentences(error)) from None
    outside = {None: outside_problems, "kubeflow": kubeflow_problems, "vertex": vertex_problems}[on]
    if problems := [*setting_problems(config), *outside(config)]:
        raise config_error(path, problems)
    return config


def _resolve_paths(values: dict[str, Any], base: Path) -> None:
    for section, keys in _PATHS.items():
        inside = values.get(section)
        if not isinstance(inside, dict):
            continue
        for key in keys:
            if isinstance(inside.get(key), str | Path) and (text := str(inside[key]).strip()):
                inside[key] = _resolved(text, base)


def _resolve_model(values: dict[str, Any], folder: Path) -> None:
    """Resolves the files of a custom base and of backbones; names of modules and networks are unchanged."""
    model = values.get("model")
    if not isinstance(model, dict):
        return
    if isinstance(base := model.get("base"), str) and ".py:" in base:
        path, _, name = base.rpartition(":")
        model["base"] = f"{_resolved(path, folder)}:{name}"
    for section in (model, model.get("images") or {}):
        for key, path in backbone_files(section).items():
            section[key] = _resolved(path, folder)


def _resolved(path: str, base: Path) -> str:
    """Makes a path absolute; anything else, such as `gs://bucket`, is unchanged and rejected later."""
    if scheme_of(path) is not None:
        return path
    try:
        return str((base / Path(path).expanduser()).absolute())
    except RuntimeError:  # ~user for an unknown user
        return str((base / path).absolute())


def _override(values: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    if len(sections) > _DEEPEST_KEY:
        raise ConfigError(f"{shorten(key)}: has {len(sections) + 1:,} parts; settings have at most {_DEEPEST_KEY + 1}.")
    inside = values
    for section in sections:
        if inside.get(section) is None:
            inside[section] = {}
        inside = inside[section]
        if not isinstance(inside, dict):
            raise ConfigError(f"{key}: '{section}' holds a value, not a section, so nothing below it can be set.")
    inside[last] = value


def _fill_output(values: dict[str, Any]) -> None:
    """Sets the default folders: `runs/<name>` in the current folder, and `serving` in it."""
    output = values.setdefault("output", {})
    if output is None:
        output = values["output"] = {}
    if isinstance(output, dict):
        if output.get("root") is None:
            output["root"] = str(Path("runs") / str(values.get("name", "crowdzoo")))
        if output.get("serving") is None and isinstance(output["root"], str | Path):
            output["serving"] = str(Path(output["root"]) / "serving")
