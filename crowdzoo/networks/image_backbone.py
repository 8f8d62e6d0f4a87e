"""Backbones: pretrained networks from local files. Nothing is downloaded."""

import inspect
from pathlib import Path

import keras

from crowdzoo.errors import ConfigError, DataError, Setting, unknown
from crowdzoo.files.regular import check_regular
from crowdzoo.saving import load_model

# Prefix of a name in keras.applications -> values of pixels that it was trained on; other networks scale pixels of 0 to
# 255 themselves
_SCALES = {
    "DenseNet": "imagenet",
    "Inception": "-1 to 1",
    "MobileNetV3": "0 to 255",
    "MobileNet": "-1 to 1",
    "NASNet": "-1 to 1",
    "ResNet": "imagenet-bgr",
    "VGG": "imagenet-bgr",
    "Xception": "-1 to 1",
}


def load_backbone(backbone: str, weights: str | Path | None = None, *, height: int, width: int) -> keras.Model:
    """Loads a network without its last layers.

    Args:
        backbone: name in `keras.applications`, such as "MobileNetV2"; or the path of a `.keras` file, a model from
            pixels `[B, H, W, 3]` to features `[B, D]` or maps `[B, h, w, D]`.
        weights: for a named backbone, path of a `.weights.h5` or `.h5` file, as published by Keras ("notop"). None
            leaves the weights random, which is only useful with fine-tuning.
        height: H, rows of the images.
        width: W, columns.

    Returns:
        The model, for `ImageClassifier(backbone=...)`, together with `pixel_scale_of(backbone)`.

    Raises:
        DataError: no such file, or one that does not fit.
        ConfigError: unknown network, images that are too small for it, or weights in addition to a `.keras` file.

    Example:
        >>> from crowdzoo.models import ImageClassifier, load_backbone
        >>> backbone = load_backbone("MobileNet", height=32, width=32)  # weights=PATH: trained ones
        >>> base = ImageClassifier(32, 32, num_classes=4, backbone=backbone, pixel_scale="-1 to 1")
        >>> base.count_params() > backbone.count_params()
        True
    """
    if backbone.endswith(".keras"):
        if weights is not None:
            unused = Setting("backbone_weights")
            raise ConfigError(f"the backbone {backbone} has its weights in it; leave out {unused}.")
        return load_model(backbone, compile=False)
    networks = {
        name: function for name, function in sorted(vars(keras.applications).items()) if inspect.isfunction(function)
    }
    if backbone not in networks:
        raise ConfigError(f"{unknown('backbone', backbone, networks)} Or give the path of a .keras file.")
    try:
        model = networks[backbone](include_top=False, weights=None, input_shape=(height, width, 3), pooling="avg")
    except ValueError as error:
        raise ConfigError(f"backbone {backbone} cannot take images of {height} x {width}: {error}") from error
    if weights is not None:
        check_regular(weights)
        try:
            model.load_weights(str(weights))
        except Exception as error:  # h5py and Keras raise all kinds of errors for other content
            raise DataError(f"{weights} does not hold the weights of {backbone} without its top: {error}") from error
    return model


def pixel_scale_of(backbone: str) -> str:
    """Values of pixels that a backbone expects; "0 to 255" if unknown, as for a `.keras` file.

    Version 2 of ResNet expects "-1 to 1", version 1 "imagenet-bgr".
    """
    if backbone.startswith("ResNet") and backbone.endswith("V2"):
        return "-1 to 1"
    return next((scale for start, scale in _SCALES.items() if backbone.startswith(start)), "0 to 255")
