import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdzoo.errors import DataError
from crowdzoo.instances import read_gold, read_instances


def write(tmp_path, text, name="instances.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_csv_with_numeric_columns_is_read_in_its_order(tmp_path):
    instances = read_instances(write(tmp_path, "task,a,gold,b,split\n7,1,cat,2.5,train\n3,0,,-1,eval\n"))
    assert instances.tasks.tolist() == [7, 3]
    assert instances.features.dtype == np.float32
    np.testing.assert_array_equal(instances.features, [[1, 2.5], [0, -1]])
    assert instances.gold.tolist() == ["cat", ""]
    assert instances.split.tolist() == ["train", "eval"]
    np.testing.assert_array_equal(instances.gold_codes(np.array(["ape", "cat"])), [1, -1])


def test_parquet_and_csv_hold_the_same_instances(tmp_path):
    csv = write(tmp_path, "task,f0,f1\n01,1,2\n1,3,4\n")
    table = pa.table({"task": ["01", "1"], "features": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "instances.parquet")
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes()))
    for path in (csv, tmp_path / "instances.parquet", packed):
        instances = read_instances(path)
        assert instances.tasks.tolist() == ["01", "1"]  # not the integer 1 twice
        np.testing.assert_array_equal(instances.features, [[1, 2], [3, 4]])
        assert instances.gold is None
        assert instances.split is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tsk,a\n1,2\n", "no column 'task'.*Did you mean 'tsk'"),
        ("task,gold\n1,cat\n", "has no features"),
        ("task,a\n", "holds no instances"),
        ("task,a\n1,2\n1,3\n", "row 3, column 'task': '1' stands here a second time"),
        ("task,a\n1,2\n,3\n", "row 3, column 'task': '' is empty"),
        ("task,a\n1,2\n2,red\n", "row 3, column 'a': 'red' is not a number"),
        ("task,a\n1,2\n2,nan\n", r"row 3, column 'a': nan is not a finite number"),
        ("task,a\n1,inf\n2,3\n", r"row 2, column 'a': inf is not a finite number"),
        ("task,a,split\n1,2,test\n", "row 2, column 'split': 'test' is neither 'train' nor 'eval'"),
        ("task,a\n1,2,3\n", "cannot be read as CSV"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_instances(write(tmp_path, text))


def test_ten_bad_rows_are_shown_and_the_rest_counted(tmp_path):
    text = "task,a\n" + "".join(f"{row},nan\n" for row in range(25))
    with pytest.raises(DataError, match=r"\.\.\. and 15 more") as caught:
        read_instances(write(tmp_path, text))
    assert len(caught.value.rows) == 10
    assert caught.value.total == 25


def test_lists_of_different_lengths_are_named(tmp_path):
    table = pa.table({"task": [1, 2, 3], "features": [[1.0, 2.0], [1.0], [3.0, 4.0]]})
    pq.write_table(table, tmp_path / "ragged.parquet")
    with pytest.raises(DataError, match="row 1, column 'features': 1 numbers in this list, where most rows have 2"):
        read_instances(tmp_path / "ragged.parquet")


def test_texts_are_read_beside_gold_and_split(tmp_path):
    text = 'task,text,year,gold,split\n007,"a, b\nc",1999,3.5,train\n2,Élan 😀,2000,,eval\n'
    found = read_instances(write(tmp_path, text), texts=True)
    assert found.texts == ["a, b\nc", "Élan 😀"]
    assert found.features.shape == (2, 0)
    assert (found.tasks.tolist(), found.gold.tolist(), found.split.tolist()) == (
        ["007", "2"], ["3.5", ""], ["train", "eval"]
    )  # fmt: skip
    with pytest.raises(DataError, match=r"row 3, column 'text': ' ' is empty\. Give a text"):
        read_instances(write(tmp_path, "task,text\n1,a\n2, \n"), texts=True)
    with pytest.raises(DataError, match=r"has no column 'text'; its columns are \['task', 'a'\]"):
        read_instances(write(tmp_path, "task,a\n1,2\n"), texts=True)


def test_missing_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_instances(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r"read from .parquet, .csv"):
        read_instances(write(tmp_path, "", "instances.xlsx"))
    with pytest.raises(DataError, match="not a whole Parquet file"):
        read_instances(write(tmp_path, "no parquet", "instances.parquet"))


def test_gold_outside_the_classes_is_named_with_a_hint(tmp_path):
    instances = read_instances(write(tmp_path, "task,a,gold\n1,2,catt\n"))
    with pytest.raises(DataError, match=r"'catt' \(task 1\) is not one of the classes.*Did you mean 'cat'"):
        instances.gold_codes(np.array(["cat", "dog"]))


def test_gold_is_read_in_the_order_of_the_tasks(tmp_path):
    path = write(tmp_path, "task,gold\n7,cat\n3,\n5,ape\n9,cat\n", "gold.csv")
    gold = read_gold(path, np.array([3, 5, 6, 7]), np.array(["ape", "cat"]))
    assert gold.dtype == np.int64
    np.testing.assert_array_equal(gold, [-1, 0, -1, 1])


def test_gold_of_an_unknown_class_is_named(tmp_path):
    path = write(tmp_path, "task,gold\n7,cat\n3,dgo\n", "gold.csv")
    with pytest.raises(DataError, match=r"row 3, column 'gold': 'dgo' is no class of the annotations"):
        read_gold(path, np.array([3, 7]), np.array(["cat", "dog"]))


def test_gold_needs_its_columns(tmp_path):
    with pytest.raises(DataError, match=r"has no column 'gold'; its columns are \['task', 'truth'\]"):
        read_gold(write(tmp_path, "task,truth\n7,cat\n", "gold.csv"), np.array([7]), np.array(["cat"]))
