"""Instances with classes as tf.Examples."""

from crowdzoo.records.instance_examples import read_labelled_instances as read_labelled

__all__ = ["read_labelled"]
