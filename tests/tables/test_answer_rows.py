"""Tables of Hugging Face's library `datasets`: a Dataset, its Parquet, and folders that `save_to_disk` wrote."""

import json
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import bad_row

from crowdzoo import Annotations
from crowdzoo.commands.main import main
from crowdzoo.errors import DataError
from crowdzoo.kinds import kind_of
from crowdzoo.reading.tables.suffixes import column_names

NAMES = ("yes", "no", "maybe")
CODES = {"names": list(NAMES), "_type": "ClassLabel"}
TEXT = {"dtype": "string", "_type": "Value"}
LONG = {"task": ["a", "a", "b"], "annotator": ["x", "y", "x"], "label": [0, 1, 1]}
LISTS = {"task": ["a", "b"], "annotator": [["x", "y"], ["x"]], "label": [[0, 1], [1]]}


def table(columns: dict, label: object = CODES, **features) -> pa.Table:
    """As the library keeps a Dataset: Arrow columns, and the features in the schema's metadata."""
    features = {"task": TEXT, "annotator": TEXT, "label": label, **features}
    return pa.table(columns).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


class Dataset:
    """Stands for the library's, of which these two are used."""

    def __init__(self, rows: pa.Table):
        self.rows = rows

    def with_format(self, form: str) -> "Dataset":
        assert form == "arrow"
        return self

    def __getitem__(self, rows: slice) -> pa.Table:
        return self.rows[rows]


def saved(folder: Path, *parts: pa.Table) -> Path:
    """A folder as `Dataset.save_to_disk` writes it."""
    folder.mkdir(parents=True)
    files = [f"data-{place:05}-of-{len(parts):05}.arrow" for place in range(len(parts))]
    for file, part in zip(files, parts, strict=True):
        with pa.ipc.new_stream(folder / file, part.schema) as writer:
            writer.write_table(part)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": file} for file in files]}))
    return folder


EXPECTED = Annotations.from_arrays(LONG["task"], LONG["annotator"], ["yes", "no", "no"], classes=NAMES)
TABLES = {
    "rows": table(LONG),
    "lists": table(LISTS, {"feature": CODES, "_type": "List"}),
    "lists of the first releases": table(LISTS, [CODES]),
    "lists of an earlier release": table(LISTS, {"feature": CODES, "length": -1, "_type": "Sequence"}),
}


@pytest.mark.usefixtures("chunks")
def test_a_repeated_answer_is_named_by_the_row_of_its_list():
    lists = {"task": [str(row) for row in range(30)], "annotator": [["x", "y"]] * 30, "label": [[0, 1]] * 30}
    lists["annotator"] = [*lists["annotator"][:25], ["x", "x"], *lists["annotator"][26:]]
    rows = table(lists, {"feature": CODES, "_type": "List"})
    with pytest.raises(DataError, check=bad_row(25, "annotator", "x")):
        Annotations.from_frame(Dataset(rows))


@pytest.mark.parametrize("rows", TABLES.values(), ids=TABLES)
def test_a_dataset_its_parquet_and_its_folder_are_the_same_annotations(rows, tmp_path):
    pq.write_table(rows, tmp_path / "rows.parquet")
    folder = saved(tmp_path / "folder", rows[:1], rows[1:])
    for read in (
        Annotations.from_frame(Dataset(rows)),
        Annotations.from_frame({"train": Dataset(rows[:1]), "test": Dataset(rows[1:])}),
        Annotations.read(tmp_path / "rows.parquet"),
        Annotations.read(folder),
    ):
        assert read == EXPECTED


def test_features_of_another_form_hide_no_names(tmp_path):
    pq.write_table(table(LONG, tokens=[TEXT], odd=3), tmp_path / "rows.parquet")
    assert Annotations.read(tmp_path / "rows.parquet") == EXPECTED


def test_a_table_of_gold_with_names_of_codes_is_no_table_of_annotations(tmp_path):
    pq.write_table(table({"task": ["a"], "gold": [0]}, gold=CODES), tmp_path / "gold.parquet")
    assert column_names(tmp_path / "gold.parquet") == ["task", "gold"]


