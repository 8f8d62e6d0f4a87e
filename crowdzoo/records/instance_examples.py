"""Reads annotations and instances from their files for tf.Examples of classes and ratings."""

import numpy as np
import tensorflow as tf

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.instance_kinds import TABLES, instance_kind
from crowdzoo.data.vocabulary import is_among, name_texts
from crowdzoo.errors import DataError
from crowdzoo.reading.instances.export_instances import named_by_image
from crowdzoo.reading.instances.instances import Instances, check_annotated, read_instances
from crowdzoo.reading.instances.tables import tables
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS
from crowdzoo.records.example_files import GenOptions, LabelledTasks, split_by_hash
from crowdzoo.records.instance_features import add_instance, instance_info

# Options of the reader, if a kind has them
_READING = ("classes", "low", "high", *ROW_OPTIONS, "platform", "field", "image", *LAYOUT_OPTIONS)


def read_labelled_instances(options: GenOptions, rejects: str, folder: str) -> LabelledTasks:
    """Reads instances and their annotations.

    Args:
        options: settings of AnnotationExampleGen.
        rejects: path of the file for rejected rows.
        folder: empty folder for instances until their Examples are made.

    Raises:
        DataError: errors of the readers, tasks without instances, or nothing to learn from.
    """
    crowd = read_annotations(options, rejects)
    instances = read_instances_of(options, crowd, folder)
    names = name_texts(instances.tasks)
    gold, known = _gold(instances, crowd, options["instances"])
    split, change = split_of(instances, options)
    classes = None if crowd.classes is None else [str(name) for name in crowd.classes]
    shown = gold.tolist() if classes is None else [classes[code] for code in gold.tolist()]
    code_of = {str(name): code for code, name in enumerate(crowd.tasks)}
    kind = "float_list" if crowd.labels.dtype.kind == "f" else "int64_list"

    def example(row: int) -> tf.train.Example:
        record = tf.train.Example()
        feature = record.features.feature
        feature["task"].bytes_list.value.append(names[row].encode())
        add_instance(record, instances, row)
        code = code_of.get(names[row])
        ids, labels = ((), ()) if code is None else (own[0] for own in crowd.padded(np.array([code])))
        feature["annotator_ids"].int64_list.value.extend(ids)
        getattr(feature["annotator_labels"], kind).value.extend(labels)
        if known[row]:
            getattr(feature["gold"], kind).value.append(gold[row])
        return record

    return LabelledTasks(
        annotations=crowd,
        names=names.tolist(),
        split=split,
        labelled=is_among(names, name_texts(crowd.tasks[crowd.redundancy > 0])),
        gold=[label if there else None for label, there in zip(shown, known, strict=True)],
        info={"classes": classes, **instance_info(instances)},
        change_split=change,
        example=example,
    )


def read_instances_of(options: GenOptions, crowd: Annotations, folder: str) -> Instances:
    """Reads instances, which must include those of all annotated tasks.

    Args:
        options: settings of AnnotationExampleGen.
        crowd: the annotations.
        folder: empty folder for the instances.

    Raises:
        DataError: errors of the reader, or tasks without instances.
    """
    layout = Layout.of_second(options.get("instance_columns"), options)
    named = options.get("instance_kind")
    of_kind = None if named is None else instance_kind(named)
    if of_kind == TABLES:
        of_kind = tables(options.get("inputs"))
    instances = read_instances(options["instances"], of_kind, layout, folder).named_like(crowd.tasks)
    check_annotated(instances, crowd, options["instances"], options["annotations"])
    return instances


def split_of(instances: Instances, options: GenOptions) -> tuple[np.ndarray, str]:
    """The split of instances, and advice about an empty split.

    Args:
        instances: N instances.
        options: settings of AnnotationExampleGen.

    Returns:
        "train" or "eval", [N], from their column `split`, else by a hash of their names; and the advice.
    """
    if instances.split is not None:
        return instances.split, "Check its column 'split'."
    names = name_texts(instances.tasks)
    return split_by_hash(names, options["eval_fraction"]), "Change data.eval_fraction."


def read_annotations(options: GenOptions, rejects: str) -> Annotations:
    """Reads the annotations.

    Args:
        options: settings of AnnotationExampleGen.
        rejects: path of the file for rejected rows.

    Raises:
        DataError: errors of the reader, or nothing to learn from.
    """
    path = options["annotations"]
    crowd = Annotations.read(
        path,
        kind=options["kind"],
        **named_by_image({key: options[key] for key in _READING if key in options}, options["instances"]),
        rejects=rejects if options.get("on_bad_rows") == "reject" else None,
    )
    if len(crowd) == 0:
        raise DataError(f"{path}: holds no annotations.")
    if crowd.classes is not None and crowd.num_classes < 2:
        raise DataError(f"{path}: only one class, {str(crowd.classes[0])!r}. Name all the classes in data.classes.")
    return crowd


def _gold(instances: Instances, crowd: Annotations, path: str) -> tuple[np.ndarray, np.ndarray]:
    """Gold as ratings or codes, and a mask of known ones, both [N]."""
    if crowd.label_kind.has_numbers:
        ratings = instances.gold_ratings(path)
        return ratings, ~np.isnan(ratings)
    codes = np.full(len(instances), -1) if crowd.classes is None else instances.gold_codes(crowd.classes, path)
    return codes, codes >= 0
