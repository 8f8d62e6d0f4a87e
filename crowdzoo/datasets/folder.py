"""Where the raw data of tests and benchmarks lies."""

import os
from pathlib import Path


def data_folder() -> Path:
    """Folder of the raw data sets that do not ship with crowdzoo; only tests and benchmarks read it.

    Returns:
        The folder that the environment variable CROWDZOO_DATA names, else `crowdzoo-data` in the working folder. It may
        not exist.
    """
    return Path(os.environ.get("CROWDZOO_DATA") or "crowdzoo-data")
