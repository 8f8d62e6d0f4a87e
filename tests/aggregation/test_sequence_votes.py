"""Votes on spans, methods for classes on tokens, and the result that every sequence method gives back."""

import numpy as np
import pytest
from tagged_rows import crowd_of_rows

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import SEQUENCE_METHODS, SequenceAggregation, SpanMajorityVote, TokenAggregation, create
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.sequences import CrowdSequences, TagSet, allowed_tags, read_gold, span_scores, spans_of, tag_problems

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


def crowd_of(sentences, scheme="BIO"):
    """CrowdSequences of lists of answers: annotator r said the r-th, "" is nothing; a number is a length without."""
    tag_set = TagSet(allowed_tags(["X", "Y"], scheme), scheme)
    rows, lengths = [], []
    for task, said in enumerate(sentences):
        answers = [] if isinstance(said, int) else said
        rows += [(task, who, tag_set.codes(tags.split())) for who, tags in enumerate(answers) if tags]
        lengths.append(said if isinstance(said, int) else max(len(tags.split()) for tags in said))
    most = max(len(said) for said in sentences if not isinstance(said, int))
    return crowd_of_rows(rows, most, tag_set.classes, [["w"] * length for length in lengths], scheme=scheme)


def voted(*answers, **options):
    return " ".join(SpanMajorityVote(**options).fit(crowd_of([list(answers)])).tags_of(0))


# === Votes on spans ===


def test_a_span_stands_if_more_than_half_marked_it():
    assert voted("B-X I-X O", "B-X I-X O", "O O O") == "B-X I-X O"
    assert voted("B-X I-X O", "B-X O O", "O O O") == "O O O"
    assert voted("B-X I-X O", "B-Y I-Y O", "B-X I-X B-Y") == "B-X I-X O"


OVERLAPS = {
    "more votes win": (("B-X I-X O", "O B-Y I-Y", "O B-Y I-Y"), "O B-Y I-Y"),
    "then what begins first": (("B-Y I-Y O", "O B-X I-X"), "B-Y I-Y O"),
    "then what is longer": (("B-Y I-Y O", "B-X O O"), "B-Y I-Y O"),
    "then the type's name": (("B-Y I-Y O", "B-X I-X O"), "B-X I-X O"),
    "the loser gives way, others stay": (("B-X I-X O B-Y", "O B-Y I-Y O"), "B-X I-X O B-Y"),
}


@pytest.mark.parametrize(("answers", "expected"), OVERLAPS.values(), ids=OVERLAPS)
def test_below_one_half_spans_may_overlap_and_the_rule_decides(answers, expected):
    assert voted(*answers, share=0.3) == expected


def test_posteriors_are_vote_shares_and_reliability_is_f1():
    result = SpanMajorityVote().fit(crowd_of([["B-X O", "B-X O", "O B-Y"], ["B-Y", "O", "B-Y"]]))
    np.testing.assert_allclose(result.posteriors[0], [1 / 3, 2 / 3, 0, 0, 0])
    # spans that stand: X in the first, Y in the second. Said: 2 of 2 right; 1 of 1, and 1 missed; 1 of 2, and 1 missed
    np.testing.assert_allclose(result.skills, [1, 2 / 3, 1 / 2])
    assert (result.confusions, result.log_likelihood, result.history) == (None, None, ())


def test_sentences_that_nobody_labelled_have_no_spans():
    result = SpanMajorityVote().fit(crowd_of([["B-X", "B-X"], 2]))
    assert result.tags() == [["B-X"], ["O", "O"]]
    assert np.isfinite(result.posteriors).all()


# === Tokens as tasks ===


def test_tokens_are_tasks_of_the_method():
    crowd = crowd_of([["B-X I-X", "B-X O", "O O"], ["O", "B-Y", ""]])
    result = TokenAggregation("majority-vote", decoding="each").fit(crowd)
    np.testing.assert_allclose(result.posteriors[:2], [[1 / 3, 2 / 3, 0, 0, 0], [2 / 3, 0, 0, 1 / 3, 0]])
    assert result.tags_of(0) == ["B-X", "O"]
    assert result.method == "majority-vote"


def test_valid_decoding_takes_the_best_path_that_keeps_the_scheme():
    # each token's winner is O, I-X; a B-X before it has 2 of 5 votes
    said = ["B-X I-X", "B-X I-X", "O B-Y", "O B-Y", "O O"]
    each = TokenAggregation("majority-vote", decoding="each", settings={"ties": "lowest"}).fit(crowd_of([said]))
    assert each.tags_of(0) == ["O", "B-Y"]
    more = ["B-X I-X", "B-X I-X", "O B-X", "O B-Y", "O O"]
    assert TokenAggregation("majority-vote", decoding="each").fit(crowd_of([more])).tags_of(0) == ["O", "I-X"]
    # B-X I-X: .4 * .4; O B-X: .6 * .2
    assert TokenAggregation("majority-vote").fit(crowd_of([more])).tags_of(0) == ["B-X", "I-X"]


# === Corners ===


def bare(classes, num_tasks, num_annotators, rows=()):
    """Annotations of (task, annotator, label, position) codes."""
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return Annotations(
        "sequence", *columns[:3], np.arange(num_tasks), np.arange(num_annotators), np.array(classes, object),
        positions=columns[3],
    )  # fmt: skip


