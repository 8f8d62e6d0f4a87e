"""ModuleTrainer: TFX's Trainer for a user's file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.errors import ConfigError
from crowdzoo.training.bases import source_hash


class ModuleTrainer(tfx.Trainer):
    """TFX's Trainer for a file with `run_fn(fn_args)`, without building a wheel of the file with pip.

    The file is imported in place; it may import modules from its folder. A hash of their sources is part of TFX's cache
    key. `fn_args.custom_config["examples"]` is the folder of the Examples; `read_dataset_info` reads their classes.

    Args:
        module_file: path of the file.
        custom_config: contents of `fn_args.custom_config`.
        **inputs: further arguments of TFX's Trainer, such as `examples`, `schema` and `transform_graph`.

    Raises:
        ConfigError: the file does not exist.
    """

    def __init__(self, module_file: str, *, custom_config: dict[str, Any] | None = None, **inputs: Any):
        super().__init__(**module_arguments(module_file, "run_fn", custom_config), **inputs)
        tfx.import_in_place(self)


def module_arguments(
    module_file: str | Path, function: str, custom_config: Mapping[str, object] | None
) -> dict[str, object]:
    """Arguments of a TFX component that imports a file.

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
