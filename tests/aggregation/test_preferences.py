"""Aggregation of preferences, against numbers by hand, crowd-kit, SciPy, and simulated annotators."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from csv_files import write_csv
from scipy.optimize import minimize
from scipy.stats import spearmanr

from crowdzoo.aggregation import (
    PREFERENCE_METHODS,
    AnnotatorBradleyTerry,
    BradleyTerry,
    ConvergenceWarning,
    CrowdBT,
    DawidSkene,
    MajorityVote,
    PreferenceAggregation,
    create,
)
from crowdzoo.aggregation.engine.comparisons import ALTERNATIVES, FORMS, PairParams, Pairs, likelihood
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.tables import Annotations

ANSWERS = np.array(["left", "right", "equal"], object)
METHODS = pytest.mark.parametrize("method", PREFERENCE_METHODS)


def table(left, right, annotators, answers, num_tasks=None, num_annotators=None):
    tasks = np.arange(1 + max(np.max(left), np.max(right)) if num_tasks is None else num_tasks)
    names = np.arange(1 + np.max(annotators) if num_annotators is None else num_annotators)
    return Annotations("preference", left, annotators, answers, tasks, names, ANSWERS, right_ids=np.asarray(right))


def simulated(num_tasks=20, num_annotators=15, size=3000, *, ties=True, seed=0, slopes=None, biases=None):
    """Annotations by Davidson's model with nu = 0.8, and the true scores."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=num_tasks)
    left = rng.integers(0, num_tasks, size)
    right = (left + rng.integers(1, num_tasks, size)) % num_tasks
    who = rng.integers(0, num_annotators, size)
    lead = scores[left] - scores[right]
    lead = lead if slopes is None else lead * slopes[who]
    lead = lead if biases is None else lead + biases[who]
    weights = np.stack([np.exp(lead / 2), np.exp(-lead / 2), np.full(size, 0.8 if ties else 0.0)], axis=1)
    cumulative = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    answers = (rng.random(size)[:, None] > cumulative).sum(axis=1)
    return table(left, right, who, answers, num_tasks, num_annotators), scores


# === The likelihood and the search ===


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_the_gradient_is_the_slope_of_the_likelihood(form, alternative):
    rng = np.random.default_rng(0)
    answers, size = 2 + (form != "none"), 60
    left = rng.integers(0, 5, size)
    columns = left, (left + rng.integers(1, 5, size)) % 5, rng.integers(0, 3, size), rng.integers(0, answers, size)
    pairs = Pairs(*columns, rng.uniform(0.5, 1, size))
    neutral = PairParams.neutral(5, 3, answers)
    draws = {each.name: rng.normal(size=getattr(neutral, each.name).shape) for each in fields(neutral)}
    params = PairParams(**draws)
    _, gradient = likelihood(pairs, params, form, alternative)
    for name, values in draws.items():
        direction = rng.normal(size=values.shape)
        ends = [likelihood(pairs, replace(params, **{name: values + step * direction}), form, alternative)[0]
                for step in (1e-5, -1e-5)]  # fmt: skip
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx((getattr(gradient, name) * direction).sum(), abs=1e-6)


# === Bradley-Terry ===


def test_two_tasks_have_the_log_odds_of_their_wins():
    """12 wins of 16: log(12 / 4) at the largest likelihood, with 0.5 pseudo-comparisons each way by hand below."""
    answers = [0] * 12 + [1] * 4
    crowd = table([0] * 16, [1] * 16, list(range(16)), answers)
    found = BradleyTerry(prior=0).fit(crowd)
    assert found.scores[0] - found.scores[1] == pytest.approx(np.log(3), abs=1e-5)
    assert found.probabilities([0], [1])[0].tolist() == pytest.approx([0.75, 0.25], abs=1e-5)
    # with the prior: by symmetry s and -s; 12 - 16 p(2s) = 0.5 tanh(s / 2), found by bisection
    low, high = 0.0, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        rises = 12 - 16 / (1 + np.exp(-2 * middle)) > 0.5 * np.tanh(middle / 2)
        low, high = (middle, high) if rises else (low, middle)
    assert BradleyTerry().fit(crowd).scores.tolist() == pytest.approx([low, -low], abs=1e-5)


