"""People and models together: against the equations by hand, and on crowds whose models depend on each other."""

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.quality import next_annotations, people_and_models


def crowd(seed=0, num_tasks=600, num_models=9, alike=0.45, asked=0.3):
    """Two people of .85 for some tasks, models that are right where their common view is, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)

    def noisy(right, of):
        return np.where(rng.random(num_tasks) < right, of, (of + rng.integers(1, 3, num_tasks)) % 3)

    view = noisy(alike, truth)
    said = {f"model{number}": noisy(0.9, view) for number in range(num_models)}
    people = {f"person{number}": noisy(0.85, truth) for number in range(4)}
    some = np.flatnonzero(rng.random(num_tasks) < asked)
    tasks = [np.arange(num_tasks)] * num_models
    labels, who = [*said.values()], [np.full(num_tasks, name) for name in said]
    pair = rng.random((len(some), 4)).argsort(axis=1)[:, :2]
    for column in pair.T:
        tasks.append(some)
        labels.append(np.stack([*people.values()])[column, some])
        who.append(np.array([*people])[column])
    table = Annotations.from_arrays(
        np.concatenate(tasks), np.concatenate(who), np.concatenate(labels), tasks=np.arange(num_tasks), classes=range(3)
    )
    return table, [*said], truth, some


def test_the_discount_is_high_for_copies_and_low_for_models_who_err_independently():
    table, models, *_ = crowd(num_models=6)
    assert people_and_models(table, models).discount > 0.5
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 900)
    said = np.where(rng.random((900, 7)) < 0.6, truth[:, None], rng.integers(0, 3, (900, 7)))
    names = [*(f"model{number}" for number in range(6)), "ann"]
    independent = Annotations.from_dense(said, annotators=names, classes=range(3))
    found = people_and_models(independent, names[:6], trusted=0.7)
    assert found.discount < 0.1
    assert "no" in found.correlation.reason
    assert found.aggregation.accuracy(truth) > 0.9


def test_posteriors_are_bayes_rule_with_the_votes_of_models_shared_out():
    table, models, _, some = crowd(num_tasks=80)
    both = people_and_models(table, models)
    found = both.aggregation
    for task in np.setdiff1d(np.arange(80), some)[:10]:
        rows = table.task_ids == task
        logs = np.log(found.class_prior)
        worth = rows.sum() / (1 + (rows.sum() - 1) * both.discount)
        for who, said in zip(table.annotator_ids[rows], table.labels[rows], strict=True):
            logs = logs + worth / rows.sum() * np.log(found.confusions[who][:, said])
        expected = np.exp(logs - logs.max())
        np.testing.assert_allclose(found.posteriors[task], expected / expected.sum(), rtol=1e-9)
        assert found.effective_votes[task] == pytest.approx(worth)


def test_the_next_model_adds_what_its_vote_is_worth_and_a_person_all():
    table, models, *_ = crowd(num_tasks=100)
    both = people_and_models(table, models)
    c = both.discount
    who = np.array([[*map(table.annotators.tolist().index, ["model0", "person0"])]])
    [[model, person]] = both.next_confusions(np.array([0]), who)
    confusions = both.aggregation.confusions
    share = 10 / (1 + 9 * c) - 9 / (1 + 8 * c)
    blind = both.aggregation.class_prior @ confusions[who[0, 0]]
    np.testing.assert_allclose(model, share * confusions[who[0, 0]] + (1 - share) * blind)
    np.testing.assert_array_equal(person, confusions[who[0, 1]])
    none = people_and_models(table, [])
    [[alone]] = none.next_confusions(np.array([0]), np.array([[0]]))
    np.testing.assert_array_equal(alone, none.aggregation.confusions[0])


def test_a_person_is_asked_where_further_models_repeat_each_other_and_a_model_where_it_is_new():
    table, models, *_ = crowd(alike=0.7)
    costs = np.where(np.isin(table.annotators, models), 0.05, 1.0)
    names = table.annotators[table.annotator_ids]
    fewer = table.select_rows(~np.where(table.task_ids < 50, np.isin(names, models), names == "model8"))
    both = people_and_models(fewer, models)
    asked = {}
    for name, confusions in (("dependent", both.next_confusions), ("independent", both.aggregation.confusions)):
        chosen = next_annotations(
            both.aggregation.posteriors,
            confusions,
            400,
            annotations=fewer,
            annotators=np.arange(13),
            per_task=1,
            costs=costs,
        )
        asked[name] = dict(zip(chosen.tasks.tolist(), both.is_model[chosen.annotators].tolist(), strict=True))
    assert np.mean([*asked["independent"].values()]) > 0.9
    new = [by_model for task, by_model in asked["dependent"].items() if task < 50]
    again = [by_model for task, by_model in asked["dependent"].items() if task >= 50]
    assert np.mean(new) > 0.9
    assert np.mean(again) < 0.1


def test_what_cannot_be_used_is_refused():
    table = Annotations.from_dense([[0, 1, 1], [1, 1, 0]], annotators=["ann", "gpt", "bob"])
    with pytest.raises(ConfigError, match=r"models: unknown annotator 'gtp'.*gpt"):
        people_and_models(table, ["gtp"])
    with pytest.raises(DataError, match="no person labelled a task"):
        people_and_models(table, ["ann", "gpt", "bob"])
    with pytest.raises(ConfigError, match="trusted"):
        people_and_models(table, ["gpt"], trusted=1.0)
    with pytest.raises(DataError, match="kind 'regression'"):
        people_and_models(Annotations.from_dense([[0.5, 1.5]], kind="regression"), [])
