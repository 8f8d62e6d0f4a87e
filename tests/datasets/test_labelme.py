import zipfile
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.datasets import data_folder, load, load_labelme
from crowdzoo.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "crowdzoo" / "datasets" / "labelme"

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


def test_the_published_counts_are_there(labelme):
    # Rodrigues and Pereira 2018, section 5.1: 1000 images, 59 annotators, 2.547 labels an image on average
    annotations = labelme.annotations
    assert (annotations.num_tasks, annotations.num_annotators, annotations.num_classes) == (1000, 59, 8)
    assert len(annotations) == 2547
    assert np.bincount(annotations.redundancy).tolist() == [0, 42, 369, 589]
    assert np.bincount(annotations.annotator_ids, minlength=59).min() >= 1
    assert annotations.annotators.tolist() == list(range(59))
    assert annotations.classes.tolist() == sorted(SOURCE_CLASSES)


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
