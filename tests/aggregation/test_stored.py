"""Out of core: the same numbers as in memory, whatever the size of the blocks, and nothing left on disk."""

import dataclasses
import json
import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import (
    GLAD,
    METHODS,
    Aggregation,
    ConvergenceWarning,
    DawidSkene,
    MajorityVote,
    OneCoinDawidSkene,
    Robust,
    StoredBlocks,
    VotesWarning,
    aggregate_blocks,
    aggregate_file,
    write_blocks,
)
from crowdzoo.aggregation.engine.coding import decode, encode
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.testing.aggregators import simulated_crowd

TIGHT = {"rtol": 0, "atol": 1e-9}


def odd_crowd():
    """Ties, annotators with one label, tasks with one and with none, a class that nobody names, annotators without."""
    table, _ = simulated_crowd(num_tasks=90, num_annotators=9, num_classes=3, redundancy=4, seed=5)
    task, annotator, label = table.task_ids, table.annotator_ids, table.labels
    keep = (task % 7 != 0) & ((task % 5 != 1) | (annotator % 2 == 0))
    task, annotator, label = task[keep] + 1, annotator[keep], label[keep]  # task 0 has none
    extra = np.array([[3, 10, 0], [40, 11, 1], [95, 12, 2], [95, 3, 1]])  # of one label each; 95 is a tie
    task, annotator, label = (
        np.concatenate([one, extra[:, place]]) for place, one in enumerate((task, annotator, label))
    )
    return Annotations.from_arrays(
        [f"task {code}" for code in task],
        annotator,
        [f"class {code}" for code in label],
        tasks=[f"task {code}" for code in range(100)],
        annotators=np.arange(14),
        classes=[f"class {code}" for code in range(5)],
    )


def quiet(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", VotesWarning)
        return function(*arguments, **options)


def assert_same(found, expected):
    """All attributes of two results."""
    for attribute in dataclasses.fields(Aggregation):
        one, other = getattr(found, attribute.name), getattr(expected, attribute.name)
        if isinstance(other, np.ndarray) and other.dtype.kind == "f":
            np.testing.assert_allclose(one, other, err_msg=attribute.name, **TIGHT)
        elif isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=attribute.name)
        elif attribute.name in ("history", "log_likelihood") and other is not None:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-9)
        else:
            assert one == other, attribute.name


@pytest.mark.parametrize("aggregator", [MajorityVote(), DawidSkene(), GLAD()], ids=["votes", "dawid-skene", "glad"])
def test_a_file_is_aggregated_with_one_call(tmp_path, aggregator):
    table, _ = simulated_crowd(num_tasks=300, num_annotators=11, num_classes=4, redundancy=3, seed=1)
    path = write_annotations(table, tmp_path / "a.csv")
    quiet(aggregate_file, path, aggregator, tmp_path / "new" / "out")
    expected = quiet(aggregator.fit, Annotations.read(path))
    assert_same(Aggregation.from_parquet(tmp_path / "new" / "out"), expected)
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["out"]  # the blocks are gone
    summary = json.loads((tmp_path / "new" / "out" / "summary.json").read_text())
    quiet(expected.to_parquet, tmp_path / "memory")
    in_memory = json.loads((tmp_path / "memory" / "summary.json").read_text())
    assert summary.keys() == in_memory.keys()
    for name in ("num_tasks", "num_annotators", "num_annotations", "num_tasks_without_annotations", "converged"):
        assert summary[name] == in_memory[name]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.jsonl", "csv", "jsonl"])
