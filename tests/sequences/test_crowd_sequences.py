"""CrowdSequences: what it checks, what it gives, and what a selection keeps."""

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.errors import DataError
from crowdzoo.sequences import CrowdSequences

CLASSES = ["O", "B-X", "I-X"]
TOKENS = [["a", "b"], ["c"], ["d", "e", "f"]]


def crowd(**options):
    task, who, label = [0, 0, 2, 2, 2, 0, 0], [1, 1, 1, 1, 1, 0, 0], [0, 0, 1, 2, 0, 1, 0]
    positions = [0, 1, 1, 2, 0, 1, 0]  # rows in any order: bob's third token stands before the first
    base = Annotations("sequence", task, who, label, [10, 20, 30], ["ann", "bob"], CLASSES, positions=positions)
    return CrowdSequences(TOKENS, base, **options)


GOLD = [np.array([0, 1]), np.array([0]), np.array([1, 2, 0])]


def test_answers_come_in_the_order_of_the_tokens():
    assert crowd().answers(0) == {"ann": ["O", "B-X"], "bob": ["O", "O"]}
    assert crowd().answers(1) == {}
    assert crowd().answers(2) == {"bob": ["O", "B-X", "I-X"]}


def test_one_annotators_answers_come_with_their_sentences():
    tasks, tags = crowd().answers_of(1)
    assert tasks.tolist() == [0, 2]
    assert tags == [["O", "O"], ["O", "B-X", "I-X"]]
    alone = crowd().select([1])
    assert alone.answers_of(0)[0].tolist() == []
    assert alone.answers_of(0)[1] == []


def test_a_selection_takes_everything_along():
    texts, offsets = ["a b", "c", "def"], [[[0, 1], [2, 3]], [[0, 1]], [[0, 1], [1, 2], [2, 3]]]
    part = crowd(gold=GOLD, texts=texts, offsets=offsets).select([2, 0])
    assert part.tokens == (("d", "e", "f"), ("a", "b"))
    assert part.gold_tags() == [["B-X", "I-X", "O"], ["O", "B-X"]]
    assert part.texts == ("def", "a b")
    assert part.offsets[0].tolist() == [[0, 1], [1, 2], [2, 3]]
    assert part.answers(1) == {"ann": ["O", "B-X"], "bob": ["O", "O"]}
    assert part.annotations.tasks.tolist() == [30, 10]
    assert crowd().select([True, False, True]) == crowd().select([0, 2])
    assert len(crowd().select([])) == 0
    with pytest.raises(DataError, match="more than once"):
        crowd().select([0, 0])
    with pytest.raises(DataError, match="task code 3"):
        crowd().select([3])


def test_equal_values_are_equal_whatever_holds_them():
    assert crowd(gold=GOLD) == crowd(gold=[codes.astype(np.int8) for codes in GOLD])
    assert crowd() != crowd(gold=GOLD)
    assert crowd(gold=GOLD) != crowd(gold=[GOLD[0] * 0, *GOLD[1:]])
    assert crowd() != 5


WRONG = {
    "gold of another length": ({"gold": [[0], [0], [0, 0, 0]]}, r"gold of sentence 0 .* Received: shape \(1,\)"),
    "gold of another number": ({"gold": GOLD[:2]}, "gold must have one entry per task, 3. Received: 2"),
    "gold that is no class": ({"gold": [GOLD[0], [3], GOLD[2]]}, "sentence 1 has a code outside 0 to 2"),
    "gold of fractions": ({"gold": [[0.0, 1.0], [0], GOLD[2]]}, "float64"),
    "texts alone": ({"texts": ["a b", "c", "def"]}, "texts and offsets must come together"),
    "offsets of other tokens": (
        {"texts": ["a b", "c", "def"], "offsets": [[[0, 1], [1, 2]], [[0, 1]], [[0, 1], [1, 2], [2, 3]]]},
        "offsets of sentence 0",
    ),
    "an unknown scheme": ({"scheme": "IO"}, "unknown scheme 'IO': choose one of BIO, IOBES"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_parts_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        crowd(**options)


def with_rows(task, who, label, position, kind="sequence"):
    position = position if kind == "sequence" else None
    return Annotations(kind, task, who, label, range(3), range(2), CLASSES, positions=position)


UNFIT = {
    "a sentence in part": (with_rows([0], [1], [0], [0]), "1 labels of sentence 0, which has 2 tokens"),
    "a token beyond the end": (with_rows([1], [0], [0], [1]), "row 0, column 'position': 1 is a position beyond"),
    "a token twice": (with_rows([0, 0], [0, 0], [0, 0], [1, 1]), "must label each of its tokens once"),
    "labels of whole sentences": (with_rows([0], [0], [0], [0], "classification"), "kind 'classification'"),
}


@pytest.mark.parametrize(("rows", "message"), UNFIT.values(), ids=UNFIT)
def test_annotations_that_do_not_fit_the_sentences_are_refused(rows, message):
    with pytest.raises(DataError, match=message):
        CrowdSequences(TOKENS, rows)
