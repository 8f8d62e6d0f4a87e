"""Files whose shape is that of public bug reports: those below CROWDZOO_DATA/reports, and invented ones like them."""

import os
from pathlib import Path

import pytest

from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError
from crowdzoo.sequences import read_conll


@pytest.fixture(params=["of the report", "invented"])
def report(request, tmp_path):
    """A function from the name of a report's file and the content of a like one to a path."""

    def path(name, content):
        if request.param == "invented":
            file = tmp_path / Path(name).name
            file.write_text(content)
            return file
        file = Path(os.environ.get("CROWDZOO_DATA", "nowhere"), "reports", name)
        if not file.exists():
            pytest.skip("CROWDZOO_DATA names no folder with reports")
        return file

    return path


def test_tags_of_bilou_are_read_as_those_of_iobes(report, tmp_path):
    file = report("F16/bilou.txt", "Ana U-PER U-PER\nmet O O\nJo B-PER B-PER\nDam L-PER L-PER\n")
    crowd = read_conll(file, scheme="BILOU", annotators=["ann", "bob"])
    assert crowd.scheme == "IOBES"
    tags = ["S-PER", "O", "B-PER", "E-PER"]
    assert crowd.answers(0) == {"ann": tags, "bob": tags}
    words = ["aggregate", str(file), "--task", "sequence", "--scheme", "BILOU", "--method", "majority-vote"]
    assert cli.main([*words, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "tags.txt").read_text().split()[1::2] == tags


def test_messages_about_bilou_have_the_letters_of_the_file(tmp_path):
    file = tmp_path / "tags.txt"
    file.write_text("Ana U-PER E-PER\nmet L-PER O\n")
    with pytest.raises(DataError) as caught:
        read_conll(file, scheme="BILOU")
    assert "column '2': 'E-PER' is no tag of BILOU: O, B-TYPE, I-TYPE, L-TYPE, U-TYPE. E- belongs" in str(caught.value)
    assert "'L-PER' follows 'U-PER'; a span of type PER begins with B-PER or U-PER." in str(caught.value)
    with pytest.raises(DataError, match=r"'U-PER' is no tag of BIO.* U- belongs to the scheme BILOU"):
        read_conll(file)
    classes = ["O", "B-PER", "I-PER", "L-PER", "U-PER"]
    file.write_text("Ana U-PER O\n")
    assert read_conll(file, scheme="BILOU", classes=classes).classes == ["O", "B-PER", "I-PER", "E-PER", "S-PER"]
