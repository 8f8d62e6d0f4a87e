"""TokenEncoder: tokens as `split_tokens` cuts them, offsets in bytes, and ids by hand."""

# ruff: noqa: E402

import unicodedata

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")
keras = pytest.importorskip("keras")
if keras.backend.backend() != "tensorflow":
    pytest.skip("the encoder is a TensorFlow graph", allow_module_level=True)

from hypothesis import example, given, settings
from hypothesis import strategies as st

from crowdzoo.networks.token_encoder import TokenEncoder
from crowdzoo.sequences import split_tokens

# every character that Unicode assigns, and more often those that are cut at or must not be cut at
ASSIGNED = st.characters(exclude_categories=["Cn", "Cs", "Co"])
OFTEN = st.sampled_from(
    list("aZ9.,-'$+_ \t\n\x00\x01\x1c\x85\u00a0\u2028\u3000\u0301\u200d\ufe0f\ufeffé中の𠀋ーไม่กำ๑🙂👍🏽…«")
)
TEXTS = st.lists(st.text(ASSIGNED | OFTEN, max_size=20), max_size=4)
ENCODER = TokenEncoder(["0", "anna", "élan", ".", "in"], characters="an.é\x00")
TRACED = tf.function(ENCODER.tokenize)


def ids(encoded):
    return {name: np.asarray(array).tolist() for name, array in encoded.items()}


@given(TEXTS)
@example(["ok 👩\u200d👩\u200d👧 🇫🇷!", "Zoe\u0308\u00a0said", "", "a\x00b \x00 \x01.\x00"])
@example(["\ufeffhi", "\ufffd.\ufffd", "\u180ea\u200bb\u2060c"])
@settings(max_examples=20, deadline=None)
def test_tokens_and_byte_offsets_are_those_of_split_tokens(texts):
    tokens, places = ENCODER.split(texts)
    for text, found, where in zip(texts, tokens, places, strict=True):
        expected, offsets = split_tokens(text)
        assert found == expected
        before = np.cumsum([0] + [len(letter.encode()) for letter in text])
        assert where == [(before[start], before[end]) for start, end in offsets.tolist()]
        assert [text.encode()[start:end].decode() for start, end in where] == found


@given(TEXTS)
@settings(max_examples=10, deadline=None)
def test_the_graph_gives_raw_text_the_ids_of_its_tokens(texts):
    tokens, _, _ = ENCODER.tokenize(tf.constant([text.encode() for text in texts], tf.string))
    assert ids(ENCODER.encode(tokens)) == ids(ENCODER([split_tokens(text)[0] for text in texts]))


def test_every_assigned_character_is_cut_as_python_cuts_it():
    letters = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")]
    # no need of all ideographs and syllables
    texts = [f"a{letter}b" for letter in letters if not 0x3500 <= ord(letter) < 0xD800 and ord(letter) < 0x17000]
    texts += [f"a{letter}b" for letter in letters if 0x1B000 <= ord(letter) < 0x20100]
    texts += [f"a{letter}b" for letter in letters[:: 1 << 7]]
    assert len(texts) > 15_000
    found = ENCODER.split(texts)[0]
    wrong = [text for text, tokens in zip(texts, found, strict=True) if split_tokens(text)[0] != tokens]
    assert wrong == []


def test_a_model_from_before_scripts_were_told_apart_cuts_as_it_did():
    encoder = TokenEncoder(["a"], tokenizer="words")
    assert encoder.split(["在東京, a"])[0] == [["在東京", ",", "a"]]
    assert ENCODER.split(["在東京, a"])[0] == [["在", "東", "京", ",", "a"]]


def test_words_are_looked_up_in_lower_case_with_every_digit_as_0():
    # ids from 2 in the vocabulary's order: 0 is padding and 1 any other word
    encoder = TokenEncoder(["the", "0000", "ünï", "0.0%", "σίσυφος"], shapes=False)
    sentences = [["THE", "the", "1996", "19965"], ["ÜNÏ"], ["3.5%", "٣.٥%", "Ⅷ"], ["ΣΊΣΥΦΟΣ"]]
    assert ids(encoder(sentences)) == {"words": [[2, 2, 3, 1], [4, 0, 0, 0], [5, 5, 1, 0], [6, 0, 0, 0]]}


