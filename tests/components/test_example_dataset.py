from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from crowdzoo import Annotations
from crowdzoo.layers import DeepEM
from crowdzoo.models import ArrayData, CrowdModel
from crowdzoo.networks.image_pixels import ImagePixels
from crowdzoo.records import example_dataset
from crowdzoo.records.example_dataset import ExampleDataset, files_of, held_examples, read_batches
from crowdzoo.training.training_state import replay

INFO = {"num_features": 3, "classes": ["a", "b", "c"]}


@pytest.fixture
def data(shared_crowd):
    """The train split of the crowd as a dataset, and its records."""
    files = [f"{shared_crowd.aggregated.uri}/Split-train/*"]
    return ExampleDataset(files, 30, INFO), shared_crowd.records(shared_crowd.aggregated, "train")


def test_an_epoch_has_every_task_once_with_its_annotations_padded_by_minus_one(data):
    dataset, records = data
    found = {}
    for inputs, labels in dataset.batches(batch_size=8, seed=0).as_numpy_iterator():
        assert inputs["annotators"].shape == labels.shape
        for instance, annotators, said in zip(inputs["instances"], inputs["annotators"], labels, strict=True):
            assert np.array_equal(annotators == -1, said == -1)
            found[tuple(instance)] = (annotators[annotators >= 0].tolist(), said[said >= 0].tolist())
    expected = {
        tuple(np.float32(record["instances"])): (record["annotator_ids"], record["annotator_labels"])
        for record in records
    }
    assert found == expected


@pytest.mark.parametrize("seed", [0, 3])  # TensorFlow treats a global seed of 0 in a way of its own
def test_the_order_depends_on_the_number_of_the_epoch_whichever_copy_is_gone_through(data, seed):
    dataset, _ = data

    def order(batches):
        return [x["tasks"].numpy().tolist() for x, _ in batches]

    keras.utils.set_random_seed(seed)
    batches = dataset.batches(batch_size=8, seed=seed, inputs=("tasks",))
    epochs = [order(batches) for _ in range(4)]
    assert len({str(epoch) for epoch in epochs}) == 4
    assert order(dataset.batches(batch_size=8, seed=seed + 1, inputs=("tasks",))) != epochs[0]
    keras.utils.set_random_seed(seed + 1)
    later = dataset.batches(batch_size=8, seed=seed, inputs=("tasks",))
    replay(later, 2)
    copy = tf.distribute.get_strategy().experimental_distribute_dataset(later)  # as Keras does
    assert order(copy) == epochs[2]
    assert order(later) == epochs[3]


def test_a_batch_to_evaluate_on_holds_so_many_bytes_at_most(shared_crowd, monkeypatch):
    files = [f"{shared_crowd.aggregated.uri}/Split-eval/*"]
    num_tasks = len(shared_crowd.records(shared_crowd.aggregated, "eval"))
    info = INFO | {"num_tasks": {"eval": num_tasks}}

    def batches():
        return [len(batch["instances"]) for batch in read_batches(files, info, "eval", evaluation_weight=1)]

    assert batches() == [num_tasks]
    size = sum(Path(file).stat().st_size for file in files_of(files))
    for held, most in ((size // 3, num_tasks // 3 + 1), (1, 1)):
        monkeypatch.setattr(example_dataset, "_HELD_BYTES", held)
        assert 1 <= max(batches()) == held_examples(files_of(files), num_tasks, 256) <= most
        assert sum(batches()) == num_tasks


def write_images(path, pixels, classes=3):
    """Examples of images, three annotators each; `classes` None: of ratings."""
    rng, kind = np.random.default_rng(1), "float_list" if classes is None else "int64_list"
    with tf.io.TFRecordWriter(path, "GZIP") as file:
        for task, image in enumerate(pixels):
            said = [task % (classes or 9) if rng.random() < 0.8 else 0 for _ in range(3)]
            target = (
                ("aggregated_label", [task % 9]) if classes is None else ("posterior", np.eye(classes)[task % classes])
            )
            feature = {
                "instances": tf.train.Feature(bytes_list={"value": [tf.io.encode_png(image).numpy()]}),
                "annotator_ids": tf.train.Feature(int64_list={"value": range(3)}),
                "annotator_labels": tf.train.Feature(**{kind: {"value": said}}),
                target[0]: tf.train.Feature(float_list={"value": target[1]}),
            }
            file.write(tf.train.Example(features={"feature": feature}).SerializeToString())


@pytest.mark.slow
def test_em_asks_the_model_about_the_pixels_of_images(tmp_path):
    """From Examples and from files in memory alike."""
    pixels = np.random.default_rng(0).integers(0, 256, (9, 8, 8, 3), dtype="uint8")
    write_images(path := str(tmp_path / "examples.gz"), pixels)
    encode, info = ImagePixels(8, 8), {"num_features": None, "classes": ["a", "b", "c"]}
    examples = ExampleDataset([path], 9, info, encode=encode)
    x, labels = next(examples.batches(9, 0, shuffle=False).as_numpy_iterator())
    crowd = Annotations.from_dense(labels)
    files = np.array([tf.io.encode_png(image).numpy() for image in pixels] + [None], object)[:-1]
    keras.utils.set_random_seed(0)
    layers = keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(3, activation="softmax")
    base = keras.Sequential([keras.Input((8, 8, 3)), *layers])
    model = CrowdModel(base, DeepEM(3))
    expected = model.posteriors(x["instances"], crowd)
    assert np.ptp(expected, axis=0).min() > 0.1
    for data in (examples, ArrayData(files, crowd, crowd.tasks, encode=encode)):
        np.testing.assert_allclose(model.posteriors(data), expected, rtol=1e-5)
