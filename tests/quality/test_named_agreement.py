"""Agreement by the names that papers and reviewers ask for: ICC, Gwet's AC1, F1 of positions, tables of labels."""

import csv
import json

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import RatingEM, SpanMajorityVote
from crowdzoo.commands import main as cli
from crowdzoo.data.crowd_sequences import sentence_annotations
from crowdzoo.quality import gwet_ac1, intraclass_correlations, marked_spans, quality_report
from crowdzoo.report.page import report_page
from crowdzoo.sequences import CrowdSequences, TagSet, tags_of

# Shrout and Fleiss 1979, table 2: six targets, four judges; the coefficients are those of their table 4, the intervals
# those that they work out in the text
FOUR_JUDGES = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
SHROUT = {"ICC(1,1)": 0.17, "ICC(2,1)": 0.29, "ICC(3,1)": 0.71, "ICC(1,k)": 0.44, "ICC(2,k)": 0.62, "ICC(3,k)": 0.91}
# Example of pingouin's intraclass_corr (0.6): eight wines, four judges
WINES = [
    [1, 2, 0, 1], [1, 3, 3, 2], [3, 8, 1, 4], [6, 4, 3, 3], [6, 5, 5, 6], [7, 5, 6, 2], [8, 7, 7, 9], [9, 9, 9, 8],
]  # fmt: skip
PINGOUIN = {
    "ICC(1,1)": (0.728, 0.43, 0.93), "ICC(2,1)": (0.728, 0.43, 0.93), "ICC(3,1)": (0.729, 0.43, 0.93),
    "ICC(1,k)": (0.914, 0.75, 0.98), "ICC(2,k)": (0.914, 0.75, 0.98), "ICC(3,k)": (0.915, 0.75, 0.98),
}  # fmt: skip
# Example of irrCAC (0.4): twelve units, four raters, 0 is a missing rating
UNITS = "1101 2232 3333 3333 2222 1234 4444 1121 2222 0555 0011 0030"


def ratings(matrix):
    return Annotations.from_dense(np.array(matrix, float), kind="regression")


def test_intraclass_correlations_of_shrout_and_fleiss():
    values = intraclass_correlations(ratings(FOUR_JUDGES))
    assert {name: round(value.value, 2) for name, value in values.items()} == SHROUT
    assert values["ICC(1,1)"] == pytest.approx((0.1657, -0.1329, 0.7226), abs=5e-4)
    assert values["ICC(2,1)"] == pytest.approx((0.2898, 0.0188, 0.7611), abs=5e-4)
    assert values["ICC(3,1)"] == pytest.approx((0.7148, 0.3425, 0.9459), abs=5e-4)


def test_intraclass_correlations_of_pingouins_example():
    values = intraclass_correlations(ratings(WINES))
    assert list(values) == list(PINGOUIN)
    for name, (value, low, high) in PINGOUIN.items():
        assert values[name].value == pytest.approx(value, abs=5e-4)
        assert (values[name].low, values[name].high) == pytest.approx((low, high), abs=5.1e-3)


def test_gwets_ac1_of_irrcacs_example_with_missing_ratings():
    labels = np.array([[int(digit) - 1 for digit in unit] for unit in UNITS.split()])
    annotations = Annotations.from_dense(labels)
    assert gwet_ac1(annotations) == pytest.approx((0.77544, 0.46081, 1), abs=1e-5)
    assert gwet_ac1(annotations, confidence=0.5).low > 0.46081
    overall = quality_report(annotations, bootstrap=0).overall
    assert overall["gwet_ac1"] == pytest.approx(0.77544, abs=1e-5)


def test_one_task_has_no_interval_of_gwets_ac1():
    annotations = Annotations.from_dense(np.array([[0, 1]]))
    assert gwet_ac1(annotations) == pytest.approx((-1, np.nan, np.nan), nan_ok=True)  # chance has .5
    overall = quality_report(annotations, bootstrap=0).overall
    assert [overall[f"gwet_ac1{end}"] for end in ("", "_low", "_high")] == [-1, None, None]


def test_missing_ratings_leave_one_way_of_all_tasks_and_two_ways_of_the_complete_ones():
    """One-way by hand: tasks (1, 3), (5, 5, 8), (2, 4): means 2, 6, 3, in all 4; MSB 22 / 2, MSW 10 / 4, k 2.286."""
    gaps = [[1, 3, np.nan], [5, 5, 8], [2, np.nan, 4], [np.nan, 9, np.nan]]
    values = intraclass_correlations(ratings(gaps))
    k = (7 - (4 + 9 + 4) / 7) / 2
    assert values["ICC(1,1)"].value == pytest.approx((11 - 2.5) / (11 + (k - 1) * 2.5))
    assert list(values) == ["ICC(1,1)", "ICC(1,k)"]
    some = np.array(WINES, float)
    some[0, 1] = some[5, 3] = np.nan
    values = intraclass_correlations(ratings(some))
    complete = intraclass_correlations(ratings(np.delete(np.array(WINES, float), [0, 5], axis=0)))
    for name in ("ICC(2,1)", "ICC(3,k)"):
        assert values[name] == pytest.approx(complete[name])
    assert values["ICC(1,1)"] != pytest.approx(complete["ICC(1,1)"])