def test_shapes_tell_digits_signs_and_capitals():
    groups = [
        ["1996", "٣", "Ⅷ"],  # digits
        ["3.5%", "1996-08-22", "$5"],  # digits and signs
        ["...", "$", "€", "🙂"],  # signs
        ["lower", "été", "中文", "e\u0301a"],  # small letters, or a script without capitals
        ["A", "É", "E\u0301"],  # one capital
        ["NATO", "ÉÀ"],  # capitals
        ["Paris", "Éa", "A\u0301b"],  # capitalised
        ["U.N.", "U.S.A."],  # capitals with points
        ["F16", "16th", "a1b"],  # digits and letters
        ["McDonald", "iPhone", "x-y", "O'Neill"],  # any other
    ]
    encoder = TokenEncoder(["a"], tokenizer="whitespace")
    assert encoder.sizes["num_shapes"] == 11
    found = ids(encoder(groups))["shapes"]
    expected = [[number] * len(group) + [0] * (4 - len(group)) for number, group in enumerate(groups, start=1)]
    assert found == expected


def test_characters_have_ids_of_their_own_and_long_tokens_are_cut():
    encoder = TokenEncoder(["x"], characters="aé🙂", shapes=False, max_characters=3)
    assert encoder.sizes["num_characters"] == 5
    found = ids(encoder([["aé", "🙂"], ["xaxaa"]]))["characters"]
    # 2 a, 3 é, 4 emoji, 1 another one, 0 padding; of the last token three characters are looked at
    assert found == [[[2, 3, 0], [4, 0, 0]], [[1, 2, 1], [0, 0, 0]]]


def test_empty_texts_and_no_texts_have_one_place_of_padding():
    zeros = {"words": [[0]], "shapes": [[0]], "characters": [[[0]]]}
    assert ids(ENCODER([[]])) == zeros
    assert {name: np.asarray(array).shape for name, array in ENCODER([]).items()} == {
        "words": (0, 1), "shapes": (0, 1), "characters": (0, 1, 1)
    }  # fmt: skip
    for texts, expected in (([""], ([[]], [[]])), ([" \n"], ([[]], [[]])), ([], ([], []))):
        assert ENCODER.split(texts) == expected
    graph = ENCODER.encode(ENCODER.tokenize(tf.constant(["", " "]))[0])
    assert ids(graph) == {name: rows * 2 for name, rows in zeros.items()}
    assert {array.dtype for array in ENCODER([["a"]]).values()} == {np.dtype("int32")}


@pytest.mark.parametrize("broken", [b"\xff\xfe", b"caf\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\x80"])
def test_a_text_that_is_not_utf_8_is_named_by_its_row(broken):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not valid UTF-8 in row\W+1\b"):
        ENCODER.tokenize(tf.constant([b"ok", broken, "\ufffd".encode()]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not valid UTF-8 in row\W+0 2\b"):
        TRACED(tf.constant([broken, b"", b"a " + broken]))


def test_words_are_those_that_occur_often_enough_the_most_frequent_first():
    sentences = [["The", "the", "b", "B", "1996"], ["1997", "a", "A", "c", "the"], ["Éa", "éA", "d"]]
    # the 3; 0000, a, b and éa 2 each, in the order of their letters; c and d once
    assert TokenEncoder.fit(sentences).words == ["the", "0000", "a", "b", "éa"]
    assert TokenEncoder.fit(sentences, max_words=3).words == ["the", "0000", "a"]
    assert TokenEncoder.fit(sentences, min_count=1).words == ["the", "0000", "a", "b", "éa", "c", "d"]
    assert TokenEncoder.fit(sentences, min_count=3).words == ["the"]
    assert TokenEncoder.fit([]).words == []
    assert TokenEncoder.fit(sentences).characters == ""
    # characters as they are written, those that occur twice or more
    assert TokenEncoder.fit([["aab", "bé"], ["Aé!"]], characters=True).characters == "abé"
