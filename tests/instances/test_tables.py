"""Tables: columns of numbers and categories with missing values."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdzoo.errors import DataError, DataWarning
from crowdzoo.files.served_model import served_name
from crowdzoo.instances import TABLES, TEXTS, VECTORS, read_instances, recognised
from crowdzoo.reading.instances.table import check_has, read_table
from crowdzoo.reading.instances.tables import given_columns, table_columns, tables, typed_columns
from crowdzoo.reading.tables.layout import Layout


def csv(tmp_path, text):
    path = tmp_path / "people.csv"
    path.write_text(text)
    return path


def parquet(tmp_path, **columns):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def table_of(path):
    return read_table(path, None, lambda *names: check_has(*names, ("task",)), as_text=True)


def columns_of(path, **inputs):
    return table_columns(table_of(path), inputs)


PEOPLE = "task,age,city,member,gold,split\n1,31,Lisbon,true,a,train\n2,,Porto,FALSE,b,train\n3,40.5, ,,,eval\n"


def test_numbers_categories_and_what_is_missing_are_told_apart(tmp_path):
    found = columns_of(csv(tmp_path, PEOPLE))
    np.testing.assert_array_equal(found["age"], [31, np.nan, 40.5])
    assert found["city"].tolist() == ["Lisbon", "Porto", ""]
    np.testing.assert_array_equal(found["member"], [1, 0, np.nan])


def test_parquet_holds_the_same_table_as_csv(tmp_path):
    path = parquet(
        tmp_path,
        task=[1, 2, 3],
        age=pa.array([Decimal("31.0"), None, Decimal("40.5")]),
        city=pa.array(["Lisbon", "Porto", None]).dictionary_encode(),
        member=[True, False, None],
        gold=["a", "b", None],
    )
    expected = columns_of(csv(tmp_path, PEOPLE))
    found = columns_of(path)
    assert list(found) == list(expected)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("task,a,b\n1,2,3\n2,4,true\n", VECTORS),
        ("task,a,b\n1,2,3\n2,,4\n", TABLES),
        ("task,a,b\n1,2,3\n2,nan,4\n", TABLES),
        ("task,a,b\n1,2,x\n2,3,y\n", TABLES),
        ("task,text\n1,x\n2,y\n", TEXTS),
        ("task,text,size\n1,x,3\n2,y,4\n", TABLES),
    ],
)
def test_text_or_a_missing_value_makes_a_table(tmp_path, text, kind):
    path = csv(tmp_path, text)
    assert recognised(path) == kind
    assert recognised(path, {"a": "number"}) == TABLES  # who declares a column wants a table


def test_instances_of_a_table_are_columns_beside_gold_and_split(tmp_path):
    found = read_instances(csv(tmp_path, PEOPLE), tables({"member": "category"}))
    assert (found.gold.tolist(), found.split.tolist()) == (["a", "b", ""], ["train", "train", "eval"])
    assert found.values["member"].tolist() == ["true", "FALSE", ""]
    assert found.kind == TABLES


def test_lists_of_numbers_beside_other_columns_are_vectors(tmp_path):
    path = parquet(tmp_path, task=[1, 2], embedding=[[1.0, 2.0], [3.0, 4.0]], city=["Porto", None])
    assert recognised(path) == TABLES
    found = read_instances(path).values
    assert found["embedding"].dtype == np.float32
    np.testing.assert_array_equal(found["embedding"], [[1, 2], [3, 4]])
    listed = parquet(tmp_path, task=[1, 2], features=[[1.0, 2.0], [3.0, 4.0]], city=["Porto", None])
    assert recognised(listed) == VECTORS  # as ever; other columns are passed over
    np.testing.assert_array_equal(read_instances(listed, tables()).values["features"], [[1, 2], [3, 4]])
    given = given_columns({"embedding": np.float32([[1, 2], [3, 4]]), "city": ["Porto", None]})
    np.testing.assert_array_equal(given["embedding"], found["embedding"])


def test_free_text_and_ids_are_noticed_and_named(tmp_path):
    rows = "".join(f"{row},word {row % 40},{row % 19}x\n" for row in range(60))
    with pytest.raises(DataError, match=r"has 40 different values in 60 .*=\{'comment': 'text'\}"):
        columns_of(csv(tmp_path, "task,comment,size\n" + rows))
    found = columns_of(csv(tmp_path, "task,comment,size\n" + rows), comment="category")
    assert len(set(found["comment"])) == 40
    few = csv(tmp_path, "task,name\n1,ann\n2,bob\n3,eve\n")
    assert columns_of(few)["name"].tolist() == ["ann", "bob", "eve"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([datetime.date(2020, 1, 2), None]), r"'c' holds date32\[day\], which are neither.*such as the year"),
        (pa.array([0, 1], pa.timestamp("ms")), r"'c' holds timestamp\[ms\], which are neither"),
        (pa.array(["2020-01-02", "2020-02-03 10:00"]), "'c' holds dates, which are neither numbers nor categories"),
        (pa.array([["a"], ["b"]]), "'c' holds list<.*; lists of numbers are wanted there"),
        (pa.array([[1.0], None]), "row 1, column 'c': None is empty. Give a list of numbers"),
        (pa.array([[1.0], [np.nan]]), r"row 1, column 'c\[0\]': nan is not a finite number"),
        (pa.array([{"a": 1}, {"a": 2}]), "'c' holds struct<.*; a column of a table holds"),
        (pa.array([b"a", b"b"]), "'c' holds binary; a column"),
        (pa.nulls(2), "'c' is empty in every row"),
        (pa.array([None, None], pa.float64()), "'c' is empty in every row"),
        (pa.array(["", None]), "'c' is empty in every row"),
        (pa.array([1.0, np.inf]), "row 1, column 'c': inf is not a finite number of 32 bits"),
        (pa.array([1e39, 1.0]), "row 0, column 'c': 1e[+]39 is not a finite number of 32 bits"),
    ],
)
def test_columns_that_are_neither_numbers_nor_categories_are_refused(tmp_path, column, message):
    with pytest.raises(DataError, match=message):
        columns_of(parquet(tmp_path, task=["a", "b"], c=column))


def test_columns_of_a_trained_model_are_matched_by_their_served_names(tmp_path):
    types = {"city": "category", "age__years_": "number"}
    found = typed_columns(table_of(csv(tmp_path, "task,age (years),city\n1,,7\n2,,8\n")), types)
    assert list(found) == ["city", "age__years_"]
    assert found["city"].tolist() == ["7", "8"]
    np.testing.assert_array_equal(found["age__years_"], [np.nan, np.nan])
    with pytest.raises(DataError, match=r"has no column 'city', .*Did you mean 'City'"):
        typed_columns(table_of(csv(tmp_path, "task,age (years),City\n1,2,a\n")), types)
    with pytest.raises(DataError, match=r"takes \['city', 'age__years_'\], not 'shoe'\."):
        typed_columns(table_of(csv(tmp_path, "task,age__years_,city,shoe\n1,2,a,3\n")), types)
    empty = parquet(tmp_path, task=[1], age__years_=pa.nulls(1), city=pa.nulls(1))
    assert typed_columns(table_of(empty), types)["city"].tolist() == [""]


def test_a_column_is_served_under_a_name_that_tensorflow_takes(tmp_path):
    names = {
        "age": "age",
        "age (years)": "age__years_",
        "2nd": "c2nd",
        "größe": "gru00f6u00dfe",
        "annotator": "annotator_",
        "self": "self_",
    }
    assert {name: served_name(name) for name in names} == names
    with pytest.raises(DataError, match="columns 'a b' and 'a_b' would both be served as 'a_b'"):
        columns_of(csv(tmp_path, "task,a b,a_b\n1,2,3\n"))


def test_columns_in_memory_are_read_as_those_of_a_file():
    found = given_columns({"age": [31, None, 40.5], "city": ["Lisbon", None, ""], "member": [True, False, None]})
    np.testing.assert_array_equal(found["age"], [31, np.nan, 40.5])
    assert found["city"].tolist() == ["Lisbon", "", ""]
    np.testing.assert_array_equal(found["member"], [1, 0, np.nan])
    with pytest.raises(DataError, match="columns have different lengths"):
        given_columns({"a": [1], "b": [1, 2]})
    with pytest.raises(DataError, match="instances: column 'a' is not a column of one type"):
        given_columns({"a": ["x", 1]})


def test_a_gap_beyond_the_rows_by_which_a_file_is_recognised_is_refused_with_the_way_to_a_table(write):
    path = write("i.csv", "task,f0,f1\n" + "".join(f"{row},1,2\n" for row in range(1000)) + "last,1,\n")
    with pytest.raises(DataError, match=r"row 1002, column 'f1'.* inputs={'f1': 'number'}"):
        read_instances(path)
    found = read_instances(path, tables({"f1": "number"}))
    assert np.isnan(found.values["f1"][-1])


def test_a_column_that_may_be_the_truth_is_said_before_a_model_learns_from_it(write):
    path = write("i.csv", "task,f0,label\n1,2,cat\n2,3,dog\n")
    with pytest.warns(DataWarning, match="instance_columns={'gold': 'label'}"):
        read_instances(path)
    found = read_instances(path, layout=Layout.of_second({"gold": "label"}, {}))
    assert found.gold.tolist() == ["cat", "dog"]
    assert found.names == ("f0",)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,Rome,old", r"row 62, column 'f': 'old' is not a number"),
        ("x,Rome,1e99", r"row 62, column 'f': '1e99' is not a finite number of 32 bits. Leave it empty"),
    ],
)
def test_a_table_with_a_value_that_is_refused_is_a_table_all_the_same(tmp_path, row, message):
    path = tmp_path / "i.csv"
    path.write_text("task,city,f\n" + "".join(f"{row},Paris,1\n{row}b,Rome,2\n" for row in range(30)) + row + "\n")
    assert recognised(path) == TABLES
    with pytest.raises(DataError, match=message):
        read_instances(path)
