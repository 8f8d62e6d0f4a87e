"""Lists in order: their reader, their pairs, and Plackett-Luce against choix, by hand, and on simulated annotators."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from csv_files import read_csv
from scipy.stats import spearmanr

from crowdzoo.aggregation import BradleyTerry, PlackettLuce
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.instances import read_rankings
from crowdzoo.tables import Rankings

PLAIN = PlackettLuce(prior=0, slopes=False, tol=1e-9)
LISTS = [(0, 1, 2, 3), (1, 0, 3, 2), (2, 0, 1), (3, 1, 0), (0, 2, 1, 3), (1, 2), (0, 3, 2), (2, 1, 3, 0)]
CHOICES = [(0, [1, 2, 3]), (1, [0, 2, 3]), (0, [1, 2]), (2, [1, 3]), (3, [0, 1, 2]), (1, [2, 3]), (2, [0])]
# of choix 0.4.1: ilsr_rankings(4, LISTS) and opt_top1(4, CHOICES), mean taken off
CHOIX_LISTS = [0.28921498962692904, 0.3714144899182269, -0.25671904788364563, -0.4039104316615104]
CHOIX_CHOICES = [0.32023346119654794, 0.1379119045926936, -0.08523164690571532, -0.3729137188835262]


def rankings(lists, ranked=None, annotators=None):
    """Lists of tasks, best first, of which the first ones have a rank."""
    rows = []
    for number, tasks in enumerate(lists):
        most = len(tasks) if ranked is None else ranked
        who = number if annotators is None else annotators[number]
        rows += [(task, who, place if place < most else np.nan, number) for place, task in enumerate(tasks)]
    return Rankings.from_arrays(*zip(*rows, strict=True))


def simulated(skills, num_tasks=12, lists_each=30, size=5, seed=0):
    """Lists by Plackett and Luce's model: the largest of scores with Gumbel noise first; and the scores."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=num_tasks)
    lists, who = [], []
    for annotator, skill in enumerate(skills):
        for _ in range(lists_each):
            shown = rng.choice(num_tasks, size, replace=False)
            lists.append(shown[np.argsort(-(skill * scores[shown] + rng.gumbel(size=size)))])
            who.append(annotator)
    return rankings(lists, annotators=who), scores


def test_scores_are_choixs():
    for found, expected in (
        (PLAIN.fit(rankings(LISTS)), CHOIX_LISTS),
        (PLAIN.fit(rankings([(best, *rest) for best, rest in CHOICES], ranked=1)), CHOIX_CHOICES),
    ):
        np.testing.assert_allclose(found.scores - found.scores.mean(), expected, atol=1e-6)


def test_lists_of_two_are_comparisons_by_bradley_terry():
    rng = np.random.default_rng(0)
    lists = [tuple(rng.permutation(6)[:2]) for _ in range(300)]
    crowd = rankings(lists)
    ours, theirs = PlackettLuce(slopes=False, tol=1e-8).fit(crowd), BradleyTerry(tol=1e-8).fit(crowd.preferences())
    np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-7)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood)


def test_the_likelihood_is_the_product_of_the_choices():
    found = PlackettLuce(tol=1e-6).fit(crowd := simulated([1.5, 0.5, 0.0])[0])
    total = 0.0
    for row in range(len(crowd)):
        tasks = crowd.task_ids[crowd.list_ids == row]
        values = found.slopes[crowd.annotator_ids[row]] * found.scores[tasks]
        total += sum(values[place] - np.log(np.exp(values[place:]).sum()) for place in range(len(tasks)))
    assert found.log_likelihood == pytest.approx(total)
    assert (np.diff(found.history) >= 0).all()


def test_scores_and_who_orders_at_random_are_found():
    crowd, scores = simulated([1.5, 1.2, 1.0, 1.0, 0.0])
    found = PlackettLuce().fit(crowd)
    assert spearmanr(found.scores, scores).statistic > 0.95
    assert found.skills.argmin() == 4
    assert found.skills[4] < 0.4
    assert found.skills[0] > 0.8


def test_pairs_are_all_that_a_list_says_and_no_side_is_the_better_one():
    crowd = rankings([("a", "b", "c")], ranked=1).preferences()
    said = {}
    for left, right, label in zip(crowd.task_ids, crowd.right_ids, crowd.labels, strict=True):
        said[tuple(sorted((crowd.tasks[left], crowd.tasks[right])))] = crowd.tasks[right if label else left]
    assert said == {("a", "b"): "a", ("a", "c"): "a"}  # of b and c nothing is known
    many = simulated([1.0] * 4)[0].preferences()
    assert (many.labels == 0).mean() == pytest.approx(0.5, abs=0.05)


