"""Several labels per task: each label by itself, with empty sets as answers."""

import json

import numpy as np
import pytest
from csv_files import read_csv, write_csv
from refusals import about, bad_row

from crowdzoo.aggregation import Aggregation, MultiLabel, MultiLabelAggregation, calibrate, create
from crowdzoo.commands.main import main
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.reading.instances.gold import read_gold_labels

ROWS = [
    ("1", "ann", "cat|indoors"), ("1", "bob", "cat"), ("1", "cid", "cat|indoors|cat"),
    ("2", "ann", ""), ("2", "bob", " "), ("2", "cid", "dog"),
    ("3", "ann", "dog|indoors"), ("3", "bob", "dog|indoors"),
]  # fmt: skip
GOLD = ("task", "gold")


def write(path, rows=ROWS, header=("task", "annotator", "label")):
    return write_csv(path, header, *rows)


def read(path):
    return Annotations.read(path, label_separator="|", on_duplicate="all", no_label="(none)")


@pytest.fixture
def crowd(tmp_path):
    return read(write(tmp_path / "a.csv"))


def test_votes_are_the_shares_of_the_annotators_who_chose_a_label(crowd):
    found = MultiLabel("majority-vote").fit(crowd)
    assert found.label_names.tolist() == ["cat", "dog", "indoors"]
    expected = [[1, 0, 2 / 3], [0, 1 / 3, 0], [0, 1, 1]]
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-12)
    assert found.label_sets == [["cat", "indoors"], [], ["dog", "indoors"]]
    assert found.annotations_per_task.tolist() == [3, 3, 2], "an empty set is an answer, a label said twice is one"
    assert found.annotations_per_annotator.tolist() == [3, 3, 2]


def test_sensitivity_and_specificity_are_shares_of_the_expected_tasks(crowd):
    found = MultiLabel("majority-vote").fit(crowd)
    # label dog: tasks 1, 2, 3 have it with probability 0, 1/3, 1. ann says no, no, yes; cid, not asked for 3, no, yes
    assert found.sensitivity[:, 1] == pytest.approx([3 / 4, 3 / 4, 1])
    assert found.specificity[:, 1] == pytest.approx([1, 1, 1 / (1 + 2 / 3)])


@pytest.mark.parametrize(
    ("method", "settings"), [("dawid-skene", {"prior": 0.5}), ("robust", {}), ("mace", {"seed": 3})]
)
def test_each_label_is_what_the_method_makes_of_its_yes_and_no(crowd, method, settings):
    aggregator = MultiLabel(method, settings=settings)
    found = aggregator.fit(crowd)
    for place, (name, table) in enumerate(aggregator.tables(crowd).items()):
        assert table.classes.tolist() == ["no", "yes"]
        alone = create(method, **settings).fit(table)
        assert found.label_names[place] == name
        np.testing.assert_allclose(found.probabilities[:, place], alone.posteriors[:, 1], rtol=0, atol=1e-12)


def test_what_is_written_is_read_again(crowd, tmp_path):
    found = MultiLabel("dawid-skene").fit(crowd)
    again = MultiLabelAggregation.from_parquet(found.to_parquet(tmp_path / "out"))
    for name in ("tasks", "annotators", "label_names", "probabilities", "chosen", "sensitivity", "specificity",
                 "annotations_per_task", "annotations_per_annotator"):  # fmt: skip
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert (again.method, again.converged, again.notes) == ("dawid-skene", found.converged, found.notes)
    with pytest.raises(DataError, match=r"several labels per task, not of classes \(MultiLabelAgg"):
        Aggregation.from_parquet(tmp_path / "out")


def test_what_cannot_be_aggregated_is_said(tmp_path):
    mixed = Annotations.from_arrays([1, 1], ["ann", "ann"], ["cat", "(none)"], on_duplicate="all")
    with pytest.raises(DataError, match=r"annotator 'ann' gives task '?1'? '\(none\)'"):
        MultiLabel().fit(mixed)
    empty = read(write(tmp_path / "b.csv", [("1", "ann", ""), ("2", "ann", "")]))
    with pytest.raises(DataError, match="no annotation gives a task a label"):
        MultiLabel().fit(empty)
    bar = Annotations.from_arrays([0, 1], ["a", "b"], ["x|y", "z"], on_duplicate="all")
    with pytest.raises(DataError, match=r"the label 'x\|y' contains \|"):
        MultiLabel().fit(bar)
    ratings = Annotations.from_arrays([0], ["a"], [1.0], kind="regression")
    with pytest.raises(DataError, match="MultiLabel needs annotations of kind 'classification'"):
        MultiLabel().fit(ratings)
    with pytest.raises(ConfigError, match="prior"):
        MultiLabel("robust", settings={"prior": 1})
    with pytest.raises(ConfigError, check=about("method", "dawid")):
        MultiLabel("dawid")


