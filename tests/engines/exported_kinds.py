"""One exported model of each kind, with random weights, and requests to each of its signatures."""

import io
from pathlib import Path

import keras
import numpy as np
from PIL import Image

from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.export.saved_model import export_model
from crowdzoo.layers import CrowdsourcedLayer, PairAnnotators
from crowdzoo.models import (
    CrowdModel,
    FeatureClassifier,
    FeatureRegressor,
    ImageClassifier,
    ImagePixels,
    RewardModel,
    TextClassifier,
    TextIds,
)
from crowdzoo.networks.sequence_tagger import SequenceTagger
from crowdzoo.networks.table_columns import TableColumns
from crowdzoo.networks.token_encoder import TokenEncoder
from crowdzoo.sequences import allowed_tags

CLASSES, ANNOTATORS = ["cat", "dog", "ünïcorn"], ["ann", "bob", "chloé"]
NAMES = np.array(["chloé", "ann", "bob", "ann"], object)
VECTORS = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")
PIXELS = np.random.default_rng(1).uniform(size=(4, 8, 8, 3)).astype("float32")
TEXTS = np.array(["A fine film!", "", "DULL, dull film ÜND more", "中文 nobody knows"], object)
TABLE = {
    "age": np.array([20.0, np.nan, 40.0, 30.0], "float32"),
    "city": np.array(["Porto", "", "Lisbon", "Rome"], object),
}


def image(seed, kind):
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (20, 30, 3), dtype="uint8")).save(stream, kind)
    return stream.getvalue()


FILES = np.array([image(0, "JPEG"), image(1, "PNG"), image(2, "BMP"), image(3, "JPEG")], object)


def randomized(model):
    """Every trainable weight far from where it starts."""
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape))
    return model


def classifier(base):
    crowd = CrowdsourcedLayer(len(ANNOTATORS))
    crowd.build((None, len(CLASSES)))
    return randomized(CrowdModel(base, crowd))


def vectors(path):
    model = classifier(FeatureClassifier(5, len(CLASSES), hidden=(6,)))
    export_model(model, path, classes=CLASSES, annotators=ANNOTATORS, warmup_instances=VECTORS)
    return with_annotators({"instances": VECTORS})


def pixels(path):
    pooled = [keras.layers.Conv2D(4, 3, activation="relu"), keras.layers.GlobalAveragePooling2D()]
    model = classifier(keras.Sequential([keras.Input((8, 8, 3)), *pooled, keras.layers.Dense(3, "softmax")]))
    export_model(model, path, classes=CLASSES, annotators=ANNOTATORS, warmup_instances=PIXELS)
    return with_annotators({"instances": PIXELS})


def files_of_images(path):
    model = classifier(ImageClassifier(16, 16, len(CLASSES), filters=(4,)))
    encoder = ImagePixels(16, 16)
    export_model(model, path, classes=CLASSES, annotators=ANNOTATORS, encoder=encoder, warmup_instances=list(FILES))
    return with_annotators({"instances": FILES})


def texts(form):
    def make(path):
        ids = TextIds(["a", "fine", "film", "dull", "ünd"], max_length=6)
        base = TextClassifier(ids.num_words, len(CLASSES), form=form, embedding=4, filters=5, hidden=3)
        base.adapt(ids.to_numpy(list(TEXTS)))
        model = classifier(base)
        export_model(model, path, classes=CLASSES, annotators=ANNOTATORS, encoder=ids, warmup_instances=list(TEXTS))
        return with_annotators({"instances": TEXTS})

    return make


def table(path):
    encoder = TableColumns.from_batches([TABLE])
    width = np.asarray(encoder(TABLE)).shape[1]
    model = classifier(FeatureClassifier(width, len(CLASSES), hidden=(6,)))
    export_model(model, path, classes=CLASSES, annotators=ANNOTATORS, encoder=encoder, warmup_instances=TABLE)
    return with_annotators(TABLE)


