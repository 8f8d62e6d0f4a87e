"""check_output: whether the folders for results can be written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from crowdzoo.errors import ConfigError

if TYPE_CHECKING:
    from crowdzoo.pipelines.config.pipeline_config import PipelineConfig


def check_output(config: PipelineConfig) -> None:
    """Refuses folders for results that cannot be made or written; makes none.

    Args:
        config: from `load_config`.

    Raises:
        ConfigError: names the setting and the folder.
    """
    for name, folder in (("root", config.output.root), ("serving", config.output.serving)):
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        if not there.is_dir():
            raise ConfigError(f"output.{name}: {folder} cannot be made: {there} is a file. Choose another folder.")
        if not os.access(there, os.W_OK | os.X_OK):
            raise ConfigError(
                f"output.{name}: {there} may not be written. Choose another folder, or change its permissions."
            )
