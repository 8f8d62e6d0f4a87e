"""A table that is read by way of the disk is the one that is read into memory, errors and warnings included."""

import gzip
import warnings

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.errors import DataError
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import Rules
from crowdzoo.reading.tables.spilled_table import SpilledTable
from crowdzoo.reading.tables.suffixes import source_of


def spilled(path, folder, part_rows, **options):
    """The same as `Annotations.read`, sorted by task, with its warnings."""
    folder.mkdir()
    source = source_of(path, None, Layout.of(options))
    rules = {name: value for name, value in options.items() if name not in LAYOUT_OPTIONS}
    table = SpilledTable.read(source, Rules.of(source.label_kind, source.names, **rules), folder, part_rows)
    parts = list(table.parts())
    assert [part.begin for part in parts] == [0, *(part.end for part in parts[:-1])]
    assert parts[-1].end == len(table.tasks)
    for part in parts:
        assert ((part.task_ids >= part.begin) & (part.task_ids < part.end)).all()
    by_task = [np.argsort(part.task_ids, kind="stable") for part in parts]
    columns = [
        np.concatenate([getattr(part, name)[order] for part, order in zip(parts, by_task, strict=True)])
        for name in ("task_ids", "annotator_ids", "labels")
    ]
    names = table.tasks if isinstance(table.tasks, np.ndarray) else table.tasks.to_numpy(zero_copy_only=False)
    assert table.num_annotations == len(columns[0])
    np.testing.assert_array_equal(
        table.annotations_per_annotator, np.bincount(columns[1], minlength=len(table.annotators))
    )
    return columns, names, table.annotators, table.classes, table.num_rejected, table.repeats


