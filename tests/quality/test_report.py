import dataclasses
import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from strategies import annotations as tables

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import DawidSkene, MajorityVote
from crowdzoo.datasets import load_labelme
from crowdzoo.quality import (
    annotator_table,
    coincidence_matrix,
    fleiss_kappa,
    krippendorff_alpha,
    quality_report,
    raw_agreement,
    task_table,
    with_settled,
)

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


@pytest.fixture(scope="module")
def labelme():
    return load_labelme().annotations


@pytest.fixture(scope="module")
def report(labelme):
    return quality_report(labelme, MajorityVote().fit(labelme), bootstrap=50, seed=4)


def test_the_report_is_what_its_parts_say(labelme, report):
    result = MajorityVote().fit(labelme)
    assert report.alpha == krippendorff_alpha(labelme, bootstrap=50, seed=4)
    tasks = task_table(labelme, with_settled(labelme, result))
    assert report.tasks.drop(["settled"]).equals(tasks.drop(["settled"]))
    # threads add up the difficulty of tasks in any order
    np.testing.assert_allclose(report.tasks["settled"].to_numpy(), tasks["settled"].to_numpy(), rtol=1e-12)
    assert report.annotators.equals(annotator_table(labelme, result))
    np.testing.assert_array_equal(report.coincidences, coincidence_matrix(labelme))
    assert report.overall["fleiss_kappa"] == fleiss_kappa(labelme)
    assert report.overall["agreement"] == raw_agreement(labelme)
    assert report.overall["aggregation"] == "majority-vote"


def test_figures_of_labelme(report):
    """Counts as the set's description has them: 42, 369 and 589 photographs with one, two and three labels."""
    counts = {name: report.overall[name] for name in ("annotations", "tasks", "annotators", "classes")}
    assert counts == {"annotations": 2547, "tasks": 1000, "annotators": 59, "classes": 8}
    assert report.overall["tasks_with_one"] == 42
    assert report.overall["tasks_without_annotations"] == 0
    assert report.redundancy.tasks.owners.tolist() == [42, 369, 589]
    assert report.overall["tasks_tied"] == 129  # 13 %, as every majority vote has to break them
    assert report.alpha.low < 0.677 < report.alpha.high


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_what_is_written_is_what_was_measured(report, tmp_path, file_format):
    folder = report.write(tmp_path / "deep" / "q", file_format)
    assert {path.name for path in folder.iterdir()} == {
        *(f"{name}.{file_format}" for name in ("tasks", "annotators", "classes")), "summary.json",
    }  # fmt: skip
    assert [path.name for path in folder.parent.iterdir()] == ["q"]
    read = pyarrow.csv.read_csv if file_format == "csv" else pyarrow.parquet.read_table
    for name in ("tasks", "annotators", "classes"):
        table, written = getattr(report, name), read(folder / f"{name}.{file_format}")
        assert written.column_names == table.column_names
        for column in table.column_names:
            ours, theirs = table[column].to_pylist(), written[column].to_pylist()
            if isinstance(ours[0], float):
                assert [x is None for x in ours] == [x is None for x in theirs]
                np.testing.assert_allclose(np.array(ours, float), np.array(theirs, float), equal_nan=True)
            else:
                assert ours == theirs
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["krippendorff_alpha"]["value"] == report.alpha.value
    assert summary["redundancy"]["tasks"]["histogram"] == [[1, 42], [2, 369], [3, 589]]
    assert summary["tasks_tied"] == 129


def test_a_failed_write_leaves_nothing(report, tmp_path):
    """The summary is written last, and no file of JSON holds such a note."""
    with pytest.raises(TypeError, match="not JSON serializable"):
        dataclasses.replace(report, notes=(object(),)).write(tmp_path / "q")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_defined_is_none_and_no_error():
    alone = quality_report(Annotations.from_arrays([0, 1], [0, 0], ["a", "b"]))
    assert alone.alpha is None
    assert (alone.overall["agreement"], alone.overall["fleiss_kappa"]) == (None, None)
    same = quality_report(Annotations.from_arrays([0, 0, 1], [0, 1, 0], ["a", "a", "b"]))
    assert same.alpha is None
    assert (same.overall["agreement"], same.overall["fleiss_kappa"]) == (1, None)
    assert json.dumps(same.summary())


@pytest.mark.parametrize("measure", [quality_report, krippendorff_alpha, fleiss_kappa])
def test_a_frame_is_refused_with_what_to_write(labelme, measure):
    with pytest.raises(DataError, match=r"got DataFrame. For a frame use Annotations.from_frame"):
        measure(labelme.to_frame())


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(tables(named=True, max_tasks=8))
def test_any_table_has_a_report(table):
    report = quality_report(table, DawidSkene(max_iter=3, tol=10).fit(table), bootstrap=3)
    for part in (report.tasks, report.annotators, report.classes):
        for column in part.column_names:
            values = [value for value in part[column].to_pylist() if isinstance(value, float)]
            assert np.isfinite(values).all()
            if column not in ("entropy", "label_entropy", "posterior_entropy"):
                assert all(-1e-9 <= value <= 1 + 1e-9 for value in values)
    assert json.loads(json.dumps(report.summary(), allow_nan=False))["annotations"] == len(table)


def test_rows_left_out_on_reading_are_in_the_report(labelme):
    assert quality_report(dataclasses.replace(labelme, num_rejected=3), bootstrap=0).overall["rows_left_out"] == 3
