"""Tables for a model: their columns go to its inputs by name, whatever their order and form."""

import argparse
import json

import numpy as np
import pytest
from command_line import run
from csv_files import write_csv

from crowdzoo.commands.predict import _read, describe
from crowdzoo.errors import DataError
from crowdzoo.instances import VECTORS, Instances


def test_values_are_put_in_the_order_of_names_and_other_columns_are_named():
    given = Instances(np.arange(2), VECTORS, np.array([[1, 2, 3], [4, 5, 6]]), ("a", "b", "c"))
    np.testing.assert_array_equal(given.in_order(["c", "a", "b"], "x.csv"), [[3, 1, 2], [6, 4, 5]])
    for names in (None, ["a", "b", "c"]):
        assert given.in_order(names, "x.csv") is given.values
    assert Instances(np.arange(2), VECTORS, given.values).in_order(["c", "a", "b"], "x.csv") is given.values
    with pytest.raises(DataError, match=r"^x.csv: lacks \['d'\] and has \['b'\]. .* 'a', 'd'\]"):
        given.in_order(["c", "a", "d"], "x.csv")
    with pytest.raises(DataError, match=r"^x.csv: has \['b', 'c'\]\. "):
        given.in_order(["a"], "x.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model trained on the columns size, age and weight, exported; and the instances in another order."""
    path = tmp_path_factory.mktemp("columns")
    rng = np.random.default_rng(0)
    x = rng.normal(loc=[10, 0, -5], scale=[5, 1, 2], size=(60, 3)).round(3)
    kinds = np.where(x[:, 0] > 10, "big", "small")
    rows = [(task, *x[task].tolist()) for task in range(60)]
    write_csv(path / "instances.csv", ("task", "size", "age", "weight"), *rows)
    turned = [(age, task, weight, size) for task, size, age, weight in rows]
    write_csv(path / "other.csv", ("age", "task", "weight", "size"), *turned)
    write_csv(path / "fewer.csv", ("task", "age", "height", "size"), *rows)
    said = [(task, who, kinds[task]) for task in range(60) for who in "xy"]
    write_csv(path / "answers.csv", ("task", "annotator", "label"), *said)
    inputs = (path / "answers.csv", path / "instances.csv")
    how = ("--epochs", 1, "--hidden", 8, "--dropout", 0, "--learning-rate", 0.02)
    assert run("train", *inputs, *how, "--out", path / "m.keras") == 0
    assert run("export", path / "m.keras", path / "served", "--warmup", path / "other.csv") == 0
    return path


def predictions(folder, model, capsys, name):
    capsys.readouterr()
    assert run("predict", model, folder / name) == 0
    return capsys.readouterr().out


@pytest.mark.slow  # it trains and exports; tables/test_layouts.py reads such files
def test_predict_and_export_read_decimal_commas_and_old_encodings(folder, capsys):
    expected = predictions(folder, folder / "served", capsys, "instances.csv")
    lines = (folder / "instances.csv").read_text().splitlines()
    table = "\n".join([lines[0], *(line.replace(",", ";").replace(".", ",") for line in lines[1:])])
    (folder / "comma.csv").write_bytes(table.replace("task,size,age,weight", "task;size;age;weight").encode("utf-16"))
    how = ("--encoding", "utf-16", "--decimal", ",")
    capsys.readouterr()
    assert run("predict", folder / "served", folder / "comma.csv", *how) == 0
    assert capsys.readouterr().out == expected
    assert run("export", folder / "m.keras", folder / "again", "--warmup", folder / "comma.csv", *how) == 0
    warm = [folder / name / "1" / "assets.extra" / "request.json" for name in ("served", "again")]
    assert json.loads(warm[0].read_text()) == json.loads(warm[1].read_text())


@pytest.fixture
def read_for(tmp_path):
    """What a model with these inputs, each a type and a shape, gets of a table."""

    def read(text, inputs, of_images, *words):
        (tmp_path / "new.csv").write_text(text)
        command = argparse.ArgumentParser()
        describe(command)
        signature = {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in inputs.items()}
        arguments = command.parse_args(["model", str(tmp_path / "new.csv"), *words])
        return _read(arguments, {"inputs": signature}, of_images)

    return read


def test_a_file_is_read_as_the_model_takes_it(read_for):
    table = "task,a,b\nx,1,2\ny,3,\n"
    found = read_for(table, {"b": ("float32", [None]), "a": ("string", [None])}, False)
    assert list(found.values) == ["b", "a"]
    assert found.values["a"].tolist() == ["1", "3"]
    with pytest.raises(DataError, match="are not columns of a table; use the client"):
        read_for(table, {"left": ("float32", [None, 2, 2])}, False)
    with pytest.raises(DataError, match=r"row 3, column 'b': nan is not a finite number"):
        read_for(table, {"instances": ("float32", [None, 2])}, False)


def test_a_model_of_strings_decides_whether_it_gets_texts_or_images(read_for):
    def read(text, *how):
        return read_for(text, {"instances": ("string", [None])}, *how)

    both = "task,image,text,age\nx,no.jpg,good,3\n"
    assert read(both, False).values.tolist() == ["good"]
    assert read("task,text,age\nx,good,3\n", None).values.tolist() == ["good"]
    assert read(both, None, "--instance-columns", "text=text").values.tolist() == ["good"]
    with pytest.raises(DataError, match=r"'no\.jpg' does not exist"):
        read(both, True)
    with pytest.raises(DataError, match="Give --instance-columns text=text or"):
        read(both, None)
