"""The parts of EM against their definitions, written out in loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import annotations as some_annotations

from crowdzoo.models import ArrayData
from crowdzoo.training.expectation import ExpectationStep, Labels, annotation_columns


def columns(annotations):
    return annotations.task_ids, annotations.annotator_ids, annotations.labels


@settings(max_examples=30, deadline=None)
@given(some_annotations())
def test_vote_shares_are_counted_votes(annotations):
    tasks, _, labels = columns(annotations)
    shares = Labels(columns(annotations), annotations.num_classes).mean(annotations.num_tasks)
    assert shares.dtype == np.float32
    for i in range(annotations.num_tasks):
        votes = [label for task, label in zip(tasks, labels, strict=True) if task == i]
        expected = [votes.count(k) / max(len(votes), 1) for k in range(annotations.num_classes)]
        np.testing.assert_allclose(shares[i], expected, rtol=1e-6)


@settings(max_examples=30, deadline=None)
@given(some_annotations())
def test_expected_counts_are_annotator_then_true_then_said(annotations):
    shape = (annotations.num_tasks, annotations.num_classes)
    posteriors = np.random.default_rng(0).dirichlet(np.ones(shape[1]), shape[0])
    counts = Labels(columns(annotations), shape[1]).expected_counts(posteriors, annotations.num_annotators)
    expected = np.zeros((annotations.num_annotators, shape[1], shape[1]))
    for i, r, said in zip(*columns(annotations), strict=True):
        for true in range(shape[1]):
            expected[r, true, said] += posteriors[i, true]
    assert counts.dtype == np.float64
    np.testing.assert_allclose(counts, expected, rtol=1e-12)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([1, 3, 4096]), some_annotations())
def test_columns_are_all_annotations_whatever_the_batches(batch_size, annotations):
    data = ArrayData(np.zeros((annotations.num_tasks, 2), "float32"), annotations)
    found = annotation_columns(data, batch_size)
    assert {column.dtype for column in found} == {np.dtype("int32")}
    assert sorted(zip(*found, strict=True)) == sorted(zip(*columns(annotations), strict=True))


class CountingModel:
    """Gives the number of the E-step as posteriors and as likelihood."""

    def __init__(self):
        self.steps = []

    def e_step(self, data):
        self.steps.append(data)
        return np.full((2, 3), len(self.steps), "float32"), -float(len(self.steps))


@pytest.mark.parametrize(("every", "e_steps_before_epochs"), [(1, [1, 2, 3, 4]), (2, [2, 4]), (3, [3]), (9, [])])
def test_an_e_step_comes_before_every_round_but_the_first(every, e_steps_before_epochs):
    posteriors, model = np.zeros((2, 3), "float32"), CountingModel()
    maximised, likelihoods = [], []
    step = ExpectationStep(
        "data", posteriors, every=every, after=lambda found, first: maximised.append((epoch, found[0, 0]))
    )
    step.set_model(model)
    done = []
    for epoch in range(5):
        step.on_epoch_begin(epoch)
        if len(model.steps) > len(done):
            done.append(epoch)
        logs = {"loss": 1.0}
        step.on_epoch_end(epoch, logs)
        likelihoods.append(logs.get("log_likelihood"))
        assert (posteriors == len(done)).all()  # changed in place: the batches look them up
    assert done == e_steps_before_epochs
    assert model.steps == ["data"] * len(done)
    assert maximised == [(epoch, number) for number, epoch in enumerate([0, *done])]
    # nothing is known of the likelihood before the first E-step
    assert likelihoods == [-sum(e <= epoch for e in done) or None for epoch in range(5)]


def test_rounds_count_epochs_of_this_training_also_from_a_later_initial_epoch():
    step = ExpectationStep("data", np.zeros((2, 3), "float32"), every=2)
    step.set_model(CountingModel())
    counts = []
    for epoch in range(7, 11):
        step.on_epoch_begin(epoch)
        counts.append(len(step.model.steps))
    assert counts == [0, 0, 1, 1]
