"""Skew of requests, by TensorFlow Data Validation's comparators, and the command that prints it."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import tensorflow_data_validation as tfdv

from crowdzoo.commands import main as cli
from crowdzoo.components.request_skew import find_skew
from crowdzoo.errors import DataError, ServingError

LIMITS = {"jensen_shannon": 0.1, "infinity_norm": 0.1}


def keep(folder, table):
    """A version whose training data were a table."""
    (folder / "assets.extra" / "drift").mkdir(parents=True)
    (folder / "saved_model.pb").touch()
    statistics = tfdv.generate_statistics_from_dataframe(table)
    (folder / "assets.extra" / "drift" / "statistics.pb").write_bytes(statistics.SerializeToString())
    tfdv.write_schema_text(tfdv.infer_schema(statistics), str(folder / "assets.extra" / "drift" / "schema.pbtxt"))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A table of sizes and colours; half of them red."""
    generator = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("served")
    table = {
        "task": [f"t{row}" for row in range(400)],
        "instances/size": generator.normal(size=400).astype(np.float32),
        "instances/colour": ["red", "blue"] * 200,
        "crowd.label": ["cat", "dog"] * 200,
    }
    keep(folder / "1", pd.DataFrame(table))
    return folder


def log(file, reds, num=400, factor=1.0, seed=1):
    sizes = factor * np.random.default_rng(seed).normal(size=num)
    rows = [{"size": size, "colour": "red" if row < reds else "blue"} for row, size in enumerate(sizes.tolist())]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_requests_like_the_training_data_are_no_anomaly_without_tasks_and_annotations(served, tmp_path):
    skew = find_skew(served, log(tmp_path / "toys.jsonl", reds=220), LIMITS)
    assert skew.anomalies == []
    assert (skew.version.name, skew.num_instances, [*skew.distances]) == ("1", 400, ["size", "colour"])
    assert skew.distances["colour"] == pytest.approx((abs(220 / 400 - 0.5), 0.1))
    assert 0 < skew.distances["size"][0] < 0.1


def test_what_differs_is_named_and_kept_for_the_metrics(served, tmp_path):
    skew = find_skew(served, log(tmp_path / "toys.jsonl", reds=320, factor=50), LIMITS)
    assert skew.distances["colour"] == pytest.approx((0.3, 0.1))
    colour, size = skew.anomalies
    assert re.match(r"instances/colour: The Linfty distance .* is 0\.3 ", colour)
    assert size.startswith("instances/size: The approximate Jensen-Shannon")
    assert json.loads((tmp_path / "toys.1.skew.json").read_text()) == {"anomalies": [colour, size]}
    assert find_skew(served, tmp_path / "toys.jsonl", {"jensen_shannon": 1, "infinity_norm": 1}).anomalies == []


def test_missing_numbers_are_values_and_new_words_are_named_where_they_are_many(served, tmp_path):
    file = log(tmp_path / "toys.jsonl", reds=200)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines[:10]:
        line["size"] = None
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert find_skew(served, file, LIMITS).anomalies == []
    for line in lines[:60]:
        line["colour"] = "green"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (anomaly,) = find_skew(served, file, LIMITS).anomalies
    assert "green" in anomaly


def test_of_few_instances_distributions_are_not_compared_and_the_older_file_counts(served, tmp_path):
    file = log(tmp_path / "toys.jsonl", reds=60, num=60)
    skew = find_skew(served, file, LIMITS)
    assert (skew.anomalies, skew.distances) == ([], {"size": None, "colour": None})
    log(tmp_path / "toys.1.jsonl", reds=60, num=60)
    skew = find_skew(served, file, LIMITS)
    assert skew.num_instances == 120
    assert skew.distances["colour"] == pytest.approx((0.5, 0.1))


def test_vectors_are_compared_as_a_whole(tmp_path):
    generator = np.random.default_rng(0)
    keep(tmp_path / "served" / "1", pd.DataFrame({"instances": list(generator.normal(size=(200, 3)).astype("f4"))}))
    file = tmp_path / "pets.jsonl"
    for factor, differs in ((1, False), (50, True)):
        rows = factor * generator.normal(size=(200, 3))
        file.write_text("".join(json.dumps({"instances": row}) + "\n" for row in rows.tolist()))
        skew = find_skew(tmp_path / "served", file, LIMITS)
        assert [*skew.distances] == ["instances"]
        assert bool(skew.anomalies) == (skew.distances["instances"][0] > 0.1) == differs


def test_what_cannot_be_compared_is_said(served, tmp_path):
    (tmp_path / "none" / "1").mkdir(parents=True)
    (tmp_path / "none" / "1" / "saved_model.pb").touch()
    file = tmp_path / "toys.jsonl"
    for folder in ("none", "nowhere"):
        with pytest.raises(ServingError, match=r"has no statistics of its training data"):
            find_skew(tmp_path / folder, file, LIMITS)
    with pytest.raises(DataError, match=r"toys.jsonl: no .* `crowdzoo serve --log-requests "):
        find_skew(served, file, LIMITS)
    other_types = ('{"size": "large", "colour": "red"}', '{"size": {"cm": 1}, "colour": "red"}')
    for line in ('{"size": 1}', '{"size": 1, "colour": "red", "x": 1}', "[1]", '{"size": 1, "co', *other_types):
        log(file, reds=1, num=1)
        file.write_text(file.read_text() + line + "\n")
        with pytest.raises(DataError, match=r"toys.jsonl, line 2: is not an object of the model's inputs"):
            find_skew(served, file, LIMITS)


def test_the_command_prints_a_table_and_ends_with_7_only_where_asked(served, tmp_path, capsys, refusal_of):
    words = ["skew", str(served), str(log(tmp_path / "toys.jsonl", reds=320))]
    assert cli.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"400 logged instances next to the training data of {served / '1'}"
    assert next(line.split() for line in lines if line.startswith("colour")) == ["colour", "0.3000", "0.1", "differs"]
    assert sum(line.startswith("Anomaly: instances/colour: ") for line in lines) == 1
    assert "--fail-if anomaly: requests differ" in refusal_of(*words, "--fail-if", "anomaly", code=7)
    assert cli.main([*words, "--fail-if", "anomaly", "--infinity-norm", "0.4"]) == 0
    assert "No anomaly." in capsys.readouterr().out
