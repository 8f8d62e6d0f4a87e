"""Whole runs on tagged sentences: from annotators' spans to a served model that answers plain text."""

import json
from types import SimpleNamespace

import keras
import pytest

from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.export.predict import load_and_predict
from crowdzoo.networks.token_encoder import TokenEncoder
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.pipelines.local import run
from crowdzoo.pipelines.pipeline import create_pipeline
from crowdzoo.sequences import span_scores, split_tokens, write_spans

# one of the runs trains for one epoch
pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.training.faults.NotLearnedWarning")

CONFIG = """\
name: tiny-ner
kind: sequence
data: {annotations: spans.jsonl, eval_fraction: 0.3}
aggregation: {method: bsc-seq, tol: 0.01}
model: {embedding: 16, filters: 16, units: 8, dropout: 0}
method: {name: crowdsourced-layer, majority_epochs: 6}
training: {epochs: 4, batch_size: 8, learning_rate: 0.03}
evaluation: {minimum_f1: 0.05}
output: {root: out}
"""
TEXTS = ["Dear Anna Bell, the dinner is on 3 May in São Paulo.", "", "Nobody came."]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with spans.jsonl and tiny.yaml."""
    folder = tmp_path_factory.mktemp("ner")
    write_spans(generated_ner(num_sentences=130, num_annotators=6), folder / "spans.jsonl")
    (folder / "tiny.yaml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def story(data):
    """A first run, and what runs another in the same folder."""

    def go(**overrides):
        return run(load_config(data / "tiny.yaml", overrides), quiet=True)

    return SimpleNamespace(data=data, go=go, first=go())


@pytest.mark.slow
def test_the_evaluation_is_what_the_pushed_model_scores_on_the_eval_split(story):
    # the same sentences, found by their hash, asked and counted here
    from crowdzoo.kinds.sentences.records import read_crowd_sequences
    from crowdzoo.records.example_files import split_by_hash

    settings = json.loads(
        create_pipeline(load_config(story.data / "tiny.yaml")).components[0].exec_properties["settings"]
    )
    sequences = read_crowd_sequences(settings)
    evaluation = sequences.select(split_by_hash(sequences.texts, 0.3) == "eval")
    answers = load_and_predict(story.first.pushed, evaluation.texts)
    said = [row[:length].tolist() for row, length in zip(answers["tags"], answers["lengths"], strict=True)]
    scores = span_scores(evaluation.gold_tags(), said)
    candidate = story.first.evaluation["candidate"]
    assert candidate["tasks"] == len(evaluation)
    assert candidate["f1"] == pytest.approx(scores.f1)
    assert candidate["token_accuracy"] == pytest.approx(scores.token_accuracy)


@pytest.mark.slow
def test_what_training_keeps_says_what_the_served_model_says(story):
    encoder = TokenEncoder(**json.loads((story.first.model_run / "encoder.json").read_text(encoding="utf-8")))
    model = keras.saving.load_model(story.first.model_run / "model.keras")
    text = TEXTS[0]
    (tags,) = model.base.tag(encoder([split_tokens(text)[0]]))
    card = json.loads((story.first.pushed / "assets.extra" / "model_card.json").read_text())
    answers = load_and_predict(story.first.pushed, [text])
    assert [card["classes"][code] for code in tags] == answers["tags"][0].tolist()
    assert len(json.loads((story.first.model_run / "history.json").read_text())["loss"]) == 4
