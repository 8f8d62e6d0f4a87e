"""Files of the user's own that TFX imports."""

from pathlib import Path
from typing import Any

from crowdzoo.errors import ConfigError
from crowdzoo.training.bases import source_hash


def module_arguments(module_file: str | Path, function: str, custom_config: dict[str, Any] | None) -> dict[str, Any]:
    """Arguments of a component of TFX that imports a file.

    They are the file's absolute path, and the custom configuration with a hash of the file and of the
    modules in its folder that it imports, as `source`.

    Raises:
        ConfigError: it does not exist.
    """
    path = Path(module_file).expanduser().absolute()
    if not path.is_file():
        raise ConfigError(f"module_file {module_file}: the file does not exist.")
    source = source_hash(f"{path}:{function}")
    return {"module_file": str(path), "custom_config": {**(custom_config or {}), "source": source}}
