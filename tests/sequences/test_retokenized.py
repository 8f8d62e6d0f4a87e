"""retokenized: tokens as `split_tokens` cuts them, and everybody's spans where they were."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdzoo import Annotations
from crowdzoo.data.retokenized import retokenized
from crowdzoo.sequences import CrowdSequences, allowed_tags, spans_of, split_tokens

few = settings(max_examples=20)
ANNOTATORS = ["ann", "bob", "cid"]
TOKENS = st.text("aÉ1.-$'\N{PARTY POPPER}", min_size=1, max_size=5)


def crowd_of(sentences, scheme="BIO", classes=None, gold=None, texts=None, offsets=None):
    """Sentences of (tokens, {annotator: tags}); gold as tags."""
    classes = classes or allowed_tags(["LOC", "PER"], scheme)
    codes = {name: code for code, name in enumerate(classes)}
    rows = [
        (task, annotator, codes[tag], position)
        for task, (_, answers) in enumerate(sentences)
        for annotator, tags in answers.items()
        for position, tag in enumerate(tags)
    ]
    task, annotator, label, position = np.array(rows, np.int64).reshape(-1, 4).T
    names = [np.array(each, object) for each in ([f"s{i}" for i in range(len(sentences))], ANNOTATORS, classes)]
    return CrowdSequences(
        [tokens for tokens, _ in sentences],
        Annotations("sequence", task, annotator, label, *names, positions=position),
        None if gold is None else [np.array([codes[tag] for tag in tags]) for tags in gold],
        texts,
        offsets,
        scheme,
    )


@st.composite
def crowds(draw, tokens=TOKENS):
    """One to four sentences; tags of any kind, such as break the scheme, too; with and without gold and texts."""
    scheme = draw(st.sampled_from(["BIO", "IOBES"]))
    classes = draw(st.permutations(allowed_tags(["LOC", "PER"], scheme)))
    sentences = []
    for words in draw(st.lists(st.lists(tokens, min_size=1, max_size=6), min_size=1, max_size=4)):
        tags = st.lists(st.sampled_from(classes), min_size=len(words), max_size=len(words))
        sentences.append((words, {who: draw(tags) for who in draw(st.sets(st.sampled_from([0, 1, 2])))}))
    gold = None
    if draw(st.booleans()):
        gold = [draw(st.lists(st.sampled_from(classes), min_size=len(w), max_size=len(w))) for w, _ in sentences]
    texts = offsets = None
    if draw(st.booleans()):
        texts, offsets = [], []
        for words, _ in sentences:
            text, places = draw(st.sampled_from(["", " "])), []
            for word in words:
                places.append((len(text), len(text) + len(word)))
                text += word + draw(st.sampled_from(["", " ", "  "]))
            texts.append(text)
            offsets.append(np.array(places))
    return crowd_of(sentences, scheme, classes, gold, texts, offsets)


def moved(spans, tokens):
    """Where spans lie once each token is cut: by the count of all parts before."""
    parts = np.concatenate([[0], np.cumsum([len(split_tokens(token)[0]) for token in tokens])]).tolist()
    return [(type_, parts[start], parts[end]) for type_, start, end in spans]


@few
@given(crowds())
def test_spans_of_everybody_and_of_gold_stay_where_they_were(crowd):
    cut = retokenized(crowd)
    for task, tokens in enumerate(crowd.tokens):
        before, after = crowd.answers(task), cut.answers(task)
        assert [*before] == [*after]
        for who, tags in before.items():
            spans, found = spans_of(tags, crowd.scheme), spans_of(after[who], crowd.scheme)
            assert found == moved(spans, tokens)
            for (_, start, end), (_, begin, stop) in zip(spans, found, strict=True):
                assert "".join(cut.tokens[task][begin:stop]) == "".join(tokens[start:end])
    assert (cut.gold is None) == (crowd.gold is None)
    if crowd.gold is not None:
        for tokens, spans, found in zip(crowd.tokens, crowd.gold_spans(), cut.gold_spans(), strict=True):
            assert found == moved(spans, tokens)


@few
@given(crowds())
def test_texts_give_the_tokens_and_nothing_else_changes(crowd):
    cut = retokenized(crowd)
    for tokens, before, text, offsets in zip(cut.tokens, crowd.tokens, cut.texts, cut.offsets, strict=True):
        assert [*tokens] == split_tokens(text)[0]
        assert [text[start:end] for start, end in offsets.tolist()] == [*tokens]
        assert "".join(tokens) == "".join(before)
    old, new = crowd.annotations, cut.annotations
    assert (cut.scheme, cut.classes, len(cut)) == (crowd.scheme, crowd.classes, len(crowd))
    assert (new.tasks.tolist(), new.annotators.tolist()) == (old.tasks.tolist(), old.annotators.tolist())
    np.testing.assert_array_equal(new.redundancy > 0, old.redundancy > 0)


@few
@given(crowds(tokens=st.text("aÉ1", min_size=1, max_size=4)))
def test_what_needs_no_cut_keeps_its_tokens_and_tags(crowd):
    cut = retokenized(crowd)
    assert cut.tokens == crowd.tokens
    assert cut.annotations == crowd.annotations
    if crowd.gold is not None:
        assert cut.gold_tags() == crowd.gold_tags()
    if crowd.texts is None:
        assert cut.texts == tuple(" ".join(tokens) for tokens in crowd.tokens)


BY_HAND = {
    "a place of three letters and points": (
        ["The", "U.S.", "won"], ["The", "U", ".", "S", ".", "won"],
        {"BIO": (["O", "B-LOC", "O"], ["O", "B-LOC", "I-LOC", "I-LOC", "I-LOC", "O"]),
         "IOBES": (["O", "S-LOC", "O"], ["O", "B-LOC", "I-LOC", "I-LOC", "E-LOC", "O"])},
    ),
    "cut at the span's beginning, inside and end": (
        ["O'Neill", "da", "Sá-Lo"], ["O", "'", "Neill", "da", "Sá", "-", "Lo"],
        {"BIO": (["B-PER", "I-PER", "I-PER"], ["B-PER"] + ["I-PER"] * 6),
         "IOBES": (["B-PER", "I-PER", "E-PER"], ["B-PER"] + ["I-PER"] * 5 + ["E-PER"])},
    ),
    "a date outside, beside a span": (
        ["1996-08-22", "Rome"], ["1996", "-", "08", "-", "22", "Rome"],
        {"BIO": (["O", "B-LOC"], ["O"] * 5 + ["B-LOC"]), "IOBES": (["O", "S-LOC"], ["O"] * 5 + ["S-LOC"])},
    ),
    "two spans of one type side by side": (
        ["U.S", "U.K"], ["U", ".", "S", "U", ".", "K"],
        {"BIO": (["B-LOC", "B-LOC"], ["B-LOC", "I-LOC", "I-LOC"] * 2),
         "IOBES": (["S-LOC", "S-LOC"], ["B-LOC", "I-LOC", "E-LOC"] * 2)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["BIO", "IOBES"])
@pytest.mark.parametrize("case", BY_HAND)
def test_tags_of_the_parts_by_hand(case, scheme):
    tokens, parts, tags = BY_HAND[case]
    before, after = tags[scheme]
    cut = retokenized(crowd_of([(tokens, {1: before, 2: ["O"] * len(tokens)})], scheme, gold=[before]))
    assert cut.tokens == (tuple(parts),)
    assert cut.answers(0) == {"bob": after, "cid": ["O"] * len(parts)}
    assert cut.gold_tags() == [after]
    assert cut.texts == (" ".join(tokens),)


def test_a_text_that_would_be_cut_otherwise_gives_way_to_the_tokens():
    # "cannot" as two tokens, which no text of one word gives
    crowd = crowd_of([(["can", "not"], {0: ["O", "B-PER"]})], texts=["cannot"], offsets=[np.array([[0, 3], [3, 6]])])
    cut = retokenized(crowd)
    assert (cut.tokens, cut.texts) == ((("can", "not"),), ("can not",))
    assert cut.answers(0) == {"ann": ["O", "B-PER"]}
