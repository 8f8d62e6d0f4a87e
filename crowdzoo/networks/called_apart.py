"""Branches of a graph that are seldom taken, as functions of their own."""

from collections.abc import Callable
from typing import Any


def called_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors that a TensorFlow graph calls, instead of having its operations among its own.

    TensorFlow visits every operation of the branch of a `tf.cond` that is not taken. Of a small image that takes longer
    than decoding it. Of a branch that is called apart it visits one.

    Args:
        function: of tensors, in TensorFlow operations.
    """
    import tensorflow as tf

    return tf.function(tf.autograph.experimental.do_not_convert(function), experimental_attributes={"_noinline": True})
