"""SequenceTagger: what a sentence's tags may depend on, paths against brute force, and training under crowd layers."""

import functools
import itertools

import keras
import numpy as np
import pytest
from keras import ops
from slow_cases import quick

from crowdzoo.data.annotations import Annotations
from crowdzoo.layers import CrowdsourcedLayer, DeepEM, DoctorNet
from crowdzoo.networks.sequence_tagger import SequenceTagger
from crowdzoo.training.crowd_model import CrowdModel

V, K, S, C = 9, 3, 4, 6
TINY = {"num_words": V, "num_classes": K, "embedding": 5, "filters": 4, "units": 3}
# tags O, B, I: I neither first nor after O
ALLOWED = [[True, True, False], [True, True, True], [True, True, True], [True, True, False]]
KINDS = {
    "plain": {},
    "bidirectional with shapes and characters": {"bidirectional": True, "num_shapes": S, "num_characters": C},
    "with a CRF": {"crf": True, "bidirectional": True, "allowed": ALLOWED},
}
LENGTHS = [4, 1, 0, 3]

each_kind = pytest.mark.parametrize(
    "kind", [pytest.param("plain", marks=pytest.mark.slow), *(kind for kind in KINDS if kind != "plain")]
)


@functools.cache
def tagger(kind):
    """A tagger with random weights, transitions included."""
    keras.utils.set_random_seed(1)
    model = SequenceTagger(**TINY, **KINDS[kind])
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.get_weights()])
    if model.head is not None:  # every token would rather be I, which is forbidden at first and after O
        model.get_layer("logits").bias.assign([0, 0, 3])
    return model


def sentences(kind, seed=0):
    """Sentences of `LENGTHS`, the ids that the kind looks at; padding 0."""
    rng = np.random.default_rng(seed)
    there = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    x = {"words": rng.integers(1, V, there.shape) * there}
    if "num_shapes" in KINDS[kind]:
        x["shapes"] = rng.integers(1, S, there.shape) * there
    if "num_characters" in KINDS[kind]:
        letters = np.arange(5) < rng.integers(1, 6, there.shape)[..., None]  # one to five a token
        x["characters"] = rng.integers(1, C, letters.shape) * letters * there[..., None]
    return {name: ids.astype("int32") for name, ids in x.items()}


def answers(model, x):
    """Probabilities and decoded tags of each sentence without its padding."""
    lengths = (x["words"] != 0).sum(axis=1)
    arrays = [ops.convert_to_numpy(each) for each in (model(x), model.decode(x))]
    return [tuple(array[i, :length] for array in arrays) for i, length in enumerate(lengths)]


@functools.cache
def expected(kind):
    """The answers to `sentences(kind)`, found once."""
    return answers(tagger(kind), sentences(kind))


@each_kind
def test_every_token_has_probabilities_that_sum_to_one(kind):
    found = ops.convert_to_numpy(tagger(kind)(sentences(kind)))
    assert found.shape == (len(LENGTHS), max(LENGTHS), K)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-5)
    assert len({row.tobytes() for row in found[0].round(4)}) == 4  # and tokens differ


@each_kind
def test_neither_padding_nor_the_rest_of_the_batch_changes_a_sentence(kind):
    x, others = sentences(kind), sentences(kind, seed=1)
    # elsewhere in another batch, with three columns of padding more, where other ids than the words' may be anything
    order = [3, 0, 2, 1]
    batch = {name: np.concatenate([ids[[3, 0]], others[name][:1], ids[[1]]]) for name, ids in x.items()}
    batch = {name: np.pad(ids, [(0, 0), (0, 3), *[(0, 0)] * (ids.ndim - 2)]) for name, ids in batch.items()}
    for name in {"shapes", "characters"} & {*batch}:
        batch[name][batch["words"] == 0] = 2
    found = answers(tagger(kind), batch)
    for place, row in enumerate(order):
        if row != 2:
            probabilities, tags = expected(kind)[row]
            np.testing.assert_allclose(found[place][0], probabilities, rtol=1e-4, atol=1e-6)
            np.testing.assert_array_equal(found[place][1], tags)


