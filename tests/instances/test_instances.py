import gzip
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import bad_row

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.instances import TEXTS, VECTORS, read_gold, read_instances


def write(tmp_path, text, name="instances.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_csv_with_numeric_columns_is_read_in_its_order(tmp_path):
    instances = read_instances(write(tmp_path, "task,a,gold,b,split\n7,1,cat,2.5,train\n3,0,,-1,eval\n"))
    assert instances.tasks.tolist() == [7, 3]
    assert instances.values.dtype == np.float32
    np.testing.assert_array_equal(instances.values, [[1, 2.5], [0, -1]])
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
        np.testing.assert_array_equal(instances.values, [[1, 2], [3, 4]])
        assert instances.gold is None
        assert instances.split is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tsk,a\n1,2\n", "no column 'task'.*Did you mean 'tsk'"),
        ("task,gold\n1,cat\n", "has no features"),
        ("task,a\n", "has no rows, only a header"),
        ("task,a\n1,2\n1,3\n", "row 3, column 'task': '1' appears here a second time"),
        ("task,a\n1,2\n,3\n", "row 3, column 'task': '' is empty"),
        ("task,a\n1,2\n2,red\n", "row 3, column 'a': 'red' is not a number"),
        ("task,a\n1,2\n2,nan\n", r"row 3, column 'a': 'nan' is not a finite number"),
        ("task,a\n1,inf\n2,3\n", r"row 2, column 'a': 'inf' is not a finite number"),
        ("task,a,split\n1,2,later\n", "row 2, column 'split': 'later' is neither 'train' nor 'eval'"),
        ("task,a\n1,2,3\n", "row 2: '1,2,3' has 3 values where the header has 2"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_instances(write(tmp_path, text), VECTORS)


def test_texts_are_read_beside_gold_and_split(tmp_path):
    text = 'task,text,year,gold,split\n007,"a, b\nc",1999,3.5,train\n2,Élan 😀,2000,,eval\n'
    found = read_instances(write(tmp_path, text), TEXTS)
    assert found.values.tolist() == ["a, b\nc", "Élan 😀"]
    assert (found.tasks.tolist(), found.gold.tolist(), found.split.tolist()) == (
        ["007", "2"], ["3.5", ""], ["train", "eval"]
    )  # fmt: skip
    with pytest.raises(DataError, check=bad_row(3, "text", " ")):
        read_instances(write(tmp_path, "task,text\n1,a\n2, \n"), TEXTS)
    with pytest.raises(DataError, match=r"has no column 'text'; its columns are \['task', 'a'\]"):
        read_instances(write(tmp_path, "task,a\n1,2\n"), TEXTS)


def test_missing_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_instances(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r"is not a table: use .parquet, .xlsx, .csv"):
        read_instances(write(tmp_path, "", "instances.ods"))
    with pytest.raises(DataError, match="not a whole Parquet file"):
        read_instances(write(tmp_path, "no parquet", "instances.parquet"))


def test_gold_outside_the_classes_is_named_with_a_hint(tmp_path):
    instances = read_instances(write(tmp_path, "task,a,gold\n1,2,catt\n"))
    with pytest.raises(DataError, match="Did you mean 'cat'", check=bad_row(2, "gold", "catt")):
        instances.gold_codes(np.array(["cat", "dog"]))


# === One rule for every format ===


def pq_file(tmp_path, **columns):
    path = tmp_path / "i.parquet"
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.nulls(2, pa.list_(pa.float32())), "row 0, column 'features': None is empty"),
        (pa.array([[], []], pa.list_(pa.float32())), "holds empty lists"),
        (pa.array([[1.0], None], pa.list_(pa.float32())), "row 1, column 'features': None is empty"),
        (
            pa.array([[1.0], [None]], pa.list_(pa.float32())),
            r"row 1, column 'features\[0\]': nan is not a finite number",
        ),
        (pa.array([[0], [1]], pa.list_(pa.timestamp("ms"))), r"holds list<\w+: timestamp\[ms\]>; lists of numbers"),
        (pa.array([[0], [1]], pa.list_(pa.duration("s"))), "lists of numbers are wanted"),
        (pa.array([["a"], ["b"]]), "lists of numbers are wanted"),
        (pa.array([[[1.0]], [[2.0]]]), "lists of numbers are wanted"),
        (pa.array([{"a": 1}, {"a": 2}]), "lists of numbers are wanted"),
        (pa.array([1e300, 1.0]), "inf is not a finite number of 32 bits"),
        (pa.nulls(2), "lists of numbers are wanted"),
    ],
)
def test_features_that_are_no_numbers_are_refused(column, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_instances(pq_file(tmp_path, task=["a", "b"], features=column))


def test_every_kind_of_list_and_number_gives_the_same_features(tmp_path):
    values = [[1.0, 0.0], [2.0, 1.0]]
    for kind in (pa.list_(pa.float64()), pa.large_list(pa.int8()), pa.list_(pa.float32(), 2), pa.list_(pa.uint64())):
        column = pa.array(
            [[int(x) if pa.types.is_integer(kind.value_type) else x for x in row] for row in values], kind
        )
        found = read_instances(pq_file(tmp_path, task=["a", "b"], features=column)).values
        np.testing.assert_array_equal(found, np.float32(values))
    columns = {
        "f": pa.array([1, 2], pa.int64()).dictionary_encode(),
        "g": pa.array([False, True]),
        "h": pa.array([Decimal("1.5"), Decimal("-2")]),
    }
    found = read_instances(pq_file(tmp_path, task=["a", "b"], **columns)).values
    np.testing.assert_array_equal(found, np.float32([[1, 0, 1.5], [2, 1, -2]]))


def test_white_space_around_ids_counts_no_more_than_in_annotations(tmp_path):
    content = "task,a,gold,split\n a ,1, cat , eval\nb,2,dog,train\n"
    found = read_instances(write(tmp_path, content))
    assert (found.tasks.tolist(), found.gold.tolist(), found.split.tolist()) == (
        ["a", "b"], ["cat", "dog"], ["eval", "train"]
    )  # fmt: skip
    gold = read_gold(write(tmp_path, content), np.array(["a", "b"], object), np.array(["cat", "dog"], object))
    assert gold.tolist() == [0, 1]
    crowd = Annotations.read(write(tmp_path, "task,annotator,label\n a ,x, cat \n", "a.csv"))
    assert (crowd.tasks.tolist(), crowd.classes.tolist()) == (["a"], ["cat"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,a,a\n1,2,3\n", "column 'a' is there 2 times"),
        ("task,a\n1,\n", "is not a finite number|is empty"),
        (b"task,\xff\n1,2\n", "row 1: the header is not UTF-8"),
        (b"task,a,gold\n1,2,\xff\n", "row 2, column 'gold'.*is not UTF-8"),
        ("task,a\n1,2\0\n", "row 2.*NUL"),
        ("task,a\0\n1,2\n", "row 1: the header holds a NUL"),
        ("", "is empty"),
        ("task,a\n1,1e999\n", "row 2, column 'a': '1e999' is not a finite number"),
    ],
)
def test_what_no_table_holds_is_refused_in_instances_too(text, message, tmp_path):
    path = tmp_path / "i.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=message):
        read_instances(path)


def test_gold_may_be_codes_of_classes_that_are_no_numbers(tmp_path):
    def codes(gold, classes):
        path = tmp_path / "a.csv"
        path.write_text("task,x,gold\n" + "".join(f"t{row},1,{name}\n" for row, name in enumerate(gold)))
        return read_instances(path).gold_codes(np.array(classes)).tolist()

    assert codes(["1", "0", "", "-1", "nan"], ["cat", "dog"]) == [1, 0, -1, -1, -1]
    assert codes(["dog", "", "-1"], ["cat", "dog"]) == [1, -1, -1]
    assert codes(["-1", "1"], [-1, 1]) == [0, 1]
    for gold, classes in ((["cat", "1"], ["cat", "dog"]), (["0", "1"], [1, 2]), (["2"], ["cat", "dog"])):
        with pytest.raises(DataError, match="is not one of the classes"):
            codes(gold, classes)