CORNERS = {
    "nobody": CrowdSequences([["a"], ["b", "c"]], bare(["O", "B-X", "I-X"], 2, 0)),
    "no sentences": CrowdSequences([], bare(["O", "B-X", "I-X"], 0, 3)),
    "no types": CrowdSequences([["a", "b"]], bare(["O"], 1, 1, [(0, 0, 0, 0), (0, 0, 0, 1)])),
    "no tokens for some": bare(["O", "B-X", "I-X"], 3, 1, [(1, 0, 1, 0), (1, 0, 2, 1)]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "method", ["majority-vote", "dawid-skene", "ibcc", "span-majority-vote", "hmm-crowd", "bsc-seq"]
)
@pytest.mark.parametrize("corner", CORNERS.values(), ids=CORNERS)
def test_corners_have_valid_tags_and_finite_posteriors(method, corner):
    result = create(method, kind="sequence").fit(corner)
    assert len(result.tags()) == len(result.codes()) == len(result)
    assert not any(tag_problems(tags) for tags in result.tags())
    assert np.isfinite(result.posteriors).all()
    np.testing.assert_allclose(result.posteriors.sum(axis=1), 1)


# === By name ===


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
@pytest.mark.parametrize("method", SEQUENCE_METHODS)
def test_every_method_tags_every_sentence(method):
    crowd = generated_ner(40, 6)
    settings_ = {"num_starts": 1, "max_iter": 5} if method == "ebcc" else {}
    result = create(method, kind="sequence", **settings_).fit(crowd)
    assert isinstance(result, SequenceAggregation)
    assert result.method == method
    assert [len(tags) for tags in result.tags()] == crowd.lengths.tolist()
    assert not any(tag_problems(tags) for tags in result.tags())
    np.testing.assert_allclose(result.posteriors.sum(axis=1), 1)
    assert np.isfinite(result.posteriors).all()


UNKNOWN = {
    "a method": (("hmmcrowd", {"kind": "sequence"}), "Did you mean 'hmm-crowd'"),
    "a sequence method for classes": (("hmm-crowd", {}), "unknown aggregation method"),
    "a kind": (("ibcc", {"kind": "sequences"}), "Did you mean 'sequence'"),
    "a setting of tokens": (("ibcc", {"kind": "sequence", "decodin": "each"}), "Did you mean 'decoding'"),
    "a setting of classes": (("ibcc", {"decoding": "each"}), "unknown setting of ibcc"),
    "a value": (("ibcc", {"kind": "sequence", "decoding": "all"}), "unknown decoding 'all': choose one of valid, each"),
    "a method's value": (("ibcc", {"kind": "sequence", "prior": -1}), "prior must be a number"),
}


@pytest.mark.parametrize(("call", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_there_is_not_is_named(call, message):
    with pytest.raises(ConfigError, match=message):
        create(call[0], **call[1])


# === The result ===


def result_of(method="hmm-crowd"):
    crowd = generated_ner(20, 5)
    return crowd, create(method, kind="sequence").fit(crowd)


def test_looks_into_the_result_agree():
    crowd, result = result_of()
    assert len(result) == 20
    assert result.tags_of(3) == result.tags()[3] == crowd.tag_set.tags(result.codes()[3])
    assert result.spans_of(3) == spans_of(result.tags_of(3))
    assert sum(map(len, result.codes())) == len(result.labels) == crowd.starts[-1]
    by_codes = span_scores(crowd.gold, result.codes(), classes=crowd.classes)
    assert by_codes == span_scores(crowd.gold_tags(), result.tags())
    assert result.annotators_per_task.tolist() == [4] * 20
    assert result.tasks_per_annotator.sum() == 80


@pytest.mark.parametrize("method", ["hmm-crowd", "span-majority-vote"])
def test_a_result_comes_back_from_its_folder(tmp_path, method):
    _, result = result_of(method)
    result.to_parquet(tmp_path / "out")
    back = SequenceAggregation.from_parquet(result.to_parquet(tmp_path / "out"))
    for name, value in vars(result).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(back, name), value, err_msg=name)
            assert getattr(back, name).dtype == value.dtype, name
        else:
            assert getattr(back, name) == value, name
    (tmp_path / "out" / "mine.txt").write_text("keep")
    with pytest.raises(DataError, match=r"contains something else \(mine.txt\)"):
        result.to_parquet(tmp_path / "out")
    with pytest.raises(DataError, match=r"it has no tokens\.parquet"):
        SequenceAggregation.from_parquet(tmp_path)


def test_a_result_is_written_in_columns(tmp_path):
    crowd, result = result_of()
    result.to_conll(tmp_path / "tags.txt", crowd)
    back = read_gold(tmp_path / "tags.txt", classes=crowd.classes)
    assert back.tokens == crowd.tokens
    assert back.gold_tags() == result.tags()
    with pytest.raises(DataError, match="not the sentences that were aggregated"):
        result.to_conll(tmp_path / "tags.txt", crowd.select([0]))


def test_frames_hold_a_row_for_each_token_and_for_each_annotator():
    result = SpanMajorityVote().fit(crowd_of([["B-X I-X O", "B-X I-X O"], ["O", "B-Y"]]))
    tokens = result.to_frame()
    assert tokens.columns.tolist() == ["task", "position", "label", "label_code", "probability"]
    assert tokens["position"].tolist() == [0, 1, 2, 0]
    assert tokens["label"].tolist() == ["B-X", "I-X", "O", "O"]
    annotators = result.annotator_frame()
    assert annotators.columns.tolist() == ["annotator", "tasks", "skill"]
    assert annotators["tasks"].tolist() == [2, 2]
