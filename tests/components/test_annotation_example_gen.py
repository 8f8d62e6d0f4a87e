import hashlib
import json
import pathlib

import pyarrow.csv
import pyarrow.parquet
import pytest
from PIL import Image

from crowdzoo import datasets
from crowdzoo.components.annotation_example_gen import AnnotationExampleGen
from crowdzoo.components.artifacts import AnnotationsArtifact
from crowdzoo.components.input_files import content_hashes
from crowdzoo.components.tfx_internals import standard_artifacts
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.records import instance_examples
from crowdzoo.records.example_files import read_dataset_info

ROWS = [("p", "ann", "cat"), ("p", "bob", "dog"), ("q", "ann", "dog"), ("r", "cid", "cat"), ("s", "ann", "cat")]
COLUMNS = {
    "task": ["p", "q", "r", "s", "u", "v"],
    "features": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 10.0], [11.0, 12.0]],
    "gold": ["cat", "dog", None, "cat", "dog", "dog"],
    "split": ["train", "train", "train", "eval", "eval", "train"],
}


def by_task(records):
    return {record["task"][0].decode(): record for record in records}


def content(examples):
    root = pathlib.Path(examples.uri)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_examples_hold_features_codes_and_gold_of_their_task(folder):
    folder.write(ROWS, COLUMNS)
    examples, _ = folder.generate()
    train = by_task(folder.records(examples, "train"))
    assert train.keys() == {"p", "q", "r"}, "v has no annotations and is left out"
    assert train["p"] == {
        "task": [b"p"],
        "instances": [1.0, 2.0],
        "annotator_ids": [0, 1],
        "annotator_labels": [0, 1],
        "gold": [0],
    }
    assert "gold" not in train["r"]
    assert train["r"]["annotator_ids"] == [2]
    evaluation = by_task(folder.records(examples, "eval"))
    assert evaluation.keys() == {"s", "u"}, "a task of eval stays, annotated or not"
    assert evaluation["u"]["annotator_ids"] == []
    info = read_dataset_info(examples.uri)
    names = {"annotations": "answers.csv", "instances": "instances.parquet"}
    assert info.pop("sha256") == {
        name: hashlib.sha256((folder.path / file).read_bytes()).hexdigest() for name, file in names.items()
    }
    reading = info.pop("reading")
    assert {name: reading[name] for name in names} == {name: str(folder.path / file) for name, file in names.items()}
    assert info == {
        "classes": ["cat", "dog"],
        "annotators": ["ann", "bob", "cid"],
        "kind": "classification",
        "instances": "feature vectors",
        "columns": {},
        "num_features": 2,
        "features": None,
        "num_tasks": {"train": 3, "eval": 2},
        "num_gold": {"train": 3, "eval": 2},
    }


def test_annotations_and_tasks_are_kept_as_an_artifact(folder):
    folder.write(ROWS, COLUMNS)
    _, annotations = folder.generate()
    crowd = Annotations.from_parquet(pathlib.Path(annotations.uri, "annotations.parquet"))
    assert crowd == Annotations.read(folder.path / "answers.csv", kind="classification")
    tasks = pyarrow.parquet.read_table(pathlib.Path(annotations.uri, "tasks.parquet")).to_pydict()
    assert tasks == {key: COLUMNS[key] for key in ("task", "split", "gold")}


def test_the_order_of_rows_in_the_files_changes_no_byte_but_the_files_hashes(folder):
    folder.write(ROWS, COLUMNS)
    first, _ = folder.generate()
    folder.write(sorted(ROWS), {key: values[::-1] for key, values in COLUMNS.items()})
    second, _ = folder.generate()
    assert len(content(first)) == 3
    one, other = content(first), content(second)
    infos = [json.loads(each.pop("dataset.json")) for each in (one, other)]
    hashes = [each.pop("sha256") for each in infos]
    assert infos[0] == infos[1]
    assert hashes[0] != hashes[1]
    assert one == other


def test_without_a_split_column_a_task_keeps_its_side_when_others_go(folder):
    tasks = [f"t{number}" for number in range(200)]
    columns = {"task": tasks, "x": [float(number) for number in range(200)]}
    rows = [(task, "ann", "ab"[number % 2]) for number, task in enumerate(tasks)]
    folder.write(rows, columns)
    first = by_task(folder.records(folder.generate()[0], "eval"))
    assert 30 <= len(first) <= 70, "a quarter of 200, give or take three standard deviations"
    folder.write(rows[:150], {key: values[:150] for key, values in columns.items()})
    second = by_task(folder.records(folder.generate()[0], "eval"))
    assert second.keys() == first.keys() & set(tasks[:150])


@pytest.mark.parametrize(("key", "name"), [("annotations", "answers.csv"), ("instances", "instances.parquet")])
def test_a_file_that_was_replaced_after_it_was_hashed_is_refused_and_nothing_is_made_from_it(folder, key, name):
    folder.write(ROWS, COLUMNS)
    path = folder.path / name
    kept, before = path.read_bytes(), content_hashes({key: path})
    folder.write(ROWS[::-1], COLUMNS | {"gold": ["dog"] * 6})
    paths = {"annotations": folder.path / "answers.csv", "instances": folder.path / "instances.parquet"}
    hashes = {**content_hashes(paths), **before}
    with pytest.raises(DataError, match=f"^{path}: its content changed after the run began"):
        folder.generate(hashes)
    assert not any(path.is_file() for path in (folder.path / "examples1").rglob("*"))
    assert not any((folder.path / "annotations1").iterdir()), "copies are gone as well"
    path.write_bytes(kept)
    folder.generate(hashes)


