"""Base models of images, and the backbones that they stand on."""

import json

import keras
import numpy as np
import pytest
from keras import ops

import crowdzoo
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers.mirror_and_shift import MirrorAndShift
from crowdzoo.models import FeatureClassifier, FeatureRegressor, ImageClassifier, ImageRegressor
from crowdzoo.networks.image_backbone import load_backbone, pixel_scale_of

X = np.random.default_rng(0).integers(0, 256, (6, 16, 24, 3)).astype("float32")
COMMON = {
    "height": 16, "width": 24, "filters": [4, 6], "hidden": [5], "dropout": 0.25, "backbone": None,
    "pixel_scale": "0 to 255", "fine_tune": False, "augment": True, "name": "mine", "trainable": True,
}  # fmt: skip
OF_FEATURES = {
    "num_features": 3, "hidden": [5, 6], "dropout": 0.25, "mean": [1.0, 2.0, 3.0], "variance": [1.0, 4.0, 9.0],
    "batch_normalization": True, "name": "mine", "trainable": True,
}  # fmt: skip
MODELS = [
    (ImageClassifier, {**COMMON, "num_classes": 3}),
    (ImageRegressor, {**COMMON, "center": 4.0, "unit": 2.0, "head": True}),
    (FeatureClassifier, {**OF_FEATURES, "num_classes": 4}),
    (FeatureRegressor, {**OF_FEATURES, "center": 2.5, "unit": 0.5}),
]


def tiny_backbone():
    """Four features: the mean of each colour, and of all."""
    pixels = keras.Input((None, None, 3))
    maps = keras.layers.Conv2D(4, 1, name="mix")(pixels)
    model = keras.Model(pixels, maps, name="tiny")
    kernel = np.concatenate([np.eye(3), np.full((3, 1), 1 / 3)], axis=1)
    model.set_weights([kernel[None, None].astype("float32"), np.zeros(4, "float32")])
    return model


@pytest.mark.parametrize(("model", "arguments"), MODELS)
def test_the_config_holds_every_argument_and_revives(model, arguments):
    made = model(**arguments)
    assert json.loads(json.dumps(made.get_config())) == arguments
    revived = keras.saving.deserialize_keras_object(json.loads(json.dumps(keras.saving.serialize_keras_object(made))))
    assert type(revived) is model
    assert revived.get_config() == arguments
    assert [weight.shape for weight in revived.weights] == [weight.shape for weight in made.weights]


def test_a_residual_block_adds_its_input():
    """With kernels of zero the blocks pass on what comes in, through the path beside them."""
    model = ImageClassifier(16, 24, None, filters=(4,), dropout=0.0)
    for layer in model.layers:
        if layer.name in ("stage_0_first", "stage_0_second"):
            layer.set_weights([np.zeros_like(weights) for weights in layer.get_weights()])
    kernel = ops.convert_to_numpy(model.get_layer("begin").kernel)
    scaled = np.pad(X / 127.5 - 1, ((0, 0), (0, 1), (0, 1), (0, 0)))  # "same" with stride 2 pads below and right
    windows = np.lib.stride_tricks.sliding_window_view(scaled, (3, 3), axis=(1, 2))[:, ::2, ::2]
    maps = np.maximum(np.einsum("bhwcij,ijco->bhwo", windows, kernel) / np.sqrt(1 + 1e-3), 0)  # Keras' epsilon
    np.testing.assert_allclose(ops.convert_to_numpy(model(X)), maps.mean(axis=(1, 2)), rtol=1e-3, atol=1e-4)


def test_images_are_mirrored_and_shifted_in_training_alone_and_by_the_seed():
    def augmented(seed, **how):
        layer = MirrorAndShift(0.25)
        layer.seed_generator = keras.random.SeedGenerator(seed)
        return ops.convert_to_numpy(layer(X, **how))

    np.testing.assert_array_equal(augmented(1), X)
    found = augmented(1, training=True)
    np.testing.assert_array_equal(found, augmented(1, training=True))
    assert (found != augmented(2, training=True)).any()
    # every image is one of the possible ones: NumPy's reflection beyond the edge, cut out of it, mirrored or not
    padded = np.pad(X, ((0, 0), (4, 4), (6, 6), (0, 0)), "reflect")
    moved = set()
    for image, wide in zip(found, padded, strict=True):
        ways = [
            (down, right, mirrored)
            for down in range(9)
            for right in range(13)
            for mirrored in (False, True)
            if (image == _cut(wide, down, right, mirrored)).all()
        ]
        assert len(ways) == 1
        moved |= {*ways}
    assert len(moved) > 3


