"""Several labels a task as pairs, and one LIA for all of them (LIA-ML)."""

import keras
import numpy as np
import pytest

from crowdzoo.errors import DataError
from crowdzoo.layers.lia import LIA
from crowdzoo.models import CrowdModel
from crowdzoo.training.multi_label import label_pairs, pair_instances


def test_a_choice_of_labels_becomes_answers_of_yes_and_no():
    annotations = label_pairs([0, 0, 2], ["ann", "bob", "ann"], [[1, 0, 0], [1, 1, -1], [0, 0, 1]], num_tasks=4)
    assert annotations.num_tasks == 12
    assert annotations.annotators.tolist() == ["ann", "bob"]
    dense = annotations.to_dense().reshape(4, 3, 2)  # [task, label, annotator]
    np.testing.assert_array_equal(dense[0, :, 0], [1, 0, 0])
    np.testing.assert_array_equal(dense[0, :, 1], [1, 1, -1])  # bob was not asked about label 2
    np.testing.assert_array_equal(dense[2, :, 0], [0, 0, 1])
    assert (dense[[1, 3]] == -1).all()


def test_instances_stand_beside_their_labels_in_the_same_order():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = pair_instances(x, 3)
    np.testing.assert_array_equal(found["instance"][:, 0], [1, 1, 1, 3, 3, 3])
    np.testing.assert_array_equal(found["label"], [0, 1, 2, 0, 1, 2])
    both = pair_instances({"a": x, "b": x[:, 0]}, 2)["instance"]
    np.testing.assert_array_equal(both["b"], [1, 1, 3, 3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], ["ann"], [1, 0]), r"chosen \[annotations, labels\], got"),
        (([0, 1], ["ann"], [[1], [0]]), "task and annotator have the shape"),
        (([0], ["ann"], [[2, 0]]), "1 for yes, 0 for no and -1 for not asked"),
        (([-1], ["ann"], [[1, 0]]), "task codes must be 0 to -1, got -1 to -1"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        label_pairs(*arguments)


@pytest.mark.learning
def test_one_model_learns_labels_of_different_kinds_together():
    # label 0 depends on feature 0, label 1 on feature 1 and is overlooked by half of those who should see it
    rng = np.random.default_rng(0)
    num_tasks, num_labels = 200, 2
    gold = rng.integers(2, size=(num_tasks, num_labels))
    x = (rng.normal(size=(num_tasks, 2)) * 0.5 + 2 * gold - 1).astype("float32")
    task = np.repeat(np.arange(num_tasks), 3)
    annotator = np.concatenate([rng.permutation(6)[:3] for _ in range(num_tasks)])
    sees = np.array([0.9, 0.5])[None] * np.linspace(0.85, 1, 6)[annotator][:, None]
    said = np.where(gold[task] == 1, rng.random((len(task), 2)) < sees, rng.random((len(task), 2)) < 0.05)
    annotations = label_pairs(task, annotator, said, num_tasks=num_tasks)

    keras.utils.set_random_seed(0)
    instance, label = keras.Input((2,), name="instance"), keras.Input((), dtype="int32", name="label")
    pair = keras.layers.Concatenate(name="pair")([instance, keras.layers.Embedding(num_labels, 4)(label)])
    hidden = keras.layers.Dense(16, activation="selu")(pair)
    base = keras.Model({"instance": instance, "label": label}, keras.layers.Dense(2, activation="softmax")(hidden))
    layer = LIA(6, hidden=(8,), annotator_embedding=4, epochs_per_round=10, marginal_epochs=5)
    model = CrowdModel(base, layer, features="pair")
    model.compile(keras.optimizers.Adam(0.02), jit_compile=False)
    pairs = pair_instances(x, num_labels)
    model.fit(pairs, annotations, epochs=60, batch_size=50, verbose=0)

    found = model.posteriors(pairs, annotations).reshape(num_tasks, num_labels, 2).argmax(axis=2)
    votes = np.array([[said[task == i, j].mean() > 0.5 for j in range(num_labels)] for i in range(num_tasks)])
    by_model, by_votes = (found == gold).mean(axis=0), (votes == gold).mean(axis=0)
    assert by_model[0] > by_votes[0] + 0.02
    assert by_model[1] > by_votes[1] + 0.08  # where half of the yes are missing
