"""LabelMe's table grows: half of the annotations, then all of them, with annotators and tasks never seen."""

import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from crowdzoo.datasets import load_labelme, write_files
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.local import run

CONFIG = """\
name: growing
data: {annotations: annotations.csv, instances: instances.parquet}
aggregation: {method: dawid-skene}
model: {hidden: [64], dropout: 0.5}
training: {epochs: 15, batch_size: 64, warm_start: true}
evaluation: {tolerance: 0.01}
output: {root: out}
"""
TASKS, LATE, SHARE = 800, 12, 0.8  # tasks of the first table, annotators who come later, and labels that are there


@pytest.fixture(scope="module", params=["gold", "no gold"])
def story(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("growing")
    annotations, instances, *_ = write_files(load_labelme(), folder / "all")
    answers, table = pyarrow.csv.read_csv(annotations), pyarrow.parquet.read_table(instances)
    # which tasks are held out follows from their names; gold, where it is there, only for the held-out ones' scores
    table = table.drop([name for name in ("split", *(["gold"] if request.param == "no gold" else []))
                        if name in table.column_names])  # fmt: skip
    (folder / "growing.yaml").write_text(CONFIG)

    def write(rows, tasks):
        pyarrow.csv.write_csv(answers.filter(pa.array(rows)), folder / "annotations.csv")
        pyarrow.parquet.write_table(table.filter(pa.array(tasks)), folder / "instances.parquet")

    def go(**more):
        result = run(load_config(folder / "growing.yaml", more), quiet=True)
        history = json.loads((result.model_run / "history.json").read_text())["loss"]
        print(f"\n--- {request.param}, {more}\n{result.summary()}\n{[*result.cached]}")
        return SimpleNamespace(**{**vars(result), "summary": result.summary(), "loss": history})

    names, who = answers["task"].to_numpy(), answers["annotator"].to_numpy()
    generator = np.random.default_rng(0)
    first_tasks = generator.permutation(table["task"].to_numpy())[:TASKS]
    late = np.sort(generator.permutation(np.unique(who))[:LATE])
    early = np.isin(names, first_tasks) & ~np.isin(who, late) & (generator.random(len(names)) < SHARE)
    labelled = np.isin(table["task"].to_numpy(), np.unique(names[early]))
    story = SimpleNamespace(gold=request.param == "gold", late=late, early=int(early.sum()), all=len(names))
    write(early, labelled)
    story.first = go()
    write(np.ones(len(names), bool), np.ones(len(table), bool))
    story.grown = go(**{"training.epochs": 5})
    story.worse = go(**{"training.epochs": 1, "training.learning_rate": 1e-7, "training.warm_start": False})
    return story


@pytest.mark.slow
def test_the_first_table_has_about_half_of_the_annotations(story):
    assert 0.4 < story.early / story.all < 0.6
    assert story.first.pushed is not None
    assert story.first.evaluation["baseline"] is None


@pytest.mark.slow
def test_the_larger_table_begins_with_the_served_weights_and_new_annotators_with_the_common_ones(story):
    before, after = (
        json.loads((each.model_run / "model.names.json").read_text())["annotators"]
        for each in (story.first, story.grown)
    )
    new = {*after} - {*before}
    assert {*map(str, story.late)} <= new
    log = story.grown.log.read_text()
    assert f"the weights are those of {story.first.model_run}; {len(new)} annotators are new" in log
    assert story.grown.loss[0] < story.first.loss[0]
    assert story.grown.cached == ()


@pytest.mark.slow
def test_both_models_are_compared_on_the_same_tasks_of_the_larger_table(story):
    evaluation = story.grown.evaluation
    candidate, baseline = evaluation["candidate"], evaluation["baseline"]
    assert baseline["model"] == str(story.first.pushed)
    assert candidate["tasks"] == baseline["tasks"] > story.first.evaluation["candidate"]["tasks"]
    assert evaluation["truth"] == ("gold" if story.gold else "aggregated")
    assert evaluation["compared_by"] == ("labels" if story.gold else "annotations")
    if not story.gold:
        assert candidate["annotations"] == baseline["annotations"] > 400
        assert "Held out:    log-likelihood -" in story.grown.summary
        assert "against the served model" in story.grown.summary


@pytest.mark.slow
def test_a_model_that_knows_less_than_the_served_one_is_refused_with_the_number(story):
    assert story.worse.pushed is None
    assert "Trainer" not in story.worse.cached
    assert story.worse.cached == tuple(name for name in story.worse.seconds)[:6]
    what = "accuracy" if story.gold else "log-likelihood of held-out annotations"
    served = story.grown if story.grown.pushed else story.first
    assert story.worse.reason.startswith(f"its {what} ")
    assert f"of version {served.pushed.name}" in story.worse.reason
