"""How marked spans differ, against a count span by span."""

import itertools

import numpy as np
import pytest

from crowdzoo.aggregation import SpanMajorityVote
from crowdzoo.data.crowd_sequences import sentence_annotations
from crowdzoo.datasets import generated_ner
from crowdzoo.quality import marked_spans
from crowdzoo.sequences import CrowdSequences, TagSet, span_scores, spans_of, tags_of

TAGS = TagSet(["O", "B-LOC", "I-LOC", "B-PER", "I-PER"])


def crowd_of(sentences: list[dict[str, list[tuple[str, int, int]]]], length: int = 8) -> CrowdSequences:
    """Sentences of what each annotator marks; ann, bob and cem are annotators 0 to 2."""
    names = ["ann", "bob", "cem"]
    rows = [
        (task, names.index(name), TAGS.codes(tags_of(spans, length)))
        for task, said in enumerate(sentences) for name, spans in said.items()
    ]  # fmt: skip
    annotations = sentence_annotations(rows, np.arange(len(sentences)), np.array(names), TAGS.classes)
    return CrowdSequences([[f"w{place}" for place in range(length)]] * len(sentences), annotations)


def closest(span, others):
    """The span of somebody else that one is compared with, by the rule of `MarkedSpans`."""
    over = [each for each in others if each.start < span.end and span.start < each.end]
    return min(
        over, default=None,
        key=lambda each: (each != span, each.type != span.type,
                          -(min(each.end, span.end) - max(each.start, span.start)), each.start),
    )  # fmt: skip


def test_kinds_of_errors_are_told_apart():
    crowd = crowd_of([
        {
            "ann": [("PER", 0, 2), ("LOC", 4, 6)],
            "bob": [("PER", 0, 2), ("LOC", 4, 6)],
            "cem": [("LOC", 0, 2), ("LOC", 4, 5), ("PER", 6, 8)],
        },
        {"ann": [("PER", 1, 2)], "bob": [("PER", 1, 2)], "cem": []},
    ])  # fmt: skip
    found = marked_spans(crowd, SpanMajorityVote().fit(crowd))
    assert found.types == ["LOC", "PER"]
    assert found.expected.tolist() == [[1, 2]] * 3
    assert found.right.tolist() == [[1, 2], [1, 2], [0, 0]]
    assert found.wrong_edges[2].tolist() == [1, 0]
    assert found.wrong_type[2].tolist() == [0, 1]
    assert found.missed[2].tolist() == [0, 1]
    assert found.invented[2].tolist() == [0, 1]
    assert found.confusion.tolist() == [
        [0, 0, 0, 1], [0, 1, 1, 2], [1, 0, 0, 1], [1, 1, 1, 2], [2, 0, 0, 1], [2, 1, 0, 1],
    ]  # fmt: skip
    # by hand: ann and bob are the same, neither has a span of cem's
    assert found.agreement[0] == pytest.approx(2 * 3 / (3 * 2 + 3 + 3))
    assert found.agreement[2] == 0
    assert found.overall == pytest.approx(2 * 3 / 18)  # six pairs of annotators, with 4, 5, 5, 2, 1 and 1 spans
    assert found.agreement_of_tasks == pytest.approx([4 / 14, 2 / 4])
    assert found.differing_of_tasks == pytest.approx([(0 + 5 + 5) / 3, (0 + 1 + 1) / 3])


@pytest.mark.parametrize("most", [pytest.param(None, marks=pytest.mark.slow), 40])
def test_counts_are_those_of_a_count_span_by_span(monkeypatch, most):
    if most:  # many parts, and none of them holds half a sentence
        monkeypatch.setattr("crowdzoo.quality.span_differences.MOST_ROWS", most)
    crowd = generated_ner(60, 7, redundancy=3, seed=5)
    result = SpanMajorityVote().fit(crowd)
    found = marked_spans(crowd, result)
    size = len(crowd.types)
    counts = {name: np.zeros((7, size), int) for name in ("right", "wrong_edges", "wrong_type", "missed", "invented")}
    coincidences = np.zeros((size + 1, size + 1))
    for task in range(len(crowd)):
        said = {name: spans_of(tags) for name, tags in crowd.answers(task).items()}
        truth = result.spans_of(task)
        for name, spans in said.items():
            for span in truth:
                other = closest(span, spans)
                kind = "missed" if other is None else "right" if other == span else (
                    "wrong_edges" if other.type == span.type else "wrong_type")  # fmt: skip
                counts[kind][name, crowd.types.index(span.type)] += 1
            for span in spans:
                counts["invented"][name, crowd.types.index(span.type)] += closest(span, truth) is None
        for one, other in itertools.permutations(said, 2):
            for span in said[one]:
                partner = closest(span, said[other])
                place = crowd.types.index(span.type), size if partner is None else crowd.types.index(partner.type)
                if partner is None:
                    coincidences[place] += 1 / (len(said) - 1)
                    coincidences[place[::-1]] += 1 / (len(said) - 1)
                else:
                    coincidences[place] += 0.5 / (len(said) - 1)
                    coincidences[place[::-1]] += 0.5 / (len(said) - 1)
    for name, expected in counts.items():
        np.testing.assert_array_equal(getattr(found, name), expected, name)
    np.testing.assert_allclose(found.coincidences, coincidences)


def test_f1_against_the_aggregate_is_that_of_conlleval():
    crowd = generated_ner(80, 6, redundancy=3, seed=2)
    result = SpanMajorityVote().fit(crowd)
    found = marked_spans(crowd, result)
    for annotator in range(6):
        tasks, tags = crowd.answers_of(annotator)
        scores = span_scores([result.tags_of(task) for task in tasks.tolist()], tags)
        assert found.right[annotator].sum() == scores.num_correct
        assert found.marks[annotator].sum() == scores.num_predicted
        assert found.expected[annotator].sum() == scores.num_gold
