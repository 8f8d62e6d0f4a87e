import hashlib
import importlib.util
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.datasets import data_folder, load, load_labelme, names
from crowdzoo.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "crowdzoo" / "datasets" / "labelme"
SCRIPT = ROOT / "benchmarks" / "datasets" / "labelme.py"

# The order of the classes in labels_train.txt (see the data's own notes); the loader sorts them by name
SOURCE_CLASSES = ("highway", "insidecity", "tallbuilding", "street", "forest", "coast", "mountain", "opencountry")


@pytest.fixture(scope="module")
def labelme():
    return load_labelme()


@pytest.fixture(scope="module")
def source():
    folder = data_folder() / "labelme-amt"
    if not folder.is_dir():
        pytest.skip(f"the raw LabelMe data is not here ({folder}); CROWDZOO_DATA names its parent")
    return folder


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("PIL", reason="the script that makes the descriptors needs Pillow")
    pytest.importorskip("sklearn", reason="the script that makes the descriptors needs scikit-learn")
    spec = importlib.util.spec_from_file_location("make_labelme", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_published_counts_are_there(labelme):
    # Rodrigues and Pereira 2018, section 5.1: 1000 images, 59 annotators, 2.547 labels an image on average
    annotations = labelme.annotations
    assert (annotations.num_tasks, annotations.num_annotators, annotations.num_classes) == (1000, 59, 8)
    assert len(annotations) == 2547
    assert np.bincount(annotations.redundancy).tolist() == [0, 42, 369, 589]
    assert np.bincount(annotations.annotator_ids, minlength=59).min() >= 1
    assert annotations.annotators.tolist() == list(range(59))
    assert annotations.classes.tolist() == sorted(SOURCE_CLASSES)


def test_every_row_is_one_task(labelme):
    assert labelme.instances.shape == (1000, 512)
    assert labelme.instances.dtype == np.float32
    assert np.isfinite(labelme.instances).all()
    assert labelme.gold.shape == labelme.split.shape == (1000,)
    assert np.bincount(labelme.gold).tolist() == [134, 138, 89, 116, 128, 154, 110, 131]


def test_a_quarter_of_the_tasks_is_held_out(labelme):
    assert {name: int((labelme.split == name).sum()) for name in ("train", "eval")} == {"train": 750, "eval": 250}


def test_majority_vote_is_right_as_often_as_published(labelme):
    # .769 with ties to the lowest class in the source's class order, .766 expected under random ties
    assert labelme.majority_accuracy() == pytest.approx(0.766, abs=0.0005)
    votes = np.zeros((1000, 8))
    np.add.at(votes, (labelme.annotations.task_ids, labelme.annotations.labels), 1)
    order = [labelme.annotations.classes.tolist().index(name) for name in SOURCE_CLASSES]
    lowest = np.array(order)[votes[:, order].argmax(axis=1)]
    assert (lowest == labelme.gold).mean() == 0.769


def test_labels_and_gold_are_those_of_the_first_publication(labelme, source):
    """answers.txt and labels_train.txt have another row and class order than what ships."""
    archive_names = {}
    with zipfile.ZipFile(source / "labelme_train_jpg.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".jpg"):
                stem, task = Path(name).stem.rsplit("-", 1)
                archive_names[int(task)] = f"{stem}.jpg"
    rows = {name: row for row, name in enumerate((source / "clasda" / "filenames_train.txt").read_text().split())}
    order = [rows[archive_names[task]] for task in labelme.annotations.tasks.tolist()]
    code = np.array([labelme.annotations.classes.tolist().index(name) for name in SOURCE_CLASSES])
    gold = np.loadtxt(source / "clasda" / "labels_train.txt", dtype=int)[order]
    assert np.array_equal(code[gold], labelme.gold)
    answers = np.loadtxt(source / "clasda" / "answers.txt", dtype=int)[order]
    answers = answers[:, (answers >= 0).any(axis=0)]
    expected = np.where(answers >= 0, code[answers], -1)
    assert np.array_equal(labelme.annotations.to_dense(), expected)


def test_the_files_are_those_that_the_script_wrote():
    record = json.loads((SHIPPED / "labelme.json").read_text())
    assert {name: sha256(SHIPPED / name) for name in record["outputs_sha256"]} == record["outputs_sha256"]
    assert set(record["outputs_sha256"]) == {"annotations.csv", "descriptors.npz", "gold.csv"}


def test_the_script_is_the_one_that_wrote_the_files():
    record = json.loads((SHIPPED / "labelme.json").read_text())
    assert sha256(ROOT / record["script"]) == record["script_sha256"], "run benchmarks/datasets/labelme.py again"
    assert sha256(SCRIPT.with_name("labelme_codebook.npz")) == record["codebook_sha256"]


def test_the_script_read_the_data_that_lies_here(source):
    record = json.loads((SHIPPED / "labelme.json").read_text())
    assert {name: sha256(source / name) for name in record["inputs_sha256"]} == record["inputs_sha256"]


@pytest.mark.slow
def test_descriptors_come_from_the_images_alone(labelme, source, script):
    codebook = script.load_codebook()
    wanted = {7, 250, 993}
    seen = set()
    for task, label, _, image in script.read_images(source / "labelme_train_jpg.zip"):
        if task in wanted:
            row = labelme.annotations.tasks.tolist().index(task)
            described = script.describe(image, codebook)
            # shipped as float16; other versions of the JPEG library differ by a grey level here and there
            np.testing.assert_allclose(described, labelme.instances[row], atol=0.01)
            assert np.abs(labelme.instances[row]).max() > 0.1
            assert label == labelme.annotations.classes[labelme.gold[row]]
            seen.add(task)
    assert seen == wanted


def test_descriptors_tell_the_scenes_apart(labelme):
    """Nearest class mean, from the training split to the held-out one: chance is 1 in 8."""
    training, held_out = labelme.split == "train", labelme.split == "eval"
    x = labelme.instances / np.linalg.norm(labelme.instances, axis=1, keepdims=True)
    means = np.stack([x[training & (labelme.gold == k)].mean(axis=0) for k in range(8)])
    predicted = (x[held_out] @ means.T - 0.5 * (means**2).sum(axis=1)).argmax(axis=1)
    assert (predicted == labelme.gold[held_out]).mean() > 0.8


def test_loading_by_name_gives_the_same_set(labelme):
    assert "labelme" in names()
    assert load("labelme").annotations == labelme.annotations


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(DataError, match="Did you mean 'labelme'"):
        load("label-me")


@pytest.mark.parametrize("name", ["annotations.csv", "descriptors.npz", "gold.csv"])
def test_a_file_that_is_missing_is_named_with_the_way_out(name, tmp_path, monkeypatch):
    for kept in {"annotations.csv", "descriptors.npz", "gold.csv"} - {name}:
        (tmp_path / kept).symlink_to(SHIPPED / kept)
    monkeypatch.setattr("crowdzoo.datasets.labelme.FOLDER", tmp_path)
    with pytest.raises(DataError, match=rf"{name} does not exist\..* Install crowdzoo again\."):
        load_labelme()