def _cut(wide, down, right, mirrored):
    """Shifted after it is mirrored, so a mirrored picture has its padding mirrored, too."""
    wide = wide[:, ::-1] if mirrored else wide
    return wide[down : down + 16, right : right + 24]


def test_a_model_augments_only_when_it_is_trained():
    model = ImageClassifier(16, 24, 3, filters=(4,), dropout=0.0, augment=True)
    answers = [ops.convert_to_numpy(model(X)) for _ in range(2)]
    np.testing.assert_array_equal(*answers)
    assert (ops.convert_to_numpy(model(X, training=True)) != ops.convert_to_numpy(model(X, training=True))).any()


MEANS = X.mean(axis=(1, 2))
SCALED = {
    "0 to 255": MEANS,
    "0 to 1": MEANS / 255,
    "-1 to 1": MEANS / 127.5 - 1,
    # the numbers of torchvision and of Caffe's VGG
    "imagenet": (MEANS / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225],
    "imagenet-bgr": MEANS[:, ::-1] - [103.939, 116.779, 123.68],
}


@pytest.mark.parametrize("scale", SCALED)
def test_a_backbone_gets_pixels_as_it_takes_them(scale):
    model = ImageClassifier(16, 24, None, backbone=tiny_backbone(), pixel_scale=scale, dropout=0.0)
    np.testing.assert_allclose(ops.convert_to_numpy(model(X))[:, :3], SCALED[scale], rtol=1e-4, atol=1e-3)


def test_a_frozen_backbone_keeps_its_weights_and_a_tuned_one_does_not(tmp_path):
    for fine_tune in (False, True):
        base = ImageClassifier(16, 24, 3, hidden=(5,), backbone=tiny_backbone(), fine_tune=fine_tune)
        assert len(base.trainable_weights) == (6 if fine_tune else 4)
        base.save(tmp_path / "base.keras")
        loaded = crowdzoo.load_model(tmp_path / "base.keras")
        assert len(loaded.trainable_weights) == len(base.trainable_weights)
        np.testing.assert_array_equal(ops.convert_to_numpy(loaded(X)), ops.convert_to_numpy(base(X)))


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("MobileNetV2", "-1 to 1"),
        ("MobileNetV3Small", "0 to 255"),
        ("ResNet50", "imagenet-bgr"),
        ("ResNet50V2", "-1 to 1"),
        ("DenseNet121", "imagenet"),
        ("EfficientNetB0", "0 to 255"),
        ("VGG16", "imagenet-bgr"),
        ("a.keras", "0 to 255"),
    ],
)
def test_networks_of_keras_take_the_scale_that_their_own_preprocessing_gives(name, scale):
    assert pixel_scale_of(name) == scale


@pytest.mark.slow
def test_a_named_backbone_is_loaded_with_weights_from_a_file(tmp_path):
    source = keras.applications.MobileNetV2(include_top=False, weights=None, input_shape=(32, 32, 3), alpha=1.0)
    source.save_weights(tmp_path / "mine.weights.h5")
    loaded = load_backbone("MobileNetV2", tmp_path / "mine.weights.h5", height=32, width=32)
    kernel = [np.asarray(model.get_layer("block_1_expand").kernel) for model in (source, loaded)]
    np.testing.assert_array_equal(*kernel)
    assert loaded.output_shape == (None, 1280)
    with pytest.raises(DataError, match="does not hold the weights of VGG16"):
        load_backbone("VGG16", tmp_path / "mine.weights.h5", height=32, width=32)
    with pytest.raises(ConfigError, match="VGG16 cannot take images of 16 x 16"):
        load_backbone("VGG16", height=16, width=16)


def test_a_keras_file_is_a_backbone_and_mistakes_are_named(tmp_path):
    tiny_backbone().save(tmp_path / "tiny.keras")
    path = str(tmp_path / "tiny.keras")
    assert load_backbone(path, height=16, width=24).output_shape == (None, None, None, 4)
    with pytest.raises(ConfigError, match="has its weights in it"):
        load_backbone(path, path, height=16, width=24)
    with pytest.raises(ConfigError, match=r"unknown backbone 'MobileNetV4'.*Did you mean 'MobileNetV2'"):
        load_backbone("MobileNetV4", height=16, width=24)
    with pytest.raises(DataError, match="does not exist"):
        load_backbone("VGG16", tmp_path / "missing.h5", height=32, width=32)
    with pytest.raises(ConfigError, match="does not take images"):
        ImageClassifier(16, 24, 3, backbone=keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten()]))
    with pytest.raises(ConfigError, match="must output features"):
        ImageClassifier(16, 24, 3, backbone=keras.Sequential([keras.Input((16, 24, 3)), keras.layers.Reshape((-1, 3))]))
