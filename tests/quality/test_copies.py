"""Copies are judged by the others, and count as one."""

from dataclasses import replace

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, Robust
from crowdzoo.quality import judged_by_others, settlement
from crowdzoo.quality.annotators import annotator_table
from crowdzoo.quality.copies import copy_families, counted_once, family_names
from crowdzoo.report.left_out import left_out
from crowdzoo.report.page import report_page


def copied_crowd(seed: int = 0, tasks: int = 300, size: int = 4) -> tuple[Annotations, np.ndarray]:
    """Twelve annotators, four labels per task, where the second copies the first; and how often each is right."""
    rng = np.random.default_rng(seed)
    truth, accuracy = rng.integers(0, size, tasks), rng.uniform(0.7, 0.9, 12)
    wrong = (truth[:, None] + rng.integers(1, size, (tasks, 12))) % size
    said = np.where(rng.random((tasks, 12)) < accuracy, truth[:, None], wrong)
    seen = rng.random((tasks, 12)).argsort(axis=1).argsort(axis=1) < 4
    said[:, 1], seen[:, 1] = said[:, 0], seen[:, 0]
    rows, who = np.nonzero(seen)
    right = np.array([(said == truth[:, None])[seen[:, each], each].mean() for each in range(12)])
    return Annotations.from_arrays(rows, who, said[rows, who], annotators=range(12), classes=range(size)), right


@pytest.mark.parametrize("method", [Robust, DawidSkene])
def test_the_reliability_of_copies_is_that_by_the_others(method):
    for seed in range(3):
        annotations, right = copied_crowd(seed)
        table = annotator_table(annotations, method().fit(annotations))
        assert table["copies"].to_pylist() == ["0, 1", "0, 1"] + 10 * [None]
        low, high = (table[f"reliability_{end}"].to_numpy() for end in ("low", "high"))
        assert ((low <= right) & (right <= high)).all()
        agreement = table["agreement"].to_numpy()
        assert np.abs(agreement[:2] - agreement[2:].mean()).max() < 0.2, "that with the copy does not count"


def test_a_family_does_not_judge_itself_and_judges_others_once():
    """As if the copies were not there, of whom one has the matrix of the other."""
    annotations, _ = copied_crowd(tasks=200)
    rows = annotations.annotator_ids
    alone = annotations.select_rows(rows != 1)
    result = DawidSkene().fit(alone)
    result.confusions[1] = result.confusions[0]
    families = np.where(np.arange(12) == 1, 0, np.arange(12))
    found, worth = judged_by_others(annotations, result, families=families)
    expected, expected_worth = judged_by_others(alone, result)
    np.testing.assert_allclose(np.delete(found, 1), np.delete(expected, 1), rtol=1e-9)
    assert found[1] == pytest.approx(found[0])
    assert worth[0] == pytest.approx(expected_worth[0])


def test_labels_are_as_settled_as_without_the_copy():
    annotations, _ = copied_crowd()
    result = Robust().fit(annotations)
    alone = annotations.select_rows(annotations.annotator_ids != 1)
    state, expected = settlement(annotations, result), settlement(alone, replace(result, method="any"))
    np.testing.assert_allclose(state.settled, expected.settled)
    np.testing.assert_array_equal(state.further, expected.further)
    np.testing.assert_allclose(state.consensus.confusions[1], state.consensus.confusions[0])


def test_the_page_says_what_is_gained_without_copies_and_how_to_leave_them_out():
    annotations, _ = copied_crowd(0)
    page = report_page(annotations, Robust().fit(annotations), bootstrap=0, curve=0)
    (warned,) = [each for each in page.numbers.warnings if each.key == "copy"]
    advice = page.numbers.leave_out
    assert advice["annotators"] == ["1"], "one of them stays"
    assert advice["advised"] is True
    assert "leave all of them but one out (--exclude 1)" in warned.fix
    assert f"{100 * advice['value']:+.1f} points" in warned.fix


def test_whoever_is_copied_does_not_say_whether_leaving_out_the_copy_pays():
    """By hand: of five who say the truth and a pair who always say the same wrong class, the copy goes."""
    said = np.stack([np.zeros(30, int)] * 5 + [np.ones(30, int)] * 2, axis=1)
    annotations, gone = Annotations.from_dense(said), np.arange(7) == 6
    families = np.array([0, 1, 2, 3, 4, 5, 5])
    assert left_out(annotations, "majority-vote", gone, families=families)[0] == 0, "five agree with the label"
    few = Annotations.from_dense(said[:, 3:])
    assert left_out(few, "majority-vote", gone[3:]) is not None
    assert left_out(few, "majority-vote", gone[3:], families=np.array([0, 1, 2, 2])) is None, "only two can judge"


def test_families_have_the_code_of_their_first_and_count_once():
    annotations, _ = copied_crowd()
    families = copy_families(12, annotations.task_ids, annotations.annotator_ids, annotations.labels)
    assert families.tolist() == [0, 0, *range(2, 12)]
    assert family_names(np.array(list("abcdefghijkl")), families)[:3] == ["a, b", "a, b", None]
    once = counted_once(annotations, families)
    assert len(once) == (annotations.annotator_ids != 1).sum()
    assert 1 not in once.annotator_ids
    assert not once.repeats
