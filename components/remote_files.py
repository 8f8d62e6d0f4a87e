"""Files of object stores, such as `s3://bucket/answers.csv`, through Beam's file systems.

Google's (`gs://`) are available with TFX; Amazon's and compatible ones such as MinIO (`s3://`) need boto3.
"""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.value_provider import RuntimeValueProvider

from crowdzoo.errors import DataError, PipelineError
from crowdzoo.files.paths import scheme_of

# otherwise Beam would compress and decompress by the suffix of the name
_AS_IT_IS = CompressionTypes.UNCOMPRESSED


def is_remote(path: str | Path) -> bool:
    """Whether a path is the URI of an object store."""
    return scheme_of(path) is not None


def last_part(uri: str) -> str:
    """The name of a file or a folder, without its parents."""
    return PurePosixPath(uri).name


def remote_files(pattern: str) -> list[str]:
    """URIs of the files that match a pattern (`*` stops at `/`, `**` does not), sorted.

    Raises:
        DataError: the store cannot be accessed.
    """
    with _asking(pattern):
        (result,) = _file_systems().match([pattern])
        return sorted(metadata.path for metadata in result.metadata_list)


def fetch(uri: str, place: str | Path) -> None:
    """Copies a file, or all files below a folder, to this machine.

    Args:
        uri: URI of the file or the folder.
        place: path of the copy; its parents are created.

    Raises:
        DataError: there is neither a file nor a folder of that name, or it cannot be read.
    """
    with _asking(uri):
        single = _file_systems().exists(uri)
    if single:
        _fetch_file(uri, Path(place))
        return
    folder = uri.rstrip("/") + "/"
    files = [file for file in remote_files(f"{folder}**") if not file.endswith("/")]
    if not files:
        raise DataError(f"{uri}: is neither a file nor a folder with files. Correct the URI, or copy the file there.")
    for file in files:
        inside = PurePosixPath(file.removeprefix(folder))
        if ".." in inside.parts or inside.is_absolute():
            raise DataError(f"{uri}: holds {file}, whose name leads out of the folder. Rename it.")
        _fetch_file(file, Path(place, inside))


def upload(folder: str | Path, uri: str, last: str) -> None:
    """Copies all files below a folder into a folder of a store.

    Args:
        folder: folder of this machine.
        uri: URI of the target folder.
        last: path, inside the folder, of the file to write after all others.

    Raises:
        PipelineError: the store cannot be written to. Files written so far remain, without the last one.
    """
    files = sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())
    for name in sorted(files, key=lambda name: name == last):
        upload_file(Path(folder, name), f"{uri.rstrip('/')}/{name}")


def upload_file(path: str | Path, uri: str) -> None:
    """Copies a file into a store, atomically.

    Args:
        path: path of the file on this machine.
        uri: URI of the file in the store; an existing file is replaced.

    Raises:
        PipelineError: the store cannot be written to.
    """
    how = {"mime_type": "application/octet-stream", "compression_type": _AS_IT_IS}
    with _asking(uri, "written", PipelineError), open(path, "rb") as source, _file_systems().create(uri, **how) as sink:
        shutil.copyfileobj(source, sink)


def remove(uris: Sequence[str]) -> None:
    """Removes files of a store one by one.

    Raises:
        PipelineError: a file cannot be removed.
    """
    for uri in uris:
        with _asking(uri, "removed", PipelineError):
            _file_systems().delete([uri])


def _fetch_file(uri: str, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with _asking(uri), _file_systems().open(uri, compression_type=_AS_IT_IS) as source, open(place, "wb") as sink:
        shutil.copyfileobj(source, sink)


def _file_systems() -> type[FileSystems]:
    """Beam's file systems, with options, which they need outside a pipeline to create a client for S3."""
    if RuntimeValueProvider.runtime_options is None:
        RuntimeValueProvider.set_runtime_options({})
    return FileSystems


@contextlib.contextmanager
def _asking(uri: str, what: str = "read", kind: type[DataError | PipelineError] = DataError) -> Iterator[None]:
    """Turns errors of Beam and the store's client into one line that names the file."""
    try:
        yield
    except Exception as error:  # each store's client has its own classes
        raise kind(f"{uri}: cannot be {what}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """The first line of the store client's message; Beam keeps messages by file, clients in a tuple with a number."""
    details = getattr(error, "exception_details", None)
    if isinstance(details, dict) and details:
        error = next(iter(details.values()))
    text = error.args[0] if isinstance(error, Exception) and error.args else error
    return next(iter(str(text).strip().splitlines()), type(error).__name__)
