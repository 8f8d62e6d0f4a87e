"""The pipeline's settings: one YAML file, checked as a whole before anything starts."""

from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.config.sections import BEAM_RUNNERS

__all__ = ["BEAM_RUNNERS", "PipelineConfig", "load_config"]