def test_files_that_are_replaced_between_two_reads_do_not_mix(folder, monkeypatch):
    folder.write(ROWS, COLUMNS)
    expected, _ = folder.generate()
    check = instance_examples.check_annotated

    def replaced_meanwhile(*arguments):
        folder.write([], {key: values[::-1] for key, values in COLUMNS.items()} | {"features": [[0.0, 0.0]] * 6})
        check(*arguments)

    monkeypatch.setattr(instance_examples, "check_annotated", replaced_meanwhile)
    examples, annotations = folder.generate()
    assert content(examples) == content(expected)
    assert sorted(path.name for path in pathlib.Path(annotations.uri).iterdir()) == [
        "annotations.parquet",
        "tasks.parquet",
    ]


def test_errors_and_rejected_rows_name_the_file_and_not_the_copy_that_was_read(folder):
    folder.write([*ROWS, ("q", "bob", "cow"), ("", "bob", "cat")], COLUMNS)
    with pytest.raises(DataError) as caught:
        folder.generate(classes=["cat", "dog"])
    assert f"{folder.path / 'answers.csv'}, row 7" in str(caught.value)
    assert {row.file for row in caught.value.rows} == {str(folder.path / "answers.csv")}
    _, annotations = folder.generate(classes=["cat", "dog"], on_bad_rows="reject")
    rejects = pathlib.Path(annotations.uri, "rejects.csv").read_text().splitlines()
    assert rejects[1].startswith(f"{folder.path / 'answers.csv'},7,label,cow,")
    assert len(rejects) == 3, "a header and two rows"


WRONG = {
    "annotations of unknown tasks": (
        [*ROWS, ("x1", "ann", "cat"), ("x2", "ann", "cat")],
        {},
        r"2 of the 6 tasks have no row in .*instances.parquet: 'x1', 'x2'. Tasks there look like 'p'.",
    ),
    "gold outside the classes": (
        ROWS,
        {"gold": ["cat", "dgo", None, None, None, None]},
        r"'dgo'.*Did you mean 'dog'\?",
    ),
    "no task of eval": (ROWS, {"split": ["train"] * 6}, "no task falls into the eval split. Check its column 'split'."),
    "no annotated task of train": (ROWS, {"split": ["eval"] * 5 + ["train"]}, "no annotated task falls into the train"),
    "nothing to evaluate with": (
        ROWS,
        {"split": ["train", "train", "train", "train", "eval", "eval"], "gold": ["cat"] * 4 + [None, None]},
        "no task of the eval split has gold or annotations",
    ),
    "only one class": ([("p", "ann", "cat"), ("s", "bob", "cat")], {"gold": [None] * 6}, "only one class, 'cat'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_data_that_cannot_be_used_is_refused_before_anything_is_written(folder, case):
    rows, columns, message = WRONG[case]
    folder.write(rows, COLUMNS | columns)
    with pytest.raises(DataError, match=message):
        folder.generate()


@pytest.mark.slow
def test_a_shipped_data_set_gives_what_its_files_give_and_no_fingerprint_takes_any_content(folder, tmp_path):
    written = [str(path) for path in datasets.write_files(datasets.load("labelme"), tmp_path / "files")]
    found = []
    shipped = {"dataset": "labelme", "annotations": None, "instances": None}
    for name, places, fingerprint in (
        ("files", dict(zip(("annotations", "instances"), written, strict=True)), ""),
        ("shipped", shipped, ""),
        ("computed", shipped, json.dumps(content_hashes({}))),  # no file to hash
    ):
        examples = folder.artifact(standard_artifacts.Examples, tmp_path / name / "examples")
        annotations = folder.artifact(AnnotationsArtifact, tmp_path / name / "annotations")
        settings = json.dumps({"kind": "classification", "eval_fraction": 0.25, **places})
        AnnotationExampleGen.test_call(
            examples=examples, annotations=annotations, settings=settings, fingerprint=fingerprint, code_version=""
        )
        assert not [path for path in pathlib.Path(annotations.uri).iterdir() if path.name.startswith(".")]
        files = content(examples)
        info = json.loads(files.pop("dataset.json"))
        assert info.pop("reading") == json.loads(settings)
        found.append((info, files, content(annotations)))
    assert found[0] == found[1] == found[2]
    assert len(found[0][1]) == 2


def test_images_at_a_uri_are_stored_though_their_copies_are_removed(folder):
    photos = folder.path / "photos"
    photos.mkdir()
    for task in COLUMNS["task"]:
        Image.new("RGB", (8, 8), "red").save(photos / f"{task}.png")
    folder.write(ROWS, COLUMNS)
    hashes = content_hashes({"annotations": folder.path / "answers.csv", "instances": photos})
    examples, annotations = folder.generate(hashes, instances=f"store:/{photos}")
    stored = by_task(folder.records(examples, "train"))
    assert stored["p"]["instances"] == [(photos / "p.png").read_bytes()]
    assert not [path for path in pathlib.Path(annotations.uri).iterdir() if path.name.startswith(".")]