@pytest.mark.parametrize(
    ("columns", "kept", "bad"),
    [({**LONG, "label": [-1, 1, 3]}, [("a", "y", "no")], [2]),
     ({**LISTS, "label": [[-1, 1], [3]]}, [("a", "y", "no")], [1]),
     ({**LONG, "label": [-1, 1, 0]}, [("a", "y", "no"), ("b", "x", "yes")], [])],
)  # fmt: skip
def test_a_code_of_minus_one_is_no_answer_and_one_without_a_name_a_bad_row(tmp_path, columns, kept, bad):
    rows = table(columns)
    pq.write_table(rows, tmp_path / "rows.parquet")
    for read in (Annotations.from_frame, lambda rows, **how: Annotations.read(tmp_path / "rows.parquet", **how)):
        if bad:
            with pytest.raises(DataError, match="1 bad row") as caught:
                read(rows)
            assert [row.row for row in caught.value.rows] == bad
        found = read(rows, on_bad_rows="reject", rejects=tmp_path / "bad.csv")
        codes = zip(found.task_ids, found.annotator_ids, found.labels, strict=True)
        assert [(found.tasks[a], found.annotators[b], found.classes[c]) for a, b, c in codes] == kept
        assert found.num_rejected == len(bad)


def test_gold_in_codes_has_the_names_of_its_own_file(tmp_path):
    pq.write_table(table({"task": ["a", "b", "c"], "gold": [0, 1, -1]}, gold=CODES), tmp_path / "gold.parquet")
    crowd = Annotations.from_arrays(["a", "b", "c"], ["x"] * 3, ["no", "maybe", "yes"])  # sorted: maybe, no, yes
    found = kind_of("classification").reading.gold_of(crowd, tmp_path / "gold.parquet")
    assert [crowd.classes[code] if code >= 0 else None for code in found] == ["yes", "no", None]


def test_ratings_keep_the_numbers_of_their_codes():
    assert Annotations.from_frame(table(LONG), kind="regression").labels.tolist() == [0, 1, 1]


def test_bad_answers_of_a_list_are_named_by_the_row_of_the_list(tmp_path):
    rows = table({"task": ["a", "b"], "annotator": [["x", "y"], ["x", "x"]], "label": [["1", "0"], ["1", "1"]]}, TEXT)
    pq.write_table(rows, tmp_path / "rows.parquet")
    for read in (lambda: Annotations.from_frame(rows), lambda: Annotations.read(tmp_path / "rows.parquet")):
        with pytest.raises(DataError, check=lambda error: [row.row for row in error.rows] == [1]):
            read()


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda columns: pa.table(columns).to_pandas()], ids=["lists", "arrays"]
)
def test_lists_in_cells_of_pandas_are_read_as_those_of_arrow(frame):
    found = Annotations.from_frame(frame({**LISTS, "label": [["yes", "no"], ["no"]]}), classes=NAMES)
    assert found.annotator_ids.tolist() == EXPECTED.annotator_ids.tolist()
    assert found.labels.tolist() == EXPECTED.labels.tolist()


def test_lists_of_different_lengths_are_named():
    rows = table({**LISTS, "label": [[0, 1], [1, 0]]})
    with pytest.raises(DataError, match="frame, row 1: 'annotator' holds 1 values and 'label' 2"):
        Annotations.from_frame(rows)


@pytest.mark.parametrize("about", ["no JSON", "[]", '{"info": {"features": {"label": {"_type": "ClassLabel"}}}}'])
def test_metadata_of_another_form_are_passed_over(about):
    rows = pa.table(LONG).replace_schema_metadata({"huggingface": about})
    assert Annotations.from_frame(rows).classes.tolist() == [0, 1]


