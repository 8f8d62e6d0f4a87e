import re

import numpy as np

from crowdzoo import Annotations
from crowdzoo.quality import data_notes


def crowd(copies, num_tasks=400, seed=0):
    """Four groups of annotators, right for 70 %; in a group all give the same answer."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)
    said = [np.where(rng.random(num_tasks) < 0.7, truth, rng.integers(0, 3, num_tasks)) for _ in range(4)]
    return Annotations.from_dense(np.stack([one for one in said for _ in range(copies)], axis=1))


def test_annotators_who_err_together_are_noted():
    note = data_notes(crowd(4, 210))[0]
    shown = re.search(
        r"The 16 annotations of a task are worth ([.\d]+) independent ones \(([.\d]+) to ([.\d]+)\)", note
    )
    worth, low, high = map(float, shown.groups())
    assert 1 <= low <= worth <= high < 8
    assert "Label 50 tasks" in note
    assert "--gold-sample 50 --out gold.csv" in note
    assert "--gold gold.csv --calibrate" in note
    assert data_notes(crowd(1)) == ()


def test_an_interval_that_tells_nothing_is_not_said_to_tell_something():
    annotations = crowd(1, num_tasks=12)
    (note,) = data_notes(annotations, worth=(1.7, 1.0, 3.7))  # of four
    assert "12 tasks are too few to tell whether annotators err" in note
    assert "annotators err on the same tasks" not in note
    assert "annotators err on the same tasks" in data_notes(annotations, worth=(1.7, 1.0, 3.0))[0]


def test_who_is_a_model_is_not_asked_where_it_was_said():
    annotations, worth = crowd(4, 210), (3.0, 2.0, 4.0)
    asked, (known,) = (data_notes(annotations, worth=worth, models_named=named) for named in (False, True))
    asked = asked[0]
    assert "--annotator-table" in asked
    assert asked.startswith(known)
    assert "--annotator-table" not in known


def test_too_few_annotations_for_matrices_are_noted():
    rng = np.random.default_rng(0)
    tasks = np.repeat(np.arange(50), 2)
    few = Annotations.from_arrays(tasks, (tasks + np.tile([0, 10], 50)) % 20, rng.integers(0, 6, 100))
    (note,) = data_notes(few, "dawid-skene")
    assert note.startswith("An annotator has 0.8 annotations of each class on average")  # 100 / (20 * 6)
    assert data_notes(few, "one-coin") == data_notes(few) == ()
    assert data_notes(few.select_tasks([]), "dawid-skene") == ()