def ratings(path):
    base = FeatureRegressor(5, hidden=(6,), center=60.0, unit=15.0)
    model = randomized(CrowdModel(base, CrowdsourcedLayer(3, "S+B", "regression", center=60.0, unit=15.0)))
    export_model(model, path, annotators=ANNOTATORS, warmup_instances=VECTORS)
    return with_annotators({"instances": VECTORS})


def reward(path):
    model = randomized(CrowdModel(RewardModel(FeatureRegressor(5, hidden=(6,))), PairAnnotators(3, 10)))
    classes = ["left", "right", "equal"]
    export_model(model, path, classes=classes, annotators=ANNOTATORS, warmup_instances=VECTORS)
    sides = {"left": VECTORS, "right": VECTORS[::-1].copy()}
    return {"serving_default": {"instances": VECTORS}, "pairs": sides, "annotators": {**sides, "annotator": NAMES}}


def reward_of_table(path):
    encoder = TableColumns.from_batches([TABLE])
    width = np.asarray(encoder(TABLE)).shape[1]
    model = randomized(CrowdModel(RewardModel(FeatureRegressor(width, hidden=(6,))), PairAnnotators(3, 10)))
    classes = ["left", "right", "equal"]
    export_model(model, path, classes=classes, annotators=ANNOTATORS, encoder=encoder, warmup_instances=TABLE)
    sides = {
        f"{side}_{name}": column[::step].copy() for side, step in (("left", 1), ("right", -1))
        for name, column in TABLE.items()
    }  # fmt: skip
    return {"serving_default": TABLE, "pairs": sides, "annotators": {**sides, "annotator": NAMES}}


def tagger(crf):
    def make(path):
        corpus = generated_ner(60, 3, redundancy=1, seed=1)
        encoder = TokenEncoder.fit(corpus.tokens, characters=True)
        classes = allowed_tags(["LOC", "PER"], "IOBES") if crf else corpus.classes
        sizes = {"embedding": 6, "filters": 6, "units": 5, **encoder.sizes}
        base = SequenceTagger(num_classes=len(classes), crf=crf, **sizes)
        model = CrowdModel(base, None if crf else CrowdsourcedLayer(len(ANNOTATORS), kind="sequence"))
        rng = np.random.default_rng(0)
        model.set_weights([rng.normal(size=weight.shape) for weight in model.get_weights()])
        export_model(model, path, classes=classes, annotators=ANNOTATORS, encoder=encoder,
                     warmup_instances=list(corpus.texts[:3]))  # fmt: skip
        sentences = {"instances": np.array([*corpus.texts[:3], "👩 met Zoe\u0308 — in São Paulo… 中文!"], object)}
        requests = {"serving_default": sentences, "spans": sentences}
        return requests if crf else {**requests, **with_annotators(sentences)}

    return make


def with_annotators(inputs):
    return {"serving_default": inputs, "annotators": {**inputs, "annotator": NAMES}}


# kind -> writes the model, and gives inputs by signature
KINDS = {
    "classes of vectors": vectors,
    "classes of pixels": pixels,
    "classes of image files": files_of_images,
    "classes of texts, bag of words": texts("bag-of-words"),
    "classes of texts, convolution": texts("convolutional"),
    "classes of table rows": table,
    "ratings of vectors": ratings,
    "tags of sentences": tagger(False),
    "tags of sentences, CRF": tagger(True),
    "preferences of vectors": reward,
    "preferences of table rows": reward_of_table,
}


def export_kind(kind: str, path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Writes the model of a kind, and gives the inputs of a request to each of its signatures; texts are bytes."""
    keras.utils.set_random_seed(0)
    requests = KINDS[kind](path)
    return {
        signature: {name: as_bytes(array) for name, array in inputs.items()} for signature, inputs in requests.items()
    }


def as_bytes(array):
    if array.dtype != object:
        return array
    return np.array([one.encode() if isinstance(one, str) else one for one in array], object)