def test_the_command_line_takes_a_folder_with_splits(tmp_path, capsys):
    saved(tmp_path / "sets" / "train", TABLES["rows"][:2])
    saved(tmp_path / "sets" / "test", TABLES["rows"][2:])
    (tmp_path / "sets" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    out = tmp_path / "out"
    assert main(["aggregate", str(tmp_path / "sets"), "--method", "majority-vote", "--out", str(out)]) == 0
    assert re.search(r"annotations +3\n", capsys.readouterr().out)
    assert (out / "tasks.parquet").is_file()


def test_a_damaged_folder_is_an_error(tmp_path):
    folder = saved(tmp_path / "folder", TABLES["rows"])
    file = folder / "data-00000-of-00001.arrow"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(DataError, match=r"data-00000-of-00001\.arrow"):
        Annotations.read(folder)
    (folder / "state.json").write_text("[]")
    with pytest.raises(DataError, match="Save it again"):
        Annotations.read(folder)
    with pytest.raises(DataError, match=r"is a folder\. Name a file in it"):
        Annotations.read(tmp_path)


def test_the_library_itself(tmp_path):
    datasets = pytest.importorskip("datasets", minversion="2.0")  # not the folder of tests
    of = {"task": datasets.Value("string"), "annotator": datasets.Sequence(datasets.Value("string"))}
    of["label"] = datasets.Sequence(datasets.ClassLabel(names=list(NAMES)))
    rows = datasets.Dataset.from_dict(LISTS, features=datasets.Features(of))
    both = datasets.DatasetDict(train=rows.select([0]), test=rows.select([1]))
    both.save_to_disk(tmp_path / "sets")
    rows.to_parquet(tmp_path / "rows.parquet")
    assert Annotations.from_frame(rows) == EXPECTED
    assert Annotations.from_frame(both) == EXPECTED
    assert Annotations.read(tmp_path / "sets") == EXPECTED
    assert Annotations.read(tmp_path / "rows.parquet") == EXPECTED
    assert Annotations.from_frame(rows.select([1, 0])).tasks[0] == "a"
    back = datasets.Dataset.from_pandas(EXPECTED.to_frame())
    assert Annotations.from_frame(back, classes=NAMES) == EXPECTED


DAMAGED = {
    "a split that is the folder": ({"splits": ["."]}, None),
    "a split that is the folder above": ({"splits": [".."]}, None),
    "a split elsewhere": ({"splits": ["train/../../other"]}, None),
    "a split twice": ({"splits": ["train", "train"]}, None),
    "no splits": ({"splits": []}, None),
    "splits that are a text": ({"splits": "train"}, None),
    "a split of a long name": ({"splits": ["x" * 300]}, None),
    "no files": ({"splits": ["train"]}, {"_data_files": []}),
    "a file twice": ({"splits": ["train"]}, {"_data_files": [{"filename": "data-00000-of-00001.arrow"}] * 2}),
    "a file without a name": ({"splits": ["train"]}, {"_data_files": [{}]}),
    "the folder for a file": ({"splits": ["train"]}, {"_data_files": [{"filename": "."}]}),
    "a splits folder for a split": ({"splits": ["loop"]}, None),
}


@pytest.mark.parametrize(("splits", "state"), DAMAGED.values(), ids=DAMAGED)
def test_a_folder_names_parts_of_its_own_each_once(splits, state, tmp_path):
    saved(tmp_path / "other", table(LONG))
    folder = tmp_path / "sets"
    saved(folder / "train", table(LONG))
    (folder / "loop").symlink_to(folder)
    (folder / "dataset_dict.json").write_text(json.dumps(splits))
    if state is not None:
        (folder / "train" / "state.json").write_text(json.dumps(state))
    with pytest.raises(DataError, match=r"is not a file that Dataset\.save|is a folder\."):
        Annotations.read(folder)


def test_parts_with_other_columns_are_refused(tmp_path):
    folder = saved(tmp_path / "folder", table(LONG), pa.table({"a": [1]}))
    with pytest.raises(DataError, match="the file is damaged inside"):
        Annotations.read(folder)


@pytest.mark.parametrize("zone", ["+99:00", "-24:00", "Nowhere/Else"])
def test_a_time_zone_that_python_does_not_know_counts_for_nothing(zone, tmp_path):
    moments = pa.array([1_000_000_000, 1_500_000_000, 2_000_000_000], pa.timestamp("s", zone))
    rows = pa.table({"task": [1, 2, 2], "annotator": ["a", "b", None], "label": ["x", "y", "x"], "timestamp": moments})
    pq.write_table(rows, tmp_path / "rows.parquet")
    for read in (
        lambda **how: Annotations.read(tmp_path / "rows.parquet", **how),
        lambda **how: Annotations.from_frame(rows, **how),
    ):
        found = read(on_bad_rows="reject", rejects=tmp_path / "rejects.csv")
        assert found.timestamp.tolist() == [1e9, 1.5e9]
        assert "2033-05-18 03:33:20+00:00" in (tmp_path / "rejects.csv").read_text()
