"""The named entities of CoNLL-2003 by workers on Mechanical Turk: published counts and figures."""

import pytest

from crowdzoo.datasets import data_folder
from crowdzoo.errors import DataError
from crowdzoo.sequences import span_scores, tag_problems

FOLDER = "conll2003-ner-amt-izhx"


@pytest.fixture(scope="module")
def load_ner_amt(reproduce):
    return reproduce("load_ner_amt").load_ner_amt


@pytest.fixture(scope="module")
def ner(load_ner_amt):
    if not (data_folder() / FOLDER).is_dir():
        pytest.skip(f"CROWDZOO_DATA has no {FOLDER}")
    return load_ner_amt()


@pytest.mark.slow
def test_the_released_part_has_the_counts_of_its_notes(ner):
    assert (len(ner.crowd), len(ner.published), len(ner.test), len(ner.rest)) == (2845, 5985, 3250, 3453)
    assert ner.crowd.annotations.num_annotators == 47
    assert len({tuple(tokens) for tokens in ner.crowd.tokens}) == 2845
    assert ner.crowd.classes == ner.test.classes
    assert ner.crowd.annotations.redundancy.min() >= 1


@pytest.mark.slow
def test_the_majority_vote_scores_what_was_published(ner):
    # Rodrigues, Pereira and Ribeiro 2014: 79.12 / 58.50 / 67.27
    scores = span_scores(ner.published.gold_tags(), ner.majority)
    assert [round(100 * value, 2) for value in (scores.precision, scores.recall, scores.f1)] == [79.12, 58.5, 67.27]
    assert sum(len(tag_problems(tags)) for tags in ner.majority) == 232


def test_a_folder_that_is_not_there_says_what_to_do(load_ner_amt, tmp_path):
    with pytest.raises(DataError, match=r"CROWDZOO_DATA name .* conll2003-ner-amt-izhx"):
        load_ner_amt(folder=tmp_path / FOLDER)
