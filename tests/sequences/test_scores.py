"""Span scores: conlleval's figures by hand, and seqeval's on random tags."""

import pytest
import seqeval.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdzoo.errors import DataError
from crowdzoo.sequences import SpanScores, TypeScores, allowed_tags, span_scores


def words(text):
    return text.split()


TYPES = ("LOC", "PER", "X")


def sentences(scheme):
    tags = st.sampled_from(allowed_tags(TYPES, scheme))
    pairs = st.lists(st.tuples(tags, tags), min_size=1, max_size=8)
    return st.lists(pairs, min_size=1, max_size=5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@settings(max_examples=40)
@given(st.data(), st.sampled_from(["BIO", "IOBES"]))
def test_scores_of_any_tags_are_seqevals(data, scheme):
    drawn = data.draw(sentences(scheme))
    gold = [[pair[0] for pair in sentence] for sentence in drawn]
    found = [[pair[1] for pair in sentence] for sentence in drawn]
    ours = span_scores(gold, found, scheme)
    assert ours.precision == pytest.approx(seqeval.metrics.precision_score(gold, found, zero_division=0))
    assert ours.recall == pytest.approx(seqeval.metrics.recall_score(gold, found, zero_division=0))
    assert ours.f1 == pytest.approx(seqeval.metrics.f1_score(gold, found, zero_division=0))
    assert ours.token_accuracy == pytest.approx(seqeval.metrics.accuracy_score(gold, found))
    if not ours.types:
        return
    report = seqeval.metrics.classification_report(gold, found, output_dict=True, zero_division=0)
    for name, own in ours.types.items():
        assert (own.precision, own.recall, own.f1) == pytest.approx(
            (report[name]["precision"], report[name]["recall"], report[name]["f1-score"])
        )
        assert own.num_gold == report[name]["support"]
    assert set(ours.types) == set(report) - {"micro avg", "macro avg", "weighted avg"}


def test_the_report_is_conllevals():
    # 4 true spans, 4 found; right are LOC 0:1 of the first sentence and PER 0:2 of the second
    gold = [words("B-LOC O B-PER I-PER"), words("B-PER I-PER O B-LOC O")]
    found = [words("B-LOC O B-PER O"), words("I-PER I-PER B-PER O O")]
    scores = span_scores(gold, found)
    assert scores == SpanScores(
        num_gold=4,
        num_predicted=4,
        num_correct=2,
        num_tokens=9,
        num_correct_tokens=5,
        types={"LOC": TypeScores(2, 1, 1), "PER": TypeScores(2, 3, 1)},
    )
    assert str(scores) == (
        "processed 9 tokens with 4 phrases; found: 4 phrases; correct: 2.\n"
        "accuracy:  55.56%; precision:  50.00%; recall:  50.00%; FB1:  50.00\n"
        "              LOC: precision: 100.00%; recall:  50.00%; FB1:  66.67  1\n"
        "              PER: precision:  33.33%; recall:  50.00%; FB1:  40.00  3"
    )


def test_nothing_to_find_scores_zero_without_a_warning():
    scores = span_scores([["O"]], [["O"]])
    assert (scores.precision, scores.recall, scores.f1, scores.token_accuracy) == (0, 0, 0, 1)
    assert span_scores([], []).token_accuracy == 0
    assert span_scores([[]], [[]]).num_tokens == 0


WRONG = {
    "sentences": (([["O"]], []), {}, "gold has 1 sentences, predicted 0"),
    "tokens": (([["O"], ["O"]], [["O"], ["O", "O"]]), {}, "sentence 1 has 1 tokens in gold and 2 in predicted"),
    "tags": (([["O"]], [["PER"]]), {}, "'PER' is not a tag of BIO"),
    "codes without classes": (([[0]], [[0]]), {}, "Pass classes= with codes"),
    "codes": (([[0]], [[3]]), {"classes": ["O"]}, "predicted holds codes from 0 to 0"),
}


@pytest.mark.parametrize(("sides", "options", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_compared_is_named(sides, options, message):
    with pytest.raises(DataError, match=message):
        span_scores(*sides, **options)
