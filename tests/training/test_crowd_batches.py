import keras
import numpy as np
import pytest

from crowdzoo.data.annotations import Annotations
from crowdzoo.models import ArrayData, CrowdBatches
from crowdzoo.training.batches import TargetBatches

DENSE = np.array([[0, -1, 2, -1], [-1, -1, -1, -1], [1, -1, -1, -1], [0, 1, 1, 2], [-1, 2, -1, -1]])
X = np.arange(10, dtype="float32").reshape(5, 2)
ANNOTATIONS = Annotations.from_dense(DENSE)


def pairs(inputs, labels):
    """(instance, annotator, label) of every observed label of a batch."""
    return {
        (tuple(instance), annotator, label)
        for instance, ids, said in zip(inputs["instances"].tolist(), inputs["annotators"], labels, strict=True)
        for annotator, label in zip(ids.tolist(), said.tolist(), strict=True)
        if annotator >= 0
    }


def test_an_epoch_holds_every_annotation_beside_its_instance_once():
    batches = CrowdBatches(X, ANNOTATIONS, batch_size=3, seed=1)
    expected = {(tuple(X[i].tolist()), r, DENSE[i, r]) for i, r in np.argwhere(DENSE >= 0)}
    for _ in range(5):
        batches.on_epoch_begin()
        found = [pairs(*batches[index]) for index in range(len(batches))]
        assert set.union(*found) == expected
        assert sum(map(len, found)) == len(expected)


def test_padding_is_as_wide_as_the_batch_needs_in_powers_of_two():
    batches = CrowdBatches(X, ANNOTATIONS, batch_size=2, shuffle=False)  # tasks 0 and 2, then 3 and 4; 1 has no labels
    (first, labels), (second, _) = batches[0], batches[1]
    np.testing.assert_array_equal(first["instances"], X[[0, 2]])
    np.testing.assert_array_equal(first["annotators"], [[0, 2], [0, -1]])
    np.testing.assert_array_equal(labels, [[0, 2], [1, -1]])
    np.testing.assert_array_equal(second["annotators"], [[0, 1, 2, 3], [1, -1, -1, -1]])
    three = CrowdBatches(X, Annotations.from_dense(DENSE[:, :3]), batch_size=9)
    assert three[0][0]["annotators"].shape == (4, 3)  # not 4: nobody has more than 3


def test_the_order_hangs_on_seed_and_epoch_only():
    def orders(seed, epochs=3):
        batches = CrowdBatches(X, ANNOTATIONS, batch_size=4, seed=seed)
        found = []
        for _ in range(epochs):
            batches.on_epoch_begin()
            found.append(batches[0][0]["instances"][:, 0].tolist())
        return found

    np.random.seed(1)
    first = orders(0)
    np.random.seed(2)
    assert orders(0) == first
    assert len({tuple(order) for order in first}) > 1
    assert orders(5) != first


def test_regressions_are_padded_with_nan():
    annotations = Annotations.from_dense([[0.5, np.nan], [1.0, 2.0]], kind="regression")
    inputs, labels = CrowdBatches(X[:2], annotations, shuffle=False)[0]
    np.testing.assert_array_equal(inputs["annotators"], [[0, -1], [0, 1]])
    np.testing.assert_array_equal(labels, [[0.5, np.nan], [1.0, 2.0]])
    # three numbers are widened to four places, because another task has five
    annotations = Annotations.from_dense([[1.0, 2.0, 3.0, np.nan, np.nan], [1.0] * 5], kind="regression")
    inputs, labels = CrowdBatches(X[:2], annotations, batch_size=1, shuffle=False)[0]
    np.testing.assert_array_equal(inputs["annotators"], [[0, 1, 2, -1]])
    np.testing.assert_array_equal(labels, [[1.0, 2.0, 3.0, np.nan]])


def some_sentences(lengths):
    """Sentences of given lengths, each labelled by annotator 0: token t of task i has the label 10 i + t."""
    task, position = np.array([(i, t) for i, length in enumerate(lengths) for t in range(length)]).T
    names = {"tasks": np.arange(len(lengths)), "classes": np.arange(10 * len(lengths) + 100)}
    annotations = Annotations.from_arrays(
        task, 0 * task, 10 * task + position, position=position, kind="sequence", **names
    )
    return np.arange(len(lengths) * 50).reshape(len(lengths), 50), annotations


def test_the_annotators_of_a_sentence_stand_side_by_side():
    annotations = Annotations.from_dense([[[0, -1], [1, -1]], [[1, 2], [-1, -1]]], kind="sequence")
    inputs, labels = CrowdBatches(np.zeros((2, 3, 5)), annotations, shuffle=False)[0]
    np.testing.assert_array_equal(inputs["annotators"], [[0, -1], [0, 1]])
    np.testing.assert_array_equal(labels, [[[0, -1], [1, -1]], [[1, 2], [-1, -1]]])
    assert inputs["instances"].shape == (2, 2, 5)


