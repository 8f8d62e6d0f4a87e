"""Tags and spans: conlleval's rules by hand and against seqeval, checks, conversion, repair."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.sequences import TagSet, allowed_tags, check_tags, convert_tags, mended, spans_of, tag_problems, tags_of


def words(text):
    return text.split()


TYPES = ("PER", "LOC", "a-b")
# any tags of a scheme in any order: most sequences are broken
any_tags = {scheme: st.lists(st.sampled_from(allowed_tags(TYPES, scheme)), max_size=12) for scheme in ("BIO", "IOBES")}
both = st.sampled_from(["BIO", "IOBES"])


@st.composite
def some_spans(draw):
    """Spans that do not overlap, and a length."""
    edges = sorted(draw(st.sets(st.integers(0, 20), max_size=10)))
    pairs = list(zip(edges[::2], edges[1::2], strict=False))
    types = draw(st.lists(st.sampled_from(TYPES), min_size=len(pairs), max_size=len(pairs)))
    length = draw(st.integers(max(edges, default=0), 25))
    return [(type_, start, end) for type_, (start, end) in zip(types, pairs, strict=True)], length


# === Spans ===

BY_HAND = {
    "a span of one token and one of two": ("O B-PER O B-LOC I-LOC", [("PER", 1, 2), ("LOC", 3, 5)]),
    "B after B begins anew": ("B-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
    "I without B begins a span": ("O I-PER I-PER", [("PER", 1, 3)]),
    "another type begins a span": ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),
    "I after I of another type": ("I-PER I-LOC", [("PER", 0, 1), ("LOC", 1, 2)]),
    "the sentence's end ends a span": ("O B-PER I-PER", [("PER", 1, 3)]),
    "nothing": ("O O", []),
    "no tokens": ("", []),
}


@pytest.mark.parametrize(("tags", "spans"), BY_HAND.values(), ids=BY_HAND)
def test_spans_of_bio_tags_follow_conlleval(tags, spans):
    assert spans_of(tags.split()) == spans


IOBES_BY_HAND = {
    "whole spans": ("B-PER I-PER E-PER S-LOC O", [("PER", 0, 3), ("LOC", 3, 4)]),
    "E and S end a span": ("B-A E-A I-A S-A I-A", [("A", 0, 2), ("A", 2, 3), ("A", 3, 4), ("A", 4, 5)]),
    "E without B is a span": ("O E-PER E-PER", [("PER", 1, 2), ("PER", 2, 3)]),
    "a span that never ends": ("B-PER I-PER O", [("PER", 0, 2)]),
}  # fmt: skip


@pytest.mark.parametrize(("tags", "spans"), IOBES_BY_HAND.values(), ids=IOBES_BY_HAND)
def test_spans_of_iobes_tags_follow_conlleval(tags, spans):
    assert spans_of(tags.split(), "IOBES") == spans


@given(st.data(), both)
def test_spans_of_any_tags_are_seqevals(data, scheme):
    tags = data.draw(any_tags[scheme])
    expected = [(type_, start, last + 1) for type_, start, last in get_entities(tags)]
    assert spans_of(tags, scheme) == expected


@given(some_spans(), both)
def test_tags_give_their_spans_back(drawn, scheme):
    spans, length = drawn
    tags = tags_of(spans, length, scheme)
    assert len(tags) == length
    assert spans_of(tags, scheme) == spans
    assert not tag_problems(tags, scheme)


@given(some_spans())
def test_conversion_there_and_back_changes_nothing(drawn):
    tags = tags_of(*drawn)
    other = convert_tags(tags, "BIO", "IOBES")
    assert spans_of(other, "IOBES") == spans_of(tags)
    assert convert_tags(other, "IOBES", "BIO") == tags


SPANS_THAT_DO_NOT_FIT = {
    "overlap": ([("A", 0, 2), ("B", 1, 3)], r"\('B', 1, 3\) overlaps span \('A', 0, 2\)"),
    "twice the same": ([("A", 0, 2), ("A", 0, 2)], "overlaps"),
    "empty": ([("A", 1, 1)], "is empty or not within"),
    "beyond the end": ([("A", 3, 5)], "the sentence's 4 tokens"),
    "before the start": ([("A", -1, 1)], "not within"),
    "no type": ([("", 0, 1)], "is empty"),
    "a type with a space": ([("A B", 0, 1)], "white space"),
}


@pytest.mark.parametrize(("spans", "message"), SPANS_THAT_DO_NOT_FIT.values(), ids=SPANS_THAT_DO_NOT_FIT)
def test_spans_that_no_tags_can_say_are_refused(spans, message):
    with pytest.raises(DataError, match=message):
        tags_of(spans, 4)


# === Checks ===


def broken_by_definition(tags, scheme):
    """Whether tags break a scheme, from the definition of what may stand beside what."""
    padded = ["O", *tags, "O"]
    for before, after in pairwise(padded):
        inner = after[0] in "IE"
        is_open = before[0] in ("BI" if scheme == "IOBES" else "")
        same = before[1:] == after[1:]
        if inner and not (before[0] in "BI" and same):
            return True
        if is_open and not (inner and same):
            return True
    return False


@given(st.data(), both)
def test_problems_are_found_exactly_where_the_scheme_is_broken(data, scheme):
    tags = data.draw(any_tags[scheme])
    assert bool(tag_problems(tags, scheme)) == broken_by_definition(tags, scheme)


def test_each_kind_of_mistake_is_named():
    with pytest.raises(DataError, match="answer 3, row 0: 'I-A' is the first tag") as error:
        check_tags(words("I-A B- b-X E-X O 0 Q-A B"), name="answer 3")
    expected = {
        0: ("I-A", "begins with B-A."), 1: ("B-", "has no type after the dash."), 2: ("b-X", "Did you mean 'B-X'?"),
        3: ("E-X", "E- belongs to the scheme IOBES."), 5: ("0", "Did you mean 'O'?"), 6: ("Q-A", "is not a tag of BIO"),
        7: ("B", "is not a tag of BIO"),
    }  # fmt: skip
    assert [row.row for row in error.value.rows] == [*expected]
    for row in error.value.rows:
        value, reason = expected[row.row]
        assert row.value == value
        assert reason in row.reason
    with pytest.raises(DataError, match=r"row 1: 'I-B' follows 'B-A'; .* begins with B-B\."):
        check_tags(["B-A", "I-B"])


def test_an_unknown_scheme_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'IOBES'"):
        spans_of(["O"], "IOBE")


# === Repair ===


@given(st.data(), both)
def test_repair_keeps_the_spans_and_the_scheme(data, scheme):
    tags = data.draw(any_tags[scheme])
    right = mended(tags, scheme)
    assert spans_of(right, scheme) == spans_of(tags, scheme)
    assert not tag_problems(right, scheme)
    if not tag_problems(tags, scheme):
        assert right == tags


# === Codes ===


@given(st.data(), both)
def test_arithmetic_on_codes_finds_the_same_spans(data, scheme):
    sentences = data.draw(st.lists(any_tags[scheme], max_size=4))
    tag_set = TagSet(data.draw(st.permutations(allowed_tags(TYPES, scheme))), scheme)
    codes = tag_set.codes(tag for tags in sentences for tag in tags)
    firsts = np.array([place == 0 for tags in sentences for place in range(len(tags))], bool)
    table = tag_set.span_table(codes, firsts)
    found = list(zip([tag_set.types[code] for code in table.types], table.starts, table.ends, strict=True))
    expected, begin = [], 0
    for tags in sentences:
        expected += [(type_, begin + start, begin + end) for type_, start, end in spans_of(tags, scheme)]
        begin += len(tags)
    assert found == expected
    right = [tag for tags in sentences for tag in mended(tags, scheme)]
    assert tag_set.tags(tag_set.codes_of(table, len(codes))) == right


@given(st.data(), both)
def test_what_may_follow_what_is_what_has_no_problems(data, scheme):
    tags = data.draw(any_tags[scheme].filter(bool))
    tag_set = TagSet(allowed_tags(TYPES, scheme), scheme)
    first, after, last = tag_set.follows()
    codes = tag_set.codes(tags)
    allowed = first[codes[0]] and after[codes[:-1], codes[1:]].all() and last[codes[-1]]
    assert bool(allowed) == (not tag_problems(tags, scheme))


def test_classes_that_are_no_tags_are_refused():
    with pytest.raises(DataError, match="'dog' is not a tag"):
        TagSet(["O", "dog"])
    with pytest.raises(DataError, match=r"The classes lack 'I-A'\. Each type has all its tags"):
        TagSet(["O", "B-A"])
    with pytest.raises(DataError, match="lack 'O'"):
        TagSet(["B-A", "I-A"])
    with pytest.raises(DataError, match="twice"):
        TagSet(["O", "O"])
