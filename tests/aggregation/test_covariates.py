"""What sways annotators besides the tasks: covariates of comparisons in annotator-bradley-terry."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import AnnotatorBradleyTerry, PreferenceAggregation
from crowdzoo.commands import main as cli

PLAIN = {"prior": 0, "slope_variance": 1e-6, "bias_variance": 1e-6, "tie_variance": 1e-6}


def crowd(seed, number=600, effect=0.5, tasks=8, annotators=5, equal=0.0):
    """Comparisons by judges who prefer what is longer; better models give longer answers."""
    rng = np.random.default_rng(seed)
    scores, usual = rng.normal(size=tasks), rng.normal(size=tasks)
    left = rng.integers(0, tasks, number)
    right = (left + rng.integers(1, tasks, number)) % tasks
    who = rng.integers(0, annotators, number)
    length = np.stack([(scores + usual)[side] / 2 + rng.normal(size=number) for side in (left, right)], axis=1)
    slope, bias = np.exp(rng.normal(0, 0.3, annotators)), rng.normal(0, 0.3, annotators)
    lead = slope[who] * (scores[left] - scores[right]) + bias[who] + effect * (length[:, 0] - length[:, 1])
    lead = lead + rng.logistic(size=number)
    label = np.where(np.abs(lead) < equal, "equal", np.where(lead > 0, "left", "right"))
    table = Annotations.from_arrays(left, who, label, right=right, kind="preference", on_duplicate="all")
    return table, length


def test_effects_and_their_errors_are_those_of_a_logistic_regression():
    """Annotators held alike. By scikit-learn, and the inverse of the information at its coefficients."""
    table, length = crowd(0)
    rows = np.arange(len(table))
    other = np.random.default_rng(1).random((len(table), 2)) < 0.3
    design = np.zeros((len(table), table.num_tasks))
    np.add.at(design, (rows, table.task_ids), 1)
    np.add.at(design, (rows, table.right_ids), -1)
    covariates = {"length": length, "own": other}
    differences = [values[:, 0].astype(float) - values[:, 1] for values in covariates.values()]
    design = np.column_stack([design[:, 1:], *differences])
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10, max_iter=10_000).fit(
        design, table.labels == 0
    )
    chance = model.predict_proba(design)[:, 1]
    both = np.column_stack([design, np.ones(len(table))])
    errors = np.sqrt(np.diag(np.linalg.inv(both.T @ (both * (chance * (1 - chance))[:, None]))))
    result = AnnotatorBradleyTerry(**PLAIN).fit(table, covariates=covariates)
    for place, name in ((-2, "length"), (-1, "own")):
        effect, error = result.effects[name]
        assert effect == pytest.approx(model.coef_[0, place], abs=1e-3)
        assert error == pytest.approx(errors[place - 1], rel=1e-2)
    assert result.scores[1:] - result.scores[0] == pytest.approx(model.coef_[0, :-2], abs=2e-3)


def test_the_interval_holds_the_effect():
    """60 crowds, of which 57 are to hold it: fewer than 52 have a probability of .005."""
    held = 0
    for seed in range(60):
        table, length = crowd(seed, effect=0.5 if seed % 2 else 0.0)
        effect, error = AnnotatorBradleyTerry().fit(table, covariates={"length": length}).effects["length"]
        held += abs(effect - (0.5 if seed % 2 else 0.0)) < 1.96 * error
    assert held >= 52


@pytest.mark.parametrize("ties", ["davidson", "rao-kupper", "half"])
def test_the_unit_and_the_side_do_not_matter_with_equal_answers(ties):
    table, length = crowd(3, equal=0.4)
    aggregator = AnnotatorBradleyTerry(ties=ties, tol=1e-6)
    effect, error = aggregator.fit(table, covariates={"length": length}).effects["length"]
    assert 2 * error < effect < 1
    small, small_error = aggregator.fit(table, covariates={"length": length * 1000 + 7}).effects["length"]
    assert (small, small_error) == pytest.approx((effect / 1000, error / 1000), rel=1e-4)
    other, _ = aggregator.fit(table, covariates={"length": length[:, ::-1]}).effects["length"]
    assert other == pytest.approx(-effect, rel=1e-4)


def test_scores_are_without_the_covariate_and_the_result_is_stored(tmp_path):
    table, length = crowd(4, number=3000, effect=2.0)
    result = AnnotatorBradleyTerry().fit(table, covariates={"length": length})
    scores = np.random.default_rng(4).normal(size=8)
    without = AnnotatorBradleyTerry().fit(table)
    assert np.corrcoef(result.scores, scores)[0, 1] > np.corrcoef(without.scores, scores)[0, 1]
    assert without.effects == {}
    result.to_parquet(tmp_path / "a")
    assert PreferenceAggregation.from_parquet(tmp_path / "a").effects == result.effects
    without.to_parquet(tmp_path / "b")
    assert PreferenceAggregation.from_parquet(tmp_path / "b").effects == {}


def test_what_tells_no_effect_is_refused():
    table, length = crowd(5)
    of_tasks = np.arange(8.0)
    for values, reason in (
        (length[:, 0], r"got shape \(600,\)"),
        (np.where(length > 2, np.nan, length), "with a gap"),
        (np.full((600, 2), "long"), "is not made of numbers"),
        (np.ones((600, 2)), "the same on both sides"),
        (np.stack([of_tasks[table.task_ids], of_tasks[table.right_ids]], axis=1), "is a constant of each task"),
    ):
        with pytest.raises(DataError, match=f"covariates.*'length'.*{reason}"):
            AnnotatorBradleyTerry().fit(table, covariates={"length": values})


def write(path, table, length, by_winner=False):
    names = np.array(["left", "right", "equal"])[table.labels]
    lines = [
        "winner,loser,judge,winner_length,loser_length" if by_winner else "a,b,judge,label,left_length,right_length"
    ]
    for row in range(len(table)):
        sides = [(f"m{task}", f"{size:.6f}") for task, size in
                 zip((table.task_ids[row], table.right_ids[row]), length[row], strict=True)]  # fmt: skip
        sides = sides[::-1] if by_winner and names[row] == "right" else sides
        label = [] if by_winner else [names[row]]
        cells = [sides[0][0], sides[1][0], f"j{table.annotator_ids[row]}", *label, sides[0][1], sides[1][1]]
        lines.append(",".join(cells))
    path.write_text("\n".join(lines) + "\n")


def test_the_command_reads_covariates_of_sides_and_of_winners(tmp_path, capsys):
    table, length = crowd(6)
    write(tmp_path / "pairs.csv", table, length)
    write(tmp_path / "won.csv", table, length, by_winner=True)
    options = ["--kind", "preference", "--on-duplicate", "all", "--covariate", "length"]
    columns = {"pairs.csv": "left=a,right=b,annotator=judge", "won.csv": "winner=winner,loser=loser,annotator=judge"}
    effects = []
    for name, chosen in columns.items():
        out = ["--columns", chosen, "--out", str(tmp_path / f"{name}.out")]
        assert cli.main(["aggregate", str(tmp_path / name), *options, *out]) == 0
        assert re.search(r"effect of length +\+0\.\d+ \(\+0\.\d+ to \+0\.\d+\)", capsys.readouterr().out)
        effects.append(PreferenceAggregation.from_parquet(tmp_path / f"{name}.out").effects["length"])
    expected = AnnotatorBradleyTerry().fit(table, covariates={"length": length}).effects["length"]
    assert effects[0] == pytest.approx(expected, rel=1e-3)
    assert effects[1] == pytest.approx(expected, abs=expected[1])  # sides of winners are drawn: without position bias
    assert effects[1][1] == pytest.approx(expected[1], rel=0.1)


@pytest.mark.filterwarnings("ignore:1 row was left out")
def test_the_command_refuses_covariates_that_it_cannot_pair_with_the_annotations(tmp_path, capsys):
    table, length = crowd(7, number=30)
    file = tmp_path / "a.csv"
    write(file, table, length)
    lines = file.read_text().splitlines()
    columns, out = ["--columns", "left=a,right=b,annotator=judge"], ["--out", str(tmp_path / "o")]
    usual = ["--kind", "preference", "--on-duplicate", "all", "--covariate", "length"]
    empty = [*lines[:3], lines[3].rpartition(",")[0] + ",", *lines[4:]]
    word = [*lines[:3], lines[3].rpartition(",")[0] + ",long", *lines[4:]]
    without = [*lines[:3], lines[3].replace("j", ""), ",m1,j1,left,1,2"]
    for text, options, reason in (
        (lines, ["--covariate", "length"], "add --kind preference"),
        (lines, [*usual, "--covariate", "width"], "has no column 'left_width'"),
        (lines, [*usual, "--exclude", "j1"], "--exclude does not go with --covariate"),
        (lines, [*usual, "--until", "2026-01-01"], "--until does not go with --covariate"),
        (lines, [*usual, "--method", "bradley-terry"], "is for --method annotator-bradley-terry"),
        (empty, usual, "row 4, column 'right_length': '' is empty. Write a number"),
        (word, usual, "row 4, column 'right_length': 'long'"),
        (without, [*usual, "--on-bad-rows", "reject"], "has 4 rows, of which 3 are annotations"),
    ):
        file.write_text("\n".join(text) + "\n")
        assert cli.main(["aggregate", str(file), *options, *columns, *out]) != 0
        said = capsys.readouterr().err
        assert reason in said, said
