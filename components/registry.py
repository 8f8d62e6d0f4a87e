"""MLflow's model registry: registers served versions, and serves registered ones."""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crowdzoo.components.lineage import facts_of, lineage_of, read_origin, update_origin
from crowdzoo.components.rollback import veto_of
from crowdzoo.components.serving_folder import fingerprint, push_version
from crowdzoo.errors import ConfigError, DataError, ServingError, short_repr
from crowdzoo.files.json import read_json
from crowdzoo.files.model_files import read_model_card
from crowdzoo.files.served_model import BLESSING_FILE, MODEL_CARD_FILE
from crowdzoo.files.version_folders import newest_version

SCHEME = "models:/"
_PREFIX = "crowdzoo."  # prefix of the tags of a registered version
_FINGERPRINT = f"{_PREFIX}fingerprint"
_LONGEST_TAG = 5000  # limit of older MLflow servers
_NOT_TAGS = ("lineage", "signatures", "software", "format_version", "mlflow", "model")
_NAME = re.compile(r"[\w .-]+")
# Defaults of MLflow's settings: fail within seconds, and print neither progress bars nor links
_QUIET = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


def register_version(
    folder: str | Path, name: str, *, version: int | None = None, aliases: Sequence[str] = ()
) -> tuple[str, bool]:
    """Registers a served version in MLflow, at `MLFLOW_TRACKING_URI` and `MLFLOW_REGISTRY_URI`.

    The files are logged to the MLflow run that the model was trained in (see `write_origin`), or else to a new one,
    with the figures of the evaluation as metrics. The tags of the registered version, which begin with `crowdzoo.`,
    have the facts of `lineage_of` and the card. MLflow's TensorFlow flavour can load it. A model with the same
    fingerprint that is already registered under this name is not registered again, but gets the aliases.

    Args:
        folder: a serving folder, or one version.
        name: name of the registered model, created if it does not exist.
        version: version of the serving folder; None is the newest.
        aliases: aliases such as `stable`, which are moved from other versions.

    Returns:
        The URI, such as `models:/pets/3`, and whether it was newly registered.

    Raises:
        ConfigError: a name or an alias that cannot be part of a URI, or MLflow is not installed.
        ServingError: no such version, or MLflow rejects the request or does not answer.
    """
    for text in (name, *aliases):
        if not _NAME.fullmatch(text):
            raise ConfigError(f"{short_repr(text)}: names and aliases have letters, digits, blanks, '.', '-' and '_'.")
    model = newest_version(folder if version is None else Path(folder, str(version)))
    digest = fingerprint(model)
    with _mlflow() as mlflow:
        client = mlflow.MlflowClient()
        if not client.search_registered_models(filter_string=f"name='{name}'"):
            client.create_registered_model(name)
        versions = client.search_model_versions(f"name='{name}'")
        registered = next((each for each in versions if each.tags.get(_FINGERPRINT) == digest), None)
        is_new = registered is None
        if registered is None:
            run, source = _log(mlflow, model, digest)
            registered = client.create_model_version(name, source, run, tags=_tags(model, digest))
            update_origin(model, mlflow={"run": run, "model": f"{SCHEME}{name}/{registered.version}"})
        for alias in aliases:
            client.set_registered_model_alias(name, alias, registered.version)
    return f"{SCHEME}{name}/{registered.version}", is_new


def registry_place() -> str:
    """Address of the registry, such as a server's or that of a SQLite file."""
    with _mlflow() as mlflow:
        return str(mlflow.get_registry_uri())


def fetch_version(uri: str, folder: str | Path) -> Path:
    """Adds a registered model to a serving folder as its newest version, atomically.

    Args:
        uri: URI such as `models:/pets@stable` or `models:/pets/3`.
        folder: the serving folder, created if it does not exist.

    Returns:
        The version's folder. A model that already is the newest version is not copied again.

    Raises:
        ConfigError: MLflow is not installed.
        DataError: the files differ from the registered ones.
        ServingError: `crowdzoo rollback` took this model back here; MLflow has no such model, or does not answer.
    """
    with fetched_model(uri) as model:
        if veto := veto_of(model, folder):
            raise ServingError(f"{uri}: {veto}. To serve it again, use {veto.undo(folder)}.")
        return push_version(model, folder)


