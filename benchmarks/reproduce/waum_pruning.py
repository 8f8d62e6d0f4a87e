"""WAUM: which tasks a network and its crowd cannot agree about."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from crowdzoo.aggregation.checks import check_classification
from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers.ranges import DENOMINATOR, MARGIN
from crowdzoo.layers.waum import WAUM
from crowdzoo.quality.aum import Waum, label_trust
from crowdzoo.training.crowd_model import CrowdModel
from crowdzoo.training.data import ArrayData
from crowdzoo.training.pair_rows import pair_rows
from crowdzoo.training.recipes.waum import TrainingStart, dawid_skene_confusions, record_margins


@checked(epochs=Number(1, whole=True), margin=MARGIN, denominator=DENOMINATOR)
def waum(
    make_base: Callable[[], Any],
    x: Any,
    annotations: Annotations,
    *,
    tasks: Any = None,
    epochs: int = 50,
    batch_size: int = 32,
    optimizer: Any = None,
    margin: str = "top-2",
    denominator: str = "trust",
    smoothing: float = 0.01,
    per_annotator: bool = False,
    seed: int = 0,
    verbose: Any = 0,
) -> Waum:
    """Ranks tasks by how ambiguous they are to a network that learns from everybody's labels.

    A network is trained on the labels; after every epoch its class probabilities are taken **in evaluation mode** (the
    authors take them as training goes, with dropout and batch statistics). With sigma the probabilities,

        AUM_ir   = mean over epochs of  margin of y_ir in sigma(x_i)
        s_r(x_i) = sum_k pi[r, k, k] sigma_k(x_i)                      at the last epoch, pi of Dawid-Skene
        WAUM_i   = sum_r s_r(x_i) AUM_ir / sum_r s_r(x_i)

    Memory is that of the annotations and of [N, K] probabilities, whatever the number of epochs.

    Args:
        make_base: makes a Keras model from instances to class probabilities `[B, K]`; called once, after
            `keras.utils.set_random_seed(seed)`.
        x: instances `[N, ...]`, or what else `CrowdModel.fit` takes as x.
        annotations: kind classification, K classes.
        tasks: ids of the rows of x, `[N]`, which match them with the annotations; see `CrowdModel.fit`.
        epochs: number of epochs of the training.
        batch_size: tasks in a batch.
        optimizer: a Keras optimizer or its name; None is Adam at 0.001.
        margin: "top-2" or "pleiss"; see `crowdzoo.quality.aum.label_margins`.
        denominator: "trust" or "redundancy"; see `crowdzoo.quality.aum.weighted_margins`.
        smoothing: pseudo-count of every cell in Dawid-Skene's matrices.
        per_annotator: False ("stacked") trains one network on all labels. True trains one for each annotator, on
            their labels alone and from the same first weights, and judges their labels by it: slow, and only sensible
            where few annotators labelled much.
        seed: seed of weights, dropout and the order of the tasks.
        verbose: Keras' verbosity.

    Returns:
        WAUM of every row of x, AUM and trust of every annotation.

    Raises:
        ConfigError: a setting that is out of range.
        DataError: annotations of another kind, or a base that does not fit them; or nothing says which row is which
            task.

    Source:
        T. Lefort, B. Charlier, A. Joly, J. Salmon: Identify Ambiguous Tasks Combining Crowdsourced Labels by Weighting
        Areas Under the Margin. TMLR 2024.
    """
    check_classification(annotations, "WAUM")
    x, annotations = pair_rows(x, annotations, tasks, line="waum(make_base, x, annotations, tasks={})")
    confusions = dawid_skene_confusions(annotations, smoothing)
    keras.utils.set_random_seed(seed)
    crowd = WAUM(annotations.num_annotators)
    model = CrowdModel(make_base(), crowd)
    if not model.built:  # a base that learns its input's shape from the first batch
        model(keras.tree.map_structure(lambda array: np.asarray(array)[:1], x))
    if crowd.num_classes != annotations.num_classes:
        raise DataError(
            f"the base has {crowd.num_classes} outputs, the annotations have {annotations.num_classes} classes"
        )
    model.compile(optimizer)
    start = TrainingStart(model)

    if per_annotator:
        order = np.argsort(annotations.annotator_ids, kind="stable")
        ends = np.cumsum(np.bincount(annotations.annotator_ids, minlength=annotations.num_annotators))
        groups = [rows for rows in np.split(order, ends[:-1]) if len(rows)]
    else:
        groups = [np.arange(len(annotations))]
    aum, trust = np.zeros(len(annotations)), np.zeros(len(annotations))
    for rows in groups:
        theirs = annotations.select_rows(rows)
        start.restore()
        data = ArrayData(x, theirs, theirs.tasks)
        with crowd.being_fitted():
            recorded = record_margins(
                model, data, theirs, margin, {"batch_size": batch_size, "seed": seed}, epochs=epochs, verbose=verbose
            )
        aum[rows] = recorded.aum
        trust[rows] = label_trust(confusions, recorded.probabilities, theirs.task_ids, theirs.annotator_ids)
    return Waum.of(annotations, aum, trust, denominator)
