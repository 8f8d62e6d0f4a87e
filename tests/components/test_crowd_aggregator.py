import json
import pathlib

import numpy as np
import pyarrow.parquet
import pytest
from csv_files import read_csv

from crowdzoo.aggregation import DawidSkene, MajorityVote
from crowdzoo.components import crowd_aggregator
from crowdzoo.data.annotations import Annotations
from crowdzoo.records.example_files import read_dataset_info


def posteriors(folder, examples, split):
    found = folder.records(examples, split)
    return {record["task"][0].decode(): record["posterior"] for record in found}


def train_annotations(crowd_folder, annotations):
    crowd = Annotations.from_parquet(pathlib.Path(annotations.uri, "annotations.parquet"))
    return crowd.select_tasks(np.array([int(task[1:]) < 30 for task in crowd.tasks]))


EM = {"prior": 0.5, "tol": 0.01, "max_iter": 3}  # few iterations: each costs a tenth of a second on Beam


def add_silent_task(folder):
    """Adds a task of eval that nobody annotated."""
    columns = folder.instances()
    for name, value in {"task": "silent", "features": [0.0, 0.0, 0.0], "split": "eval", "gold": "x"}.items():
        columns[name].append(value)
    folder.write_instances(columns)


@pytest.fixture(scope="module")
def fitted_crowd(tmp_path_factory, new_folder, write_crowd):
    """A crowd with a silent task, aggregated by Dawid-Skene on Beam; `fitted` is the local engine's result."""
    folder = write_crowd(new_folder(tmp_path_factory.mktemp("fitted")))
    add_silent_task(folder)
    folder.examples, folder.annotations = folder.generate()
    folder.aggregated, folder.report = folder.aggregate(folder.examples, folder.annotations, "dawid-skene", 2, **EM)
    folder.fitted = DawidSkene(**EM).fit(train_annotations(folder, folder.annotations))
    return folder


def assert_train_posteriors(folder, aggregated, expected):
    found = posteriors(folder, aggregated, "train")
    assert len(found) == 30
    for task, row in zip(expected.tasks, expected.posteriors, strict=True):
        np.testing.assert_allclose(found[task], row, atol=1e-6)


def test_train_posteriors_are_those_of_the_local_engine_on_the_train_split(fitted_crowd, shared_crowd):
    assert_train_posteriors(fitted_crowd, fitted_crowd.aggregated, fitted_crowd.fitted)
    voted = MajorityVote().fit(train_annotations(shared_crowd, shared_crowd.annotations))
    assert_train_posteriors(shared_crowd, shared_crowd.aggregated, voted)


@pytest.mark.parametrize(
    ("name", "workers", "times"), [("majority-vote", 1, 0), ("majority-vote", 2, 1), ("glad", 2, 0)]
)
def test_beam_is_asked_where_it_has_other_workers_and_the_method(shared_crowd, monkeypatch, name, workers, times):
    asked = []

    def aggregate(crowd, method, folder, **_):
        asked.append(method)
        pathlib.Path(folder).mkdir()
        return method.fit(crowd)

    monkeypatch.setattr(crowd_aggregator, "aggregate", aggregate)
    shared_crowd.aggregate(shared_crowd.examples, shared_crowd.annotations, name, workers)
    assert len(asked) == times


def test_evaluation_uses_gold_where_eval_has_any_and_leaves_out_the_rest(crowd_folder):
    columns = crowd_folder.instances()
    columns["gold"][35] = None
    crowd_folder.write_instances(columns)
    aggregated, _ = crowd_folder.aggregate(*crowd_folder.generate())
    found = {record["task"][0].decode(): record for record in crowd_folder.records(aggregated, "eval")}
    assert read_dataset_info(aggregated.uri)["truth"] == "gold"
    for number in range(30, 40):
        record = found[f"t{number}"]
        if number == 35:
            assert record["evaluation_weight"] == [0.0]
        else:
            assert record["evaluation_weight"] == [1.0]
            assert record["evaluation_label"] == ["xyz".index(columns["gold"][number])]


def test_without_gold_evaluation_uses_aggregated_labels_of_annotated_tasks(crowd_folder):
    add_silent_task(crowd_folder)
    columns = crowd_folder.instances()
    del columns["gold"]
    crowd_folder.write_instances(columns)
    aggregated, _ = crowd_folder.aggregate(*crowd_folder.generate())
    found = {record["task"][0].decode(): record for record in crowd_folder.records(aggregated, "eval")}
    assert read_dataset_info(aggregated.uri)["truth"] == "aggregated"
    assert found["silent"]["evaluation_weight"] == [0.0]
    del found["silent"]
    assert all(record["evaluation_label"] == record["aggregated_label"] for record in found.values())
    assert all(record["evaluation_weight"] == [1.0] for record in found.values())


def test_the_report_counts_the_train_annotations_of_every_annotator(fitted_crowd):
    report = fitted_crowd.report
    crowd = train_annotations(fitted_crowd, fitted_crowd.annotations)
    rows = read_csv(f"{report.uri}/annotators.csv")
    assert [row["annotator"] for row in rows] == [f"a{number}" for number in range(5)]
    assert [int(row["annotations"]) for row in rows] == np.bincount(crowd.annotator_ids, minlength=5).tolist()
    summary = json.loads(pathlib.Path(report.uri, "summary.json").read_text())
    assert summary["method"] == "dawid-skene"
    assert all(
        later >= earlier - 1e-9 for earlier, later in zip(summary["history"], summary["history"][1:], strict=False)
    )
    confusion = pyarrow.parquet.read_table(f"{report.uri}/annotators.parquet")["confusion"].to_pylist()
    np.testing.assert_allclose(np.sum(confusion, axis=2), 1)
    assert sorted(path.name for path in pathlib.Path(report.uri).iterdir()) == [
        "annotators.csv",
        "annotators.parquet",
        "summary.json",
        "tasks.parquet",
    ]
