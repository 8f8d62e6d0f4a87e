"""Labels of people and models by `crowdzoo aggregate --annotator-table`."""

import json

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import Aggregation
from crowdzoo.commands import main
from crowdzoo.errors import ConfigError
from crowdzoo.quality import people_and_models


@pytest.fixture
def files(tmp_path):
    """Three models who share a view, and two people for half of the tasks; the truth as gold."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    view = np.where(rng.random(200) < 0.6, truth, 1 - truth)
    lines = ["task,annotator,label"]
    for name, of, right in (
        ("m1", view, 0.95),
        ("m2", view, 0.95),
        ("m3", view, 0.95),
        ("ann", truth, 0.9),
        ("bo", truth, 0.9),
    ):
        for task in range(200 if name[0] == "m" else 100):
            lines.append(f"t{task},{name},{'ny'[of[task] if rng.random() < right else 1 - of[task]]}")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    sources = "".join(f"{name},{'model' if name[0] == 'm' else 'person'}\n" for name in ("m1", "m2", "m3", "ann", "bo"))
    (tmp_path / "who.csv").write_text("annotator,source\n" + sources)
    (tmp_path / "gold.csv").write_text("task,gold\n" + "".join(f"t{task},{'ny'[truth[task]]}\n" for task in range(200)))
    return tmp_path


def words(files, *more):
    places = str(files / "a.csv"), "--annotator-table", str(files / "who.csv"), "--out", str(files / "out")
    return ["aggregate", *places, *more]


def test_it_writes_the_labels_of_people_and_models(files, capsys):
    assert main.main(words(files, "--gold", str(files / "gold.csv"))) == 0
    printed = capsys.readouterr().out
    expected = people_and_models(Annotations.read(files / "a.csv"), ["m1", "m2", "m3"])
    found = Aggregation.from_parquet(files / "out")
    assert found.method == "people-and-models"
    np.testing.assert_array_equal(found.labels, expected.aggregation.labels)
    np.testing.assert_allclose(found.posteriors, expected.aggregation.posteriors)
    assert f"3 of the annotators; correlation of their errors {expected.correlation}" in " ".join(printed.split())
    assert "accuracy" in printed
    assert json.loads((files / "out" / "summary.json").read_text())["method"] == "people-and-models"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--method", "robust"], "--method robust takes people and models alike: leave out --annotator-table"),
        (["--kind", "regression"], "--annotator-table is for classes"),
        (["--multi-label"], "--multi-label does not go with --annotator-table"),
        (["--tol", "0.1"], "people-and-models has no setting 'tol'"),
    ],
)
def test_what_does_not_go_with_it_is_refused(files, refusal_of, more, said):
    assert said in " ".join(refusal_of(*words(files, *more)).split())


def listed(printed):
    """Names of the annotators to look at."""
    if "annotators to check" not in printed:
        return set()
    part = printed[printed.index("annotators to check") : printed.index("tasks to look at")]
    return {line.split()[0] for line in part.splitlines()[3:] if line}


def test_quality_compares_with_the_same_aggregation(files, capsys):
    """People who agree about other labels than the models head no list, and no note asks who is a model."""
    words = ["quality", str(files / "a.csv"), "--bootstrap", "0", "--top", "2"]
    assert main.main(words) == 0
    alike = capsys.readouterr().out
    assert "say who is a model" in alike
    table = ["--annotator-table", str(files / "who.csv"), "--out", str(files / "quality")]
    assert main.main([*words, *table]) == 0
    printed = capsys.readouterr().out
    assert "say who is a model" not in printed
    assert not {"ann", "bo"} & listed(printed)
    assert json.loads((files / "quality" / "summary.json").read_text())["aggregation"] == "people-and-models"
    assert main.main([*words, *table[:2], "--method", "robust"]) == 0
    assert "say who is a model" not in capsys.readouterr().out
    assert main.main([*words, "--method", "people-and-models"]) == ConfigError.exit_code
    assert "say with --models or --annotator-table who is a model" in capsys.readouterr().err


def test_who_is_a_model_has_to_be_said(files, refusal_of):
    args = ["aggregate", str(files / "a.csv"), "--method", "people-and-models", "--out", str(files / "out")]
    assert "say with --annotator-table FILE which annotators are models" in refusal_of(*args)
    table = files / "who.csv"
    sources = table.read_text()
    table.write_text(sources.replace("source", "cost").replace("model", "1").replace("person", "1"))
    assert "has no column 'source', which says who is a model" in refusal_of(*words(files), code=3)
    table.write_text(sources.replace("model", "person"))
    assert "none of the 5 annotators is a model" in refusal_of(*words(files), code=3)
    table.write_text(table.read_text().replace("person", "model"))
    assert "no person labelled a task" in refusal_of(*words(files), code=3)


@pytest.mark.slow
def test_the_page_of_a_report_rests_on_the_same_labels_and_compares_models_with_people(files, capsys):
    place = files / "page.html"
    words = ["report", str(files / "a.csv"), "--out", str(place), "--bootstrap", "20", "--curve", "0"]
    assert main.main(words) == 0
    asked = [each["finding"] + each["fix"] for each in json.loads(place.with_suffix(".json").read_text())["warnings"]]
    assert any("--annotator-table" in each for each in asked)
    words += ["--annotator-table", str(files / "who.csv")]
    assert main.main([*words, "--epsilon", "0.1"]) == 0
    found = json.loads(place.with_suffix(".json").read_text())
    assert found["method"] == "people-and-models"
    assert not [each for each in found["warnings"] if "--annotator-table" in each["fix"] + each["finding"]]
    tables = found["tables"]
    mixed = people_and_models(Annotations.read(files / "a.csv"), ["m1", "m2", "m3"])
    labels = mixed.aggregation.classes[mixed.aggregation.labels].tolist()
    assert tables["tasks"]["values"]["label"] == labels
    annotators = tables["annotators"]["values"]
    sources = dict(zip(annotators["annotator"], annotators["source"], strict=True))
    assert sources == {"m1": "model", "m2": "model", "m3": "model", "ann": "person", "bo": "person"}
    reliability = dict(zip(annotators["annotator"], annotators["reliability"], strict=True))
    # people are right in .9, models in .6 and err together: by all of them, models would look better than people
    assert (
        min(reliability["ann"], reliability["bo"]) > 0.8 > 0.7 > max(reliability[name] for name in ("m1", "m2", "m3"))
    )
    assert tables["models"]["values"]["model"] == ["m1", "m2", "m3"]
    assert tables["models"]["values"]["epsilon"] == [0.1] * 3
    assert set(tables["models"]["values"]["verdict"]) <= {"yes", "no", "too few tasks"}
    assert len(tables["model_classes"]["values"]["found"]) == 6
    assert main.main([*words, "--hash-ids"]) == 0
    assert '"m1"' not in place.with_suffix(".json").read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--kind", "regression"), "--annotator-table is for classes"),
        (("--method", "robust"), "takes people and models alike"),
        (("--multi-label",), "--multi-label does not go with --annotator-table"),
    ],
)
def test_the_page_refuses_what_does_not_go_with_a_table_of_annotators(files, capsys, refusal_of, more, message):
    place = files / "page.html"
    words = ["report", str(files / "a.csv"), "--out", str(place), "--annotator-table", str(files / "who.csv"), *more]
    assert message in refusal_of(*words)
    assert not place.exists()
    assert main.main(["report", str(files / "a.csv"), "--out", str(place), "--epsilon", "0.1"]) == 4
    assert "--epsilon is what models are tested with" in capsys.readouterr().err
