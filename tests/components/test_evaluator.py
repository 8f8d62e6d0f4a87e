import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from crowdzoo.components import evaluator
from crowdzoo.components.evaluator import _verdict
from crowdzoo.kinds import kind_of

GOOD, BAD = np.eye(3), -np.eye(3)


def write_card(folder, card):
    (folder / "assets.extra").mkdir()
    (folder / "assets.extra" / "model_card.json").write_text(json.dumps(card))


@pytest.fixture(scope="module")
def crowd(tmp_path_factory, new_folder, write_crowd):
    """A crowd, aggregated by a vote, in which the truth of six of the ten tasks of eval is not known."""
    folder = write_crowd(new_folder(tmp_path_factory.mktemp("crowd")))
    table = pyarrow.parquet.read_table(folder.path / "instances.parquet").to_pydict()
    table["gold"][34:] = [None] * 6
    pyarrow.parquet.write_table(pyarrow.table(table), folder.path / "instances.parquet")
    folder.examples, _ = folder.aggregate(*folder.generate())
    return folder


@pytest.fixture
def evaluate(crowd, tmp_path, linear_model):
    """A function that evaluates a model of given weights; it returns summary, blessing and its files."""

    def evaluate(weights, card=None, **limits):
        crowd.count += 1

        def write(folder):
            model = linear_model(folder, weights)
            if card:
                write_card(model, card)

        base, serving = tmp_path / f"evaluator{crowd.count}", str(tmp_path / "serving")
        return crowd.evaluate(crowd.examples, base, write, **{"serving": serving, **limits})

    evaluate.records = [one for one in crowd.records(crowd.examples, "eval") if one["evaluation_weight"] == [1.0]]
    evaluate.serving = tmp_path / "serving"
    return evaluate


def expected(records, weights):
    logits = np.float32([record["instances"] for record in records]) @ weights
    labels = np.array([record["evaluation_label"][0] for record in records])
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return np.mean(logits.argmax(axis=1) == labels), -np.mean(log_probabilities[np.arange(len(labels)), labels])


@pytest.mark.slow  # pipelines/test_local.py runs it, too
def test_scores_are_those_of_numpy_on_tasks_with_truth_and_a_first_model_is_blessed(evaluate):
    summary, blessing, files = evaluate(GOOD)
    assert len(evaluate.records) == 4
    accuracy, cross_entropy = expected(evaluate.records, GOOD)
    assert summary["candidate"]["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert summary["candidate"]["cross_entropy"] == pytest.approx(cross_entropy, abs=1e-5)
    assert summary["candidate"]["tasks"] == 4
    assert summary["truth"] == "gold"
    assert summary["metric"] == "accuracy"
    assert summary["baseline"] is None
    assert summary["blessed"] is True
    assert files == ["BLESSED"]
    assert blessing.get_int_custom_property("blessed") == 1


@pytest.mark.slow  # so does the run in pipelines/test_local.py
def test_a_model_worse_than_the_last_pushed_one_is_not_blessed(evaluate, linear_model):
    linear_model(evaluate.serving / "7", GOOD)
    summary, blessing, files = evaluate(BAD)
    assert summary["baseline"]["accuracy"] == pytest.approx(expected(evaluate.records, GOOD)[0], abs=1e-6)
    assert summary["candidate"]["accuracy"] == pytest.approx(expected(evaluate.records, BAD)[0], abs=1e-6)
    assert summary["candidate"]["accuracy"] < summary["baseline"]["accuracy"]
    assert files == ["NOT_BLESSED"]
    assert blessing.get_int_custom_property("blessed") == 0
    assert "of version 7" in summary["reason"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"classes": ["x", "y", "z"]}, "class 'z' is new"),
        ({"classes": ["y", "x"]}, "the order is another one: class 0 is 'y', was 'x'"),
        ({"signatures": {"serving_default": {"inputs": {"a": [], "b": []}}}}, "inputs 'a', 'b' are new, input 'inst"),
        ({"signatures": {"serving_default": {"inputs": {"instances": [4]}}}}, "inputs have another form"),
        ({"features": ["b", "a"]}, "the order is another one: column 0 is 'b', was 'a'"),
    ],
)
def test_a_model_of_other_classes_or_columns_is_pushed_only_where_that_is_asked_for(
    evaluate, linear_model, monkeypatch, changed, said
):
    def scores(kind, models, *_):
        assert [*models] == ["candidate"]
        return {"candidate": {"accuracy": 0.1}}

    monkeypatch.setattr(evaluator, "model_scores", scores)  # what is measured is told above
    card = {"classes": ["x", "y"], "signatures": {"serving_default": {"inputs": {"instances": [3]}}}}
    write_card(linear_model(evaluate.serving / "7", GOOD), {**card, "features": ["a", "b"]})
    card = {**card, "features": ["a", "b"], **changed}
    summary, _, files = evaluate(BAD, card=card)
    assert summary["baseline"] is None
    assert files == ["NOT_BLESSED"]
    assert f"not those of version 7, the last one pushed: {said}" in summary["reason"]
    assert summary["reason"].endswith(". evaluation.new_signatures: true pushes it all the same")
    summary, _, files = evaluate(BAD, card=card, new_signatures=True)
    assert files == ["BLESSED"]
    assert said in summary["reason"]
    summary, _, files = evaluate(BAD, card=card, new_signatures=True, minimum=0.2)
    assert files == ["NOT_BLESSED"]


