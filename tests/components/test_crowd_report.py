import json
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.components.artifacts import CrowdPage
from crowdzoo.components.crowd_report import CrowdReport
from crowdzoo.components.tfx_internals import standard_artifacts


@pytest.fixture
def report(shared_crowd, tmp_path, linear_model):
    """A function that runs CrowdReport; it returns the numbers, the blessing, and the page's artifact."""
    count = iter(range(100))

    def report(
        model=True, evaluated=None, fail_if=(), method="majority-vote", crowd=shared_crowd, history=None, **others
    ):
        base = tmp_path / f"report{next(count)}"
        page = crowd.artifact(CrowdPage, base / "page")
        blessing = crowd.artifact(standard_artifacts.ModelBlessing, base / "blessing")
        inputs = {"model": None, "evaluated": None, "model_run": None}
        if history is not None:
            inputs["model_run"] = crowd.artifact(standard_artifacts.ModelRun, base / "model_run")
            (base / "model_run" / "history.json").write_text(json.dumps(history))
        if model:
            inputs["model"] = crowd.artifact(standard_artifacts.Model, base / "model")
            linear_model(base / "model" / "Format-Serving", np.eye(3))
        if evaluated is not None:
            inputs["evaluated"] = crowd.artifact(standard_artifacts.ModelBlessing, base / "evaluated")
            inputs["evaluated"].set_int_custom_property("blessed", int(evaluated))
            inputs["evaluated"].set_string_custom_property("baseline_model", "served/7")
        settings = {"title": "mine", "method": method, "arguments": {}, "seed": 0, "fail_if": list(fail_if)}
        CrowdReport.test_call(
            examples=crowd.aggregated, annotations=crowd.annotations, page=page, blessing=blessing,
            **{name: each for name, each in inputs.items() if each is not None},
            settings=json.dumps(settings), code_version="", **others,
        )  # fmt: skip
        return json.loads((base / "page" / "report.json").read_text()), blessing, page

    return report


def test_the_page_compares_the_labels_of_both_splits_with_the_model_on_eval_and_with_gold(report, shared_crowd):
    numbers, blessing, page = report(evaluated=True, history={"loss": [1.0, 0.5]})
    assert numbers["title"] == "mine"
    assert numbers["history"]["metrics"] == {"loss": [1.0, 0.5]}
    assert numbers["values"]["tasks"] == 40, "of both splits"
    records = {one["task"][0].decode(): one for one in shared_crowd.records(shared_crowd.aggregated, "eval")}
    said = {task: "xyz"[int(np.argmax(one["instances"]))] for task, one in records.items()}
    labels = dict(zip(*(numbers["tables"]["tasks"]["values"][name] for name in ("task", "label")), strict=True))
    same = np.mean([labels[task] == name for task, name in said.items()])
    assert numbers["model"]["tasks"] == 10
    assert numbers["model"]["without"] == 30, "tasks of train are not asked about"
    assert numbers["values"]["model_agreement"] == pytest.approx(same, abs=1e-4)
    right = np.mean(["xyz"[one["gold"][0]] == said[task] for task, one in records.items()])
    assert numbers["values"]["model_accuracy"] == pytest.approx(right, abs=1e-4)
    assert Path(page.uri, "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert blessing.get_int_custom_property("blessed") == 1
    assert blessing.get_string_custom_property("baseline_model") == "served/7"
    assert (Path(blessing.uri) / "BLESSED").exists()


def test_without_a_model_the_page_has_the_annotations_alone(report):
    numbers, blessing, page = report(model=False)
    assert numbers["model"] is None
    assert numbers["calibration"]["model"] is None
    assert not page.get_string_custom_property("model")
    assert blessing.get_int_custom_property("blessed") == 1


def test_a_value_of_the_model_cannot_be_checked_without_one(report):
    _, blessing, _ = report(model=False, fail_if=["model_agreement<0.1"])
    assert "model_agreement is not defined" in blessing.get_string_custom_property("reason")


def test_the_page_on_ratings_has_those_of_both_splits(report, tmp_path, new_folder):
    crowd = new_folder(tmp_path / "ratings")
    crowd.path.mkdir()
    rows = [(f"t{task}", f"a{who}", float(task + who)) for task in range(12) for who in range(3)]
    features = {"task": [f"t{task}" for task in range(12)], "features": [[float(task)] for task in range(12)]}
    crowd.write(rows, {**features, "split": ["train"] * 8 + ["eval"] * 4})
    crowd.examples, crowd.annotations = crowd.generate(kind="regression", low=None, high=None)
    crowd.aggregated = crowd.examples
    numbers, blessing, _ = report(model=False, crowd=crowd, method="mean", fail_if=["tasks<12"])
    assert numbers["kind"] == "regression"
    assert numbers["values"]["tasks"] == 12
    assert blessing.get_int_custom_property("blessed") == 1


def test_the_page_on_sentences_has_those_of_both_splits_with_their_words(report, tmp_path, new_folder):
    crowd = new_folder(tmp_path / "sentences")
    crowd.path.mkdir()
    path = crowd.path / "spans.jsonl"
    with open(path, "w") as file:
        for number in range(20):
            text = f"Anna saw Hugo {number}"
            for who in ("ann", "bob"):
                spans = [{"start": 0, "end": 4, "label": "PER"}]
                file.write(json.dumps({"task": f"s{number}", "text": text, "annotator": who, "spans": spans}) + "\n")
    crowd.aggregated, crowd.annotations = crowd.generate(
        kind="sequence", annotations=str(path), instances=None, scheme="BIO", on_bad_tags="error"
    )
    numbers, _, _ = report(model=False, crowd=crowd, method="majority-vote")
    assert numbers["kind"] == "sequence"
    assert numbers["values"]["tasks"] == 20
    assert numbers["values"]["span_agreement"] == 1
    assert "Anna" in json.dumps(numbers["tables"]["tasks"]["details"])
