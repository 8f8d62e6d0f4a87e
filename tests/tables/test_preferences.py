"""Preferences: two tasks a row, read by the rules of all other annotations."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusals import bad_row, bad_rows

from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.tables import Annotations

ROWS = [("tea", "milk", "ann", "left"), ("milk", "ale", "bob", "equal"), ("tea", "ale", "ann", "right")]


@pytest.fixture
def drinks():
    left, right, annotator, label = zip(*ROWS, strict=True)
    return Annotations.from_arrays(left, annotator, label, right=right, kind="preference")


def write(path, header, *rows):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_both_sides_share_one_list_of_tasks(drinks):
    assert drinks.tasks.tolist() == ["ale", "milk", "tea"]
    assert drinks.task_ids.tolist() == [2, 1, 2]
    assert drinks.right_ids.tolist() == [1, 0, 0]
    assert drinks.labels.tolist() == [0, 2, 1]
    assert drinks.classes.tolist() == ["left", "right", "equal"]
    assert drinks.redundancy.tolist() == [2, 2, 2]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_what_is_written_is_read_again(drinks, tmp_path, ending):
    path = tmp_path / f"drinks.{ending}"
    if ending == "parquet":
        drinks.to_parquet(path)
    elif ending == "csv":
        write_annotations(drinks, path)
    else:
        drinks.to_frame().to_json(path, orient="records", lines=True)
    assert Annotations.read(path, kind="preference") == drinks


def test_bad_rows_are_named_with_row_column_value_and_what_to_do(tmp_path):
    rows = ["1,2,a,left", "2,2,a,left", "3,1,a,lft", "1,2,a,right", "2,1,a,left", "1,,a,left"]
    path = write(tmp_path / "a.csv", "left,right,annotator,label", *rows)
    bad = (3, "right", "2"), (4, "label", "lft"), (5, "annotator", "a"), (7, "right", "")
    with pytest.raises(DataError, match=r"has compared '1' .left. with '2' .right. before, in", check=bad_rows(*bad)):
        Annotations.read(path, kind="preference")
    with pytest.warns(UserWarning, match="4 rows were left out"):
        assert len(Annotations.read(path, kind="preference", on_bad_rows="reject")) == 2
    with pytest.raises(DataError, match=r"'right' are missing.*columns={'left': 'NAME', 'right"):
        Annotations.read(write(tmp_path / "b.csv", "one,two,annotator,label", "1,2,a,left"), kind="preference")


def test_another_word_for_equal_is_answered_by_how_to_name_it(tmp_path):
    path = write(tmp_path / "a.csv", "left,right,annotator,label", "1,2,a,tie", "1,2,b,left")
    with pytest.raises(DataError, match=r"'tie' is not one of .* classes=\['LEFT', 'RIGHT', 'EQUAL'\]"):
        Annotations.read(path, kind="preference")
    assert len(Annotations.read(path, kind="preference", classes=["left", "right", "tie"])) == 2


def test_words_in_other_letters_are_answered_by_both_ways_out(tmp_path):
    path = write(tmp_path / "a.csv", "left,right,annotator,label", "1,2,a,Left", "1,2,b,lft")
    with pytest.raises(DataError) as error:
        Annotations.read(path, kind="preference")
    of_letters, of_typing = str(error.value).splitlines()[1:]
    assert "Did you mean 'left'? If the file has other words" in of_letters
    assert of_letters.endswith("classes=['LEFT', 'RIGHT', 'EQUAL'].")
    assert of_typing.endswith("Did you mean 'left'?")


@pytest.mark.parametrize("made", [list, np.array, pd.Series])
def test_numbers_on_one_side_are_the_same_tasks_as_strings_on_the_other(made):
    left, right = made([1, 2, 2]), made(["2", "1", "c"])
    frame = {"left": left, "right": right, "annotator": ["a", "b", "c"], "label": ["left"] * 3}
    columns = [left, ["a", "b", "c"], ["left"] * 3]
    for found in (
        Annotations.from_frame(frame, kind="preference"),
        Annotations.from_arrays(*columns, right=right, kind="preference"),
        Annotations.from_frame(pa.table({name: pa.array(values) for name, values in frame.items()}), kind="preference"),
    ):
        assert found.tasks.tolist() == ["1", "2", "c"]
        assert (found.task_ids.tolist(), found.right_ids.tolist()) == ([0, 1, 1], [1, 0, 2])
    with pytest.raises(DataError, check=bad_row(0, "right", "1")):
        Annotations.from_arrays([1], ["a"], ["left"], right=["1"], kind="preference")


def test_answers_of_other_names_come_back_from_a_file(tmp_path):
    answers = {"right": ["b", "c"], "kind": "preference", "classes": ["A", "B", "tie"]}
    given = Annotations.from_arrays(["a", "b"], ["x", "y"], ["A", "tie"], **answers)
    for rows in (
        given,
        Annotations.from_arrays(["a"] * 3, ["x", "y", "z"], ["A", "B", "tie"], **{**answers, "right": ["b"] * 3}),
    ):
        found = Annotations.from_parquet(rows.to_parquet(tmp_path / "a.parquet"))
        assert found.classes.tolist() == ["A", "B", "tie"]
        assert found.labels.tolist() == rows.labels.tolist()


def test_pairs_are_tasks_of_a_table_of_classes(drinks):
    pairs, table = drinks.pairs()
    assert pairs.tolist() == [[1, 0], [2, 0], [2, 1]]
    assert (table.kind, table.task_ids.tolist(), table.labels.tolist()) == ("classification", [2, 0, 1], [0, 2, 1])
    with pytest.raises(DataError, match="kind 'preference', got kind 'classification'"):
        table.pairs()


def test_as_many_comparisons_of_a_pair_are_kept_as_are_wanted():
    rng = np.random.default_rng(0)
    left = rng.integers(0, 20, 400)
    right = (left + rng.integers(1, 20, 400)) % 20
    table = Annotations.from_arrays(left, np.arange(400), ["left"] * 400, right=right, kind="preference")
    assert table.restrict(redundancy=1).pairs()[1].redundancy.max() == 1


def test_what_has_one_task_a_row_refuses_preferences(drinks):
    for call in (drinks.to_dense, drinks.padded, lambda: next(drinks.blocks())):
        with pytest.raises(DataError, match="of kind 'preference'; use pairs"):
            call()
    with pytest.raises(DataError, match="kind 'preference'"):
        Annotations.from_dense(np.zeros((2, 2), int), kind="preference")
    with pytest.raises(ValueError, match="right_ids belong to kind='preference'"):
        Annotations("preference", [0], [0], [0], [0, 1], [0], ["left", "right", "equal"])
    with pytest.raises(ConfigError, match="wide belongs to kinds"):
        Annotations.read("x.csv", kind="preference", wide=True)


def better_and_worse(seed=0, tasks=12, annotators=6):
    """Rows of the better task, the worse one and the annotator, and the true order of the tasks."""
    draw = np.random.default_rng(seed)
    quality = draw.permutation(tasks)
    rows = []
    for who in range(annotators):
        for one in range(tasks):
            for other in range(one + 1, tasks):
                if draw.random() < 0.4:
                    right = draw.random() < 1 / (1 + np.exp(-0.6 * abs(quality[one] - quality[other])))
                    ahead = (quality[one] > quality[other]) == right
                    pair = (f"t{one:02}", f"t{other:02}")
                    rows.append((*(pair if ahead else pair[::-1]), f"w{who}"))
    return rows, quality


def rho(folder, quality):
    scores = pd.read_csv(folder).sort_values("task")["score"]
    return np.corrcoef(scores.rank(), quality)[0, 1]


@pytest.mark.filterwarnings("ignore:.*columns were found by usual names")
@pytest.mark.parametrize("names", [("winner", "loser"), ("chosen", "rejected"), ("Better_ID", "Worse_ID")])
def test_columns_of_the_better_and_the_worse_task_are_read_as_such(tmp_path, here, names):
    rows, quality = better_and_worse()
    frame = pd.DataFrame(rows, columns=[*names, "annotator"])
    frame.to_csv("a.csv", index=False)
    frame.to_json("a.jsonl", orient="records", lines=True)
    frame.to_parquet("a.parquet", index=False)
    options = {} if names[0] in ("winner", "chosen") else {"columns": f"winner={names[0]},loser={names[1]}"}
    if names[0] == "chosen":
        with pytest.warns(UserWarning, match="column 'label' is not read, as 'chosen' is better"):
            Annotations.from_frame(frame.assign(label=1), kind="preference")
    first = Annotations.read("a.csv", kind="preference", **options)
    for found in (
        Annotations.read("a.jsonl", kind="preference", **options),
        Annotations.read("a.parquet", kind="preference", **options),
        Annotations.from_frame(frame, kind="preference", **options),
    ):
        assert sorted(better_of(found)) == sorted(better_of(first)) == sorted(rows)
    assert 0.4 < (first.labels == 0).mean() < 0.6, "the side says nothing"
    words = ["aggregate", "a.csv", "--kind", "preference", "--out", "scores.csv"]
    words += [f"--columns={options['columns']}"] if options else []
    assert cli.main(words) == 0
    assert rho("scores.csv", quality) > 0.9


def better_of(found):
    """Better task, worse task and annotator of each row."""
    sides = np.stack([found.tasks[found.task_ids], found.tasks[found.right_ids]], axis=1)
    who = found.annotators[found.annotator_ids]
    return [(row[said], row[1 - said], name) for row, said, name in zip(sides, found.labels, who, strict=True)]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_better_task_that_always_stands_on_one_side_is_noted_with_a_way_that_works(tmp_path, here, capsys, side):
    rows, quality = better_and_worse()
    names = ["left", "right"] if side == "left" else ["right", "left"]
    pd.DataFrame(rows, columns=[*names, "annotator"]).assign(label=side).to_csv("a.csv", index=False)
    words = ["aggregate", "a.csv", "--kind", "preference", "--out", "scores.csv"]
    assert cli.main(words) == 0
    printed = capsys.readouterr().out
    assert f"100 % of the judgments prefer the {side}" in printed
    (advice,) = re.findall(r"--columns (\S+)\.", printed)
    assert cli.main([*words, "--force", "--columns", advice]) == 0
    assert "judgments prefer" not in capsys.readouterr().out
    assert rho("scores.csv", quality) > 0.9
    # without a preference for a side in the method the scores are good as they are
    assert cli.main([*words, "--force", "--method", "bradley-terry"]) == 0
    assert rho("scores.csv", quality) > 0.9
    assert "judgments prefer" not in capsys.readouterr().out