def test_davidsons_and_rao_and_kuppers_ties_have_the_shares_that_were_counted():
    """Two tasks, 6 left, 2 right, 4 equal: with as many parameters as shares, the shares are fitted exactly."""
    crowd = table([0] * 12, [1] * 12, list(range(12)), [0] * 6 + [1] * 2 + [2] * 4)
    for ties in ("davidson", "rao-kupper"):
        found = BradleyTerry(ties=ties, prior=0).fit(crowd)
        assert found.probabilities([0, 1], [1, 0])[0] == pytest.approx([6 / 12, 2 / 12, 4 / 12], abs=2e-3)
        assert found.probabilities([1], [0])[0] == pytest.approx([2 / 12, 6 / 12, 4 / 12], abs=2e-3)
    davidson = BradleyTerry(prior=0).fit(crowd)
    # odds of left to right are exp(d), of equal to their geometric mean nu
    assert davidson.scores[0] - davidson.scores[1] == pytest.approx(np.log(3), abs=1e-2)
    assert np.exp(davidson.tie) == pytest.approx(4 / np.sqrt(12), abs=1e-2)
    half = BradleyTerry(ties="half", prior=0).fit(crowd)
    assert half.probabilities([0], [1])[0] == pytest.approx([8 / 12, 4 / 12], abs=1e-5)


def test_scores_are_finite_where_a_task_never_lost_or_was_never_compared():
    crowd = table([0, 1, 0, 3], [1, 2, 2, 4], [0, 0, 1, 1], [0, 0, 0, 0], num_tasks=6)
    found = BradleyTerry().fit(crowd)
    assert np.isfinite(found.scores).all()
    assert found.scores[0] > found.scores[1] > found.scores[2]
    assert found.scores[5] == 0
    assert found.groups.tolist() == [0, 0, 0, 1, 1, 2]
    assert found.ranks.tolist() == [1, 2, 3, 1, 2, 1]
    assert "2 groups of tasks" in found.notes[0]


def test_bradley_terry_agrees_with_crowd_kit():
    aggregation = pytest.importorskip("crowdkit.aggregation")
    crowd, _ = simulated(ties=False)
    frame = crowd.to_frame().rename(columns={"annotator": "worker"})
    frame["label"] = np.where(frame["label"] == "left", frame["left"], frame["right"])
    theirs = aggregation.BradleyTerry(n_iter=20_000, tol=0).fit_predict(frame).sort_index().to_numpy()
    ours = np.exp(BradleyTerry(prior=0, tol=1e-7).fit(crowd).scores)
    np.testing.assert_allclose(ours / ours.sum(), theirs, atol=1e-6)


# === Noisy Bradley-Terry and CrowdBT ===


