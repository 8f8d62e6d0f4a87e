"""Tables on the command line: from a CSV file with columns of all sorts to predictions."""

import argparse
import csv

import numpy as np
import pandas as pd
import pytest

from crowdzoo.commands import main as cli
from crowdzoo.commands.predict import _read, describe
from crowdzoo.errors import DataError
from crowdzoo.serving import Client, Server


def run(*words) -> int:
    return cli.main([str(word) for word in words])


@pytest.fixture
def files(tmp_path):
    """100 people, some of whose ages and cities are missing, and three annotators who are mostly right."""
    rng = np.random.default_rng(0)
    ages, cities = rng.integers(20, 60, 100), rng.choice(["Lisbon", "Porto", ""], 100)
    missing = rng.random(100) < 0.1
    truth = np.where(cities == "Lisbon", "yes", "no")
    with open(tmp_path / "answers.csv", "w", newline="") as file:
        said = [(f"p{i}", name, truth[i] if rng.random() < 0.8 else "no") for i in range(100) for name in "abc"]
        csv.writer(file).writerows([("task", "annotator", "label"), *said])
    with open(tmp_path / "people.csv", "w", newline="") as file:
        rows = [(f"p{i}", "" if missing[i] else ages[i], cities[i], 4000 + i % 3, truth[i]) for i in range(100)]
        csv.writer(file).writerows([("task", "age (years)", "city", "postcode", "gold"), *rows])
    return tmp_path


def predicted(path):
    with open(path) as file:
        return [row["class"] for row in csv.DictReader(file)]


@pytest.mark.slow
def test_from_a_table_to_predictions(files, capsys):
    answers, people, model = files / "answers.csv", files / "people.csv", files / "model.keras"
    words = ("--inputs", "postcode=category", "--epochs", 30, "--learning-rate", 0.01, "--batch-size", 16)
    assert run("train", answers, people, *words, "--out", model) == 0
    assert run("export", model, files / "served", "--warmup", people) == 0
    # another order of the columns, and a category that training has not seen
    with open(files / "new.csv", "w") as file:
        file.write("task,postcode,city,age (years)\n1,9999,Lisbon,\n2,4000,Faro,33\n")
    assert run("predict", files / "served", files / "new.csv", "--out", files / "new-answers.csv") == 0
    assert predicted(files / "new-answers.csv") == ["yes", "no"]
    with Server(files / "served", rest_port=0, grpc_port=0) as server:
        for url in (f"http://127.0.0.1:{server.rest_port}", f"grpc://127.0.0.1:{server.grpc_port}"):
            assert run("predict", url, files / "new.csv", "--out", files / "answers-2.csv") == 0
            assert predicted(files / "answers-2.csv") == ["yes", "no"]
            with Client(url) as client:
                frame = pd.DataFrame(
                    {"age (years)": [None, 33], "city": ["Lisbon", None], "postcode": ["9999", "4000"]}
                )
                said = client.predict(frame, signature="annotators", annotator="a")
            assert said["class"].tolist() == ["yes", "no"]
    capsys.readouterr()
    with open(files / "short.csv", "w") as file:
        file.write("task,postcode,city\n1,9999,Lisbon\n")
    assert run("predict", files / "served", files / "short.csv") == DataError.exit_code
    assert "has no column 'age__years_', which the model takes" in capsys.readouterr().err


def test_a_file_is_read_as_the_model_takes_it(files):
    def signature(**inputs):
        shapes = {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in inputs.items()}
        return {"inputs": shapes}

    path = files / "new.csv"
    path.write_text("task,a,b\nx,1,2\ny,3,\n")
    command = argparse.ArgumentParser()
    describe(command)
    arguments = command.parse_args(["model", str(path)])
    found = _read(arguments, signature(b=("float32", [None]), a=("string", [None])), False)
    assert list(found.values) == ["b", "a"]
    assert found.values["a"].tolist() == ["1", "3"]
    with pytest.raises(DataError, match=r"the model's inputs left are no columns of a table; use the client"):
        _read(arguments, signature(left=("float32", [None, 2, 2])), False)
    with pytest.raises(DataError, match=r"row 3, column 'b': nan is not a finite number"):
        _read(arguments, signature(instances=("float32", [None, 2])), False)


def test_a_model_of_strings_decides_whether_it_gets_texts_or_images(files):
    def read(text, of_images, *words):
        (files / "new.csv").write_text(text)
        command = argparse.ArgumentParser()
        describe(command)
        arguments = command.parse_args(["model", str(files / "new.csv"), *words])
        return _read(arguments, {"inputs": {"instances": {"dtype": "string", "shape": [None]}}}, of_images)

    both = "task,image,text,age\nx,no.jpg,good,3\n"
    assert read(both, False).values.tolist() == ["good"]
    assert read("task,text,age\nx,good,3\n", None).values.tolist() == ["good"]
    assert read(both, None, "--instance-columns", "text=text").values.tolist() == ["good"]
    with pytest.raises(DataError, match=r"'no\.jpg' does not exist"):
        read(both, True)
    with pytest.raises(DataError, match="Give --instance-columns text=text or"):
        read(both, None)
