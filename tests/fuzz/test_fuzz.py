"""A small part of `make fuzz`, with a fixed seed."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import run
import target

TARGETS = run.load_targets()
# commands show crowdzoo's warnings; protobuf warns of a message that ends early, Hypothesis of inputs that are long
pytestmark = [
    pytest.mark.filterwarnings("default::UserWarning"),
    pytest.mark.filterwarnings("ignore:Unexpected end-group tag:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Generating overly large repr:hypothesis.errors.HypothesisWarning"),
]


LONG = (
    "annotations-jsonl", "annotations-parquet-damaged", "archives", "command-line-quality", "command-line-report",
    "configuration-structure", "configuration-text", "grpc", "histories", "image-files",
    "image-requests", "instances-parquet", "ratings",
    "sizes", "half-sent", "rows-and-keys", "version-files",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in TARGETS]
)
def test_no_input_ends_in_an_error_that_was_not_foreseen(name):
    one = TARGETS[name]
    assert target.run(one, seed=0, examples=one.examples // 2) > 0


def test_a_check_that_raises_is_reported_with_its_input():
    def fails_at_three(value):
        if value >= 3:
            raise RuntimeError(f"unforeseen {value}")

    with pytest.raises(RuntimeError, match="unforeseen 3"):
        target.run(target.Target(target.st.integers(0, 100), fails_at_three), seed=0, examples=200)
