"""Texts with classes on the command line: from two files to a server that takes strings."""

import csv
import json

import numpy as np
import pytest

from crowdzoo.commands import main as cli
from crowdzoo.serving import Client, Server


def run(*words) -> int:
    return cli.main([str(word) for word in words])


@pytest.fixture
def folder(tmp_path):
    """Sixty texts in Chinese, good or bad, labelled by three annotators who are right four times out of five."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 60)
    words = (("难看", "无聊", "糟糕"), ("好看", "精彩", "有趣"))
    texts = ["这部电影" + "".join(rng.choice(words[code], 2)) + "。" for code in gold]
    rows = [(f"t{task}", text, ["bad", "good"][gold[task]]) for task, text in enumerate(texts)]
    write(tmp_path / "texts.csv", ("task", "text", "gold"), rows)
    said = [(f"t{task}", name, gold[task] ^ (rng.random() < 0.2)) for task in range(60) for name in "xyz"]
    write(
        tmp_path / "answers.csv",
        ("task", "annotator", "label"),
        [(task, name, ["bad", "good"][label]) for task, name, label in said],
    )
    return tmp_path


def write(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.mark.slow
def test_from_chinese_texts_to_a_server_that_takes_strings(folder, capsys):
    model = folder / "model.keras"
    how = ("--form", "characters", "--epochs", 15, "--learning-rate", 0.02, "--dropout", 0, "--hidden", 8)
    assert run("train", folder / "answers.csv", folder / "texts.csv", *how, "--out", model) == 0
    assert "training accuracy against gold" in capsys.readouterr().out
    assert json.loads((folder / "model.names.json").read_text())["text_ids"]["splitting"] == "characters"
    assert run("export", model, folder / "served", "--warmup", folder / "texts.csv") == 0
    (folder / "new.txt").write_text("有趣，真好看\n糟糕，真无聊\n", encoding="utf-8")
    capsys.readouterr()
    assert run("predict", folder / "served", folder / "new.txt") == 0
    printed = capsys.readouterr().out
    assert [line.split(",")[1] for line in printed.splitlines()] == ["class", "good", "bad"]
    with Server(folder / "served", rest_port=0, grpc_port=0) as server:
        for url in (f"http://127.0.0.1:{server.rest_port}", f"grpc://127.0.0.1:{server.grpc_port}"):
            with Client(url) as client:
                found = client.predict(["有趣，真好看", "糟糕，真无聊"])
                asked = client.predict(["有趣"], signature="annotators", annotator="x")
            assert found["class"].tolist() == ["good", "bad"]
            np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1, rtol=1e-5)
            assert asked["probabilities"].shape == (1, 2)
            assert run("predict", url, folder / "new.txt") == 0
            assert capsys.readouterr().out == printed
