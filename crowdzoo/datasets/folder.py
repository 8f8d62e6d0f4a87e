"""Where the raw data of tests and benchmarks lies."""

import os
from pathlib import Path

__all__ = ["data_folder"]


def data_folder() -> Path:
    """Folder of the raw data sets that do not ship with crowdzoo; only tests and benchmarks read it.

    Returns:
        What the environment variable CROWDZOO_DATA says, else `../shared/data` beside the repository. It may not exist.
    """
    named = os.environ.get("CROWDZOO_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
