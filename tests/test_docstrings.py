"""The examples in docstrings run."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import keras
import numpy as np
import pytest
from drawn_crowds import simulate_annotations

import crowdzoo
from crowdzoo import layers, models, plugins
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.tables import Annotations

ROOT = Path(__file__).resolve().parents[1]
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "crowdzoo").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


class Shown(doctest.OutputChecker):
    """What is printed is compared where the example shows it."""

    def check_output(self, want, got, optionflags):
        return not want or super().check_output(want, got, optionflags)


def names_of(module):
    """What an example takes as given."""
    truth = np.arange(40) % 4
    annotations = simulate_annotations(
        truth, np.stack([np.full((4, 4), 0.1) + 0.6 * np.eye(4)] * 5), redundancy=3, seed=0
    )
    sequences = generated_ner(num_sentences=12, num_annotators=4)
    encoder = models.TokenEncoder.fit(sequences.tokens)
    given = {name: getattr(place, name) for place in (layers, models) for name in place.__all__}
    preferences = Annotations.from_arrays([0, 1, 2], ["a", "b", "a"], ["left"] * 3, right=[1, 2, 3], kind="preference")
    return given | {
        "preferences": preferences,
        "crowdzoo": crowdzoo, "keras": keras, "sequences": sequences, "encoder": encoder, "ids": annotations.tasks,
        "sentences": sequences.tokens, "x": np.random.default_rng(0).normal(size=(40, 20)).astype("float32"),
        "annotations": sequences.annotations if "sequence" in module or "token" in module else annotations,
        "model": models.CrowdModel(models.FeatureClassifier(20, 4), layers.CrowdsourcedLayer(5)),
    }  # fmt: skip


@pytest.mark.parametrize("place", ["aggregation", "layers", "losses", "metrics", "models", "optimizers"])
def test_every_public_class_has_an_example(place):
    module = importlib.import_module(f"crowdzoo.{place}")
    public = {name: getattr(module, name) for name in module.__all__}
    classes = {name: value for name, value in public.items() if inspect.isclass(value) or place == "metrics"}
    assert classes
    assert [name for name, value in classes.items() if ">>> " not in (value.__doc__ or "")] == []


LONG = (
    "crowdzoo.layers.conal",
    "crowdzoo.layers.doctor_net",
    "crowdzoo.networks.reward_model",
    "crowdzoo.networks.sequence_tagger",
    "crowdzoo.training.crowd_model",
    "crowdzoo.training.held_out_annotations",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in WITH_EXAMPLES]
)
def test_the_examples_of_a_module_run(name, monkeypatch):
    monkeypatch.setattr(plugins, "_registered", {})  # what an example registers
    keras.utils.set_random_seed(0)
    runner = doctest.DocTestRunner(Shown(), verbose=False)
    for test in doctest.DocTestFinder().find(importlib.import_module(name), extraglobs=names_of(name)):
        for example in test.examples:
            example.source = re.sub(r"epochs=\d+", "epochs=2", example.source)
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0
