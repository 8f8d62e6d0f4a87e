"""Models of masks: trained on what annotators drew, dense or sparse, asked, and the U-Net below."""

import json

import keras
import numpy as np
import pytest
from keras import ops

import crowdzoo
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers import ConfusionMatrices, DeepEM, SpatialConfusions, TraceRegularization
from crowdzoo.models import CrowdModel, MaskData, UNet
from crowdzoo.training.data import answer_shape
from crowdzoo.training.expectation import annotation_columns

N, H, W, K, R = 12, 6, 8, 2, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, H, W, 1)).astype("float32")
GOLD = (X[..., 0] > 0).astype("int8")
# two or three of five annotators drew each image; nobody the last
WHO = np.array([np.isin(np.arange(R), RNG.choice(R, 2 + i % 2, replace=False)) for i in range(N - 1)] + [[False] * R])
FLIPPED = RNG.random((N, H, W, R)) < 0.15
DENSE = np.where(WHO[:, None, None], np.where(FLIPPED, 1 - GOLD[..., None], GOLD[..., None]), -1).astype("int8")
# graphs of so small models cost more than they save
EAGER = {"run_eagerly": True} if keras.backend.backend() == "tensorflow" else {}
LAYERS = {
    "ccem": (ConfusionMatrices, {"kind": "segmentation"}),
    "votes first": (ConfusionMatrices, {"kind": "segmentation", "majority_epochs": 2}),
    "trace": (TraceRegularization, {"kind": "segmentation"}),
    "spatial": (SpatialConfusions, {"strength": 0.01, "filters": [2]}),
    "deep-em": (DeepEM, {"kind": "segmentation"}),
}


def a_base(seed=0):
    """Softmax regression at every pixel, with a hidden layer for features."""
    keras.utils.set_random_seed(seed)
    hidden = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="features")
    return keras.Sequential([keras.Input((H, W, 1)), hidden, keras.layers.Dense(K, activation="softmax")])


def a_model(name="ccem", base=None):
    layer, arguments = LAYERS[name]
    model = CrowdModel(base or a_base(), layer(R, **arguments), features="features" if name == "spatial" else None)
    model.compile(keras.optimizers.Adam(0.05), metrics=["accuracy"], **EAGER)
    return model


def sparse():
    """The masks there are, side by side, and who drew them."""
    ids = np.full((N, 3), -1)
    masks = np.full((N, H, W, 3), -1)
    for i in range(N):
        for m, r in enumerate(np.flatnonzero(WHO[i])):
            ids[i, m], masks[i, ..., m] = r, DENSE[i, ..., r]
    return ids, masks


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_a_base_learns_from_masks_that_annotators_drew(name, tmp_path):
    model = a_model(name)
    history = model.fit(X, DENSE, epochs=25, batch_size=4, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert model.evaluate(X, GOLD, verbose=0)[1] > 0.85
    answers = model.predict(X, verbose=0)
    assert answers.shape == (N, H, W, K)
    posteriors = model.posteriors(X, DENSE)
    np.testing.assert_allclose(posteriors[-1], answers[-1], rtol=1e-5)  # nobody drew it
    np.testing.assert_allclose(posteriors.sum(axis=-1), 1, rtol=1e-5)
    accuracies = np.diagonal(model.calibrated_confusions(X, DENSE), axis1=1, axis2=2)
    drawn = DENSE >= 0
    right = [(DENSE[..., r] == GOLD)[drawn[..., r]].mean() for r in range(R)]
    np.testing.assert_allclose(accuracies.mean(axis=1), right, atol=0.1)
    model.save(tmp_path / "model.keras")
    loaded = crowdzoo.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(X, verbose=0), answers)
    loaded.fit(X, DENSE, epochs=1, verbose=0)


def test_dense_and_sparse_masks_are_the_same_training():
    ids, masks = sparse()
    weights = []
    for x, y in ((X, DENSE), ({"instances": X, "annotators": ids}, masks)):
        model = a_model()
        model.fit(x, y, epochs=2, batch_size=4, verbose=0)
        weights.append(model.get_weights())
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_plain_model_and_batches_of_ones_own_take_masks():
    layer = ConfusionMatrices(R, kind="segmentation")
    plain = keras.Sequential([*a_base().layers, layer])
    plain.compile("adam", crowdzoo.losses.MaskedCrowdCrossentropy(), **EAGER)
    assert np.isfinite(plain.fit(X, DENSE, verbose=0).history["loss"]).all()
    model = a_model()
    ids, masks = sparse()
    for batch in ((X, DENSE), ({"instances": X, "annotators": ids}, masks)):
        assert np.isfinite(model.train_on_batch(*batch)).all()
    gold = CrowdModel(a_base())
    gold.compile(**EAGER)
    gold.fit(X, GOLD, epochs=1, verbose=0)
    gold.fit(X, np.eye(K)[GOLD], epochs=1, verbose=0)


def test_masks_are_held_once_for_each_annotator_who_drew_one_and_split_and_counted_by_pixel():
    data = MaskData(X, DENSE, num_annotators=R, num_classes=K)
    ids, masks = sparse()
    np.testing.assert_array_equal(data.annotators, ids)
    np.testing.assert_array_equal(data.labels, masks)
    assert data.labels.dtype == np.int8
    assert answer_shape(data) == (N, H, W)
    # an array of the caller's is not copied
    given = MaskData(X, masks, ids, num_annotators=R, num_classes=K)
    assert given.labels is masks
    pixels, annotators, said = annotation_columns(data, batch_size=5)
    cells = np.argwhere(DENSE >= 0)
    found = sorted(zip(pixels, annotators, said, strict=True))
    assert found == sorted((((i * H) + h) * W + w, r, DENSE[i, h, w, r]) for i, h, w, r in cells)
    first, last = data.split(0.25)
    assert (first.num_tasks, last.num_tasks) == (9, 3)
    np.testing.assert_array_equal(np.concatenate([first.labels, last.labels]), data.labels)