def test_the_command_reads_ranks_and_writes_scores(tmp_path, capsys, refusal_of):
    crowd, scores = simulated([1.5, 1.0, 1.0], num_tasks=8)
    path, gold, out = tmp_path / "r.csv", tmp_path / "gold.csv", tmp_path / "out.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "judge", "list", "place"])
        for row in range(len(crowd)):
            for place, task in enumerate(crowd.task_ids[crowd.list_ids == row]):
                shown = place + 1 if place < 4 else ""
                writer.writerow([f"t{task}", f"w{crowd.annotator_ids[row]}", f"l{row}", shown])
    gold.write_text("task,gold\n" + "".join(f"t{task},{score}\n" for task, score in enumerate(scores)))
    words = ["aggregate", str(path), "--kind", "preference", "--rankings", "--columns",
             "task=item,annotator=judge,rank=place", "--gold", str(gold), "--out", str(out)]  # fmt: skip
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "plackett-luce" in said
    assert ["lists", "90"] in [line.split() for line in said.splitlines()]
    assert "left" not in said
    assert "Spearman's rho with gold" in said
    found = {row["task"]: float(row["score"]) for row in read_csv(out)}
    assert spearmanr([found[f"t{task}"] for task in range(8)], scores).statistic > 0.9
    assert main([*words, "--force", "--method", "bradley-terry"]) == 0
    assert "bradley-terry" in capsys.readouterr().out
    assert main([*words[:2], "--rankings", "--out", str(tmp_path / "x")]) == ConfigError.exit_code
    assert "--rankings are preferences: add --kind preference" in capsys.readouterr().err
    assert "--classes does not go with --rankings" in refusal_of(*words, "--classes", "a,b,c")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,ann,a,1\n1,ann,a,2\n", "r.csv, row 3, column 'task': 'a' is in its list twice"),
        ("1,ann,a,1\n1,ann,b,1\n", "row 3, column 'rank': '1' is the rank of two tasks of a list"),
        ("1,ann,a,1\n1,bob,b,2\n", "row 3, column 'list': '1' is a list of two annotators"),
        ("1,ann,a,1\n", "row 2, column 'list': '1' is a list of one task"),
        ("1,ann,a,\n1,ann,b,\n", "row 2, column 'list': '1' is a list without a rank"),
        ("1,ann,a,first\n1,ann,b,2\n", "row 2, column 'rank': 'first' is not a number"),
        ("1,ann,a,inf\n1,ann,b,2\n", "row 2, column 'rank': 'inf' is not a finite number"),
        ("1,ann,,1\n1,ann,b,2\n", "row 2, column 'task': '' is empty"),
    ],
)
def test_files_that_are_no_lists_in_order_are_refused(tmp_path, rows, message):
    path = tmp_path / "r.csv"
    path.write_text("list,annotator,task,rank\n" + rows)
    with pytest.raises(DataError) as error:
        read_rankings(path)
    assert message in str(error.value)


def test_a_file_of_pairs_is_no_file_of_lists(tmp_path):
    (tmp_path / "a.csv").write_text("left,right,annotator,label\na,b,x,left\n")
    with pytest.raises(DataError, match=r"a\.csv: holds pairs .*leave out rankings"):
        read_rankings(tmp_path / "a.csv")


def test_arrays_that_are_no_lists_in_order_are_refused():
    with pytest.raises(DataError, match=r"row 1, column 'rank': 1\.0 is the rank of two tasks"):
        Rankings.from_arrays(["a", "b"], ["ann", "ann"], [1, 1])
    with pytest.raises(DataError, match=r"columns must have the same length, got \[2, 1, 1, 2\]"):
        Rankings.from_arrays(["a", "b"], ["ann"], [1, 2])
    with pytest.raises(DataError, match="at least one list"):
        PlackettLuce().fit(Rankings.from_arrays([], [], []))


def test_tasks_whose_scores_differ_by_rounding_share_a_rank():
    rankings = Rankings.from_arrays(list("abcbac"), [0, 0, 0, 1, 1, 1], [1, 2, 3, 1, 2, 3], [0, 0, 0, 1, 1, 1])
    found = PlackettLuce().fit(rankings)
    assert found.ranks.tolist() == [1, 1, 3]
    nearly = replace(found, scores=np.array([0.5, 0.5 + 4e-16, -1.0]))
    assert nearly.ranks.tolist() == [1, 1, 3]
