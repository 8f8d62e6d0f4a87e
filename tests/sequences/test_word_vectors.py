"""read_word_vectors: which line a word gets, the forms of the file, and every mistake with its place."""

import gzip

import numpy as np
import pytest

from crowdzoo.errors import DataError
from crowdzoo.reading.sentences.word_vectors import _normal
from crowdzoo.sequences import read_word_vectors

GLOVE = """\
the 0.5 -1 2e-1
Paris 1 1 1
paris 2 2 2
1987 3 3 3
0000 4 4 4
2001 5 5 5
NATO 6 6 6
Nato 7 7 7
. . . 8 8 8
"""


@pytest.fixture
def read(tmp_path):
    """Writes a file and reads words from it."""

    def run(content, words, size=3, name="vectors.txt"):
        content = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return read_word_vectors(path, words, size)

    return run


def test_each_word_has_its_row_and_the_others_are_nan(read):
    vectors, found = read(GLOVE, ["absent", "the", "nato"])
    assert (vectors.dtype, vectors.shape, found) == (np.float32, (5, 3), 2)
    np.testing.assert_array_equal(vectors[3], np.float32([0.5, -1, 0.2]))
    assert np.isnan(vectors[[0, 1, 2]]).all(), "padding, unknown, and a word that the file lacks"
    assert vectors[4].tolist() == [6, 6, 6], "the first of the two that have the form"


def test_a_word_as_it_is_written_wins_over_an_earlier_one_of_its_form(read):
    vectors, found = read(GLOVE, ["paris", "0000"])
    assert vectors[2:].tolist() == [[2, 2, 2], [4, 4, 4]]
    assert found == 2
    # and a later one of its form, or a second time the same, changes nothing
    vectors, _ = read("paris 2\nPARIS 3\nparis 4\n", ["paris"], size=1)
    assert vectors[2:].tolist() == [[2]]


def test_the_form_is_that_of_the_encoder():
    encoder = pytest.importorskip("crowdzoo.networks.token_encoder")
    pytest.importorskip("tensorflow")
    letters = [chr(code) for code in range(0x20, 0x3100) if not 0xD800 <= code < 0xE000]
    words = [*letters, "İstanbul", "ΟΔΟΣ", "F16s", "3.5%", "STRASSE", "ẞ"]
    theirs = encoder._normal(words)
    different = [word for word, other in zip(words, theirs, strict=True) if _normal(word) != other]
    # what one's Unicode is too old to know; never a letter of a script in wide use
    assert len(different) < 20, different
    assert not {*"ÀÉŁŞßΣЖŐ½٣", "İstanbul", "ΟΔΟΣ", "F16s", "3.5%", "STRASSE", "ẞ"} & {*different}


def test_gzip_byte_order_marks_other_line_ends_blank_lines_and_spaces_at_the_end(read):
    expected, _ = read(GLOVE, ["the", "paris"])
    for content, name in (
        (GLOVE, "vectors.txt.gz"),
        ("\ufeff" + GLOVE, "marked.txt"),
        (GLOVE.replace("\n", "\r\n"), "windows.txt"),
        (GLOVE.replace("\n", " \n") + "\n", "spaces.vec"),
        ("9 3\n" + GLOVE, "word2vec.txt"),
    ):
        np.testing.assert_array_equal(read(content, ["the", "paris"], name=name)[0], expected)


def test_a_tagger_starts_from_them(read):
    tagger = pytest.importorskip("crowdzoo.networks.sequence_tagger")
    model = tagger.SequenceTagger(num_words=4, num_classes=2, embedding=3, filters=2, units=2)
    layer = model.get_layer("embedding")
    before = np.array(layer.embeddings)
    model.set_word_vectors(read(GLOVE, ["absent", "the"])[0])
    after = np.array(layer.embeddings)
    np.testing.assert_array_equal(after[:3], before[:3])
    np.testing.assert_array_equal(after[3], np.float32([0.5, -1, 0.2]))


WRONG = {
    "too few numbers": ("the 1 2 3\nof 1 2\n", "row 2: 'of 1 2' has 2 numbers after the word where 3 are due."),
    "too many": ("the 1 2 3\nof 1 2 3 4\n", "row 2: 'of 1 2 3 4' has 4 numbers after the word where 3 are due."),
    "a word alone": ("the 1 2 3\nof\n", "row 2: 'of' has 0 numbers after the word"),
    "no number": ("the 1 2 3\nof 1 2,5 3\n", "row 2, column 'number 2': '2,5' is not a number."),
    "not a finite one": ("of 1 nan 3\n", "row 1, column 'number 2': 'nan' is not a finite number of 32 bits."),
    "too large for 32 bits": ("of 1 2 -1e39\n", "row 1, column 'number 3': '-1e39' is not a finite number of 32 bits."),
    "bytes": (b"the 1 2 3\n\xe9t\xe9 1 2 3\n", r"row 2: '\\xe9t\\xe9 1 2 3' is not UTF-8 at byte 1 of the line."),
    "none of the words": ("le 1 2 3\nla 4 5 6\n", "has none of the 2 words"),
    "another size by its first line": ("2 300\nthe 1 2 3\n", "vectors have 300 numbers by its first line, not 3."),
    "fewer than its first line says": ("3 3\nthe 1 2 3\nof 1 2 3\n", "has 2 vectors, where its first line says 3."),
    "nothing": ("", "is empty."),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_named_with_its_place(read, mistake):
    content, message = WRONG[mistake]
    with pytest.raises(DataError) as caught:
        read(content, ["the", "of"])
    assert message in str(caught.value)
    assert "vectors.txt" in str(caught.value)


def test_without_words_the_file_is_not_said_to_be_empty(read):
    with pytest.raises(DataError, match=r"none of the 0 words, .*: there are no words\."):
        read("the 1 2 3\n", [])