def test_more_labels_than_can_be_fitted_are_refused_with_their_number(tmp_path, refusal_of):
    """A cell of 20,000 labels took a fit for each of them."""
    (tmp_path / "a.csv").write_text(f"task,annotator,label\n1,ann,{';'.join(f'x{each}' for each in range(20_000))}\n")
    words = ["--multi-label", "--label-separator", ";", "--out", str(tmp_path / "out")]
    said = refusal_of("aggregate", str(tmp_path / "a.csv"), *words, code=3)
    assert "20,000 labels need 20,000 fits" in said
    rows = [0] * 4002, ["a", "b"] * 2001, [f"x{each // 2}" for each in range(4002)]
    with pytest.raises(DataError, match=r"2,001 labels need .* leave out the rare ones"):
        MultiLabel().tables(Annotations.from_arrays(*rows, on_duplicate="all"))


def test_an_empty_cell_stays_an_error_unless_it_stands_for_no_label(tmp_path):
    write(tmp_path / "a.csv")
    with pytest.raises(DataError, check=bad_row(5, "label", "")):
        Annotations.read(tmp_path / "a.csv", label_separator="|", on_duplicate="all")
    with pytest.raises(ConfigError, check=about("no_label")):
        Annotations.read(tmp_path / "a.csv", no_label=" ")


def test_the_command_prints_each_label_and_writes_the_probabilities(tmp_path, here, capsys):
    write(tmp_path / "a.csv")
    words = ["aggregate", "a.csv", "--multi-label", "--label-separator", "|", "--method", "majority-vote"]
    assert main([*words, "--out", "labels.csv"]) == 0
    said = capsys.readouterr().out
    # alpha of dog by hand: of 8 answers 3 are yes; D_o = 2 * 2 / (2 * 8), D_e = 2 * 3 * 5 / (8 * 7)
    assert f"holds for 1 task; agreement {1 - (4 / 16) / (30 / 56):.3f}" in said
    assert "no label" in said
    rows = read_csv("labels.csv")
    assert [row["labels"] for row in rows] == ["cat|indoors", "", "dog|indoors"]
    assert float(rows[1]["probability_dog"]) == pytest.approx(1 / 3)
    assert main([*words, "--out", "labels.csv", "--force"]) == 0, "its own file may be replaced"
    # one label a row is the same
    pairs = [(t, a, label) for t, a, text in ROWS for label in dict.fromkeys(text.strip().split("|"))]
    write(tmp_path / "long.csv", pairs)
    assert (
        main(["aggregate", "long.csv", "--multi-label", "--method", "majority-vote", "--out", "long_labels.csv"]) == 0
    )
    assert (tmp_path / "long_labels.csv").read_bytes() == (tmp_path / "labels.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kind", "regression"], "--multi-label is for classes; leave it out with --kind regression"),
        (["--wide"], "--wide does not go with --multi-label"),
        (["--on-duplicate", "first"], "--on-duplicate first does not go with --multi-label"),
        (["--method", "bayes"], "unknown aggregation method 'bayes'"),
    ],
)
def test_options_that_do_not_go_along_are_refused(tmp_path, here, refusal_of, words, message):
    write(tmp_path / "a.csv")
    assert message in refusal_of("aggregate", "a.csv", "--multi-label", "--out", "out", *words)
    assert not (tmp_path / "out").exists()


