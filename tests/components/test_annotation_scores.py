"""The comparison of models by the annotations of the tasks of eval."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from crowdzoo.components.annotation_scores import annotation_scores
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.records.example_files import read_dataset_info
from crowdzoo.training.held_out_annotations import log_likelihoods

GOOD = np.diag([2.0, 1.5, 1.0]) - 0.3  # of the first features, which tell the classes apart


@pytest.fixture(scope="module")
def crowd(tmp_path_factory, new_folder, write_crowd):
    """A crowd without gold, aggregated by a vote; two tasks of eval have no annotations."""
    folder = write_crowd(new_folder(tmp_path_factory.mktemp("crowd")))
    columns = folder.instances()
    del columns["gold"]
    folder.write_instances(columns)
    rows = (folder.path / "answers.csv").read_text().splitlines()
    (folder.path / "answers.csv").write_text("\n".join(row for row in rows if not row.startswith(("t36", "t38"))))
    examples, folder.annotations = folder.generate()
    folder.examples, _ = folder.aggregate(examples, folder.annotations)
    return folder


def by_hand(crowd, weights):
    """Log-likelihood of each annotated task of eval, at the temperature that suits best."""
    annotations = Annotations.from_parquet(Path(crowd.annotations.uri, "annotations.parquet"))
    likelihoods = dict(zip(map(str, annotations.tasks), np.exp(log_likelihoods(annotations)), strict=True))
    records = [one for one in crowd.records(crowd.examples, "eval") if one.get("annotator_ids")]
    # the crowd's own order of classes may be another one
    assert list(annotations.classes) == ["x", "y", "z"]
    logits = np.array([one["instances"] for one in records]) @ weights
    best = None
    for temperature in np.geomspace(0.25, 8.0, 16):
        p = np.exp(logits / temperature)
        p /= p.sum(axis=1, keepdims=True)
        per_task = [np.log((row * likelihoods[one["task"][0].decode()]).sum())
                    for row, one in zip(p, records, strict=True)]  # fmt: skip
        best = max(best, per_task, key=sum) if best is not None else per_task
    return np.array(best), sum(len(one["annotator_ids"]) for one in records)


def test_the_likelihood_is_that_of_the_formula_and_tasks_without_annotations_do_not_count(
    crowd, tmp_path, linear_model
):
    models = {"candidate": str(linear_model(tmp_path / "new", GOOD)),
              "baseline": str(linear_model(tmp_path / "old", GOOD.T[::-1]))}  # fmt: skip
    found = annotation_scores(models, crowd.examples.uri, read_dataset_info(crowd.examples.uri))
    (new, number), (old, _) = by_hand(crowd, GOOD), by_hand(crowd, GOOD.T[::-1])
    assert len(new) == 8
    assert number == 24
    assert found["candidate"]["annotations"] == found["baseline"]["annotations"] == number
    assert found["candidate"]["annotation_log_likelihood"] == pytest.approx(new.sum() / number, rel=1e-5)
    assert found["baseline"]["annotation_log_likelihood"] == pytest.approx(old.sum() / number, rel=1e-5)
    assert found["candidate"]["gain"] == pytest.approx((new - old).sum() / number, rel=1e-4)
    # the standard error of a mean over tasks, in units of annotations
    error = (new - old).std(ddof=1) / np.sqrt(8) * 8 / number
    assert found["candidate"]["gain_error"] == pytest.approx(error, rel=1e-4)
    assert found["candidate"]["gain"] > 0, "or the model that knows would not be the better one"


def test_without_annotations_in_eval_the_way_out_is_named(crowd, tmp_path, linear_model):
    model = {"candidate": str(linear_model(tmp_path / "new", GOOD))}
    info = read_dataset_info(crowd.examples.uri)
    train = Path(crowd.examples.uri)
    empty = tmp_path / "examples"
    for split in ("train", "eval"):
        (empty / f"Split-{split}").mkdir(parents=True)
    for file in (train / "Split-train").iterdir():
        (empty / "Split-train" / file.name).write_bytes(file.read_bytes())
    bare = [record for record in crowd.records(crowd.examples, "eval") if not record.get("annotator_ids")]
    with tf.io.TFRecordWriter(str(empty / "Split-eval" / "a.gz"), "GZIP") as writer:
        for record in bare:
            example = tf.train.Example()
            example.features.feature["instances"].float_list.value.extend(record["instances"])
            writer.write(example.SerializeToString())
    with pytest.raises(DataError, match=r"no task of eval .*Set evaluation\.compare to labels"):
        annotation_scores(model, str(empty), info)


@pytest.fixture
def evaluate(crowd, tmp_path, linear_model):
    """A function that evaluates a model beside the served one, on a crowd without gold."""

    def evaluate(weights, **settings):
        crowd.count += 1
        base = tmp_path / f"evaluator{crowd.count}"
        return crowd.evaluate(
            crowd.examples, base, lambda folder: linear_model(folder, weights),
            serving=str(tmp_path / "serving"), **settings,
        )  # fmt: skip

    evaluate.serving = tmp_path / "serving"
    return evaluate


def test_without_gold_the_annotations_decide_and_with_compare_labels_the_aggregated_labels(evaluate, linear_model):
    linear_model(evaluate.serving / "7", GOOD)
    summary, _, files = evaluate(-GOOD)
    assert summary["truth"] == "aggregated"
    assert summary["compared_by"] == "annotations"
    assert files == ["NOT_BLESSED"]
    value, before = (summary[name]["annotation_log_likelihood"] for name in ("candidate", "baseline"))
    assert summary["reason"] == (
        f"its log-likelihood of held-out annotations {value:.4f} is below the {before:.4f} of version 7"
    )
    assert summary["candidate"]["gain"] == pytest.approx(value - before, abs=1e-9)
    summary, _, files = evaluate(-GOOD, annotation_tolerance=before - value + 0.01)
    assert files == ["BLESSED"]
    assert "is within the tolerance" in summary["reason"]
    summary, _, files = evaluate(-GOOD, compare="labels")
    assert summary["compared_by"] == "labels"
    assert summary["reason"].startswith("its accuracy ")
    assert "annotations" not in json.dumps(summary["candidate"])
