"""Tables in the pipeline: what the check of data says of them."""

import pytest

from crowdzoo.errors import DataError
from crowdzoo.pipelines.config.data_checks import check_data
from crowdzoo.pipelines.config.load import load_config


@pytest.fixture
def inputs(tmp_path):
    """80 people with an age, a city and a remark; four annotators who all know the class."""
    answers = [f"p{i},{name},{i % 2}" for i in range(80) for name in "abcd"]
    people = [f"p{i},{20 + i % 40},{('Lisbon', 'Porto', '')[i % 3]},remark {i},{i % 2}" for i in range(80)]
    (tmp_path / "answers.csv").write_text("\n".join(["task,annotator,label", *answers]))
    (tmp_path / "people.csv").write_text("\n".join(["task,age (years),city,remark,gold", *people]))
    (tmp_path / "people.yaml").write_text(
        "name: people\ndata: {annotations: answers.csv, instances: people.csv}\noutput: {root: out}\n"
    )
    return tmp_path


def test_a_word_among_numbers_is_named_and_the_columns_of_words_are_not(inputs):
    people = inputs / "people.csv"
    lines = people.read_text().splitlines()
    task, _, rest = lines[40].split(",", 2)
    people.write_text("\n".join([*lines[:40], f"{task},old,{rest}", *lines[41:]]))
    config = load_config(inputs / "people.yaml")
    with pytest.raises(DataError) as found:
        check_data(config)
    assert [(bad.row, bad.column, bad.value) for bad in found.value.rows] == [(41, "age (years)", "old")]
