"""Sentences in columns: what reads, what is refused and how, and that what is written comes back."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_files import write
from tagged_rows import crowd_of_rows

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.sequences import CrowdSequences, allowed_tags, read_conll, read_gold, write_conll

pytestmark = pytest.mark.usefixtures("here")  # errors name files as they were passed: short names
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)


def message_of(content, reader=read_conll, **options):
    with pytest.raises(DataError) as error:
        reader(write("a.txt", content), **options)
    return str(error.value)


TWO = """Anna\tB-PER\tO\t?
sleeps\tO\tO\t?

Rome\t?\tB-LOC\tB-PER
"""

# === What reads ===


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_columns_become_sentences_and_answers(name):
    crowd = read_conll(write(name, TWO))
    assert crowd.tokens == (("Anna", "sleeps"), ("Rome",))
    assert crowd.annotations.annotators.tolist() == [1, 2, 3]
    assert crowd.annotations.tasks.tolist() == [0, 1]
    assert crowd.classes == ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]
    assert crowd.answers(0) == {1: ["B-PER", "O"], 2: ["O", "O"]}
    assert crowd.answers(1) == {2: ["B-LOC"], 3: ["B-PER"]}
    assert crowd.gold is None
    assert (crowd.num_mended, len(crowd), crowd.lengths.tolist()) == (0, 2, [2, 1])


SAME = {
    "spaces": TWO.replace("\t", " "),
    "several spaces": TWO.replace("\t", "   "),
    "many blank lines": "\n\n" + TWO.replace("\n\n", "\n\n \n\t\n\n") + "\n\n\n",
    "carriage returns": TWO.replace("\n", "\r\n"),
    "no last line end": TWO.rstrip("\n"),
    "byte order mark": b"\xef\xbb\xbf" + TWO.encode(),
    "documents": "-DOCSTART- -X- O O\n\n" + TWO.replace("\n\n", "\n\n-DOCSTART-\n"),
}


@pytest.mark.parametrize("content", SAME.values(), ids=SAME)
def test_what_files_of_columns_come_like(content):
    assert read_conll(write("b.txt", content)) == read_conll(write("a.txt", TWO))


def test_columns_take_names_from_the_caller_or_a_header():
    named = read_conll(write("a.txt", TWO), annotators=["ann", "bob", "cid"])
    assert named.answers(1) == {"bob": ["B-LOC"], "cid": ["B-PER"]}
    assert read_conll(write("b.txt", "token\tann\tbob\tcid\n" + TWO), header=True) == named
    assert read_conll(write("c.txt", "w 7 8 9\n" + TWO), header=True).annotations.annotators.tolist() == [7, 8, 9]


def test_gold_is_the_last_column_of_its_file():
    write("gold.txt", "Anna NNP B-NP B-PER\nsleeps VBZ B-VP O\n\n-DOCSTART- -X- O O\n\nRome NNP B-NP B-ORG\n")
    crowd = read_conll(write("a.txt", TWO), gold="gold.txt")
    assert crowd.gold_tags() == [["B-PER", "O"], ["B-ORG"]]
    assert "I-ORG" in crowd.classes
    alone = read_gold("gold.txt")
    assert alone.gold_tags() == crowd.gold_tags()
    assert (len(alone.annotations), alone.annotations.num_annotators) == (0, 0)


def test_tags_that_break_the_scheme_stop_unless_told_otherwise():
    content = "a O\nb I-X\nc I-X\n"
    message = message_of(content)
    assert "a.txt, row 2, column '1': 'I-X' follows 'O';" in message
    assert "on_bad_tags='mend'" in message
    mended = read_conll("a.txt", on_bad_tags="mend")
    assert mended.answers(0) == {1: ["O", "B-X", "I-X"]}
    assert mended.num_mended == 1
    assert read_conll("a.txt", on_bad_tags="keep").answers(0) == {1: ["O", "I-X", "I-X"]}
    with pytest.raises(ConfigError, match="Did you mean 'mend'"):
        read_conll("a.txt", on_bad_tags="mended")


# === What is refused ===


def test_uneven_columns_are_named():
    message = message_of("a O O\nb O\n\nc O O O\n")
    assert "a.txt has 2 bad values." in message
    assert "a.txt, row 2: 'b O' has 2 values where line 1 has 3." in message
    assert "a.txt, row 4: 'c O O O' has 4 values" in message


def test_unknown_tags_are_named_with_the_nearest():
    message = message_of("a O\nb per\nc b-PER\nd B-\n")
    assert "row 2, column '1': 'per' is not a tag of BIO:" in message
    assert "row 3, column '1': 'b-PER' is not a tag of BIO:" in message
    assert "Did you mean 'B-PER'?" in message
    assert "row 4, column '1': 'B-' has no type after the dash." in message
    assert "Did you mean 'B-PER'" in message_of("a b-PER\n", classes=["O", "B-PER", "I-PER"])


def test_a_sentence_labelled_in_part_is_named():
    message = message_of("x O ?\n\na O O\nb O ?\nc O ?\n", annotators=["ann", "bob"])
    assert "a.txt has 2 bad values." in message
    assert "row 4, column 'bob': '?' is missing" in message
    assert "labelled 1 of the sentence's 3 tokens" in message


def test_bytes_that_are_no_text_are_named_with_their_place():
    message = message_of(b"a O\n\xc3\xa9t\xe9 O\nc O\n\nd I-X\n")
    assert r"row 2: 'ét\\xe9 O' is not UTF-8 at byte 4" in message
    assert "row 5" in message
    assert "holds a carriage return within the line" in message_of("a O\rb O\n")
    assert "holds a NUL byte" in message_of("a\0 O\n")
    assert "UTF-16" in message_of("a O\n".encode("utf-16"))


def test_gold_of_other_sentences_is_refused():
    write("gold.txt", "Anna B-PER\nslept O\n\nRome B-LOC\n")
    assert "row 2, column 'token': 'slept' is where a.txt, line 2" in message_of(TWO, gold="gold.txt")
    write("gold.txt", "Anna B-PER\nsleeps O\nwell O\n\nRome B-LOC\n")
    assert "'well' is where a.txt, line 3, has \"the sentence's end\"" in message_of(TWO, gold="gold.txt")
    write("gold.txt", "Anna B-PER\nsleeps O\n")
    assert "gold.txt has 1 sentences, a.txt has 2." in message_of(TWO, gold="gold.txt")


WHOLE_FILE = {
    "empty": ("", {}, "a.txt is empty"),
    "only blank lines": ("\n \n", {}, "a.txt is empty"),
    "only documents": ("-DOCSTART- O\n", {}, "a.txt has no sentences"),
    "one column": ("a\nb\n", {}, "row 1: 'a' has one value. After the token comes one column an annotator"),
    "names too few": (TWO, {"annotators": ["x"]}, "3 columns of annotators, but 1 names"),
    "a header of doubles": ("t x x\na O O\n", {"header": True}, "the header names columns: annotators holds 'x' twice"),
    "an empty token": ("\tO\n", {}, "row 1, column 'token': '' is not a token"),
}


@pytest.mark.parametrize(("content", "options", "message"), WHOLE_FILE.values(), ids=WHOLE_FILE)
def test_files_that_hold_no_sentences_are_refused(content, options, message):
    assert message in message_of(content, **options)


# === There and back ===

TOKENS = st.text("abé漢😀\u0301\u200d\u00a0\u2028 .?#-", min_size=1, max_size=4).filter(lambda text: text.strip(" \t"))


@st.composite
def crowds(draw, gold=True):
    """Small crowds of any kind of tags that keep the scheme, some sentences and annotators without labels."""
    from crowdzoo.sequences import TagSet, mended

    scheme = draw(st.sampled_from(["BIO", "IOBES"]))
    types = draw(st.sets(st.sampled_from(["PER", "LOC", "a-b"]), min_size=1))
    tag_set = TagSet(allowed_tags(types, scheme), scheme)
    tokens = draw(st.lists(st.lists(TOKENS, min_size=1, max_size=4), min_size=1, max_size=4))
    num_annotators = draw(st.integers(1, 3))

    def tags(length):
        drawn = draw(st.lists(st.sampled_from(tag_set.classes), min_size=length, max_size=length))
        return tag_set.codes(mended(drawn, scheme))

    rows = [
        (task, who, tags(len(words)))
        for task, words in enumerate(tokens)
        for who in sorted(draw(st.sets(st.integers(0, num_annotators - 1))))
    ]
    truth = [tags(len(words)) for words in tokens] if gold else None
    return crowd_of_rows(rows, range(1, num_annotators + 1), tag_set.classes, tokens, truth, scheme=scheme)


@in_one_folder
@given(crowds(), st.booleans(), st.sampled_from(["", ".gz"]))
def test_what_is_written_reads_back(crowd, header, suffix):
    write_conll(crowd, f"a.txt{suffix}", gold=f"gold.txt{suffix}", header=header)
    back = read_conll(
        f"a.txt{suffix}", gold=f"gold.txt{suffix}", header=header, scheme=crowd.scheme, classes=crowd.classes
    )
    assert back == crowd
    assert back.num_mended == 0


UNWRITABLE = {
    "a tab": ("a\tb", "holds a tab"),
    "a line break": ("a\nb", "line break"),
    "white space only": (" ", "is empty"),
    "half a character": ("\ud83d", "half a character"),
    "a document's mark": ("-DOCSTART-", "new document"),
}


@pytest.mark.parametrize(("token", "message"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_tokens_that_no_line_can_hold_are_refused_and_no_file_appears(here, token, message):
    crowd = read_conll(write("a.txt", "x O\n"))
    bad = CrowdSequences([[token]], crowd.annotations)
    with pytest.raises(DataError, match=message):
        write_conll(bad, "b.txt")
    assert [path.name for path in here.iterdir()] == ["a.txt"]


class Interrupted(CrowdSequences):
    """Somebody presses Ctrl-C after the first sentence."""

    def answers(self, task):
        if task:
            raise KeyboardInterrupt
        return {}


def test_a_file_appears_whole_or_not_at_all(here):
    crowd = read_conll(write("a.txt", TWO))
    write("b.txt", "as it was")
    with pytest.raises(KeyboardInterrupt):
        write_conll(Interrupted(crowd.tokens, crowd.annotations), "b.txt")
    assert (here / "b.txt").read_text() == "as it was"
    assert sorted(path.name for path in here.iterdir()) == ["a.txt", "b.txt"]