def outcome(read):
    """What comes back, or the error; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = read()
        except DataError as error:
            found = str(error)
    return found, [str(warning.message) for warning in caught]


def in_memory(path, **options):
    table = Annotations.read(path, **options)
    order = np.argsort(table.task_ids, kind="stable")
    columns = [getattr(table, name)[order] for name in ("task_ids", "annotator_ids", "labels")]
    return columns, table.tasks, table.annotators, table.classes, table.num_rejected, table.repeats


def assert_alike(path, tmp_path, part_rows, **options):
    expected, expected_warnings = outcome(lambda: in_memory(path, **options))
    rejects = options.get("rejects")
    kept = rejects.read_bytes() if rejects is not None and rejects.is_file() else None
    found, found_warnings = outcome(lambda: spilled(path, tmp_path / f"rows-{part_rows}", part_rows, **options))
    assert found_warnings == expected_warnings
    if isinstance(expected, str):
        assert found == expected
        return expected
    for one, other in zip(found[0], expected[0], strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(found[1:4], expected[1:4], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert found[4:] == expected[4:]
    if kept is not None:
        assert rejects.read_bytes() == kept
    return ""


def rows_of(seed, ids="text", num_tasks=40, number=300):
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(num_tasks * 12)[:number]
    spell = {
        "text": lambda code: f"t{code}",
        "integers": lambda code: f"{code * 1000 - 7000}",
        "range": lambda code: f"{code}",
        "mixed": lambda code: f"{code}" if code < 25 else f"t{code}",
    }[ids]
    return [[spell(pair // 12), f"w{pair % 12}", "abc"[rng.integers(3)]] for pair in pairs]


def write(path, rows, header="task,annotator,label"):
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


PARTS = (1, 7, 64, 10_000)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr("crowdzoo.reading.tables.sources.CHUNK_BYTES", 512)
    monkeypatch.setattr("crowdzoo.data.vocabulary._MERGE_AT", 30)


@pytest.mark.parametrize("part_rows", PARTS)
@pytest.mark.parametrize("ids", ["text", "integers", "range", "mixed"])
def test_a_spilled_table_is_the_table_in_memory(tmp_path, ids, part_rows):
    assert not assert_alike(write(tmp_path / "a.csv", rows_of(0, ids)), tmp_path, part_rows)


@pytest.mark.parametrize("suffix", ["csv.gz", "parquet", "jsonl"])
def test_other_formats_are_spilled_too(tmp_path, suffix):
    plain, path = write(tmp_path / "a.csv", rows_of(1)), tmp_path / f"a.{suffix}"
    table = Annotations.read(plain)
    if suffix == "csv.gz":
        path.write_bytes(gzip.compress(plain.read_bytes()))
    elif suffix == "parquet":
        table.to_parquet(path)
    else:
        path.write_text("".join(f'{{"task": "{t}", "annotator": "{a}", "label": "{x}"}}\n' for t, a, x in rows_of(1)))
    assert not assert_alike(path, tmp_path, 50)


BAD = {
    "empty": ["t3", "", "a"],
    "repeat": None,  # of an earlier row
    "no label": ["t4", "w1", ""],
}


@pytest.mark.parametrize("part_rows", PARTS)
@pytest.mark.parametrize("kinds", [("empty",), ("repeat",), ("empty", "repeat", "no label")])
@pytest.mark.parametrize("options", [{}, {"on_bad_rows": "reject"}, {"on_bad_rows": "reject", "rejects": True},
                                     {"on_duplicate": "first"}, {"on_duplicate": "last", "on_bad_rows": "reject"},
                                     {"on_duplicate": "last", "on_bad_rows": "reject", "rejects": True},
                                     {"on_duplicate": "all"}])  # fmt: skip
def test_bad_and_repeated_rows_have_the_same_outcome(tmp_path, part_rows, kinds, options):
    rows, rng = rows_of(2), np.random.default_rng(3)
    for number in range(27):
        kind = kinds[number % len(kinds)]
        again = rows[rng.integers(len(rows))][:2]
        rows.insert(int(rng.integers(len(rows))), BAD[kind] or [*again, "d" if number == 3 else "b"])
    options = {**options, **({"rejects": tmp_path / "rejects.csv"} if "rejects" in options else {})}
    assert_alike(write(tmp_path / "a.csv", rows), tmp_path, part_rows, **options)


@pytest.mark.parametrize("part_rows", PARTS)
@pytest.mark.parametrize("policy", ["error", "reject"])
def test_given_names_have_the_same_outcome(tmp_path, part_rows, policy):
    path = write(tmp_path / "a.csv", rows_of(4))
    given = {
        "tasks": [f"t{code}" for code in range(60) if code != 5][::-1],
        "annotators": [f"w{code}" for code in range(11)],
    }
    message = assert_alike(path, tmp_path, part_rows, on_bad_rows=policy, **given)
    assert ("is not one of the tasks" in message) == (policy == "error")


@pytest.mark.parametrize("part_rows", [1, 10_000])
def test_wide_tables_and_line_breaks_have_the_same_outcome(tmp_path, part_rows):
    wide = tmp_path / "wide.csv"
    wide.write_text("task,ann,bob\n1,a,b\n2,,a\n3,b,\n1,b,b\n", encoding="utf-8")
    assert "has labelled task 1 before, in row 2" in assert_alike(wide, tmp_path, part_rows, wide=True)
    broken = write(tmp_path / "b.csv", [['"t\n1"', "ann", "a"], ["t2", "ann", "b"], ['"t\n1"', "ann", "b"]])
    (tmp_path / f"rows-{part_rows}").rename(tmp_path / "before")
    assert "row 5" in assert_alike(broken, tmp_path, part_rows)


def test_an_empty_file_and_one_of_bad_rows_alone_are_refused_in_the_same_words(tmp_path):
    assert "header but no rows" in assert_alike(write(tmp_path / "a.csv", []), tmp_path, 5)
    bad = write(tmp_path / "b.csv", [["", "ann", "a"]] * 20)
    assert "all 20 rows are bad" in assert_alike(bad, tmp_path, 6)
    assert "all 20 rows are bad" in assert_alike(bad, tmp_path, 7, on_bad_rows="reject")