def test_fit_goes_on_from_a_checkpoint_and_holds_images_out(tmp_path):
    def fitted(epochs):
        model = a_model()
        history = model.fit(X, DENSE, epochs=epochs, checkpoint=tmp_path / "kept", validation_split=0.25, verbose=0)
        return history.history

    fitted(2)
    assert len(fitted(2)["val_loss"]) == 2
    with pytest.raises(ConfigError, match="checkpoint of another training"):
        fitted(3)


IDS, MASKS = sparse()
SPARSE = {"instances": X, "annotators": IDS}


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, DENSE[..., :3], r"3 columns of annotators, the crowd layer has 5.*masks \[N, H, W, M\]"),
        (X, DENSE + 1, r"masks\[\d+, 0, 0, \d\] is 2, the model has 2 classes, 0 to 1; write -1 where"),
        (X, np.full_like(DENSE, -1), "all labels are -1"),
        (X, DENSE.astype("float32"), r"masks must be integers \[images, rows, columns, annotators\].*got float32"),
        (X[:5], DENSE, r"here \[5, ...\], got int8 of shape \[12, 6, 8, 5\]"),
        (X, DENSE[:, :4], "masks have 4 x 8 pixels, the base gives 6 x 8: scale the masks"),
        (SPARSE, np.where(MASKS < 0, 0, MASKS), "-1 where missing; got"),
        ({**SPARSE, "annotators": IDS + 2}, MASKS, r"codes \[12, 3\] of 0 to 4"),
    ],
)  # fmt: skip
def test_masks_that_do_not_fit_are_named(x, y, message):
    with pytest.raises(DataError, match=message):
        a_model().fit(x, y, verbose=0)


@pytest.mark.parametrize("gold", [GOLD.transpose(0, 2, 1), GOLD[:, :1], GOLD[:, :4, :4]])
def test_gold_of_another_size_is_refused(gold):
    with pytest.raises(DataError, match="pixels, the base gives 6 x 8"):
        a_model().evaluate(X, gold, verbose=0)


def test_the_loss_of_deep_em_does_not_depend_on_which_way_an_image_lies():
    def loss(x, y):
        keras.utils.set_random_seed(0)
        base = keras.Sequential([keras.Input((*x.shape[1:3], 1)), keras.layers.Dense(K, activation="softmax")])
        model = CrowdModel(base, DeepEM(R, kind="segmentation"))
        model.compile(keras.optimizers.SGD(0.0), **EAGER)
        return model.fit(x, y, epochs=1, batch_size=N, shuffle=False, verbose=0).history["loss"][0]

    assert loss(X.swapaxes(1, 2), DENSE.swapaxes(1, 2)) == pytest.approx(loss(X, DENSE), rel=1e-5)


def test_a_base_without_a_softmax_is_refused():
    base = keras.Sequential([keras.Input((H, W, 1)), keras.layers.Dense(K)])
    with pytest.raises(ConfigError, match="not probabilities of the classes"):
        a_model(base=base).fit(X, DENSE, verbose=0)


# === UNet ===


def test_a_unet_gives_probabilities_of_the_pixels_of_any_size_by_its_seed():
    arguments = {
        "height": 9, "width": 14, "num_classes": 3, "channels": 2, "filters": [2, 3, 4], "dropout": 0.1, "name": "mine",
        "trainable": True,
    }  # fmt: skip
    models = []
    for _ in range(2):
        keras.utils.set_random_seed(0)
        models.append(UNet(**arguments))
    x = RNG.normal(size=(2, 9, 14, 2)).astype("float32")
    answers = [ops.convert_to_numpy(model(x)) for model in models]
    np.testing.assert_array_equal(*answers)
    assert answers[0].shape == (2, 9, 14, 3)
    np.testing.assert_allclose(answers[0].sum(axis=-1), 1, rtol=1e-5)
    assert models[0].get_layer("features").output.shape == (None, 9, 14, 2)
    revived = keras.saving.deserialize_keras_object(
        json.loads(json.dumps(keras.saving.serialize_keras_object(models[0])))
    )
    assert revived.get_config() == arguments
    with pytest.raises(ConfigError, match="a list of 1 to 4 numbers for images of 9 x 14"):
        UNet(9, 14, 3, filters=[2] * 5)
    with pytest.raises(ConfigError, match="as each stage halves"):
        UNet(9, 14, 3, filters=[])


def test_a_pixel_of_a_unet_sees_what_the_deepest_stage_sees():
    """A change far away reaches a pixel through the deepest stage, and not without it."""
    x = RNG.normal(size=(1, 16, 16, 1)).astype("float32")
    other = x.copy()
    other[0, 15, 15] += 100
    for filters, reaches in (((2,), False), ((2, 2, 2), True)):
        keras.utils.set_random_seed(1)
        model = UNet(16, 16, 2, 1, filters=filters)
        moved = np.abs(ops.convert_to_numpy(model(other) - model(x)))[0, 8, 8].max() > 1e-4  # a GPU rounds
        assert moved == reaches
