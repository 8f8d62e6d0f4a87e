"""Preferences in the components: what the Examples of pairs hold, what is added, and what the Trainer reads back."""

import json

import numpy as np
import pyarrow.parquet
import pytest
import tensorflow as tf
from csv_files import write_csv

from crowdzoo.aggregation import create
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.kinds.preferences.records import PreferenceRecords, read_pairs
from crowdzoo.records.example_files import read_dataset_info, split_files

ROWS = [
    ("p", "q", "ann", "left"), ("p", "q", "bob", "equal"), ("q", "p", "ann", "right"), ("q", "r", "bob", "right"),
    ("s", "p", "ann", "left"), ("s", "u", "cid", "right"),
]  # fmt: skip
COLUMNS = {
    "task": ["p", "q", "r", "s", "u", "v"],
    "features": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 10.0], [11.0, 12.0]],
    "split": ["train", "train", "train", "eval", "eval", "train"],
}


def write_pairs(folder, rows=ROWS, columns=COLUMNS, gold=()):
    """Writes the files; returns the options of `Folder.generate`."""
    folder.write([], columns)
    for name, header, content in (
        ("answers.csv", ("left", "right", "annotator", "label"), rows),
        ("gold.csv", ("left", "right", "gold"), gold),
    ):
        write_csv(folder.path / name, header, *content)
    return {"kind": "preference", **({"gold": str(folder.path / "gold.csv")} if gold else {})}


def by_pair(records):
    return {"".join(json.loads(record["task"][0])): record for record in records}


def test_examples_hold_both_sides_and_who_said_what(folder):
    examples, annotations = folder.generate(**write_pairs(folder))
    train, held = (by_pair(folder.records(examples, split)) for split in ("train", "eval"))
    assert (train.keys(), held.keys()) == ({"pq", "qp", "qr"}, {"sp", "su"}), "one task of eval holds a pair out"
    assert train["pq"] == {
        "task": [b'["p", "q"]'],
        "left": [1.0, 2.0],
        "right": [3.0, 4.0],
        "annotator_ids": [0, 1],
        "annotator_labels": [0, 2],
    }
    assert train["qp"]["annotator_labels"] == [1]
    assert (held["su"]["left"], held["su"]["right"]) == ([7.0, 8.0], [9.0, 10.0])
    info = read_dataset_info(examples.uri)
    assert info["classes"] == ["left", "right", "equal"]
    assert info["num_tasks"] == {"train": 3, "eval": 2}
    table = pyarrow.parquet.read_table(f"{annotations.uri}/tasks.parquet").to_pydict()
    assert dict(zip(table["task"], table["split"], strict=True))['["s", "p"]'] == "eval"


def test_gold_holds_in_either_order_and_true_scores_stand_in_for_it(folder):
    columns = {**COLUMNS, "gold": [3.0, 1.0, 2.0, 2.0, None, None]}
    gold = [("q", "p", "left"), ("u", "s", "equal"), ("v", "u", "left"), ("q", "v", "right")]
    examples, _ = folder.generate(**write_pairs(folder, columns=columns, gold=gold))
    train, held = (by_pair(folder.records(examples, split)) for split in ("train", "eval"))
    assert (train["qp"]["gold"], train["pq"]["gold"]) == ([0], [1]), "the file of pairs counts before the scores"
    assert train["qr"]["gold"] == [1]
    assert (held["sp"]["gold"], held["su"]["gold"]) == ([1], [2])
    assert held["vu"]["gold"] == [0], "a known pair with a task of eval is there without annotations"
    assert held["vu"]["annotator_ids"] == []
    assert "qv" not in train
    assert read_dataset_info(examples.uri)["num_gold"] == {"train": 2, "eval": 3}, "p and q are known once"


def test_without_a_pair_of_two_training_tasks_the_message_says_how_pairs_are_split(folder):
    options = write_pairs(folder, rows=[("s", "p", "ann", "left"), ("q", "u", "ann", "left")])
    with pytest.raises(DataError, match=r"no annotated pair falls into the train split"):
        folder.generate(**options)


def test_a_task_without_an_instance_is_named(folder):
    options = write_pairs(folder, rows=[*ROWS, ("p", "zed", "ann", "left")])
    with pytest.raises(DataError, match=r"answers.csv: 1 of the 6 tasks have no row in .*: 'zed'"):
        folder.generate(**options)


