"""Texts with classes: from two files to a served model that takes strings."""

import csv
import json

import numpy as np
import pytest

from crowdzoo.export.predict import load_and_predict
from crowdzoo.pipelines.config import load_config
from crowdzoo.pipelines.local import run

KINDS = ("bad", "good")
WORDS = (("awful", "dull", "poor"), ("fine", "great", "lovely"))


@pytest.fixture
def inputs(tmp_path):
    """Texts of two classes, and four annotators who are right four times out of five."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 60)
    texts = [" ".join(["A", *rng.choice(WORDS[code], 3), "film, ñ!"]) for code in gold]
    with open(tmp_path / "answers.csv", "w", newline="") as file:
        said = [(task, code, gold[task] ^ (rng.random() < 0.2)) for task in range(60) for code in range(4)]
        rows = [(f"t{task}", f"a{code}", KINDS[label]) for task, code, label in said]
        csv.writer(file).writerows([("task", "annotator", "label"), *rows])
    with open(tmp_path / "texts.csv", "w", newline="", encoding="utf-8") as file:
        sides = ["eval" if task % 4 == 3 else "train" for task in range(60)]
        rows = [(f"t{task}", texts[task], KINDS[gold[task]], sides[task]) for task in range(60)]
        csv.writer(file).writerows([("task", "text", "gold", "split"), *rows])
    (tmp_path / "texts.yaml").write_text(
        "name: texts\ndata: {annotations: answers.csv, instances: texts.csv}\n"
        "model: {form: bag-of-words, hidden: [8], dropout: 0.0}\n"
        "method: {name: crowdsourced-layer}\ntraining: {epochs: 30, batch_size: 16, learning_rate: 0.05}\n"
        f"evaluation: {{minimum_accuracy: 0.5}}\noutput: {{root: {tmp_path / 'out'}}}\n"
    )
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("method", ["crowdsourced-layer", "aggregated"])
def test_a_run_ends_in_a_served_classifier_that_takes_strings(inputs, method):
    result = run(load_config(inputs / "texts.yaml", {"method.name": method}), quiet=True)
    assert result.anomalies == ()
    with open(inputs / "texts.csv", encoding="utf-8") as file:
        held = [row for row in csv.DictReader(file) if row["split"] == "eval"]
    found = load_and_predict(result.pushed, [row["text"] for row in held])["class"]
    accuracy = np.mean(found == [row["gold"] for row in held])
    assert accuracy > 0.9
    candidate = result.evaluation["candidate"]
    assert (candidate["tasks"], result.blessed) == (15, True)
    assert candidate["accuracy"] == pytest.approx(accuracy)
    card = json.loads((result.pushed / "assets.extra" / "model_card.json").read_text())
    assert card["signatures"]["serving_default"]["inputs"] == {"instances": {"dtype": "string", "shape": [None]}}
    assert card["model"]["base"] == "text-classifier"
