"""Public crowd sets that may be downloaded: where each file is, its licence and its SHA-256. Nothing of them ships."""

import gzip
import http.client
import urllib.request
import zlib
from hashlib import sha256
from pathlib import Path

from crowdzoo.datasets.crowd_dataset import data_folder
from crowdzoo.errors import DataError, unknown
from crowdzoo.files.package_tables import package_table
from crowdzoo.files.writing import atomic_file

TIMEOUT = 60  # seconds without an answer


def public_files() -> dict[str, list[dict[str, str]]]:
    """Name of a set -> its files: licence, url, file (below `data_folder`) and sha256 (of what the url has) of each.

    A file whose name ends in .gz, and its url does not, is compressed by `fetch`.
    """
    files_by_set: dict[str, list[dict[str, str]]] = {}
    for row in package_table("crowdzoo.datasets", "public.csv"):
        files_by_set.setdefault(row["name"], []).append(row)
    return files_by_set


def fetch(name: str, folder: str | Path | None = None) -> list[Path]:
    """Downloads a public crowd set; files that are there already, and whole, are kept.

    Args:
        name: of the set, a key of `public_files()`.
        folder: where the sets lie; None: `data_folder()`.

    Returns:
        Paths of its files.

    Raises:
        DataError: no set of that name, no connection, or a file with another content than the set had.
    """
    files = public_files()
    if name not in files:
        raise DataError(unknown("public data set", name, list(files)))
    paths = []
    for row in files[name]:
        path = (data_folder() if folder is None else Path(folder)) / row["file"]
        paths.append(path)
        packed = path.suffix == ".gz" and not row["url"].endswith(".gz")
        if path.is_file() and _sum(path, packed) == row["sha256"]:
            continue
        try:
            with urllib.request.urlopen(row["url"], timeout=TIMEOUT) as answer:
                content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise DataError(
                f"{row['url']} cannot be fetched: {error}. Try again where there is a connection (a proxy is named by "
                f"HTTPS_PROXY), or save it as {path}."
            ) from error
        if (digest := sha256(content).hexdigest()) != row["sha256"]:
            raise DataError(
                f"{row['url']}: has the SHA-256 {digest}, and the set had {row['sha256']}. It was not written. Look at "
                "the page of its source, and try again later."
            )
        with atomic_file(path) as file:
            file.write(gzip.compress(content, mtime=0) if packed else content)
    return paths


def _sum(path: Path, packed: bool) -> str:
    """SHA-256 of a file that is there, before it was compressed; empty where it is damaged."""
    try:
        return sha256(gzip.decompress(path.read_bytes()) if packed else path.read_bytes()).hexdigest()
    except (EOFError, OSError, zlib.error):
        return ""
