"""The files of a kind of label as tf.Examples: `read_labelled` in `records.py` of its folder."""

from typing import Any

from crowdzoo.kinds.parts import part_of
from crowdzoo.records.labelled_tasks import LabelledTasks


def read_labelled(kind: str, options: dict[str, Any], rejects: str, folder: str) -> LabelledTasks:
    """See `crowdzoo.records.instance_examples.read_labelled_instances`."""
    found: LabelledTasks = part_of(kind, "records").read_labelled(options, rejects, folder)
    return found
