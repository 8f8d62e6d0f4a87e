"""A tagger that is asked with plain text, over REST and gRPC."""

import base64
import json

import httpx
import numpy as np
import pytest

pytest.importorskip("tensorflow_text")

import keras

from crowdzoo.errors import ServingError
from crowdzoo.export import export_model, load_and_predict
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models.crowd_model import CrowdModel
from crowdzoo.models.sequence_tagger import SequenceTagger
from crowdzoo.models.token_encoder import TokenEncoder
from crowdzoo.serving import Client, Server

CLASSES = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
TEXTS = ["Anna Bell lives in São Paulo.", "", "👩\u200d👧 Zoe\u0308 met Anna in May", "x"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    encoder = TokenEncoder(["anna", "in", ".", "paulo"])
    keras.utils.set_random_seed(0)
    base = SequenceTagger(num_classes=len(CLASSES), embedding=4, filters=4, units=3, **encoder.sizes)
    model = CrowdModel(base, CrowdsourcedLayer(2, task="sequence"))
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.get_weights()])
    path = tmp_path_factory.mktemp("ner")
    export_model(
        model, path / "1", classes=CLASSES, annotators=["ann", "chloé"], encoder=encoder, name="ner",
        warmup_instances=TEXTS[:2],
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def expected(folder):
    return {signature: load_and_predict(folder, TEXTS, signature=signature) for signature in SIGNATURES}


@pytest.fixture(scope="module")
def urls(folder):
    with Server(folder, name="ner", rest_port=0, grpc_port=0) as running:
        yield {"rest": f"http://127.0.0.1:{running.rest_port}", "grpc": f"grpc://127.0.0.1:{running.grpc_port}"}


@pytest.fixture(params=["rest", "grpc"])
def client(request, urls):
    with Client(urls[request.param], model="ner") as connected:
        yield connected


SIGNATURES = ("serving_default", "spans")


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("batch_size", [None, 1])
def test_plain_text_gets_its_tags_and_spans_in_one_request_or_in_many(client, expected, signature, batch_size):
    found = client.predict(TEXTS, signature=signature, batch_size=batch_size)
    assert found.keys() == expected[signature].keys()
    for name, array in expected[signature].items():
        assert found[name].dtype.kind == array.dtype.kind
        assert found[name].shape == array.shape
        if name == "scores":
            np.testing.assert_allclose(found[name], array, atol=1e-5)
        else:
            np.testing.assert_array_equal(found[name], array)
    assert found["lengths"][1] == 0
    assert found["lengths"].max() > 1


def test_tokens_come_back_as_text_with_their_places(client):
    found = client.predict(TEXTS[2:3])
    assert found["tokens"].tolist() == [["👩\u200d👧", "Zoe\u0308", "met", "Anna", "in", "May"]]
    text = TEXTS[2].encode()
    places = zip(found["starts"][0], found["ends"][0], strict=True)
    assert [text[start:end].decode() for start, end in places] == found["tokens"][0].tolist()


def test_an_annotator_is_asked_by_name(client, expected):
    found = client.predict(TEXTS, signature="annotators", annotator="chloé", batch_size=3)
    np.testing.assert_array_equal(found["tokens"], expected["serving_default"]["tokens"])
    assert {*found["tags"][0, : found["lengths"][0]]} <= {*CLASSES}
    assert (found["tags"] != expected["serving_default"]["tags"]).any()
    with pytest.raises(ServingError, match="not among the 2 annotators of this model: zoe"):
        client.predict(TEXTS, signature="annotators", annotator="zoe")


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_text_that_is_not_utf_8_is_refused_by_its_row(client, signature):
    with pytest.raises(ServingError, match="instances: not valid UTF-8 in row 2"):
        client.predict([b"fine", b"", b"caf\xe9"], signature=signature)
    assert len(client.predict(["fine"], signature=signature)["lengths"]) == 1  # and goes on


def test_rest_takes_text_and_base64_and_refuses_what_is_no_text(urls):
    def ask(*instances):
        content = json.dumps({"instances": instances})
        return httpx.post(f"{urls['rest']}/v1/models/ner:predict", content=content, trust_env=False)

    coded = {"b64": base64.b64encode(TEXTS[0].encode()).decode()}
    (plain,), (decoded,) = ask(TEXTS[0]).json()["predictions"], ask(coded).json()["predictions"]
    assert plain == decoded
    assert plain["tokens"] == ["Anna", "Bell", "lives", "in", "São", "Paulo", "."]
    answer = ask("fine", {"b64": base64.b64encode(b"\xff\xfe").decode()})
    assert answer.status_code == 400
    assert answer.json()["error"] == "instances: not valid UTF-8 in row 1"
    answer = ask(7)
    assert answer.status_code == 400
    assert "input 'instances': 7 at [0] is a number, not a string" in answer.json()["error"]


def test_the_metadata_tell_that_texts_are_taken(client):
    signatures = client.metadata()["signatures"]
    assert {*signatures} == {"serving_default", "spans", "annotators"}
    assert signatures["spans"]["inputs"] == {"instances": {"dtype": "str", "shape": [-1]}}
    assert signatures["spans"]["outputs"]["texts"] == {"dtype": "str", "shape": [-1, -1]}
