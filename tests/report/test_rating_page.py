"""The page of `crowdzoo report` for ratings."""

import json

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import RatingEM, VotesWarning
from crowdzoo.quality import krippendorff_alpha
from crowdzoo.report.page import VALUES, report_page


def crowd() -> Annotations:
    """80 tasks; ann is harsh, bob mild, cem exact, dan inverts the scale, eve says anything, fay always 5."""
    rng = np.random.default_rng(4)
    truth = rng.uniform(0, 10, 80)
    said = np.stack([truth - 2, truth + 2, truth, 10 - truth, rng.uniform(0, 10, 80), np.full(80, 5.0)])
    said[:4] += rng.normal(0, 0.5, (4, 80))
    names = np.repeat(["ann", "bob", "cem", "dan", "eve", "fay"], 80)
    return Annotations.from_arrays(np.tile(np.arange(80), 6), names, said.ravel(), kind="regression")


@pytest.fixture(scope="module")
def page():
    annotations = crowd()
    return report_page(annotations, RatingEM().fit(annotations), bootstrap=20)


def test_biases_and_notes_are_those_of_the_annotators(page):
    values = page.numbers.tables["annotators"].values
    assert values["bias"][1] - values["bias"][0] == pytest.approx(4, abs=0.4)
    assert all(low < bias < high for low, bias, high in zip(
        values["bias_low"], values["bias"], values["bias_high"], strict=True))  # fmt: skip
    assert values["notes"] == [["bias"], ["bias"], [], ["against"], ["random"], ["constant"]]
    assert values["error"] == pytest.approx(1 / np.sqrt(RatingEM().fit(crowd()).precisions), abs=1e-4)


def test_agreement_is_the_correlation_with_the_mean_of_the_others(page):
    annotations, values = crowd(), page.numbers.tables["annotators"].values
    dense = annotations.to_dense()
    for annotator in range(5):
        others = np.delete(dense, annotator, axis=1).mean(axis=1)
        expected = np.corrcoef(dense[:, annotator], others)[0, 1]
        assert values["correlation"][annotator] == pytest.approx(expected, abs=1e-4)
    assert values["correlation"][5] is None


def test_the_numbers_are_written(page, tmp_path):
    numbers = json.loads(page.write(tmp_path / "a.html").with_suffix(".json").read_text("utf-8"))
    alpha = krippendorff_alpha(crowd(), bootstrap=20)
    assert numbers["values"]["alpha"] == pytest.approx(alpha.value, abs=1e-4)
    assert numbers["kind"] == "regression"
    assert set(page.values) == set(VALUES["regression"])
    spread = [page.numbers.tables["tasks"].values["spread"][row] for row in page.numbers.tables["tasks"].rows]
    assert spread == sorted(spread, reverse=True)
    assert len(page.numbers.tables["tasks"].details[0]["voters"]) == 6
    annotators = page.numbers.tables["annotators"]
    result, dense = RatingEM().fit(crowd()), crowd().to_dense()
    distance = np.abs(dense[:, 4] - result.biases[4] - result.estimates)
    far = annotators.details[annotators.rows.index(4)]["far"]
    assert [int(task) for task, *_ in far] == np.argsort(-distance)[:10].tolist()


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")  # two ratings say nothing of the spread
def test_ratings_that_nobody_shares_have_a_page():
    annotations = Annotations.from_arrays([0, 1], ["a", "b"], [1.0, 2.0], kind="regression")
    page = report_page(annotations, RatingEM().fit(annotations), bootstrap=0)
    assert page.numbers.warnings[0].about == "agreement"
    json.loads(page.to_json())
    page.to_html()


def test_a_note_of_the_aggregation_is_a_warning_of_the_page(page):
    annotations = crowd()
    with pytest.warns(VotesWarning, match="they follow annotator 'fay'"):
        found = RatingEM(unrelated=0.0).fit(annotations)
    noted = report_page(annotations, found, bootstrap=0)
    assert any("they follow annotator 'fay'" in warned.finding for warned in noted.numbers.warnings)
    assert not any("they follow annotator" in warned.finding for warned in page.numbers.warnings)
