"""What layers refuse, by its name: inputs of another shape, settings that cannot be, and what is not known yet."""

import re

import numpy as np
import pytest
from refusals import about
from small_layers import IDS, B, K, R, bottleneck

from crowdzoo.layers import (
    LIA,
    WAUM,
    ConfusionMatrices,
    CrowdLayer,
    CrowdsourcedLayer,
    DeepEM,
    DoctorNet,
    LabelUnit,
    MaxMIG,
    PairAnnotators,
    PairProbabilities,
    PooledConfusions,
    RatingEM,
    SpatialConfusions,
    UnionNet,
)

H, T, D = 5, 2, 6
NAN = float("nan")


def zeros(*shape):
    return np.zeros(shape, "float32")


def built(layer, *shape):
    """The layer after its first call."""
    layer(zeros(*shape))
    return layer


def matrices():
    return built(ConfusionMatrices(R), B, K)


def lia(known=None):
    layer = LIA(R, annotator_features=known)
    layer.build((None, K), (None, D))
    return layer


def masks():
    layer = SpatialConfusions(R)
    layer(zeros(B, H, T, K), features=zeros(B, H, T, D))
    return layer


def ratings():
    return CrowdsourcedLayer(R, "B", "regression")


CASES = {
    # inputs of another shape
    "[batch, classes], got (4, 2, 3)": lambda: CrowdsourcedLayer(R)(zeros(B, T, K)),
    "[batch, classes], got (4,)": lambda: CrowdsourcedLayer(R)(zeros(B)),
    "[batch, tokens, classes], got (4, 3)": lambda: CrowdsourcedLayer(R, kind="sequence")(zeros(B, K)),
    "[batch, 1], one estimate per task, got (4, 2)": lambda: ratings()(zeros(B, 2)),
    "RatingEM: the input must have shape [batch, 1], one": lambda: RatingEM(R)(zeros(B, 2)),
    "ConfusionMatrices: the input must have shape [batch, classes": lambda: ConfusionMatrices(R).build((None, 2, K)),
    "ConfusionMatrices: the input must have shape [batch, tokens": lambda: ConfusionMatrices(R, kind="sequence")(
        zeros(B, K)
    ),
    "DeepEM: the input must have shape [batch, tokens": lambda: DeepEM(R, kind="sequence")(zeros(B, K)),
    "[batch, rows, columns, classes], got (None, 4, 3)": lambda: ConfusionMatrices(R, kind="segmentation").build(
        (None, 4, K)
    ),
    "PairProbabilities: the input must have shape [batch, 2]": lambda: PairProbabilities()(zeros(2, 3)),
    "PairAnnotators: the input must have shape [batch, 3]": lambda: PairAnnotators(R, 10)(zeros(2, 2)),
    "[batch, units], units known, got (4, 2, 6)": lambda: DoctorNet(R, K)(zeros(B, 2, D)),
    "built for 6 units": lambda: built(DoctorNet(R, K), B, D)(zeros(B, D + 1)),
    "built for 3 classes": lambda: matrices()(zeros(B, K + 1)),
    "ConfusionMatrices: annotators must have shape": lambda: matrices()(bottleneck(), annotators=IDS[:, 0]),
    "DoctorNet: annotators must have shape": lambda: DoctorNet(R, K)(zeros(B, D), annotators=IDS[:, 0]),
    "[batch, annotations per task], got (4,)": lambda: matrices().log_confusions(IDS[:, 0]),
    "[batch, rows, columns, features], got None": lambda: SpatialConfusions(R)(zeros(B, H, T, K)),
    "LIA: the features must have shape": lambda: LIA(R).build((None, K), (None, None)),
    "shape (5, 3, 3), got (5, 3)": lambda: matrices().set_confusions(zeros(R, K)),
    "counts have shape [5], got (4,)": lambda: built(PooledConfusions(R, "full"), B, K).set_counts(np.ones(4)),
    "finite numbers [annotators, 2]": lambda: lia([[0.0, 0.0]] * R).confusions_of(np.zeros((1, 3))),
    # settings that cannot be
    "num_annotations": lambda: PairAnnotators(R, 0),
    "tie": lambda: PairProbabilities(tie=NAN),
    "center": lambda: LabelUnit(NAN, 1.0),
    "unit must": lambda: LabelUnit(0.0, 0.0),
    "unit must be": lambda: LabelUnit(0.0, float("inf")),
    "anchor is for connection 'B' of a regression": lambda: CrowdsourcedLayer(R, "S+B", "regression", anchor=True),
    "center and unit are for a regression": lambda: CrowdsourcedLayer(R, "MW", unit=2.0),
    "MaxMIG: confidence=True is not for this layer": lambda: MaxMIG(3, confidence=True),
    "UnionNet: confidence=True is not for this layer": lambda: UnionNet(3, confidence=True),
    "WAUM: confidence=True is not for this layer": lambda: WAUM(3, confidence=True),
    "DeepEM: confidence=True is not for kind 'sequence'": lambda: DeepEM(R, kind="sequence", confidence=True),
    **{f"to 2,147,483,647, got {number!r}": lambda number=number: CrowdLayer(number) for number in (0, -1, 2.5, True)},
    # what is not known, or not yet
    "CrowdLayer: no weights yet": lambda: CrowdLayer(R).annotator_confusions(),
    "RatingEM: no weights yet": lambda: RatingEM(R).annotator_biases(),
    "ConfusionMatrices: no weights yet": lambda: ConfusionMatrices(R).set_confusions(zeros(R, K, K)),
    "PooledConfusions: no weights yet": lambda: PooledConfusions(R, "diagonal").annotator_accuracies(),
    "DoctorNet: no weights yet": lambda: DoctorNet(R, K).annotator_weights(),
    "no weights yet": lambda: DoctorNet(R, K).confusions_on(zeros(B, D)),
    "ratings have no confusion matrices": lambda: RatingEM(R).annotator_confusions(),
    "confusion matrices differ from pixel to pixel": lambda: masks().annotator_confusions(),
    "there are no confusion matrices": lambda: built(PairAnnotators(R, 10), B, 3).annotator_confusions(),
    "use annotator_confusions": lambda: built(PooledConfusions(R, "full"), B, K).annotator_accuracies(),
    "annotator_scales() and annotator_biases()": lambda: built(ratings(), B, 1).annotator_confusions(),
    "made without annotator_features": lambda: lia().confusions_of(np.zeros((1, 2))),
}


@pytest.mark.parametrize("message", CASES)
def test_what_cannot_be_is_refused_with_a_reason(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        CASES[message]()


@pytest.mark.parametrize(
    ("layer", "kind"),
    [(ConfusionMatrices, "sequences"), (DeepEM, "sequences"), (DoctorNet, "regression"), (DoctorNet, "segmentation")],
)
def test_a_kind_that_is_not_for_a_layer_is_named(layer, kind):
    more = [K] if layer is DoctorNet else []
    with pytest.raises(ValueError, check=about("kind", kind)):
        layer(2, *more, kind=kind)
