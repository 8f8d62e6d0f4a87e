"""Models of texts, trained from strings and the labels of annotators."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.metrics import r2_score
from crowdzoo.models import TextSettings, train
from crowdzoo.training.bases import BASES
from crowdzoo.training.bases.base import Sizes

WORDS = ("awful", "dull", "plain", "fine", "great")  # worth 1, 3, 5, 7 and 9 points
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 5, size=(240, 4))
TEXTS = [" ".join(["the", "film", *(WORDS[code] for code in row)]) for row in CODES]
TRUTH = 1 + 2 * CODES.mean(axis=1)
BIAS = np.array([-1.5, 0.0, 1.5])
DENSE = TRUTH[:, None] + BIAS + RNG.normal(size=(240, 3)) * 0.3
DENSE[RNG.random(DENSE.shape) < 0.3] = np.nan
ANNOTATIONS = Annotations.from_dense(DENSE, kind="regression")
QUICK = {
    "kind": "regression", "form": "bag-of-words", "hidden": 16, "dropout": 0.0, "epochs": 25, "batch_size": 40,
    "learning_rate": 0.02,
}  # fmt: skip


@pytest.mark.slow
def test_the_convolutional_form_learns_from_one_number_a_task_and_twice_the_same():
    settings = TextSettings(
        "aggregated", kind="regression", form="convolutional", embedding=8, filters=8, hidden=8, dropout=0.1, epochs=40,
        batch_size=40, learning_rate=0.01,
    )  # fmt: skip
    ratings = np.where(np.arange(240) % 5 == 0, np.nan, TRUTH)
    found = []
    for _ in range(2):
        model, ids = train(settings, TEXTS, ratings=ratings)
        assert model.crowd is None
        found.append(model.predict(ids.to_numpy(TEXTS), verbose=0)[:, 0])
    left_out = np.isnan(ratings)
    assert r2_score(TRUTH[left_out], found[0][left_out]) > 0.8
    np.testing.assert_array_equal(*found)


@pytest.mark.usefixtures("eager")
def test_words_are_those_of_the_settings():
    texts = ["a b c d", "a b c", "a b", "a"] * 3
    settings = TextSettings("aggregated", **{**QUICK, "epochs": 1}, max_words=2, min_texts=1, max_length=3)
    _, ids = train(settings, texts, ratings=np.arange(12.0))
    assert ids.get_config() == {"vocabulary": ["a", "b"], "max_length": 3, "splitting": "scripts"}
    settings = TextSettings("aggregated", **{**QUICK, "epochs": 1}, min_texts=6)
    assert train(settings, texts, ratings=np.arange(12.0))[1].vocabulary == ["a", "b", "c"]


def test_what_does_not_fit_is_said():
    with pytest.raises(DataError, match="needs annotations"):
        train(TextSettings(kind="regression"), TEXTS)
    with pytest.raises(DataError, match=r"needs ratings \[N\]"):
        train(TextSettings("aggregated", kind="regression"), TEXTS, annotations=ANNOTATIONS)
    with pytest.raises(DataError, match="outside the scale"):
        train(TextSettings(kind="regression", high=5), TEXTS, annotations=ANNOTATIONS)
    with pytest.raises(DataError, match="none of the 240 texts has a word"):
        train(TextSettings(kind="regression"), ["..."] * 240, annotations=ANNOTATIONS)
    with pytest.raises(DataError):
        train(TextSettings(kind="regression"), TEXTS[:-1], annotations=ANNOTATIONS)


@pytest.mark.parametrize(
    ("texts", "form", "splitting"),
    [
        (["这部电影很好看", "最高に面白い映画"], None, "characters"),
        (["这部电影很好看", "最高に面白い映画"], "convolutional", "scripts"),
        (["a film that is good", "映画 is a word for film"], None, "scripts"),
        (["a film that is good"], "characters", "characters"),
    ],
)
def test_the_form_follows_from_the_texts_unless_it_is_given(texts, form, splitting):
    settings, base = TextSettings(form=form), BASES["text-classifier"]
    encoder = base.encoder(settings, lambda: [texts])
    assert encoder.splitting == splitting
    model = base.build(settings, Sizes(num_classes=2), encoder)
    assert model.get_config()["form"] == ("convolutional" if form == "convolutional" else "bag-of-words")