@pytest.mark.filterwarnings("error")
def test_what_has_no_variance_is_left_out_or_refused():
    assert "ICC(3,1)" not in intraclass_correlations(ratings([[1, 2], [1, 2]]))  # no task differs from another
    assert "ICC(1,k)" not in intraclass_correlations(ratings([[1, 2], [1, 2]]))
    assert list(intraclass_correlations(ratings([[3, 3, 3], [3, 3, 3], [1, 2, np.nan]]))) == ["ICC(1,1)", "ICC(1,k)"]
    assert intraclass_correlations(ratings([[1, 1], [2, 2]]))["ICC(2,1)"] == (1, 1, 1)
    assert list(intraclass_correlations(ratings([[1, 2], [2, 1]]))) == ["ICC(1,1)", "ICC(3,1)"]
    classes = Annotations.from_dense(np.array([[0, 0], [0, 0]]), classes=["yes"])
    for measure, annotations, reason in (
        (intraclass_correlations, ratings([[2, 2], [2, 2]]), "all ratings are equal"),
        (intraclass_correlations, ratings([[1, 2], [2, np.nan]]), "only one task"),
        (intraclass_correlations, ratings([[1, np.nan]]), "no task has two"),
        (intraclass_correlations, classes, "'regression', got"),
        (gwet_ac1, classes, "there is one class"),
        (gwet_ac1, Annotations.from_dense(np.array([[0, -1], [-1, 1]])), "no task has two"),
    ):
        with pytest.raises(DataError, match=reason):
            measure(annotations)


def test_the_page_of_ratings_says_what_each_correlation_was_computed_from(tmp_path, capsys):
    matrix = np.array(WINES * 3, float) + np.random.default_rng(0).normal(0, 0.1, (24, 4)).round(2)
    matrix[20:, 3] = np.nan
    annotations = ratings(matrix)
    page = report_page(annotations, RatingEM().fit(annotations), bootstrap=0)
    correlations = intraclass_correlations(annotations)
    assert page.values["icc_2k"] == pytest.approx(correlations["ICC(2,k)"].value)
    remarks = {title: remark for title, _, _, remark, _ in page.numbers.facts if title.startswith("ICC")}
    assert remarks["ICC(1,1), one rating"].endswith("of 24 tasks, unbalanced")
    assert remarks["ICC(3,1), consistency"].endswith("of 20 tasks that all rated")
    few = annotations.select_rows(~((annotations.annotator_ids == 0) & (annotations.task_ids > 0)))
    few.to_parquet(tmp_path / "a.parquet")
    cli.main(["quality", str(tmp_path / "a.parquet"), "--kind", "regression", "--bootstrap", "0"])
    printed = capsys.readouterr().out.splitlines()
    line = next(line for line in printed if line.startswith("ICC(2,1)"))
    assert line.endswith("needs two tasks that all annotators rated")


def spans_of(*of_annotators):
    """One sentence of eight words, and what each annotator marks: (type, start, end)."""
    tags = TagSet(["O", "B-LOC", "I-LOC", "B-PER", "I-PER"])
    rows = [(0, who, tags.codes(tags_of(spans, 8))) for who, spans in enumerate(of_annotators)]
    annotations = sentence_annotations(rows, np.arange(1), np.arange(len(rows)), tags.classes)
    return CrowdSequences([[f"w{place}" for place in range(8)]], annotations)


def test_f1_of_positions_takes_no_notice_of_types():
    """Of two spans each, the first pair has one in common, and two places; then 1 and 1; then 0 and 1."""
    crowd = spans_of(
        [("PER", 0, 2), ("LOC", 4, 6)], [("PER", 0, 2), ("PER", 4, 6)], [("PER", 0, 1), ("LOC", 4, 6)]
    )  # fmt: skip
    marked = marked_spans(crowd, SpanMajorityVote().fit(crowd))
    assert marked.overall == pytest.approx(2 * 2 / (3 * 4))
    assert marked.position_agreement == pytest.approx(2 * 4 / (3 * 4))
    page = report_page(crowd, SpanMajorityVote().fit(crowd), bootstrap=0)
    assert page.values["position_agreement"] == pytest.approx(2 / 3, abs=1e-4)


def test_quality_of_several_labels_has_a_table_of_labels(tmp_path, capsys):
    rows = ["1,a,x|y", "1,b,x", "1,c,x|y", "2,a,", "2,b,y", "2,c,", "3,a,x", "3,b,x", "3,c,x"]
    (tmp_path / "a.csv").write_text("task,annotator,label\n" + "\n".join(rows) + "\n")
    options = ["--multi-label", "--label-separator", "|", "--bootstrap", "0"]
    out = ["--out", str(tmp_path / "q"), "--format", "csv"]
    cli.main(["quality", str(tmp_path / "a.csv"), *options, *out])
    assert "\nlabels\n" in capsys.readouterr().out
    lines = (tmp_path / "q" / "classes.csv").read_text().splitlines()
    table = {row["class"]: row for row in csv.DictReader(lines)}
    assert float(table["x"]["alpha"]) == 1  # all three agree on x in every task
    assert 0 < float(table["y"]["agreement"]) < 1
    assert "least_alpha" in json.loads((tmp_path / "q" / "summary.json").read_text())