def test_aggregation_adds_the_probabilities_of_the_answers_of_each_split(folder):
    examples, annotations = folder.generate(**write_pairs(folder))
    aggregated, report = folder.aggregate(examples, annotations, "bradley-terry", ties="davidson")
    crowd = Annotations.from_arrays(
        *zip(*[(left, who, said) for left, _, who, said in ROWS[:4]], strict=True),
        right=[right for _, right, _, _ in ROWS[:4]], kind="preference",
    )  # fmt: skip
    found = create("bradley-terry", kind="preference", ties="davidson").fit(crowd)
    code = {name: place for place, name in enumerate(found.tasks)}
    train = by_pair(folder.records(aggregated, "train"))
    for pair, record in train.items():
        expected = found.probabilities([code[pair[0]]], [code[pair[1]]])[0]
        assert record["posterior"] == pytest.approx(expected, abs=1e-6)
        assert record["aggregated_label"] == record["evaluation_label"] == [expected.argmax()]
    assert read_dataset_info(aggregated.uri)["truth"] == "aggregated"
    annotators = pyarrow.parquet.read_table(f"{report.uri}/annotators.parquet").to_pydict()
    assert dict(zip(annotators["annotator"], annotators["annotations"], strict=True)) == {"ann": 2, "bob": 2, "cid": 0}


@pytest.mark.parametrize("instances", ["features", "text", "columns"])
def test_what_is_read_back_is_what_was_given(folder, instances):
    columns = dict(COLUMNS)
    if instances == "text":
        columns["text"] = [f"text {name}" for name in columns["task"]]
        del columns["features"]
    elif instances == "columns":
        del columns["features"]
        columns |= {"age": [1.5, None, 3.0, 4.0, 5.0, 6.0], "town": ["a", "b", "", "c", "d", "e"]}
    examples, annotations = folder.generate(**write_pairs(folder, columns=columns))
    aggregated, _ = folder.aggregate(examples, annotations, "bradley-terry")
    pairs = read_pairs([split_files(aggregated.uri, "train")], read_dataset_info(aggregated.uri))
    crowd = pairs.annotations
    names = [name.decode() if isinstance(name, bytes) else name for name in crowd.tasks.tolist()]
    said = {
        (names[left], names[right], crowd.annotators[who], crowd.classes[label])
        for left, right, who, label in zip(
            crowd.task_ids, crowd.right_ids, crowd.annotator_ids, crowd.labels, strict=True
        )
    }
    assert said == {*ROWS[:4]}
    assert sorted(names) == ["p", "q", "r"]
    for row, name in enumerate(names):
        place = COLUMNS["task"].index(name)
        if instances == "features":
            assert pairs.instances.values[row].tolist() == COLUMNS["features"][place]
        elif instances == "text":
            assert pairs.instances.values[row].decode() == f"text {name}"
        else:
            assert pairs.instances.values["town"][row].decode() == columns["town"][place]
    records = by_pair(folder.records(aggregated, "train"))
    for (left, right), posterior in zip(crowd.pairs()[0].tolist(), pairs.posteriors, strict=True):
        assert posterior.tolist() == pytest.approx(records[names[left] + names[right]]["posterior"])


def pair_model(folder):
    """A served model whose score is the first feature, and which knows the answers to three pairs."""

    def answers(left, right):
        first, other = left[:, 0], right[:, 0]
        pair = 2 * tf.cast(first == 11, tf.int32) + tf.cast((first == 7) & (other == 9), tf.int32)
        return {"probabilities": tf.gather([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0], [0.1, 0.1, 0.8]], pair)}

    rows = tf.TensorSpec((None, 2), tf.float32)
    signatures = {
        "serving_default": tf.function(lambda instances: {"score": instances[:, 0]}).get_concrete_function(rows),
        "pairs": tf.function(answers).get_concrete_function(rows, rows),
    }
    tf.saved_model.save(tf.Module(), str(folder), signatures=signatures)
    return str(folder)


def test_scores_are_those_of_the_known_pairs_and_of_what_was_said(folder, tmp_path):
    gold = [("s", "p", "left"), ("u", "s", "right"), ("v", "u", "left")]
    examples, annotations = folder.generate(**write_pairs(folder, gold=gold))
    aggregated, _ = folder.aggregate(examples, annotations, "bradley-terry")
    info = read_dataset_info(aggregated.uri)
    models = {"candidate": pair_model(tmp_path / "model")}
    found = PreferenceRecords().model_scores(models, split_files(aggregated.uri, "eval"), info)["candidate"]
    # the score is the first feature: s 7 over p 1 right, s 7 over u 9 wrong, v 11 over u 9 right
    assert (found["tasks"], found["pair_accuracy"]) == (3, pytest.approx(2 / 3))
    assert found["log_likelihood"] == pytest.approx((np.log(0.5) + np.log(0.4)) / 2), "ann said left, cid said right"