def drawn(seed=0, num_tasks=300):
    """Three labels of 300 tasks by eight annotators who miss a label or add one; and which labels hold, [N, 3]."""
    rng = np.random.default_rng(seed)
    holds = rng.random((num_tasks, 3)) < (0.5, 0.3, 0.2)
    said = holds[:, None] ^ (rng.random((num_tasks, 8, 3)) < 0.25)
    task, who, label = np.nonzero(said)
    empty = np.argwhere(~said.any(axis=2))
    columns = np.r_[task, empty[:, 0]], np.r_[who, empty[:, 1]], np.array([*"xyz", "(none)"])
    crowd = Annotations.from_arrays(*columns[:2], columns[2][np.r_[label, np.full(len(empty), 3)]], on_duplicate="all")
    return crowd, holds


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")  # gold contradicts the votes
def test_known_labels_are_kept_and_each_label_has_its_own():
    crowd, holds = drawn()
    gold = {"y": np.where(np.arange(300) < 50, 1 - holds[:, 1], -1)}
    found = MultiLabel("dawid-skene").fit(crowd, gold)
    np.testing.assert_array_equal(found.chosen[:50, 1], ~holds[:50, 1])
    table = MultiLabel().tables(crowd)["y"]
    np.testing.assert_array_equal(
        found.probabilities[:, 1], create("dawid-skene").fit(table, gold["y"]).posteriors[:, 1]
    )
    without = MultiLabel("dawid-skene").fit(crowd)
    np.testing.assert_allclose(found.probabilities[:, [0, 2]], without.probabilities[:, [0, 2]], rtol=1e-9, atol=1e-12)
    assert without.accuracy({"x": holds[:, 0].astype(int)})["x"] == (without.chosen[:, 0] == holds[:, 0]).mean()


