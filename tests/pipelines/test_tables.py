"""Tables through the pipeline: from two files to a served model that takes columns."""

import csv

import numpy as np
import pytest

from crowdzoo.errors import DataError
from crowdzoo.pipelines.config import load_config
from crowdzoo.pipelines.config.data_checks import check_data


@pytest.fixture
def inputs(tmp_path):
    """80 people with missing ages and cities and a remark; four annotators who are right four times out of five."""
    rng = np.random.default_rng(0)
    ages, cities = rng.integers(20, 60, 80), rng.choice(["Lisbon", "Porto", ""], 80)
    missing = rng.random(80) < 0.1
    gold = np.where(cities == "Lisbon", 1, 0)
    with open(tmp_path / "answers.csv", "w", newline="") as file:
        said = [(f"p{i}", name, gold[i] ^ (rng.random() < 0.2)) for i in range(80) for name in "abcd"]
        csv.writer(file).writerows([("task", "annotator", "label"), *said])
    with open(tmp_path / "people.csv", "w", newline="") as file:
        rows = [
            (
                f"p{i}",
                "" if missing[i] else ages[i],
                cities[i],
                f"remark {i}",
                gold[i],
                "eval" if i % 4 == 3 else "train",
            )
            for i in range(80)
        ]
        csv.writer(file).writerows([("task", "age (years)", "city", "remark", "gold", "split"), *rows])
    (tmp_path / "people.yaml").write_text(
        "name: people\ndata: {annotations: answers.csv, instances: people.csv}\n"
        "model: {hidden: [8], dropout: 0.0, inputs: {remark: text}, texts: {form: bag-of-words}}\n"
        "training: {epochs: 30, batch_size: 16, learning_rate: 0.02}\n"
        f"evaluation: {{}}\noutput: {{root: {tmp_path / 'out'}}}\n"
    )
    return tmp_path


def test_a_word_among_numbers_is_named_and_the_columns_of_words_are_not(inputs):
    people = inputs / "people.csv"
    lines = people.read_text().splitlines()
    task, _, rest = lines[40].split(",", 2)
    people.write_text("\n".join([*lines[:40], f"{task},old,{rest}", *lines[41:]]))
    config = load_config(inputs / "people.yaml", {"model": {}})
    with pytest.raises(DataError) as found:
        check_data(config)
    assert [(bad.row, bad.column, bad.value) for bad in found.value.rows] == [(41, "age (years)", "old")]