def test_crowd_bt_has_the_objective_of_the_paper_and_its_optimum():
    """Chen et al. (2013), eq. 5 with the virtual node; eta has Beta pseudo-counts."""
    crowd, _ = simulated(6, 4, 400, ties=False, seed=4, slopes=np.array([1.5, 1.5, 0.3, -1.0]))
    left, right, who, answer = crowd.task_ids, crowd.right_ids, crowd.annotator_ids, crowd.labels

    def objective(point):
        scores, eta = point[:6], 1 / (1 + np.exp(-point[6:]))
        won = 1 / (1 + np.exp(np.where(answer == 0, -1, 1) * (scores[left] - scores[right])))
        virtual = np.log(1 / (1 + np.exp(-scores))) + np.log(1 / (1 + np.exp(scores)))
        prior = (4 * np.log(eta) + np.log(1 - eta)).sum()
        return -(np.log(eta[who] * won + (1 - eta[who]) * (1 - won)).sum() + 0.5 * virtual.sum() + prior)

    found = CrowdBT(tol=1e-6).fit(crowd)
    start = np.concatenate([found.scores, np.log(found.shares / (1 - found.shares))])
    assert -objective(start) == pytest.approx(found.history[-1], abs=1e-6)
    theirs = minimize(objective, start + 0.01, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    assert objective(start) <= theirs.fun + 1e-6
    assert found.skills[3] < 0.5 < found.skills[:2].min()


# === What each annotator is like ===


def test_slopes_biases_and_a_taste_for_equal_are_found():
    rng = np.random.default_rng(1)
    slopes, biases = rng.uniform(0.0, 2.0, 15), rng.normal(0, 0.6, 15)
    crowd, scores = simulated(20, 15, 30_000, slopes=slopes, biases=biases)
    found = AnnotatorBradleyTerry().fit(crowd)
    assert np.corrcoef(found.scores, scores)[0, 1] > 0.99
    assert np.corrcoef(found.skills, slopes)[0, 1] > 0.98
    assert np.corrcoef(found.position_biases(), biases)[0, 1] > 0.97
    plain = BradleyTerry().fit(crowd)
    assert found.log_likelihood > plain.log_likelihood + 500


@METHODS
def test_annotators_who_answer_at_random_are_found_and_do_not_hide_the_scores(method):
    slopes = np.repeat([1.5, 0.0], [10, 5])
    crowd, scores = simulated(25, 15, 6000, slopes=slopes, seed=5)
    found = create(method, kind="preference").fit(crowd)
    assert spearmanr(found.scores, scores).statistic > 0.9
    if found.skills is not None:
        assert found.skills[:10].min() > found.skills[10:].max()


# === Every method ===


@METHODS
@pytest.mark.parametrize("ties", ["davidson", "rao-kupper", "half"])
def test_position_biases_are_the_log_odds_of_an_annotator_about_equal_tasks(method, ties):
    settings = {"position_bias": True} if method == "bradley-terry" else {}
    crowd, _ = simulated(8, 5, 400, seed=2, biases=np.array([0.0, 1.0, -1.0, 0.5, 2.0]))
    found = create(method, kind="preference", ties=ties, **settings).fit(crowd)
    if method == "crowd-bt":
        assert found.position_biases() is None
        return
    lead = found.bias + (0 if found.biases is None else found.biases)
    tie = np.exp(found.tie + (0 if found.tie_biases is None else found.tie_biases))
    if ties == "rao-kupper":
        left, right = 1 / (1 + np.exp(tie - lead)), 1 / (1 + np.exp(tie + lead))
    else:
        left, right = (np.exp(side * lead / 2) for side in (1, -1))
        whole = left + right + (tie if ties == "davidson" else 0)
        left, right = left / whole, right / whole
    if found.guesses is not None:
        left, right = (
            found.shares * side + (1 - found.shares) * guess
            for side, guess in ((left, found.guesses[:, 0]), (right, found.guesses[:, 1]))
        )
    np.testing.assert_allclose(found.position_biases(), np.broadcast_to(np.log(left / right), 5), atol=1e-9)


@METHODS
@pytest.mark.parametrize("ties", ["davidson", "rao-kupper", "half"])
def test_results_are_finite_repeatable_and_written(method, ties, tmp_path):
    crowd, _ = simulated(8, 5, 120, seed=2)
    before = crowd.labels.copy()
    found = create(method, kind="preference", ties=ties).fit(crowd)
    again = create(method, kind="preference", ties=ties).fit(crowd)
    np.testing.assert_allclose(found.scores, again.scores, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(crowd.labels, before)
    assert found.converged
    assert (np.diff(found.history) >= 0).all()
    probabilities = found.answer_probabilities(crowd)
    assert probabilities.shape == (120, 2 if ties == "half" else 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(found.probabilities([0], [1])[0, :2], found.probabilities([1], [0])[0, 1::-1])
    if ties != "half":
        said = probabilities[np.arange(120), crowd.labels]
        assert np.log(said).sum() == pytest.approx(found.log_likelihood, abs=1e-6)
    read = PreferenceAggregation.from_parquet(found.to_parquet(tmp_path / "out"))
    for each in fields(found):
        theirs, ours = getattr(read, each.name), getattr(found, each.name)
        np.testing.assert_array_equal(theirs, ours, err_msg=each.name)
    np.testing.assert_array_equal(read.answer_probabilities(crowd), probabilities)
    assert found.annotations_per_pair.sum() == 120


@METHODS
def test_renaming_tasks_and_shuffling_rows_permutes_the_scores(method):
    crowd, _ = simulated(8, 5, 300, seed=6)
    order = np.random.default_rng(0).permutation(8)
    shuffled = replace(crowd, task_ids=order[crowd.task_ids], right_ids=order[crowd.right_ids])
    shuffled = shuffled.select_rows(np.random.default_rng(1).permutation(300))
    found = create(method, kind="preference", tol=1e-7).fit(crowd)
    other = create(method, kind="preference", tol=1e-7).fit(shuffled)
    np.testing.assert_allclose(other.scores[order], found.scores, atol=1e-5)


@METHODS
def test_other_annotations_are_refused(method):
    aggregator = create(method, kind="preference")
    with pytest.raises(DataError, match="kind 'preference', got kind 'classification'"):
        aggregator.fit(Annotations.from_dense([[0, 1]]))
    crowd, _ = simulated(8, 5, 300)
    with pytest.raises(DataError, match="needs at least one comparison"):
        aggregator.fit(crowd.select_rows(np.zeros(300, bool)))
    with pytest.raises(DataError, match="other tasks"):
        aggregator.fit(crowd).answer_probabilities(simulated(9, 5, 300)[0])
    with pytest.raises(ConfigError, match="ties"):
        create(method, kind="preference", ties="halve")
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
        create(method, kind="preference", max_iter=2).fit(crowd)


def test_methods_for_classes_take_the_pairs_and_refuse_preferences():
    crowd, _ = simulated(6, 5, 400)
    with pytest.raises(DataError, match="got kind 'preference'"):
        DawidSkene().fit(crowd)
    assert MajorityVote().fit(crowd.pairs()[1]).posteriors.shape == (30, 3)


# === More annotations later ===


@METHODS
def test_going_on_from_an_earlier_result_ends_where_a_fit_to_all_does(method):
    crowd, _ = simulated(12, 8, 1500, seed=8, biases=np.linspace(-0.5, 0.5, 8))
    order = np.random.default_rng(0).permutation(12)
    crowd = replace(crowd, tasks=np.array([f"t{code}" for code in order]))
    few = crowd.select_rows((crowd.task_ids < 8) & (crowd.right_ids < 8) & (crowd.annotator_ids < 6)).select_tasks(
        range(8)
    )
    aggregator = create(method, kind="preference", tol=1e-8, max_iter=5000)
    whole = aggregator.fit(crowd)
    found = aggregator.partial_fit(crowd, aggregator.partial_fit(few))
    assert found.converged
    np.testing.assert_allclose(found.scores, whole.scores, atol=1e-6)
    for name in ("slopes", "biases", "shares"):
        if getattr(whole, name) is not None:
            np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-6)
    other = aggregator.partial_fit(crowd, AnnotatorBradleyTerry().fit(few))
    np.testing.assert_allclose(other.scores, whole.scores, atol=1e-6)
    again = aggregator.partial_fit(crowd, whole)
    assert again.num_iterations <= 2
    with pytest.raises(DataError, match="the earlier result is a Aggregation"):
        aggregator.partial_fit(crowd, MajorityVote().fit(crowd.pairs()[1]))


# === Command line ===


def test_the_command_reads_aggregates_and_writes(tmp_path, capsys, refusal_of):
    crowd, scores = simulated(8, 5, 300)
    crowd.to_frame().to_csv(tmp_path / "prefs.csv", index=False)
    write_csv(tmp_path / "gold.csv", ("task", "gold"), *enumerate(scores))
    words = ["aggregate", str(tmp_path / "prefs.csv"), "--kind", "preference", "--on-duplicate", "all",
             "--gold", str(tmp_path / "gold.csv")]  # fmt: skip
    assert main([*words, "--method", "annotator-bradley-terry", "--format", "csv", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "best task" in text
    assert "Spearman's rho with gold" in text
    assert "position biases" in text
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"tasks.csv", "pairs.csv", "annotators.csv", "summary.json"}
    assert json.loads((tmp_path / "out/summary.json").read_text())["kind"] == "preference"
    assert (tmp_path / "out/tasks.csv").read_text().startswith('"task","score","rank","group","annotations"')
    for _ in range(2):  # a result may be replaced with --force
        assert main([*words, "--out", str(tmp_path / "scores.csv"), "--force"]) == 0
    capsys.readouterr()
    assert "--wide: a wide table has one task a row" in refusal_of(*words, "--wide", "--out", str(tmp_path / "x"))
    assert main([*words, "--calibrate", "--out", str(tmp_path / "x")]) == 4
    assert "--calibrate: calibration is for classes; leave it out." in capsys.readouterr().err
    assert main([*words[:2], "--out", str(tmp_path / "x")]) == DataError.exit_code
    assert "(left, right), which are aggregated with --kind preference." in capsys.readouterr().err
