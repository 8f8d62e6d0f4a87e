"""Makes `curl` lines that can be pasted."""

import json
import shlex
from pathlib import Path

from crowdzoo.errors import ServingError
from crowdzoo.files.served_model import REQUEST_FILES
from crowdzoo.files.version_folders import newest_version

# Longest request that is written into the line itself.
INLINE_CHARACTERS = 300


def curl_example(
    model_dir: str | Path,
    *,
    name: str = "model",
    host: str = "127.0.0.1",
    port: int = 8501,
    signature: str = "serving_default",
    scheme: str = "http",
) -> str:
    """A command line that requests a prediction for a real instance from a server of this model.

    The instance is the first of the model's warm-up requests. If it is long, the line names the file that
    `export_model` wrote next to the model, `assets.extra/request.json`.

    Args:
        model_dir: a served folder, whose highest version is used, or one version.
        name: the model's name on the server.
        host: the server's address.
        port: its REST port.
        signature: `serving_default` or `annotators`.
        scheme: `http` or `https`.

    Returns:
        One line for a POSIX shell.

    Raises:
        ServingError: no such folder, or a model without the request (not written by crowdzoo, or no such signature).
    """
    folder = newest_version(model_dir)
    if signature not in REQUEST_FILES:
        raise ServingError(f"signature {signature!r}: there are requests for {', '.join(REQUEST_FILES)}")
    file = folder / REQUEST_FILES[signature]
    if not file.is_file():
        raise ServingError(f"{file}: does not exist, so there is no example request; `crowdzoo export` writes it")
    text = json.dumps(json.loads(file.read_text(encoding="utf-8")), ensure_ascii=False)
    data = text if len(text) <= INLINE_CHARACTERS else f"@{file.resolve()}"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    host = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{host}:{port}/v1/models/{name}:predict"
    return f"curl -d {shlex.quote(data)} {shlex.quote(url)}"
