import numpy as np
import pytest
from scipy.optimize import minimize

from crowdzoo import Annotations
from crowdzoo.aggregation import Aggregation, Auto, MajorityVote, VotesWarning, create
from crowdzoo.aggregation.classes import auto
from crowdzoo.aggregation.engine.stacking import stacking_weights
from crowdzoo.testing.aggregators import AGGREGATOR_CHECKS, simulated_crowd

# each of them fits all candidates many times
SLOW = dict.fromkeys(
    ("sparse_and_odd_tables", "blocks_are_irrelevant", "gold_is_clamped", "fit_twice_equals_once"), pytest.mark.slow
)
CHECKS = zip(AGGREGATOR_CHECKS, AGGREGATOR_CHECKS.values(), strict=True)


@pytest.mark.parametrize("check", [pytest.param(check, id=name, marks=SLOW.get(name, ())) for name, check in CHECKS])
def test_battery(check):
    check(Auto())


def test_stacking_weights_are_those_of_a_general_optimiser():
    rng = np.random.default_rng(0)
    densities, rows = rng.uniform(0.05, 1, (3, 400)), rng.uniform(0, 2, 400)
    densities[rng.choice(3, 400, p=[0.2, 0.5, 0.3]), np.arange(400)] += 1.0  # all three are of use

    def loss(free):
        return -(rows * np.log(np.exp(free - np.logaddexp.reduce(free)) @ densities)).sum()

    best = minimize(loss, np.zeros(3), method="BFGS").x
    found = stacking_weights(densities, rows)
    assert -(rows * np.log(found @ densities)).sum() <= loss(best) + 1e-3
    np.testing.assert_allclose(found, np.exp(best - np.logaddexp.reduce(best)), atol=5e-3)
    np.testing.assert_array_equal(stacking_weights(densities, np.zeros(400)), np.full(3, 1 / 3))


def test_it_is_the_mean_of_its_methods_by_their_weights():
    crowd, _ = simulated_crowd(200, seed=3)
    found = Auto().fit(crowd)
    assert [one.method for one in found.candidates] == list(auto.CANDIDATES)
    weights = np.array([one.weight for one in found.candidates])
    assert weights.sum() == pytest.approx(1)
    hidden = Auto()._parts(crowd, np.zeros(200, bool))[1].size
    assert weights.min() >= 0.25 / 8 * hidden / (1000 + hidden) - 1e-12
    assert weights[0] > 1000 / (1000 + hidden)
    parts = [create(one.method).fit(crowd).posteriors for one in found.candidates]
    np.testing.assert_allclose(found.posteriors, np.tensordot(weights, parts, 1), atol=1e-12)


def test_scores_are_those_of_annotations_that_the_methods_did_not_see():
    """One method's score, computed again annotation by annotation from its posteriors without the hidden part."""
    crowd, _ = simulated_crowd(40, 6, 2, seed=1)
    choice = Auto(folds=2)
    part, rows = choice._parts(crowd, np.zeros(40, bool))
    fitted = {name: [] for name in auto.CANDIDATES}
    matrices = {name: [] for name in auto.CANDIDATES}
    for fold in range(2):
        rest = crowd.select_rows(part != fold)
        for name in auto.CANDIDATES:
            fitted[name].append(create(name).fit(rest).posteriors)
            matrices[name].append(auto._observed(rest, fitted[name][-1], None).confusions)
    scores = {name: [] for name in auto.CANDIDATES}
    for row in rows:
        task, annotator, said = crowd.task_ids[row], crowd.annotator_ids[row], crowd.labels[row]
        channel = np.mean([matrices[name][part[row]][annotator, :, said] for name in auto.CANDIDATES], axis=0)
        for name in auto.CANDIDATES:
            scores[name].append(np.log(fitted[name][part[row]][task] @ channel))
    found = {one.method: one for one in choice.fit(crowd).candidates}
    for name, values in scores.items():
        assert found[name].score == pytest.approx(np.mean(values), abs=1e-9)
    best = max(scores, key=lambda name: np.mean(scores[name]))
    assert found[best].behind == 0
    gaps = np.array(scores[best]) - np.array(scores["bwa"])
    assert found["bwa"].behind == pytest.approx(gaps.mean(), abs=1e-9)
    assert found["bwa"].error == pytest.approx(gaps.std(ddof=1) / np.sqrt(len(gaps)), abs=1e-9)


def test_only_annotations_whose_task_keeps_another_are_scored():
    crowd = Annotations.from_arrays([0, 1, 1, 2, 2], [0, 0, 1, 1, 2], [0, 1, 1, 0, 1])
    part, rows = Auto(folds=2)._parts(crowd, np.array([False, False, True]))
    assert 0 not in rows  # the task's only annotation
    assert not {3, 4} & set(rows.tolist())  # its class is known
    assert ({1, 2} <= set(rows.tolist())) == (part[1] != part[2])


