"""A table of annotators: models and people, and what their answers cost."""

import numpy as np
import pytest

from crowdzoo.errors import DataError
from crowdzoo.instances import read_annotator_table

NAMES = np.array(["ann", "gpt", "bob"], dtype=object)


def written(folder, text):
    path = folder / "annotators.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_are_those_of_the_annotators_in_their_order(tmp_path):
    text = (
        "annotator,cost,source,since\nbob,5,person,2020\nzoe,1,person,2021\ngpt,0.01,Model,2024\nann,4.5, person,2019\n"
    )
    found = read_annotator_table(written(tmp_path, text), NAMES)
    assert found.sources.tolist() == ["person", "model", "person"]
    assert found.costs.tolist() == [4.5, 0.01, 5.0]


def test_one_of_the_columns_is_enough_and_usual_names_are_found(tmp_path):
    only = read_annotator_table(written(tmp_path, "annotator,cost\n1,2\n7,3\n"), np.array([7, 1]))
    assert only.sources is None
    assert only.costs.tolist() == [3.0, 2.0]
    with pytest.warns(UserWarning, match="worker_id"):
        other = read_annotator_table(written(tmp_path, "worker_id,source\n1,model\n7,person\n"), np.array([7, 1]))
    assert (other.sources.tolist(), other.costs) == (["person", "model"], None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("annotator,price\nann,1\n", r"has neither a column 'source' nor 'cost'; its columns are \['ann"),
        ("who,cost\nann,1\n", "has no column 'annotator'"),
        ("annotator,cost\nann,1\nbob,2\n", "has no row for 1 of 3 annotators, such as 'gpt'"),
        ("annotator,cost\nann,1\nbob,2\ngpt,1\nann,3\n", r"row 5, column 'annotator': 'ann' appears here"),
        ("annotator,cost\nann,1\nbob,0\ngpt,1\n", r"row 3, column 'cost': '0' is not a number above 0"),
        ("annotator,cost\nann,1\nbob,\ngpt,1\n", r"row 3, column 'cost': '' is not a number above 0"),
        ("annotator,cost\nann,dear\nbob,2\ngpt,1\n", r"row 2, column 'cost': 'dear' is not a number"),
        ("annotator,source\nann,human\nbob,person\ngpt,model\n", r"row 2, column 'source': 'human' is not one"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_annotator_table(written(tmp_path, text), NAMES)
