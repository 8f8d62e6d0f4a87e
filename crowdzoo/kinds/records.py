"""What reads the files of a kind of label as tf.Examples."""

from collections.abc import Callable

from crowdzoo.data.label_kinds import CLASSIFICATION, PREFERENCE, REGRESSION, SEQUENCE
from crowdzoo.kinds.preferences.records import read_labelled_pairs
from crowdzoo.kinds.sentences.records import read_labelled_sentences
from crowdzoo.records.instance_examples import read_labelled_instances
from crowdzoo.records.labelled_tasks import LabelledTasks

__all__ = ["READ"]

# Kind of label -> what reads its files
READ: dict[str, Callable[..., LabelledTasks]] = {
    CLASSIFICATION.name: read_labelled_instances,
    REGRESSION.name: read_labelled_instances,
    SEQUENCE.name: read_labelled_sentences,
    PREFERENCE.name: read_labelled_pairs,
}
