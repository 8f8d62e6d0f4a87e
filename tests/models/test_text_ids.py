"""Text to word ids, in TensorFlow's own operations."""

import numpy as np
import pytest
from refusals import about

from crowdzoo.errors import ConfigError, DataError

tf = pytest.importorskip("tensorflow")

from crowdzoo.networks.text_ids import TextIds, build_vocabulary, words_of  # noqa: E402

TEXTS = ["A good, GOOD film.", "don't see it: bad", "", "Élan café 10/10 — good!"]


def test_words_are_lower_case_and_parted_by_what_is_no_letter_or_digit():
    words = [[word.decode() for word in row] for row in words_of(TEXTS).to_list()]
    assert words == [
        ["a", "good", "good", "film"],
        ["don't", "see", "it", "bad"],
        [],
        ["élan", "café", "10", "10", "good"],
    ]


def test_what_is_not_utf8_is_named():
    ids = TextIds(["good", "caf"])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"instances: not valid UTF-8 in row\W+1\W+2\b"):
        ids([b"good", b"caf\xe9", b"\xff", "café �".encode()])


def test_a_vocabulary_has_the_frequent_words_first():
    assert build_vocabulary(TEXTS, max_words=3) == ["good", "10", "a"]
    assert build_vocabulary(TEXTS, min_texts=2) == ["good"]
    with pytest.raises(DataError, match="none of the 1 texts has a word"):
        build_vocabulary(["..."])


def test_ids_are_padded_cut_and_unknown_words_are_one():
    ids = TextIds(["good", "film", "café"])
    assert ids.num_words == 5
    assert ids.to_numpy(TEXTS).tolist() == [[1, 2, 2, 3, 0], [1, 1, 1, 1, 0], [0] * 5, [1, 4, 1, 1, 2]]
    assert TextIds(["good"], max_length=2).to_numpy(TEXTS, batch_size=1).tolist() == [[1, 2], [1, 1], [0, 0], [1, 1]]
    assert ids(tf.constant([""])).shape == (1, 1)  # a text without words is one place of padding


def test_the_same_ids_come_out_of_a_saved_graph(tmp_path):
    module = tf.Module()
    module.ids = TextIds(["good", "film"], max_length=4)
    module.table = module.ids.resources
    module.serve = tf.function(module.ids.__call__, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_array_equal(loaded.serve(tf.constant(TEXTS)).numpy(), module.ids.to_numpy(TEXTS))


def split(text, splitting):
    return [word.decode() for word in words_of([text], splitting).to_list()[0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我来。你走 OK", ["我", "来", "我来", "你", "走", "你走", "ok"]),  # no pair reaches over a mark
        ("テーブルは3個", ["テ", "ー", "ブ", "ル", "は", "3", "個", "テー", "ーブ", "ブル", "ルは"]),
        ("ที่นี่", ["ที่", "นี่", "ที่นี่"]),  # vowels and tones stand with their letter
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("Don't, Zoe\u0308!", ["don't", "zoe\u0308"]),
        ("", []),
        ("...", []),
    ],
)
def test_scripts_without_spaces_are_cut_into_letters_and_pairs(text, words):
    assert split(text, "scripts") == words


def test_characters_are_all_there_in_lower_case_and_their_pairs():
    assert split("Ab,\n我", "characters") == ["a", "b", ",", "\n", "我", "ab", "b,", ",\n", "\n我"]


def test_a_file_of_before_has_the_words_of_before():
    assert TextIds(vocabulary=["我来"], max_length=None).to_numpy(["我来", "我"]).tolist() == [[2], [1]]
    ids = TextIds(["我来"], None, "scripts")
    assert ids.to_numpy(["我来", "我"]).tolist() == [[1, 1, 2], [1, 0, 0]]
    assert TextIds(**ids.get_config()).splitting == "scripts"
    with pytest.raises(ConfigError, check=about("splitting", "letter")):
        TextIds(["a"], splitting="letter")
