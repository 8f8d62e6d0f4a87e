"""Instances: what was labelled, as feature vectors, texts, images or sentences; one file for each kind."""

from crowdzoo.instances.annotator_table import AnnotatorTable, read_annotator_table
from crowdzoo.instances.check_no_paths import check_no_paths
from crowdzoo.instances.gold import read_gold, read_gold_pairs, read_gold_ratings
from crowdzoo.instances.images import IMAGES, sampled_images
from crowdzoo.instances.instance_kind import InstanceKind
from crowdzoo.instances.instance_kinds import INSTANCE_KINDS, instance_kind, recognised
from crowdzoo.instances.instances import Instances, check_annotated, read_inputs, read_instances, take_rows
from crowdzoo.instances.named_by_image import named_by_image
from crowdzoo.instances.opened import opened
from crowdzoo.instances.predictions import Predictions, read_predictions
from crowdzoo.instances.rankings import read_rankings
from crowdzoo.instances.sentences import SENTENCES
from crowdzoo.instances.tables import TABLES, served_tables, tables
from crowdzoo.instances.texts import TEXTS, read_texts
from crowdzoo.instances.vectors import VECTORS

__all__ = [
    "IMAGES",
    "INSTANCE_KINDS",
    "SENTENCES",
    "TABLES",
    "TEXTS",
    "VECTORS",
    "AnnotatorTable",
    "InstanceKind",
    "Instances",
    "Predictions",
    "check_annotated",
    "check_no_paths",
    "instance_kind",
    "named_by_image",
    "opened",
    "read_annotator_table",
    "read_gold",
    "read_gold_pairs",
    "read_gold_ratings",
    "read_inputs",
    "read_instances",
    "read_predictions",
    "read_rankings",
    "read_texts",
    "recognised",
    "sampled_images",
    "served_tables",
    "tables",
    "take_rows",
]