def test_sentences_of_about_one_length_come_together_and_each_comes_once_an_epoch():
    lengths = np.random.default_rng(0).integers(1, 40, 203)
    x, annotations = some_sentences(lengths)
    batches = CrowdBatches(x, annotations, batch_size=8, seed=1, inputs=("tasks",), targets=np.zeros((203, 40, 1)))
    orders = []
    for _ in range(2):
        batches.on_epoch_begin()
        tasks = [batches[index][0]["tasks"] for index in range(batches.num_batches)]
        orders.append(np.concatenate(tasks))
        assert sorted(orders[-1]) == list(range(203))
        spread = np.mean([np.ptp(lengths[some]) for some in tasks])
        assert spread < 0.3 * np.ptp(lengths)
    assert (orders[0] != orders[1]).any()
    again = CrowdBatches(x, annotations, batch_size=8, seed=1, inputs=("tasks",), targets=np.zeros((203, 40, 1)))
    again.on_epoch_begin()
    np.testing.assert_array_equal(np.concatenate([again[i][0]["tasks"] for i in range(again.num_batches)]), orders[0])


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.data is TensorFlow's")
def test_the_tf_dataset_holds_the_same_batches():
    text = np.array(["a", "b", "c", "d", "e"], dtype=object)
    dataset = CrowdBatches(text, ANNOTATIONS, batch_size=2, seed=3).as_tf_dataset()
    same = CrowdBatches(text, ANNOTATIONS, batch_size=2, seed=3)
    assert int(dataset.cardinality()) == 2
    for _ in range(2):
        same.on_epoch_begin()
        for index, (inputs, labels) in enumerate(dataset.as_numpy_iterator()):
            expected, expected_labels = same[index]
            assert [word.decode() for word in inputs["instances"]] == expected["instances"].tolist()
            np.testing.assert_array_equal(inputs["annotators"], expected["annotators"])
            np.testing.assert_array_equal(labels, expected_labels)


def test_inputs_and_targets_are_those_asked_for_and_stay_with_their_tasks():
    targets = np.arange(10, dtype="float32").reshape(5, 2)
    batches = CrowdBatches(
        X, ANNOTATIONS, batch_size=3, seed=2, inputs=("annotators", "labels", "tasks"), targets=targets
    )
    plain = CrowdBatches(X, ANNOTATIONS, batch_size=3, seed=2)
    seen = []
    for factor in (1, 2):
        targets[:] = factor * np.arange(10).reshape(5, 2)  # looked up when a batch is made
        batches.on_epoch_begin()
        plain.on_epoch_begin()
        for index in range(len(batches)):
            (x, y), (expected, labels) = batches[index], plain[index]
            assert set(x) == {"instances", "annotators", "labels", "tasks"}
            np.testing.assert_array_equal(x["instances"], X[x["tasks"]])
            np.testing.assert_array_equal(x["annotators"], expected["annotators"])
            np.testing.assert_array_equal(x["labels"], labels)
            np.testing.assert_array_equal(y, factor * np.arange(10).reshape(5, 2)[x["tasks"]])
            seen += x["tasks"].tolist()
    assert sorted(seen) == sorted([0, 2, 3, 4] * 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": ("annotators", "weights")}, "inputs knows annotators, labels, tasks, got 'weights'"),
        ({"targets": np.zeros((4, 2))}, "targets need a row for each of the 5 tasks, got 4"),
    ],
)
def test_inputs_and_targets_that_cannot_be_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        CrowdBatches(X, ANNOTATIONS, **changes)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the operations are TensorFlow's")
@pytest.mark.parametrize("inputs", [(), ("annotators",)])
def test_instances_are_encoded_when_a_batch_is_made(inputs):
    import tensorflow as tf

    x = {"text": np.array(["a", "été", "", "abcd"], object), "number": np.array([1.5, np.nan, 0, 2])}
    annotations = Annotations.from_dense(np.array([[0], [1], [1], [0]]))
    encode = lambda batch: tf.stack([tf.cast(tf.strings.length(batch["text"]), "float64"), batch["number"]], axis=1)  # noqa: E731
    data = ArrayData(x, annotations, encode=encode)
    expected = np.array([[1, 1.5], [5, np.nan], [0, 0], [4, 2]])  # bytes of the UTF-8
    found = [(given["instances"] if inputs else given).numpy() for given, _ in
             data.batches(3, 0, shuffle=False, inputs=inputs, targets=np.zeros((4, 1)))]  # fmt: skip
    assert [len(part) for part in found] == [3, 1]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    kept, held = data.split(0.25)
    assert (kept.encode, held.encode) == (encode, encode)
    batches = TargetBatches(x, np.arange(4), batch_size=4, seed=0, shuffle=False, encode=encode).for_keras()
    ((given, y),) = [*batches]
    np.testing.assert_array_equal(given, expected)
    np.testing.assert_array_equal(y, np.arange(4))