def test_the_baseline_of_a_serving_folder_in_a_store_is_measured_by_its_copy_and_named_by_its_uri(
    evaluate, linear_model, monkeypatch
):
    def baseline(candidate, uri, place):
        assert uri == "s3://crowd/serving/"
        return str(linear_model(Path(place, "7"), GOOD))

    def scores(kind, models, *_):
        assert Path(models["baseline"], "saved_model.pb").is_file()
        return {"candidate": {"accuracy": 0.6}, "baseline": {"accuracy": 0.7}}

    monkeypatch.setattr(evaluator, "remote_baseline", baseline)
    monkeypatch.setattr(evaluator, "model_scores", scores)
    summary, blessing, files = evaluate(BAD, serving="s3://crowd/serving/")
    assert summary["baseline"] == {"model": "s3://crowd/serving/7", "accuracy": 0.7}
    assert summary["reason"] == "its accuracy 0.6000 is below the 0.7000 of version 7"
    assert blessing.get_string_custom_property("baseline_model") == "s3://crowd/serving/7"
    assert files == ["NOT_BLESSED"]


VERDICTS = {
    # candidate, baseline, tolerance, minimum: blessed
    "first": (0.4, None, 0.0, 0.0, True),
    "first but too bad": (0.4, None, 0.0, 0.5, False),
    "equal": (0.7, 0.7, 0.0, 0.0, True),
    "better": (0.8, 0.7, 0.0, 0.0, True),
    "worse": (0.69, 0.7, 0.0, 0.0, False),
    "worse within tolerance": (0.69, 0.7, 0.02, 0.0, True),
    "worse beyond tolerance": (0.69, 0.72, 0.02, 0.0, False),
    "better but below the minimum": (0.8, 0.7, 0.0, 0.9, False),
}


@pytest.mark.parametrize(("kind", "other"), [("classification", "f1"), ("sequence", "token_accuracy")])
@pytest.mark.parametrize("case", VERDICTS)
def test_verdict(case, kind, other):
    kind = kind_of(kind)
    metric, word = kind.metric, kind.metric_title
    value, last, tolerance, minimum, blessed = VERDICTS[case]
    # the other metric says the opposite
    baseline = None if last is None else {"model": "/serving/7", metric: last, other: float(blessed)}
    summary = {"candidate": {metric: value, other: float(not blessed)}, "baseline": baseline}
    found, reason = _verdict(summary, kind, tolerance, minimum)
    assert found is blessed
    assert reason.startswith(f"its {word} {value:.4f} ") or (baseline is None and blessed)


@pytest.mark.parametrize(("value", "tolerance", "blessed"), [
    (-0.9, 0.0, True), (-1.0, 0.0, True), (-1.01, 0.0, False), (-1.01, 0.02, True), (-1.03, 0.02, False),
])  # fmt: skip
def test_compared_by_annotations_their_likelihood_decides_and_accuracy_only_about_the_minimum(
    value, tolerance, blessed
):
    old = {"model": "/serving/7", "accuracy": float(blessed), "annotation_log_likelihood": -1.0}
    summary = {"candidate": {"accuracy": 0.5, "annotation_log_likelihood": value}, "baseline": old}
    found, reason = _verdict(summary, kind_of("classification"), tolerance, 0.5, "annotations")
    assert found is blessed
    assert reason.startswith(f"its log-likelihood of held-out annotations {value:.4f} ")
    assert _verdict(summary, kind_of("classification"), 9.0, 0.6, "annotations")[1].startswith("its accuracy 0.5000 is")
