"""RetryOptions: how often a pipeline is run again, and how long it may take, as options of Beam."""

from __future__ import annotations

from argparse import ArgumentParser

from apache_beam.options.pipeline_options import PipelineOptions


class RetryOptions(PipelineOptions):
    """Arguments of `crowdzoo.large.beam.fit` that components read from the options that TFX gives them."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--crowdzoo_retries", type=int, default=0, help="times a failed pipeline is run again")
        parser.add_argument("--crowdzoo_timeout", type=float, help="seconds after which a pipeline has failed")
