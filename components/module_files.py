"""Files of the user's own that TFX imports: their place, and a hash of their sources."""

from pathlib import Path
from typing import Any

from crowdzoo.errors import ConfigError
from crowdzoo.training.bases import source_hash


def absolute_module_file(module_file: str | Path) -> str:
    """The file's absolute path.

    Raises:
        ConfigError: it does not exist.
    """
    path = Path(module_file).expanduser().absolute()
    if not path.is_file():
        raise ConfigError(f"module_file {module_file}: the file does not exist.")
    return str(path)


def with_source(custom_config: dict[str, Any] | None, file: str, function: str) -> dict[str, Any]:
    """The custom configuration with a hash of the file, and of the modules beside it that it imports, as `source`."""
    return {**(custom_config or {}), "source": source_hash(f"{file}:{function}")}