def test_a_calibrated_label_has_an_interval(tmp_path):
    crowd, holds = drawn(1)
    gold = {"z": np.where(np.arange(300) < 100, holds[:, 2], -1)}
    found = MultiLabel("dawid-skene").fit(crowd, gold, calibrated=True)
    table = MultiLabel().tables(crowd)["z"]
    alone = calibrate(create("dawid-skene").fit(table), table, gold["z"])
    np.testing.assert_allclose(found.probabilities[:, 2], alone.posteriors[:, 1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.accuracy_intervals[2], alone.accuracy_interval, rtol=1e-9)
    assert np.isnan(found.accuracy_intervals[:2]).all()
    found.to_parquet(tmp_path / "labels")
    again = MultiLabelAggregation.from_parquet(tmp_path / "labels")
    np.testing.assert_array_equal(again.accuracy_intervals, found.accuracy_intervals)


def test_gold_that_does_not_fit_is_refused():
    crowd, holds = drawn()
    with pytest.raises(DataError, match="gold has the label 'w', which no annotation has"):
        MultiLabel().fit(crowd, {"w": holds[:, 0]})
    with pytest.raises(ConfigError, match="calibrated needs gold"):
        MultiLabel().fit(crowd, calibrated=True)
    with pytest.raises(DataError, match="label 'x': gold"):
        MultiLabel().fit(crowd, {"x": [1, 0]})
    with pytest.raises(DataError, match="gold of label 'w' has to be"):
        MultiLabel("majority-vote").fit(crowd).accuracy({"w": np.ones(300, int)})


@pytest.mark.parametrize(
    ("cell", "message"), [("x|w", "names a label that is not one of"), ("x|(none)", "for no label, and a label")]
)
def test_gold_with_a_strange_label_is_refused_with_its_row(tmp_path, cell, message):
    write(tmp_path / "gold.csv", [("1", "x"), ("2", cell)], header=GOLD)
    with pytest.raises(DataError, match=message) as found:
        read_gold_labels(tmp_path / "gold.csv", np.array(["1", "2", "3"], object), ["x", "y"])
    assert "row 3" in str(found.value)  # the header is row 1


def test_gold_that_is_empty_is_unknown(tmp_path):
    write(tmp_path / "gold.csv", [("1", "x, y"), ("2", ""), ("3", "(none)")], header=GOLD)
    found = read_gold_labels(tmp_path / "gold.csv", np.array(["3", "2", "1", "9"], object), ["x", "y"], separator=",")
    assert {label: codes.tolist() for label, codes in found.items()} == {"x": [0, -1, 1, -1], "y": [0, -1, 1, -1]}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("command", ["aggregate", "report"])
def test_the_answer_that_no_label_holds_may_have_another_name(tmp_path, here, capsys, command):
    rows = [(t, a, "NONE" if t != "1" or a != "e" else "sports") for t in "123456" for a in "abcdef"]
    write(tmp_path / "a.csv", rows)
    words = [command, "a.csv", "--multi-label", "--method", "majority-vote", "--out", "out.html"]
    if command == "aggregate":
        words[-1] = "out.csv"
    assert main(words) == 0
    advice = "If it is the answer that none holds, say so: --no-label NONE. If it means that there is no answer, leave"
    assert advice in capsys.readouterr().err
    assert main([*words, "--force", "--no-label", "NONE"]) == 0
    assert "counts as" not in capsys.readouterr().err
    if command == "aggregate":
        first, *_ = read_csv("out.csv")
        assert first["labels"] == ""
        assert float(first["probability_sports"]) == pytest.approx(1 / 6)


# of each: three answer per task, one with a label, two with none
ANSWERS = (("a", ["x"]), ("b", []), ("c", []))
EMPTY = {
    "argilla": [{"id": "1", "fields": {"text": "x"}, "responses": {"topic": [
        {"user_id": who, "status": "submitted", "value": said} for who, said in ANSWERS]}}],
    "label-studio": [{"id": 1, "data": {"text": "x"}, "annotations": [
        {"completed_by": who, "result": [
            {"from_name": "topic", "type": "choices", "value": {"choices": said}}] * len(said)}
        for who, said in ANSWERS]}],
    "prodigy": [{"_input_hash": 1, "_annotator_id": who, "text": "x", "accept": said, "answer": "accept"}
        for who, said in ANSWERS],
}  # fmt: skip


@pytest.mark.parametrize("platform", EMPTY)
def test_empty_answers_of_a_platform_count_where_several_labels_may_hold(tmp_path, here, capsys, platform):
    (tmp_path / "a.json").write_text(json.dumps(EMPTY[platform]))
    words = ["aggregate", "a.json", "--platform", platform, "--multi-label", "--method", "majority-vote"]
    assert main([*words, "--out", "out.csv"]) == 0
    (row,) = read_csv("out.csv")
    assert (row["annotations"], float(row["probability_x"])) == ("3", pytest.approx(1 / 3))
    # without it they are counted
    with pytest.warns(UserWarning, match=r"left out: .*: 2"):
        assert len(Annotations.read("a.json", platform=platform)) == 1
    # and convert keeps them, where it is asked to
    words = ["convert", "a.json", "--platform", platform, "--no-label", "(none)", "--out", "data"]
    assert main(words) == 0
    assert (tmp_path / "data" / "annotations.csv").read_text().count("(none)") == 2


@pytest.mark.slow
def test_gold_of_the_command(tmp_path, here, capsys):
    crowd, holds = drawn(2)
    sets = ["|".join(np.array([*"xyz"])[row]) or "(none)" for row in holds]
    write(tmp_path / "gold.csv", enumerate(sets[:100]), header=GOLD)
    names = (crowd.tasks[crowd.task_ids], crowd.annotators[crowd.annotator_ids], crowd.classes[crowd.labels])
    write(
        tmp_path / "a.csv",
        [(task, who, "" if label == "(none)" else label) for task, who, label in zip(*names, strict=True)],
    )
    words = ["aggregate", "a.csv", "--multi-label", "--method", "dawid-skene", "--gold", "gold.csv", "--out", "out.csv"]
    assert main(words) == 0
    gold = {label: np.where(np.arange(300) < 100, holds[:, place], -1) for place, label in enumerate("xyz")}
    accuracy = MultiLabel("dawid-skene").fit(crowd).accuracy(gold)
    said = capsys.readouterr().out
    assert all(f"accuracy {accuracy[label]:.4f}" in said for label in "xyz")
    assert main([*words, "--use-gold", "--force"]) == 0
    found = {row["task"]: row["labels"] for row in read_csv("out.csv")}
    assert [found[str(task)] or "(none)" for task in range(100)] == sets[:100]
    capsys.readouterr()
    assert main([*words, "--calibrate", "--force"]) == 0
    estimate, low, high = MultiLabel("dawid-skene").fit(crowd, gold, calibrated=True).accuracy_intervals[0]
    assert f"accuracy of the others {estimate:.4f} ({low:.4f} to {high:.4f})" in capsys.readouterr().out
