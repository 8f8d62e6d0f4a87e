"""The generated ratings: what the text says of them is so, and they come out the same each time."""

import numpy as np
import pytest
from refusals import about

from crowdzoo import datasets
from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets import generated_ratings, write_files
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.instances import read_instances

LARGE = generated_ratings(8000, 40, redundancy=5)


def test_ratings_are_half_points_of_the_scale_and_nobody_rates_twice():
    crowd = LARGE.annotations
    assert crowd.kind == "regression"
    np.testing.assert_array_equal(crowd.labels * 2, np.round(crowd.labels * 2))
    assert (crowd.labels.min(), crowd.labels.max()) == (0, 10)
    assert (crowd.redundancy == 5).all()
    assert len(set(zip(crowd.task_ids.tolist(), crowd.annotator_ids.tolist(), strict=True))) == 40_000


def test_errors_of_one_in_five_are_those_of_the_careless():
    crowd, gold = LARGE.annotations, LARGE.gold
    counts = np.bincount(crowd.annotator_ids)
    biases = np.bincount(crowd.annotator_ids, crowd.labels - gold[crowd.task_ids]) / counts
    assert counts.min() > 100
    assert biases.std() == pytest.approx(1.5, rel=0.3)
    errors = crowd.labels - gold[crowd.task_ids] - biases[crowd.annotator_ids]
    spread = np.sqrt(np.bincount(crowd.annotator_ids, errors**2, 40) / counts)
    careless = np.arange(40) % 5 == 4
    assert spread[careless].min() > spread[~careless].max()


def test_a_seed_gives_the_same_set_and_another_one_another():
    one, again, other = generated_ratings(50, 6), generated_ratings(50, 6), generated_ratings(50, 6, seed=1)
    assert one.annotations == again.annotations
    assert one.gold[:3].tolist() == [5.95, 0.14, 4.11]  # as first released
    np.testing.assert_array_equal(one.instances, again.instances)
    assert not np.array_equal(one.gold, other.gold)
    assert one.split.tolist() == ["train"] * 38 + ["eval"] * 12


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, check=about("num_tasks", 3)):
        generated_ratings(3, 5, redundancy=1)
    with pytest.raises(ValueError, check=about("redundancy")):
        generated_ner(redundancy=21)


def test_it_ships_and_comes_back_from_its_files(tmp_path):
    assert datasets.names("regression") == ("generated-ratings",)
    one = datasets.load("generated-ratings")
    table, instances = write_files(one, tmp_path)
    read = read_instances(instances)
    np.testing.assert_array_equal(read.gold_ratings(), one.gold)
    np.testing.assert_array_equal(read.values, one.instances)
    again = Annotations.read(table, kind="regression", tasks=read.tasks)
    np.testing.assert_array_equal(again.labels, one.annotations.labels)
