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
from crowdzoo.layers import CrowdsourcedLayer, DeepEM
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
    with pytest.raises(ConfigError, match=r"Sequential has no .* Preprocessed\(base, preproc"):
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


# === Taggers ===

SENTENCES = [["Ann", "met", "Bo", "."], ["Bo", "left"], ["Ann", "."], ["he", "met", "Ann", ",", "Bo", "and", "Cy"]]
STRINGS = np.array([" ".join(tokens) for tokens in SENTENCES])
TAGS = np.full((4, 7, 2), -1)
for number, tokens in enumerate(SENTENCES):
    for annotator in range(2) if number != 1 else [0]:
        TAGS[number, : len(tokens), annotator] = [token[0].isupper() for token in tokens]
TAGGED = Annotations.from_dense(TAGS, kind="sequence", tasks=["d", "a", "c", "b"], classes=["O", "PER"])


def words(**arguments) -> keras.layers.TextVectorization:
    layer = keras.layers.TextVectorization(**{"standardize": None, **arguments})
    layer.adapt(STRINGS)
    return layer


def tagger(length=None) -> keras.Model:
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Embedding(20, 4), keras.layers.Conv1D(4, 3, padding="same")]
    return keras.Sequential([keras.Input((length,), dtype="int32"), *layers, keras.layers.Dense(2, "softmax")])


def fitted_tagger(base, x, y, layer=CrowdsourcedLayer, **arguments):
    model = CrowdModel(base, layer(2, kind="sequence"))
    model.compile(keras.optimizers.SGD(0.5), metrics=["accuracy"])
    history = model.fit(x, y, batch_size=2, epochs=2, verbose=0, **arguments).history
    return model, history


@pytest.mark.parametrize("layer", [CrowdsourcedLayer, pytest.param(DeepEM, marks=pytest.mark.slow)])
def test_a_tagger_on_raw_strings_learns_as_from_word_ids(layer):
    ids = np.asarray(words()(STRINGS))
    raw, history = fitted_tagger(Preprocessed(tagger(), words()), STRINGS, TAGGED, layer, tasks=TAGGED.tasks)
    plain, expected = fitted_tagger(tagger(), ids, TAGGED, layer, tasks=TAGGED.tasks)
    assert history["loss"] == pytest.approx(expected["loss"])
    for weight, wanted in zip(raw.base.get_weights(), plain.base.get_weights(), strict=True):
        np.testing.assert_allclose(weight, wanted, atol=1e-6)
    # sentences of other lengths in each batch
    np.testing.assert_allclose(raw.predict(STRINGS, batch_size=1, verbose=0), plain.predict(ids, verbose=0), atol=1e-6)
    np.testing.assert_allclose(
        raw.posteriors(STRINGS, TAGGED, tasks=TAGGED.tasks),
        plain.posteriors(ids, TAGGED, tasks=TAGGED.tasks),
        atol=1e-6,
    )
    gold = TAGS[:3, :4, 0]  # of the shorter ones, and the validation has a longer one
    for y in (gold, TAGS[:3, :4]):
        found = raw.evaluate(STRINGS[:3], y, batch_size=2, verbose=0)
        assert found == pytest.approx(plain.evaluate(ids[:3, :4], y, batch_size=2, verbose=0), rel=1e-5)
    held = fitted_tagger(
        Preprocessed(tagger(), words()), STRINGS[:3], TAGS[:3], validation_data=(STRINGS, TAGS[..., 0])
    )
    assert np.isfinite(held[1]["val_loss"]).all()


@pytest.mark.parametrize(
    ("arguments", "task", "number", "made"),
    [
        ({"standardize": "lower_and_strip_punctuation"}, "d", 4, 3),
        ({"output_sequence_length": 3}, "d", 4, 3),
        ({"split": "character"}, "d", 4, 12),
    ],
)
def test_other_tokens_than_those_of_the_annotators_are_refused(arguments, task, number, made):
    base = Preprocessed(tagger(arguments.get("output_sequence_length")), words(**arguments))
    message = rf"task {task} has {number} labelled tokens, and the preprocessor makes {made} .*standardize=None"
    with pytest.raises(DataError, match=message):
        fitted_tagger(base, STRINGS, TAGGED, tasks=TAGGED.tasks)


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["whitespace", "scripts"])
def test_a_tagger_on_raw_strings_is_exported_with_an_encoder_that_cuts(tmp_path, tokenizer):
    import tensorflow as tf

    model, _ = fitted_tagger(Preprocessed(tagger(), words()), STRINGS, TAGGED, tasks=TAGGED.tasks)
    names = {"classes": ["O", "B-PER"], "annotators": ["a", "b"]}
    with pytest.raises(ConfigError) as advice:
        model.export(tmp_path / "none", **names)
    encoder = eval(re.search(r"encoder=(crowdzoo\S+ tokenizer='\w+'\))", str(advice.value))[1], {"crowdzoo": crowdzoo})
    encoder.tokenizer = tokenizer
    model.export(tmp_path / "served", **names, encoder=encoder)
    serve = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    served = serve(instances=tf.constant([*STRINGS, ""]))
    expected = model.predict(STRINGS, verbose=0)
    for number, tokens in enumerate(SENTENCES):
        n = len(tokens)
        assert [*served["tokens"].numpy()[number, :n].astype(str)] == tokens
        np.testing.assert_allclose(served["scores"][number, :n], expected[number, :n].max(axis=-1), atol=1e-6)
    assert [*served["lengths"].numpy()] == [*map(len, SENTENCES), 0]
    assert [*serve(instances=tf.constant([""]))["lengths"].numpy()] == [0]


def test_a_tagger_with_its_words_inside_is_told_to_take_them_out():
    inside = keras.Sequential([keras.Input((), dtype="string"), words(), *tagger().layers])
    with pytest.raises(DataError, match=r"0 tokens.*Preprocessed\(tagger, preprocessor\)"):
        fitted_tagger(inside, STRINGS, TAGGED, tasks=TAGGED.tasks)


@pytest.mark.slow
def test_a_tagger_learns_from_the_table_of_a_crowd_and_from_aggregated_tags(tmp_path):
    crowd = crowdzoo.datasets.generated_ner(40)
    strings = np.array([" ".join(tokens) for tokens in crowd.tokens])
    vectorize = keras.layers.TextVectorization(standardize=None)
    vectorize.adapt(strings)
    layers = [keras.layers.Embedding(vectorize.vocabulary_size(), 8), keras.layers.Dense(len(crowd.classes), "softmax")]
    base = Preprocessed(keras.Sequential([keras.Input((None,), dtype="int32"), *layers]), vectorize)
    model = CrowdModel(base, CrowdsourcedLayer(crowd.annotations.num_annotators, kind="sequence"))
    model.compile(keras.optimizers.Adam(0.01))
    losses = model.fit(strings, crowd.annotations, tasks=crowd.annotations.tasks, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    model.save(tmp_path / "model.keras")
    loaded = crowdzoo.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(strings, verbose=0), model.predict(strings, verbose=0), atol=1e-5)
    targets = model.posteriors(strings, crowd.annotations, tasks=crowd.annotations.tasks)
    alone = CrowdModel(base)
    alone.build((None,))  # before it is compiled, for the loss of tags
    assert np.isfinite(alone.fit(strings, targets, verbose=0).history["loss"]).all()
