"""Bars of commands that take long: on a terminal with the time that is left, elsewhere nothing."""

import io

import numpy as np
import pytest
from rich.console import Console

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote
from crowdzoo.commands.outputs import fitted, progress


@pytest.fixture
def stream(monkeypatch):
    """What a bar writes; `terminal` says whether it takes the stream for one."""

    class Stream(io.StringIO):
        terminal = True

    stream = Stream()
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **_: Console(file=stream, force_terminal=stream.terminal, width=80, color_system=None),
    )
    return stream


def test_a_terminal_sees_share_and_time_left(stream):
    with progress("predicting", 4) as step:
        for _ in range(4):
            step()
    assert "predicting" in stream.getvalue()
    assert "100%" in stream.getvalue()
    assert "0:00:00" in stream.getvalue() or "-:--:--" in stream.getvalue()


def test_a_file_gets_nothing(stream):
    stream.terminal = False
    with progress("predicting", 4) as step:
        step()
    assert stream.getvalue().strip() == ""


def test_a_fit_has_the_time_so_far(stream):
    crowd = Annotations.from_dense(np.zeros((2, 2), int))
    MajorityVote().fit(crowd)  # what is loaded at the first fit keeps the terminal that it sees
    fitted(MajorityVote(), crowd)
    assert "Majority vote" in stream.getvalue()
    assert "0:00:00" in stream.getvalue()
    assert "%" not in stream.getvalue()


def test_a_prediction_counts_its_batches(tmp_path):
    pytest.importorskip("tensorflow")
    import tensorflow as tf

    from crowdzoo.export import load_and_predict

    class Doubled(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="instances")])
        def __call__(self, instances):
            return {"twice": 2 * instances}

    module = Doubled()
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=module.__call__)
    calls = []
    x = np.ones((10, 2), "float32")
    answers = load_and_predict(tmp_path, x, batch_size=4, on_batch=lambda: calls.append(1))
    assert len(calls) == 3
    np.testing.assert_array_equal(answers["twice"], 2 * x)
