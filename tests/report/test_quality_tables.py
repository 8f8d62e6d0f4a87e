"""What the tables of a quality report show."""

import re

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.quality import quality_report
from crowdzoo.report.quality_tables import print_quality

TITLE = "annotators to check"


def crowd(liar: bool) -> Annotations:
    """40 tasks of two classes, four annotators right for 9 in 10 tasks; a fifth exchanges the classes, or guesses."""
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 2
    said = np.stack([np.where(rng.random(40) < 0.9, truth, 1 - truth) for _ in range(4)])
    fifth = 1 - truth if liar else rng.integers(0, 2, 40)
    said = np.concatenate([said, fifth[None]])
    annotators = np.repeat(["ann", "bob", "cem", "dan", "eve"], 40)
    return Annotations.from_arrays(np.tile(np.arange(40), 5), annotators, said.ravel())


@pytest.mark.parametrize(("liar", "note"), [(True, "exchanges"), (False, "as by chance")])
def test_who_exchanges_classes_and_who_guesses_is_listed_with_the_note_of_the_page(liar, note, capsys):
    print_quality(quality_report(crowd(liar), bootstrap=0))
    listed = capsys.readouterr().out.split(TITLE)[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed[3:]] == ["eve"]
    assert listed[3].endswith(note)


def test_in_a_good_crowd_nobody_is_listed(capsys):
    annotations = crowd(liar=True)
    print_quality(quality_report(annotations.select_rows(annotations.annotator_ids < 4), bootstrap=0))
    assert TITLE not in capsys.readouterr().out


def test_a_list_of_many_classes_is_cut_and_lists_can_be_left_out(capsys):
    labels = np.repeat(np.arange(30), np.arange(1, 31))
    table = Annotations.from_arrays(np.arange(len(labels)) // 2, np.arange(len(labels)) % 2, labels)
    print_quality(quality_report(table, bootstrap=0), top=0)
    shown = capsys.readouterr().out
    assert "the 20 most frequent of 30 classes" in shown
    assert re.search(r"^ +29 +30 ", shown, flags=re.M)
    assert not re.search(r"^ +3 +4 ", shown, flags=re.M)
    assert "to look at" not in shown
