"""Kinds of labels: each states its facts once."""

import numpy as np
import pytest

from crowdzoo.data.label_kinds import (
    CLASSIFICATION,
    LABEL_KINDS,
    LAYER_KINDS,
    REGRESSION,
    SEGMENTATION,
    SEQUENCE,
    label_kind,
)
from crowdzoo.tables import Annotations

TABLES = {
    "classification": np.array([[0, -1], [1, 1]]),
    "regression": np.array([[0.5, np.nan], [-1.0, 2.0]]),
    "sequence": np.array([[[0, -1], [1, -1]], [[1, 1], [-1, -1]]]),
}


def test_the_kinds_are_the_names_that_files_and_configurations_hold():
    assert list(LABEL_KINDS) == ["classification", "sequence", "regression", "preference", "free-text", "region"]
    assert all(label_kind(name) is kind and kind.name == name for name, kind in LABEL_KINDS.items())


@pytest.mark.parametrize("kind", [label_kind(name) for name in TABLES], ids=lambda kind: kind.name)
def test_a_table_of_a_kind_looks_as_the_kind_says(kind):
    dense = TABLES[kind.name]
    table = Annotations.from_dense(dense, kind=kind.name)
    assert table.label_kind is kind
    assert table.labels.dtype == kind.dtype
    assert (table.classes is not None) == kind.has_classes
    assert (table.positions is not None) == kind.has_positions
    assert table.to_dense().ndim == kind.axes + 1
    np.testing.assert_array_equal(kind.observed(table.to_dense()), kind.observed(dense))
    assert kind.observed(dense).sum() == len(table)
    assert not kind.observed(np.array([kind.missing])).any()


def test_facts_of_each_kind():
    assert [kind.dtype.name for kind in LABEL_KINDS.values()] == ["int64", "int64", "float64", *["int64"] * 3]
    assert [kind.tensor_dtype for kind in LABEL_KINDS.values()] == ["int32", "int32", "float32", *["int32"] * 3]
    assert (CLASSIFICATION.missing, SEQUENCE.missing) == (-1, -1)
    assert np.isnan(REGRESSION.missing)
    assert [kind.has_pairs for kind in LABEL_KINDS.values()] == [False, False, False, True, False, False]
    assert [kind.has_classes for kind in LABEL_KINDS.values()] == [True, True, False, True, False, False]
    assert [kind.has_numbers for kind in LABEL_KINDS.values()] == [False, False, True, False, False, False]
    assert [kind.values for kind in LABEL_KINDS.values()] == ["", "", "", "", "texts", "marked images"]
    assert [kind.one_class for kind in LABEL_KINDS.values()] == [True, False, False, False, False, False]
    assert [*LAYER_KINDS.values()] == [*LABEL_KINDS.values(), SEGMENTATION]  # arrays, no tables
    assert (SEGMENTATION.axes, SEGMENTATION.shape) == (3, "[tasks, rows, columns]")
    assert (CLASSIFICATION.shape, REGRESSION.shape, SEQUENCE.shape) == ("[tasks]", "[tasks]", "[tasks, tokens]")
