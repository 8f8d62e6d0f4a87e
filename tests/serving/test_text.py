"""A tagger that is asked with plain text, over REST and gRPC."""

import numpy as np
import pytest

pytest.importorskip("tensorflow_text")

import keras
import tensorflow as tf

from crowdzoo.export.saved_model import export_model
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.networks.sequence_tagger import SequenceTagger
from crowdzoo.networks.token_encoder import TokenEncoder
from crowdzoo.serving import Limits
from crowdzoo.serving.loaded_model import LoadedModel
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.signature import _lengths
from crowdzoo.training.crowd_model import CrowdModel

# Such a model takes long to export; export/test_export_text.py asks the same graph, and test_columns.py sends strings
pytestmark = pytest.mark.slow
CLASSES = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
TEXTS = ["Anna Bell lives in São Paulo.", "", "👩\u200d👧 Zoe\u0308 met Anna in May", "x"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    encoder = TokenEncoder(["anna", "in", ".", "paulo"])
    keras.utils.set_random_seed(0)
    base = SequenceTagger(num_classes=len(CLASSES), embedding=4, filters=4, units=3, **encoder.sizes)
    model = CrowdModel(base, CrowdsourcedLayer(2, kind="sequence"))
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.get_weights()])
    path = tmp_path_factory.mktemp("ner")
    export_model(
        model, path / "1", classes=CLASSES, annotators=["ann", "chloé"], encoder=encoder, name="ner",
        warmup_instances=TEXTS[:2],
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def loaded(folder):
    """The model as a server loads it."""
    return LoadedModel(folder / "1", 1)


# === Memory ===


@pytest.mark.parametrize("name", ["serving_default", "spans", "annotators"])
def test_a_batch_of_much_memory_is_cut_by_length_and_answered_the_same(loaded, monkeypatch, name):
    words = ["Anna", "lives", "in", "São", "Paulo", ".", "漢字"]
    lengths = [1, 30, 2, 1, 40, 3, 0, 25, 1]
    texts = np.array([" ".join((words * 9)[:n]).encode() for n in lengths], dtype=object)
    inputs = {"instances": texts}
    if name == "annotators":
        inputs["annotator"] = np.array([b"ann", "chloé".encode()] * 4 + [b"ann"], dtype=object)
    signature = loaded.signature(name)
    whole = signature(inputs)
    calls = []
    run = type(signature)._run

    def counted(self, part):
        calls.append(len(part["instances"]))
        return run(self, part)

    monkeypatch.setattr(type(signature), "_run", counted)
    cut = signature(inputs, Limits(cells=160))
    assert sum(calls) == len(texts)
    assert 2 <= len(calls) < len(texts)
    assert cut.keys() == whole.keys()
    for key, array in whole.items():
        assert cut[key].shape == array.shape
        if key == "scores":
            np.testing.assert_allclose(cut[key], array, atol=1e-5)
        else:
            np.testing.assert_array_equal(cut[key], array)


def test_an_answer_that_pads_many_short_texts_to_one_long_is_refused(loaded):
    """Otherwise 2,000 texts and one of 20,000 words would be 240 million values."""
    texts = np.array([b"a"] * 2000 + [b"a " * 20_000], dtype=object)
    with pytest.raises(RequestError, match=r"each row is as long as the longest, has [0-9,]{11} values") as caught:
        loaded.signature("")({"instances": texts})
    assert caught.value.http_status == 413
    assert len(loaded.signature("")({"instances": texts[:2000]})["lengths"]) == 2000


def test_a_text_that_takes_too_much_memory_is_refused_by_its_row_before_it_is_read(loaded, monkeypatch):
    monkeypatch.setattr(type(loaded.signature("")), "_run", None)
    texts = np.array([b"a", b"a " * 1_000_000, b"b"], dtype=object)
    with pytest.raises(RequestError, match="row 1: its text has about 2,000,001 words and signs, more"):
        loaded.signature("")({"instances": texts})


def test_a_text_that_is_not_utf_8_keeps_its_row_where_the_batch_is_cut(loaded):
    texts = np.array([b"a " * 400, b"b", b"caf\xe9"], dtype=object)
    with pytest.raises(RequestError, match="instances: not valid UTF-8 in row 2"):
        loaded.signature("")({"instances": texts}, Limits(cells=900))


def test_the_bound_of_tokens_holds_for_any_text():
    texts = ["a.b,c", "...", "", "x", "São Paulo 漢字。漢", "a\u00a0b\u2003c", "a\tb\nc", "👩\u200d👧 a_b", "¡hola!"]
    encoder = TokenEncoder(["a"])
    tokens = encoder.tokenize(tf.constant(texts))[0].row_lengths().numpy()
    bound = _lengths(np.array([text.encode() for text in texts], dtype=object), True)
    assert (tokens <= bound).all()
