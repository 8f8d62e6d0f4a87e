"""Runs of Beam that may crash, and what two results have to share."""

import numpy as np
import pytest


class KilledError(Exception):
    """What stands for a crash between two pipelines."""


def make_pipeline(*options):
    beam = pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")
    from apache_beam.options.pipeline_options import PipelineOptions

    return beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner", *options]))


def pipelines_but(*failing):
    """A maker of pipelines; those of these numbers, from 1, fail before they have done anything."""
    made = []

    def make():
        made.append(None)
        if len(made) in failing:
            raise KilledError(f"pipeline {len(made)}\nand what a runner adds")
        return make_pipeline()

    make.made = made
    return make


def assert_same(found, expected, atol=1e-6):
    """All attributes of two results."""
    assert type(found) is type(expected)
    for name, other in vars(expected).items():
        one = getattr(found, name)
        if other is None or isinstance(other, str | bool | int):
            assert one == other, name
        elif name in ("history", "log_likelihood"):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=name)
        elif isinstance(other, np.ndarray) and other.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=atol, atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(one, other, err_msg=name)