def test_the_tables_are_those_of_a_result_in_memory(tmp_path, name):
    table, _ = simulated_crowd(seed=8)
    path = write_annotations(table, tmp_path / "a.csv")
    blocks = write_blocks(path, tmp_path / "blocks", max_annotations=40)
    assert len(blocks) > 3
    file_format = name if "." not in name else "parquet"
    (tmp_path / "memory").mkdir()
    OneCoinDawidSkene().fit(Annotations.read(path)).write(tmp_path / "memory" / name, file_format)
    aggregate_blocks(blocks, OneCoinDawidSkene(), tmp_path / name, file_format)
    if name == "out.parquet":
        one, other = (pq.read_table(folder / name) for folder in (tmp_path, tmp_path / "memory"))
        assert one.schema.equals(other.schema)
        assert one.column("label").to_pylist() == other.column("label").to_pylist()
        return
    files = [name] if "." in name else [f"tasks.{name}", f"annotators.{name}"]
    for file in files:
        place = file if "." in name else f"{name}/{file}"
        one, other = (
            (folder / place).read_text(encoding="utf-8").splitlines() for folder in (tmp_path, tmp_path / "memory")
        )
        assert len(one) == len(other)
        assert [line[:15] for line in one] == [line[:15] for line in other]


def test_only_methods_that_stream_are_taken(tmp_path):
    for method in (Robust(), METHODS["mace"](), DawidSkene(start="one-coin"), MajorityVote(confidence=True)):
        with pytest.raises(ConfigError, match=f"{type(method).__name__} does not run out of core"):
            aggregate_file(tmp_path / "absent.csv", method, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_repeated_annotations_are_taken_by_methods_that_count_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("task,annotator,label\n" + "a,ann,x\na,ann,y\na,bob,y\nb,bob,x\n", encoding="utf-8")
    with pytest.raises(DataError, match="has labelled task 'a' before, in row 2"):
        aggregate_file(path, MajorityVote(), tmp_path / "out")
    aggregate_file(path, MajorityVote(), tmp_path / "out", on_duplicate="all")
    assert_same(
        Aggregation.from_parquet(tmp_path / "out"), MajorityVote().fit(Annotations.read(path, on_duplicate="all"))
    )
    with pytest.raises(DataError, match="One-coin Dawid-Skene takes one label by an annotator"):
        aggregate_file(path, OneCoinDawidSkene(), tmp_path / "other", on_duplicate="all")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv", "out"]


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    table, _ = simulated_crowd()
    path = write_annotations(table, tmp_path / "a.csv")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years")
    with pytest.raises(DataError, match="holds something else"):
        aggregate_file(path, MajorityVote(), tmp_path / "out")
    with pytest.raises(OSError, match="not empty"):
        write_blocks(path, tmp_path / "out")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv", "out"]


def test_a_result_that_is_far_from_the_votes_is_noted(tmp_path):
    rng = np.random.default_rng(0)
    table = Annotations.from_arrays(np.repeat(np.arange(200), 3), np.tile(np.arange(3), 200), rng.integers(4, size=600))
    path = write_annotations(table, tmp_path / "a.csv")
    with pytest.warns(VotesWarning, match="differ from the plurality"):
        found = aggregate_file(path, DawidSkene(tol=1e-9, max_iter=1000), tmp_path / "out")
    with pytest.warns(VotesWarning, match="differ from the plurality"):
        expected = DawidSkene(tol=1e-9, max_iter=1000).fit(Annotations.read(path))
    assert found.notes == expected.notes


# === The folder of blocks ===


def test_the_folder_is_opened_again(tmp_path):
    table = odd_crowd()
    table.to_parquet(tmp_path / "a.parquet")
    made = write_blocks(tmp_path / "a.parquet", tmp_path / "blocks", max_annotations=30)
    blocks = StoredBlocks.open(tmp_path / "blocks")
    assert len(blocks) == len(made)
    assert (blocks.num_tasks, blocks.num_annotators, blocks.num_classes, blocks.num_annotations) == (
        100,
        14,
        5,
        len(table),
    )
    assert np.concatenate(list(blocks.task_names())).tolist() == list(table.tasks)
    np.testing.assert_array_equal(np.concatenate([block.tasks for block in blocks]), np.arange(100))
    assert sum(map(len, blocks)) == len(table)
    assert [len(block) for block in blocks[1:3]] == [len(blocks[1]), len(blocks[2])]
    assert {path.name.split("-")[0] for path in (tmp_path / "blocks").iterdir()} == {
        "block",
        "blocks.json",
        "tasks.parquet",
    }


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("blocks.json", lambda data: None, "has no blocks.json"),
        ("blocks.json", lambda data: b"[]", "is damaged .it holds no object"),
        ("blocks.json", lambda data: data.replace(b'"format_version": 1', b'"format_version": 2'), "later crowdzoo"),
        ("blocks.json", lambda data: data.replace(b'"num_annotations": 300', b'"num_annotations": 299'), "is damaged"),
        ("blocks.json", lambda data: data.replace(b'"num_tasks"', b'"tasks"'), "is damaged"),
        ("blocks.json", lambda data: data.replace(b'"first_tasks": [0', b'"first_tasks": [1'), "is damaged"),
        ("blocks.json", lambda data: data.replace(b'"classes": [0, 1, 2]', b'"classes": []'), "is damaged"),
        ("block-000001.bin", lambda data: None, "block-000001.bin is missing"),
        ("tasks.parquet", lambda data: None, "tasks.parquet is missing"),
    ],
)
def test_a_damaged_folder_is_refused_when_it_is_opened(tmp_path, name, change, message):
    table, _ = simulated_crowd()
    write_blocks(write_annotations(table, tmp_path / "a.csv"), tmp_path / "blocks", max_annotations=100)
    path = tmp_path / "blocks" / name
    changed = change(path.read_bytes())
    path.unlink()
    if changed is not None:
        path.write_bytes(changed)
    with pytest.raises(DataError, match=message):
        StoredBlocks.open(tmp_path / "blocks")


