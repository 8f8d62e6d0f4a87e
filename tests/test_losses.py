"""Masked losses: expected numbers by hand, or from NumPy in float64."""

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.losses import MaskedCrowdCrossentropy, MaskedCrowdEvidence, MaskedCrowdMeanSquaredError

LOGITS = np.log(np.array([[[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]], [[0.2, 0.2, 0.6], [0.7, 0.2, 0.1]]], dtype="float32"))


def value(loss, *arguments, **options):
    return float(ops.convert_to_numpy(loss(*arguments, **options)))


def gradient(loss, labels, answers):
    """Gradient of the loss by the answers, through a layer that only holds them."""
    from crowdzoo.testing import gradients

    return gradients(keras.layers.Identity(), lambda output: loss(labels, output), answers)[0]


def test_crossentropy_divides_by_the_observed_labels():
    # three labels out of four: -log .5, -log .8, -log .1
    expected = -(np.log(0.5) + np.log(0.8) + np.log(0.1)) / 3
    assert value(MaskedCrowdCrossentropy(), np.array([[0, 1], [-1, 2]]), LOGITS) == pytest.approx(expected, rel=1e-6)


def test_crossentropy_of_sequences_divides_by_the_observed_tokens():
    logits = np.stack([LOGITS, LOGITS[::-1]], axis=1)  # [tasks, tokens, annotators, classes]
    labels = np.array([[[0, -1], [-1, 0]], [[-1, -1], [-1, 1]]])
    # task 0 token 0 annotator 0 says 0: .5; token 1 is LOGITS[1]: annotator 1 says 0: .7; task 1 token 1 is LOGITS[0]:
    # annotator 1 says 1: .8
    expected = -(np.log(0.5) + np.log(0.7) + np.log(0.8)) / 3
    assert value(MaskedCrowdCrossentropy(), labels, logits) == pytest.approx(expected, rel=1e-6)


def test_gradients_are_those_of_the_mean_over_observed_labels():
    found = gradient(MaskedCrowdCrossentropy(), np.array([[0, -1], [-1, 2]]), LOGITS)
    expected = np.zeros((2, 2, 3))
    expected[0, 0] = [0.5 - 1, 0.25, 0.25]  # softmax - one-hot
    expected[1, 1] = [0.7, 0.2, 0.1 - 1]
    np.testing.assert_allclose(found, expected / 2, atol=1e-6)
    labels, answers = np.array([[1.0, np.nan]], dtype="float32"), np.array([[3.0, 9.0]], dtype="float32")
    np.testing.assert_allclose(gradient(MaskedCrowdMeanSquaredError(), labels, answers), [[4.0, 0.0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "labels", "answers"),
    [
        (MaskedCrowdCrossentropy(), np.full((2, 2), -1), LOGITS),
        (MaskedCrowdMeanSquaredError(), np.full((2, 2), np.nan, dtype="float32"), LOGITS[..., 0]),
    ],
)
def test_a_batch_without_labels_costs_zero_with_zero_gradients(loss, labels, answers):
    assert value(loss, labels, answers) == 0.0
    np.testing.assert_array_equal(gradient(loss, labels, answers), np.zeros_like(answers))


@pytest.mark.parametrize("label", [3, 100])
def test_a_label_out_of_range_makes_the_loss_nan_on_every_backend(label):
    assert np.isnan(value(MaskedCrowdCrossentropy(), np.array([[0, label], [-1, 2]]), LOGITS))


def test_sample_weights_weigh_costs_not_numbers():
    labels = np.array([[0, 1], [-1, 2]])
    expected = -(3 * (np.log(0.5) + np.log(0.8)) + 0 * np.log(0.1)) / 3
    found = value(MaskedCrowdCrossentropy(), labels, LOGITS, sample_weight=np.array([3.0, 0.0]))
    assert found == pytest.approx(expected, rel=1e-6)
    per_label = np.array([[1.0, 0.0], [1.0, 2.0]])
    found = value(MaskedCrowdCrossentropy(), labels, LOGITS, sample_weight=per_label)
    assert found == pytest.approx(-(np.log(0.5) + 2 * np.log(0.1)) / 3, rel=1e-6)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_answers_are_counted_in_float32(half):
    # 40,000 labels that cost 2.3 each: a float16 sum is infinite, a bfloat16 one stops at 256 or so
    logits = ops.cast(np.zeros((10_000, 4, 10), dtype="float32"), half)
    loss = MaskedCrowdCrossentropy()(np.zeros((10_000, 4), dtype="int32"), logits)
    assert keras.backend.standardize_dtype(loss.dtype) == "float32"
    assert float(ops.convert_to_numpy(loss)) == pytest.approx(np.log(10), rel=1e-5)
    answers = ops.cast(np.full((50, 2), 300.0, dtype="float32"), half)
    loss = MaskedCrowdMeanSquaredError()(np.zeros((50, 2), dtype="float32"), answers)
    assert float(ops.convert_to_numpy(loss)) == pytest.approx(90_000, rel=1e-2)


@pytest.mark.parametrize("cls", [MaskedCrowdCrossentropy, MaskedCrowdMeanSquaredError])
def test_a_loss_is_revived_from_its_config_as_it_was_made(cls):
    loss = cls(name="mine", dtype="float64")
    assert loss.get_config() == {"name": "mine", "dtype": "float64"}
    revived = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert type(revived) is cls
    assert revived.get_config() == loss.get_config()


def test_answers_with_a_confidence_cost_the_log_of_their_expected_probability():
    logits = np.log(np.array([[[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]], [[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]]], "float32"))
    answers = np.array([[[0.8, 0.1, 0.1], [0.0, 1.0, 0.0], [9, 9, 9]], [[0.25, 0.5, 0.25], [0, 0, 0], [0, 0, 0]]])
    expected = -(np.log(0.8 * 0.5 + 0.1 * 0.3 + 0.1 * 0.2) + np.log(0.8) + np.log(0.15 + 0.1 + 0.05)) / 3
    assert value(MaskedCrowdEvidence(), answers.astype("float32"), logits) == pytest.approx(expected, rel=1e-6)


def test_certain_answers_cost_what_labels_cost_and_so_do_their_gradients():
    labels = np.array([[0, 1], [-1, 2]])
    answers = np.where(labels[..., None] >= 0, np.eye(3)[labels], 0).astype("float32")
    for form in (answers, labels):
        assert value(MaskedCrowdEvidence(), form, LOGITS) == pytest.approx(
            value(MaskedCrowdCrossentropy(), labels, LOGITS)
        )
        np.testing.assert_allclose(
            gradient(MaskedCrowdEvidence(), form, LOGITS),
            gradient(MaskedCrowdCrossentropy(), labels, LOGITS),
            atol=1e-6,
        )
