"""Tables on the command line: from a CSV file with columns of all sorts to predictions."""

import argparse

import pytest

from crowdzoo.commands.predict import _read, describe
from crowdzoo.errors import DataError


def test_a_file_is_read_as_the_model_takes_it(tmp_path):
    def signature(**inputs):
        shapes = {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in inputs.items()}
        return {"inputs": shapes}

    path = tmp_path / "new.csv"
    path.write_text("task,a,b\nx,1,2\ny,3,\n")
    command = argparse.ArgumentParser()
    describe(command)
    arguments = command.parse_args(["model", str(path)])
    found = _read(arguments, signature(b=("float32", [None]), a=("string", [None])), False)
    assert list(found.values) == ["b", "a"]
    assert found.values["a"].tolist() == ["1", "3"]
    with pytest.raises(DataError, match="are not columns of a table; use the client"):
        _read(arguments, signature(left=("float32", [None, 2, 2])), False)
    with pytest.raises(DataError, match=r"row 3, column 'b': nan is not a finite number"):
        _read(arguments, signature(instances=("float32", [None, 2])), False)


def test_a_model_of_strings_decides_whether_it_gets_texts_or_images(tmp_path):
    def read(text, of_images, *words):
        (tmp_path / "new.csv").write_text(text)
        command = argparse.ArgumentParser()
        describe(command)
        arguments = command.parse_args(["model", str(tmp_path / "new.csv"), *words])
        return _read(arguments, {"inputs": {"instances": {"dtype": "string", "shape": [None]}}}, of_images)

    both = "task,image,text,age\nx,no.jpg,good,3\n"
    assert read(both, False).values.tolist() == ["good"]
    assert read("task,text,age\nx,good,3\n", None).values.tolist() == ["good"]
    assert read(both, None, "--instance-columns", "text=text").values.tolist() == ["good"]
    with pytest.raises(DataError, match=r"'no\.jpg' does not exist"):
        read(both, True)
    with pytest.raises(DataError, match="Give --instance-columns text=text or"):
        read(both, None)
