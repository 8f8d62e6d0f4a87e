"""Exported taggers: from raw text to tags and spans in TensorFlow alone."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from saved_models import keras, tf

pytest.importorskip("tensorflow_text")

from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.errors import ConfigError
from crowdzoo.export.predict import load_and_predict
from crowdzoo.export.saved_model import export_model
from crowdzoo.files.served_model import load_saved_model
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.networks.sequence_tagger import SequenceTagger
from crowdzoo.networks.token_encoder import TokenEncoder
from crowdzoo.sequences import allowed_tags, spans_of, split_tokens
from crowdzoo.training.crowd_model import CrowdModel

CORPUS = generated_ner(60, 3, redundancy=1, seed=1)
ENCODER = TokenEncoder.fit(CORPUS.tokens, characters=True)
ANNOTATORS = ["ann", "bob", "chloé"]
CLASSES = {"BIO": CORPUS.classes, "IOBES": allowed_tags(["LOC", "PER"], "IOBES")}
STRANGE = [
    "",
    "Anna Bell lives in Lisbon.",
    " \t\u00a0",
    "👩\u200d👩\u200d👧 met Zoe\u0308 — in São Paulo… \ufeff中文，日本!",
    "a\x00b \x00c",
    "x",
]


def tagger(scheme):
    """A tagger with random weights, so that neighbouring tokens have all kinds of tags."""
    keras.utils.set_random_seed(0)
    sizes = {"embedding": 6, "filters": 6, "units": 5, **ENCODER.sizes}
    base = SequenceTagger(num_classes=len(CLASSES[scheme]), crf=scheme == "IOBES", **sizes)
    model = CrowdModel(base, CrowdsourcedLayer(len(ANNOTATORS), kind="sequence") if scheme == "BIO" else None)
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.get_weights()])
    return model


def exported_tagger(scheme, path):
    model = tagger(scheme)
    export_model(
        model, path / "1", classes=CLASSES[scheme], annotators=ANNOTATORS, encoder=ENCODER, name="ner",
        warmup_instances=list(CORPUS.texts[:3]),
    )  # fmt: skip
    loaded = load_saved_model(path / "1")
    return SimpleNamespace(
        model=model, path=path / "1", classes=CLASSES[scheme], scheme=scheme, loaded=loaded,
        signatures=loaded.signatures,
    )  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return exported_tagger("BIO", tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def crf(tmp_path_factory):
    return exported_tagger("IOBES", tmp_path_factory.mktemp("crf"))


@pytest.fixture(params=["plain", pytest.param("crf", marks=pytest.mark.slow)])
def served(request):
    return request.getfixturevalue(request.param)


def ask(served, texts, signature="serving_default", **more):
    instances = tf.constant([text if isinstance(text, bytes) else text.encode() for text in texts], tf.string)
    return {name: value.numpy() for name, value in served.signatures[signature](instances=instances, **more).items()}


def rows(outputs):
    """The outputs of each text without their padding, strings as `str`; and that padding is "" and 0."""
    found = []
    for i, length in enumerate(outputs["lengths"]):
        row = {}
        for name, array in outputs.items():
            if name != "lengths":
                assert not any(array[i, length:].tolist()), name
                row[name] = [cell.decode() if isinstance(cell, bytes) else cell for cell in array[i, :length].tolist()]
        found.append(row)
    return found


def test_tags_are_the_models_own(served):
    texts = [*CORPUS.texts[:40], *STRANGE]
    tokens = [split_tokens(text)[0] for text in texts]
    outputs = ask(served, texts)
    assert outputs["lengths"].tolist() == [len(each) for each in tokens]
    assert outputs["tokens"].shape[1] == max(map(len, tokens))
    x = ENCODER(tokens)
    probabilities = served.model.predict(x, verbose=0)
    np.testing.assert_allclose(served.loaded.serve(tf.constant(texts)), probabilities, atol=1e-5)
    assert served.loaded.serve(tf.constant([], tf.string)).shape[::2] == (0, len(served.classes))
    for i, (row, codes) in enumerate(zip(rows(outputs), served.model.base.tag(x), strict=True)):
        assert row["tokens"] == tokens[i]
        assert row["tags"] == [served.classes[code] for code in codes]
        np.testing.assert_allclose(row["scores"], probabilities[i][np.arange(len(codes)), codes], atol=1e-5)
        text = texts[i].encode()
        assert [text[start:end].decode() for start, end in zip(row["starts"], row["ends"], strict=True)] == tokens[i]
    types = {"tokens": object, "tags": object, "scores": np.float32, "starts": np.int64, "ends": np.int64}
    assert {name: array.dtype for name, array in outputs.items()} == {**types, "lengths": np.int64}


def test_spans_are_those_that_the_tags_mean(served):
    texts = [*CORPUS.texts[:40], *STRANGE]
    lengths = []
    found = rows(ask(served, texts, "spans"))
    for text, row, tagged in zip(texts, found, rows(ask(served, texts)), strict=True):
        spans = spans_of(tagged["tags"], served.scheme)
        assert row["types"] == [span.type for span in spans]
        assert row["starts"] == [tagged["starts"][span.start] for span in spans]
        assert row["ends"] == [tagged["ends"][span.end - 1] for span in spans]
        places = zip(row["starts"], row["ends"], strict=True)
        assert row["texts"] == [text.encode()[start:end].decode() for start, end in places]
        expected = [np.mean(tagged["scores"][span.start : span.end]) for span in spans]
        np.testing.assert_allclose(row["scores"], expected, atol=1e-5)
        lengths += [span.end - span.start for span in spans]
    assert {1, 2} <= {*lengths}  # long ones, and neighbours that are not one


def test_annotators_answer_with_the_tags_that_they_would_give(plain):
    texts, names = [*CORPUS.texts[:3], "Anna"], ["chloé", "ann", "ann", "bob"]
    outputs = rows(ask(plain, texts, "annotators", annotator=tf.constant(names)))
    truth = plain.model.predict(ENCODER([split_tokens(text)[0] for text in texts]), verbose=0).astype("float64")
    kernel = plain.model.crowd.get_weights()[0]
    for i, row in enumerate(outputs):
        logits = truth[i, : len(row["tags"])] @ kernel[ANNOTATORS.index(names[i])]
        assert row["tags"] == [plain.classes[code] for code in logits.argmax(axis=-1)]
        said = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(row["scores"], said.max(axis=-1), atol=1e-5)
        assert row["tokens"] == split_tokens(texts[i])[0]


@pytest.mark.parametrize(
    ("names", "message"),
    [(["ann", "zoe"], r"not among the 3 annotators.*zoe"), (["ann"], "as many names as instances")],
)
def test_annotators_that_do_not_fit_are_an_error(plain, names, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        ask(plain, ["a", "b"], "annotators", annotator=tf.constant(names))


@pytest.mark.parametrize("signature", ["serving_default", "spans"])
def test_a_text_that_is_not_utf_8_is_an_error_that_names_its_row(plain, signature):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"instances: not valid UTF-8 in row\W+1\b"):
        ask(plain, ["fine", b"\xff\xfe", "fine"], signature)


def test_load_and_predict_splits_batches_and_pads_to_the_longest_of_all(plain):
    texts = [*CORPUS.texts[:7], ""]
    for signature, names in (("serving_default", {"tokens", "tags"}), ("spans", {"types", "texts"})):
        split = load_and_predict(plain.path, texts, batch_size=3, signature=signature)
        whole = ask(plain, texts, signature)
        assert {name for name, array in split.items() if array.dtype.kind == "U"} == names
        for name, array in split.items():
            expected = [cell.decode() for cell in whole[name].flat] if name in names else whole[name].ravel()
            assert array.shape == whole[name].shape
            if name == "scores":
                np.testing.assert_allclose(array.ravel(), expected, atol=2e-5)
            else:
                assert array.ravel().tolist() == list(expected)


@pytest.mark.filterwarnings("ignore:The structure of")
@pytest.mark.parametrize("shapes", [False, True])
def test_a_tagger_without_its_encoder_is_refused_with_the_way_out(tmp_path, shapes):
    model = CrowdModel(SequenceTagger(3, 2, embedding=2, filters=2, units=2, num_shapes=3 if shapes else 0))
    with pytest.raises(ConfigError, match=r"give its encoder|encoder=TokenEncoder"):
        export_model(model, tmp_path / "1", classes=["O", "B-X"])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ["O", "B-X"]}, "2 classes are named, the model has 9 outputs"),
        pytest.param({"classes": None}, "no classes are named, the model has 9 outputs", marks=pytest.mark.slow),
        ({"annotators": None}, r"the annotators have no names: give annotators=\[...\]"),
        ({"warmup_instances": [1, 2]}, "warmup_instances must be texts, because the model reads texts"),
        ({"warmup_instances": []}, r"warmup_instances has shape \[0\], the base takes \[None\]"),
        ({"annotators": ["ann"]}, "1 annotators are named, the crowd layer has 3"),
    ],
)
def test_what_does_not_fit_a_tagger_is_said_and_leaves_nothing(plain, tmp_path, changes, message):
    arguments = {"classes": plain.classes, "annotators": ANNOTATORS, "encoder": ENCODER, **changes}
    with pytest.raises(ConfigError, match=message):
        export_model(plain.model, tmp_path / "1", **arguments)
    assert os.listdir(tmp_path) == []