def test_decoding_with_a_crf_is_the_best_of_all_paths():
    model, x = tagger("with a CRF"), sentences("with a CRF")
    scores = ops.convert_to_numpy(keras.Model(model.inputs, model.get_layer("logits").output)([x["words"]]))
    transitions = ops.convert_to_numpy(model.head.transitions)
    for i, (_, tags) in enumerate(expected("with a CRF")):
        weights = {}
        for path in itertools.product(range(K), repeat=LENGTHS[i]):
            steps = list(itertools.pairwise(path))
            if all(ALLOWED[one][two] for one, two in [(K, tag) for tag in path[:1]] + steps):
                own = sum(float(scores[i, t, tag]) for t, tag in enumerate(path))
                weights[path] = own + sum(float(transitions[step]) for step in steps)
        assert tuple(tags.tolist()) == max(weights, key=weights.get)


def test_the_network_is_the_papers_unless_told_otherwise():
    model = SequenceTagger(num_words=V, num_classes=K, embedding=7)
    # section 5: a convolution of 512 over 5 words, a GRU of 50 (whose two biases Keras keeps apart), a softmax
    shapes = [(V, 7), (5, 7, 512), (512,), (512, 150), (50, 150), (2, 150), (50, K), (K,)]
    assert [tuple(weight.shape) for weight in model.get_weights()] == shapes
    assert model.get_layer("dropout").rate == 0.5


def test_given_word_vectors_are_used_and_rows_of_nan_stay():
    model = SequenceTagger(**TINY)
    before = ops.convert_to_numpy(model.get_layer("embedding").embeddings)
    vectors = np.random.default_rng(0).normal(size=(V, 5))
    vectors[[1, 4]] = np.nan
    model.set_word_vectors(vectors)
    found = ops.convert_to_numpy(model.get_layer("embedding").embeddings)
    rows = [0, 2, 3, 5, 6, 7, 8]
    np.testing.assert_allclose(found[rows], vectors[rows], rtol=1e-6)
    np.testing.assert_array_equal(found[[1, 4]], before[[1, 4]])
    weights = len(model.trainable_variables)
    model.set_word_vectors(vectors, trainable=False)
    assert len(model.trainable_variables) == weights - 1
    model.set_word_vectors(vectors)
    assert len(model.trainable_variables) == weights
    with pytest.raises(ValueError, match=r"must have shape \[9, 5\], got \[9, 4\]"):
        model.set_word_vectors(vectors[:, :4])


# === Under a crowd layer ===

N, T, R = 12, 6, 4


def a_crowd():
    """Words that tell their tags, and annotators who err in one token of four; two of four know each sentence."""
    rng = np.random.default_rng(0)
    words = rng.integers(2, V, (N, T))
    words[np.arange(T) >= rng.integers(2, T + 1, N)[:, None]] = 0
    dense = np.full((N, T, R), -1)
    for i in range(N):
        for r in rng.permutation(R)[:2]:
            said = np.where(rng.random(T) < 0.25, rng.integers(K, size=T), words[i] % K)
            dense[i, :, r] = np.where(words[i] > 0, said, -1)
    return {"words": words.astype("int32")}, Annotations.from_dense(dense, kind="sequence", classes=["O", "B-X", "I-X"])


CROWDS = {
    "CrowdsourcedLayer": ({}, lambda: CrowdsourcedLayer(R, kind="sequence", majority_epochs=1)),
    "DeepEM": ({"crf": True}, lambda: DeepEM(R, kind="sequence")),
    "DoctorNet": ({"num_classes": None}, lambda: DoctorNet(R, K, weighted=True, kind="sequence")),
}


@pytest.mark.parametrize("layer", quick("CrowdsourcedLayer", slow=["DeepEM", "DoctorNet"]))
@pytest.mark.usefixtures("eager")
def test_it_learns_from_a_crowd_and_is_saved_with_its_layer(layer, tmp_path):
    arguments, crowd = CROWDS[layer]
    x, annotations = a_crowd()
    keras.utils.set_random_seed(0)
    model = CrowdModel(SequenceTagger(**{**TINY, **arguments}), crowd())
    model.compile(keras.optimizers.Adam(0.01))
    before = [np.array(weight) for weight in model.base.get_weights()]
    history = model.fit(x, annotations, epochs=1, batch_size=N, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    for one, other in zip(before, model.base.get_weights(), strict=True):
        assert np.isfinite(other).all()
        assert (one != other).any()  # the gradient reaches every weight of the base
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded.base) is SequenceTagger
    assert loaded.base.get_config() == model.base.get_config()
    estimate = ops.convert_to_numpy(model(x))
    assert estimate.shape == (N, T, K)
    np.testing.assert_allclose(estimate.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(loaded(x)), estimate, rtol=1e-5, atol=1e-7)
