"""RetryOptions: how often a pipeline is run again, as an option of Beam."""

from __future__ import annotations

from argparse import ArgumentParser

from apache_beam.options.pipeline_options import PipelineOptions

__all__ = ["RetryOptions"]


class RetryOptions(PipelineOptions):
    """`--crowdzoo_retries`, which components read from the options that TFX gives them; see `crowdzoo.beam.fit`."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--crowdzoo_retries", type=int, default=0, help="times a failed pipeline is run again")
