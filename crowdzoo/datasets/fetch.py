"""Downloads public crowd data sets, from a table of addresses, licences and SHA-256. They do not ship with crowdzoo."""

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

TIMEOUT = 60  # seconds to wait for an answer


def public_files() -> dict[str, list[dict[str, str]]]:
    """Files of each data set by name, with licence, url, file (below `data_folder`) and sha256 (of the url's content).

    If the file's name ends in .gz but its url does not, `fetch` compresses it.
    """
    files_by_set: dict[str, list[dict[str, str]]] = {}
    for row in package_table("crowdzoo.datasets", "public.csv"):
        files_by_set.setdefault(row["name"], []).append(row)
    return files_by_set


def fetch(name: str, folder: str | Path | None = None) -> list[Path]:
    """Downloads a public crowd data set; complete existing files are kept.

    Args:
        name: name of the data set, a key of `public_files()`.
        folder: folder of the data sets; None uses `data_folder()`.

    Returns:
        Paths of its files.

    Raises:
        DataError: an unknown name, no connection, or a file whose content has changed.
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
    """SHA-256 of an existing file before compression; empty if it is damaged."""
    try:
        return sha256(gzip.decompress(path.read_bytes()) if packed else path.read_bytes()).hexdigest()
    except (EOFError, OSError, zlib.error):
        return ""
