"""ModuleTransform: TFX's Transform for a user's file."""

from typing import Any

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.module_trainer import module_arguments


class ModuleTransform(tfx.Transform):
    """TFX's Transform for a file with `preprocessing_fn(inputs)`, imported in place; see `ModuleTrainer`.

    The function's input "instances" is that of the Examples; its result is the input of the Trainer's model, see
    `TransformedInstances`.

    Args:
        module_file: path of the file.
        custom_config: second argument of `preprocessing_fn`, if it has one.
        **inputs: further arguments of TFX's Transform: `examples`, `schema`, `materialize` and so on.

    Raises:
        ConfigError: the file does not exist.
    """

    def __init__(self, module_file: str, *, custom_config: dict[str, Any] | None = None, **inputs: Any):
        super().__init__(**module_arguments(module_file, "preprocessing_fn", custom_config), **inputs)
        tfx.import_in_place(self)