def biased(num_tasks=800, seed=0):
    """Annotators of two sorts: exact ones, and many who call half of class 1 class 0."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, num_tasks)
    said = np.empty((num_tasks, 9), int)
    for annotator in range(9):
        slip = np.where(truth == 1, 0.65 if annotator < 6 else 0.05, 0.05)
        said[:, annotator] = np.where(rng.random(num_tasks) < slip, 1 - truth, truth)
    return Annotations.from_dense(said), truth


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_where_annotators_are_biased_matrices_have_the_weight():
    crowd, truth = biased()
    found = Auto().fit(crowd)
    matrices = {"dawid-skene", "hierarchical-dawid-skene", "ibcc", "mace", "worker-clustering"}
    assert sum(one.weight for one in found.candidates if one.method in matrices) > 0.7
    assert found.expected_accuracy(truth) > MajorityVote().fit(crowd).expected_accuracy(truth) + 0.1


@pytest.mark.slow
def test_methods_that_contradict_the_votes_where_one_coin_does_not_are_left_out(misled):
    crowd, truth = misled
    with pytest.warns(VotesWarning, match="dawid-skene.* contradict the votes on more than 20%"):
        found = Auto(folds=2).fit(crowd)
    by_name = {one.method: one for one in found.candidates}
    assert by_name["dawid-skene"].against_votes > 0.2
    assert by_name["dawid-skene"].weight == 0
    assert by_name["robust"].weight > 0
    assert "annotators probably make the same errors" in found.notes[0]
    assert found.expected_accuracy(truth) > MajorityVote().fit(crowd).expected_accuracy(truth) - 0.01


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_tasks_of_known_class_count_and_are_no_part_of_what_contradicts():
    crowd, truth = biased(300)
    gold = np.where(np.arange(300) < 60, truth, -1)
    found = Auto(folds=2).fit(crowd, gold)
    assert all(one.gold is not None and one.gold <= 0 for one in found.candidates)
    blind = create("bwa").fit(crowd).posteriors[np.arange(60), truth[:60]]
    of = {one.method: one for one in found.candidates}
    assert of["bwa"].gold == pytest.approx(np.log(np.maximum(blind, 0.01)).mean())
    plain = {one.method: one for one in Auto(folds=2).fit(crowd).candidates}
    assert plain["bwa"].gold is None


def test_weights_are_those_of_stacking_drawn_to_robust_where_little_is_hidden():
    rng = np.random.default_rng(0)
    densities = rng.uniform(0.05, 1, (4, 3000))
    stacked = 0.75 * stacking_weights(densities, np.ones(3000)) + 0.25 / 4
    expected = 0.75 * stacked + 0.25 * np.eye(4)[0]  # 1,000 of 4,000
    np.testing.assert_allclose(auto._weights(densities, None), expected, atol=1e-12)
    blind = rng.uniform(0.05, 1, (4, 100))  # known classes count ten times
    assert auto._weights(densities, blind)[1:].sum() < 1 - 1000 / 5000
    np.testing.assert_array_equal(auto._weights(densities[:, :49], None), np.eye(4)[0])


def test_with_too_few_hidden_annotations_it_is_robust():
    crowd = Annotations.from_arrays([0, 1, 2], [0, 1, 0], [0, 0, 0], classes=range(2))
    found = Auto().fit(crowd)
    assert [one.weight for one in found.candidates] == [1.0, *[0.0] * 7]
    np.testing.assert_allclose(found.posteriors, create("robust").fit(crowd).posteriors)
    assert all(one.score is None for one in found.candidates)
    assert found.notes == (auto.NOT_SCORED.format(0, 50),)


def test_it_counts_its_fits():
    crowd, truth = simulated_crowd()
    for gold in (None, np.where(np.arange(60) < 9, truth, -1)):
        fits = []
        Auto(folds=3).fit(crowd, gold, on_fit=lambda fits=fits: fits.append(1))
        assert len(fits) == Auto(folds=3).num_fits(gold) == (33 if gold is None else 41)


def test_what_it_found_of_the_methods_comes_back_from_its_file(tmp_path):
    crowd, truth = simulated_crowd()
    found = Auto(folds=2).fit(crowd, np.where(np.arange(60) < 9, truth, -1))
    again = Aggregation.from_parquet(found.to_parquet(tmp_path / "labels"))
    assert again.candidates == found.candidates
    plain = MajorityVote().fit(crowd)
    assert Aggregation.from_parquet(plain.to_parquet(tmp_path / "votes")).candidates is None
