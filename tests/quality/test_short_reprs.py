"""Results print as a line, however large they are."""

import numpy as np
import pyarrow as pa
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene
from crowdzoo.data.tags import SpanTable
from crowdzoo.instances import VECTORS
from crowdzoo.quality import NextAnnotations, Waum, quality_report
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.report.page import report_page

MANY = 3000


@pytest.fixture(scope="module")
def annotations():
    rng = np.random.default_rng(0)
    return Annotations.from_arrays(np.arange(MANY) // 3, np.arange(MANY) % 3, rng.integers(0, 2, MANY))


def test_results_with_arrays_print_their_sizes(annotations):
    codes, numbers = np.arange(MANY), np.linspace(0, 1, MANY)
    named = np.array([f"task {code}" for code in codes], dtype=object)
    shown = [
        (NextAnnotations(codes, codes, numbers, np.ones(MANY)), "<NextAnnotations: 3,000 questions, cost 3,000>"),
        (Waum(numbers[:1000], numbers, numbers, annotations), "<Waum: 1,000 tasks, 3,000 annotations>"),
        (SpanTable(codes, codes, codes), "<SpanTable: 3,000 spans>"),
        (
            Instances(named, VECTORS, np.zeros((MANY, 2), "float32"), split=named),
            f"<Instances: 3,000 tasks, {VECTORS.name}, with split>",
        ),
    ]
    for result, expected in shown:
        assert repr(result) == expected


def test_a_report_prints_a_line_and_a_notebook_shows_its_numbers(annotations):
    result = DawidSkene().fit(annotations)
    report = quality_report(annotations, result, bootstrap=0)
    assert repr(report).startswith("<QualityReport: 3,000 annotations, 1,000 tasks, ")
    assert len(repr(report)) < 120
    page = report._repr_html_()
    assert "<tr><th>fleiss kappa</th>" in page
    assert len(page) < 5000
    assert len(repr(report_page(annotations, result, bootstrap=0, curve=0))) < 120


def test_notes_and_names_are_escaped_in_a_notebook(annotations):
    from dataclasses import replace

    report = replace(quality_report(annotations, bootstrap=0), notes=("a class <b>",), tasks=pa.table({}))
    assert "a class &lt;b&gt;" in report._repr_html_()