@contextlib.contextmanager
def fetched_model(uri: str) -> Iterator[Path]:
    """A registered model in a folder that is removed at the end; arguments and errors as `fetch_version`."""
    parts = re.fullmatch(rf"{SCHEME}/*([^/@]+)(?:@([^/@]+)|/(\d+))", uri)
    if parts is None:
        raise ConfigError(f"{short_repr(uri)}: is not models:/NAME@ALIAS or models:/NAME/VERSION.")
    name, alias, number = parts.groups()
    with TemporaryDirectory() as scratch:
        with _mlflow() as mlflow:
            client = mlflow.MlflowClient()
            find = client.get_model_version_by_alias if alias else client.get_model_version
            version = find(name, alias or number)
            exact = f"{SCHEME}{name}/{version.version}"  # an alias may be moved meanwhile
            place = Path(mlflow.artifacts.download_artifacts(exact, dst_path=scratch))
        models = [path.parent for path in place.rglob("saved_model.pb")]
        if len(models) != 1:
            raise DataError(f"{uri}: has {len(models)} TensorFlow SavedModels among its files, expected one.")
        if version.tags.get(_FINGERPRINT) not in (None, fingerprint(models[0])):
            raise DataError(f"{uri}: its files changed since they were registered. Register the model again.")
        update_origin(models[0], mlflow={"run": version.run_id, "model": exact})
        yield models[0]


def _log(mlflow: Any, model: Path, digest: str) -> tuple[str, str]:
    """Logs files and figures of a model to a run; returns the run, and the model's place in its artifacts."""
    run_id, place = (read_origin(model).get("mlflow") or {}).get("run"), f"model-{digest[:8]}"
    try:
        run_id = run_id and mlflow.get_run(run_id).info.run_id
    except mlflow.MlflowException:  # a run of another server
        run_id = None
    with mlflow.start_run(run_id, run_name=None if run_id else f"crowdzoo register {digest[:8]}", nested=True) as run:
        blessing = read_json(model / BLESSING_FILE) if (model / BLESSING_FILE).exists() else {}
        figures = (blessing.get("candidate") or {}).items()
        mlflow.log_metrics({key: value for key, value in figures if isinstance(value, int | float)})
        mlflow.log_artifacts(str(model), f"{place}/saved_model")
        entry = mlflow.models.Model(run_id=run.info.run_id, artifact_path=place)
        entry.add_flavor("tensorflow", saved_model_dir="saved_model", model_type="tf2-module", code=None)
        mlflow.log_text(entry.to_yaml(), f"{place}/MLmodel")
        return run.info.run_id, mlflow.get_artifact_uri(place)


def _tags(model: Path, digest: str) -> dict[str, str]:
    """The lineage of a model and its card, without long entries."""
    card = read_model_card(model / MODEL_CARD_FILE) if (model / MODEL_CARD_FILE).exists() else {}
    facts: dict[str, Any] = {"card": {key: value for key, value in card.items() if key not in _NOT_TAGS}}
    with contextlib.suppress(DataError):  # a model without lineage
        facts |= {key: value for key, value in lineage_of(model).items() if key not in _NOT_TAGS}
    facts |= {"version": model.name, "fingerprint": digest}
    return {f"{_PREFIX}{name}": str(value)[:_LONGEST_TAG] for name, value in facts_of(facts)}


@contextlib.contextmanager
def _mlflow() -> Iterator[Any]:
    """Yields the library, and turns its errors into `ServingError`."""
    settings = {name: value for name, value in _QUIET.items() if name not in os.environ}
    os.environ.update(settings)
    try:
        import mlflow

        try:
            yield mlflow
        except mlflow.MlflowException as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ServingError(
                f"MLflow at {mlflow.get_registry_uri()}: {reason.rstrip('.')}. Check the name, and MLFLOW_TRACKING_URI "
                "or MLFLOW_REGISTRY_URI."
            ) from error
    except ModuleNotFoundError as error:
        if error.name != "mlflow":
            raise
        raise ConfigError("the model registry needs mlflow: pip install 'crowdzoo[mlflow]'") from None
    finally:
        for name in settings:
            os.environ.pop(name, None)