@pytest.mark.parametrize(
    ("data", "message"), [(b"", "is empty"), (b"CZ\x02\x00", "damaged"), (b"PAR1....", "not the bytes")]
)
def test_a_damaged_block_is_an_error_and_leaves_no_result(tmp_path, data, message):
    table, _ = simulated_crowd()
    blocks = write_blocks(write_annotations(table, tmp_path / "a.csv"), tmp_path / "blocks", max_annotations=100)
    (tmp_path / "blocks" / "block-000001.bin").write_bytes(data)
    with pytest.raises(DataError, match=message):
        aggregate_blocks(blocks, DawidSkene(), tmp_path / "out")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv", "blocks"]


@pytest.mark.parametrize(
    "change",
    [
        {"starts": lambda values: np.concatenate([values[:-1], values[-1:] + 1])},
        {"starts": lambda values: np.concatenate([[0, values[2] + 1], values[2:]])},
        {"starts": lambda values: values[1:]},
        {"annotator_ids": lambda values: values - 1},
        {"annotator_ids": lambda values: values[1:]},
        {"labels": lambda values: values.astype(np.int32) - 1},
        {"labels": lambda values: values.astype(np.int64)},
        {"tasks": lambda values: values + 1},
        {"tasks": lambda values: values[::-1].copy()},
        {"gold": lambda values: np.zeros(3, np.int64)},
    ],
)
def test_a_block_that_kernels_cannot_trust_is_refused(tmp_path, change):
    table, _ = simulated_crowd()
    blocks = write_blocks(write_annotations(table, tmp_path / "a.csv"), tmp_path / "blocks", max_annotations=100)
    block = decode(blocks.path(1).read_bytes())
    for name, function in change.items():
        setattr(block, name, function(getattr(block, name)))
    blocks.path(1).write_bytes(encode(block))
    with pytest.raises(DataError, match="does not hold the block that belongs there"):
        blocks[1]
    blocks.path(1).write_bytes(encode((1, 2)))
    with pytest.raises(DataError, match="does not hold the block that belongs there"):
        blocks[1]


def test_kernels_write_nothing_to_the_files(tmp_path):
    table, _ = simulated_crowd()
    blocks = write_blocks(write_annotations(table, tmp_path / "a.csv"), tmp_path / "blocks")
    before = blocks.path(0).read_bytes()
    blocks[0].labels[:] = 0
    assert blocks.path(0).read_bytes() == before
