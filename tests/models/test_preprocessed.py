"""A base with its preprocessor: raw strings and images at the door, in the file and in the served model."""

import re
import warnings
from pathlib import Path

import keras
import numpy as np
import pytest

import crowdzoo
from crowdzoo import Annotations, CrowdModel
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import Preprocessed

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="strings need TensorFlow")
TEXTS = np.array(["good film", "bad film", "good", "bad", "a good film", "a bad one"], object)
ANNOTATIONS = Annotations.from_arrays([0, 1, 2, 3, 4, 5, 0], [*"xyxyxyy"], [1, 0, 1, 0, 1, 0, 1])
PAGE = Path(__file__).parents[2] / "docs" / "texts.md"


def own_base() -> Preprocessed:
    words = keras.layers.TextVectorization(vocabulary=["good", "bad", "film"], output_sequence_length=3)
    base = keras.Sequential([
        keras.Input((3,), dtype="int32"), keras.layers.Embedding(5, 4, name="words"),
        keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(2, activation="softmax"),
    ])  # fmt: skip
    return Preprocessed(base, words)


def same_in_file_and_served(model: CrowdModel, x: np.ndarray, folder: Path) -> None:
    """Whether the saved model and the served one answer raw instances as the model does."""
    folder.mkdir(exist_ok=True)
    import tensorflow as tf

    answers = model.predict(x, verbose=0)
    model.save(folder / "model.keras")
    np.testing.assert_allclose(
        crowdzoo.load_model(folder / "model.keras").predict(x, verbose=0), answers, rtol=1e-5, atol=1e-6
    )
    model.export(folder / "served", classes=["no", "yes"], annotators=["x", "y"])
    served = tf.saved_model.load(str(folder / "served")).signatures["serving_default"](instances=tf.constant(x))
    np.testing.assert_allclose(served["probabilities"], answers, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_raw_strings_are_learned_from_saved_and_served(tmp_path):
    model = CrowdModel(own_base(), CrowdsourcedLayer(2))
    model.base.base.get_layer("words").trainable = False
    before = model.base.base.get_layer("words").get_weights()[0]
    model.fit(TEXTS, ANNOTATIONS, epochs=2, verbose=0)
    np.testing.assert_array_equal(model.base.base.get_layer("words").get_weights()[0], before)
    np.testing.assert_array_equal(model.predict(TEXTS[:, None], verbose=0), model.predict(TEXTS, verbose=0))
    same_in_file_and_served(model, TEXTS, tmp_path)


def test_a_base_without_a_preprocessor_is_refused():
    with pytest.raises(ConfigError, match=r"Sequential has no preprocessor. Give one: Preprocessed\(base, preproc"):
        Preprocessed(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]))


def test_raw_strings_for_a_base_that_has_one_say_how(tmp_path):
    whole = own_base()
    whole.base.preprocessor = whole.preprocessor
    with pytest.raises(DataError, match=r"need crowdzoo.models.Preprocessed\(base\) as base"):
        CrowdModel(whole.base, CrowdsourcedLayer(2)).fit(TEXTS, ANNOTATIONS, verbose=0)
    CrowdModel(Preprocessed(whole.base), CrowdsourcedLayer(2)).fit(TEXTS, ANNOTATIONS, verbose=0)


BASE = """
from test_preprocessed import own_base

def build(context):
    return own_base()
"""


@pytest.mark.slow
def test_the_command_line_takes_one_as_a_base_of_texts(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    (tmp_path / "base.py").write_text(BASE)
    rows = "".join(f"{task},{text}\n" for task, text in enumerate(TEXTS))
    (tmp_path / "texts.csv").write_text("task,text\n" + rows)
    ANNOTATIONS.to_parquet(tmp_path / "answers.parquet")
    answers, texts, file, base = (
        str(tmp_path / name) for name in ("answers.parquet", "texts.csv", "model.keras", "base.py:build")
    )
    assert main(["train", answers, texts, "--out", file, "--base", base, "--epochs", "1"]) == 0
    assert main(["export", file, str(tmp_path / "served")]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "served"), texts]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(TEXTS)


@pytest.mark.slow
def test_the_code_of_the_page_runs_on_a_small_random_backbone(tmp_path, here):
    pytest.importorskip("keras_hub")
    names: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
            exec(compile(block, str(PAGE), "exec"), names)
        same_in_file_and_served(names["model"], names["texts"], tmp_path / "again")
