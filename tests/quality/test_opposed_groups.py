"""Groups of annotators who contradict each other, on generated crowds whose groups are known, and on real ones."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import create
from crowdzoo.datasets import data_folder
from crowdzoo.errors import DataError
from crowdzoo.quality import data_notes, opposed_groups, people_and_models

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "real_crowds.py"


def noisy(rng, truth, right, num_classes=3):
    other = (truth + rng.integers(1, num_classes, len(truth))) % num_classes
    return np.where(rng.random(len(truth)) < right, truth, other)


def people_beside_models(view=0.5, num_models=9, num_tasks=400, seed=0):
    """Two of four people of .85 for half of the tasks; models that say what their common view is, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)
    common = noisy(rng, truth, view)
    said = np.stack(
        [*(noisy(rng, common, 0.9) for _ in range(num_models)), *(noisy(rng, truth, 0.85) for _ in range(4))], axis=1
    )
    asked = rng.random((num_tasks, 4)).argsort(axis=1) < 2
    asked[rng.random(num_tasks) < 0.5] = False
    said[:, num_models:][~asked] = -1
    names = [*(f"model{number}" for number in range(num_models)), "ann", "bo", "cy", "di"]
    return Annotations.from_dense(said, annotators=names, classes=range(3)), names[:num_models], truth


@pytest.mark.parametrize("num_models", [2, 5, 9])
@pytest.mark.parametrize("seed", [0, 1])
def test_people_and_models_who_agree_for_another_reason_are_told_apart(num_models, seed):
    table, models, _ = people_beside_models(num_models=num_models, seed=seed)
    found = opposed_groups(table)
    is_model = np.isin(table.annotators, models)
    assert np.array_equal(found.outvoting, is_model)  # two models have more votes where no person answered
    assert np.array_equal(found.outvoted, ~is_model)
    assert 0 <= found.correlation < found.high < 0.85
    assert min(found.agreement) > 0.4
    assert repr(found).startswith("OpposedGroups(4 and ")


def ordinary(kind, seed):
    """Twelve annotators without groups: one coin, tasks that mislead all, confusion matrices, spammers, lenience."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 400)
    skills = rng.uniform(0.5, 0.95, 12)
    if kind == "hard tasks":
        truth = np.where(rng.random(400) < 0.4, rng.integers(0, 3, 400), truth)
    said = [noisy(rng, truth, skill) for skill in skills]
    if kind == "matrices":
        matrices = 0.5 * rng.dirichlet(np.full(3, 0.7), (12, 3)) + 0.5 * np.eye(3)
        said = [(rng.random(400)[:, None] > one.cumsum(axis=1)[truth]).sum(axis=1).clip(0, 2) for one in matrices]
    if kind == "spammers":
        said[:6] = [*(np.full(400, label) for label in (0, 0, 1)), *rng.integers(0, 3, (3, 400))]
    if kind == "lenient":  # half of them say the next class
        said = [noisy(rng, np.minimum(truth + (number % 2), 2), 0.85) for number in range(12)]
    said = np.stack(said, axis=1)
    return Annotations.from_dense(np.where(rng.random(said.shape) < 0.6, said, -1), classes=range(3))


@pytest.mark.parametrize("kind", ["one coin", "hard tasks", "matrices", "spammers", "lenient"])
def test_ordinary_crowds_have_no_such_groups(kind):
    assert [seed for seed in range(6) if opposed_groups(ordinary(kind, seed)) is not None] == []


@pytest.mark.parametrize(
    "name",
    ["bluebird", "dog", "rte", "trec", "web", "d_sentiment", "face", "music", "labelme", "CF", "ZenCrowd_in",
     "fact_eval", "temporal", "wsd"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*rows were left out")
def test_real_crowds_of_people_have_no_such_groups(name):
    spec = importlib.util.spec_from_file_location("real_crowds", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = next(iter(module.real_sets((name,))), None)
    if found is None:
        pytest.skip(f"CROWDZOO_DATA has no {name}")
    assert opposed_groups(found[1]) is None


def test_schools_of_thought_about_ducks_are_found():
    """Welinder, Branson, Belongie and Perona (NIPS 2010) tell them apart; most take other birds for ducks."""
    folder = data_folder() / "bluebirds-ducks-cubam" / "demo" / "ducks"
    if not folder.is_dir():
        pytest.skip("CROWDZOO_DATA has no bluebirds-ducks-cubam")
    text = (folder / "classes.yaml").read_text(encoding="utf-8").partition("}")[0]
    species = {int(task): int(code) for task, code in re.findall(r"(\d+): (\d+)", text)}
    rows = np.loadtxt(folder / "labels.txt", np.int64, skiprows=1)
    table = Annotations.from_arrays(*rows.T, classes=(0, 1), on_duplicate="first")
    gold = np.array([int(species[int(task)] in (0, 2)) for task in table.tasks])
    found = opposed_groups(table)
    few, many = (
        create("one-coin").fit(table.select_rows(group[table.annotator_ids])).expected_accuracy(gold)
        for group in (found.outvoted, found.outvoting)
    )
    assert (found.outvoted.sum(), found.outvoting.sum()) == (21, 32)
    assert few > 0.95
    assert many < 0.6


def test_what_cannot_be_known_is_none(tmp_path):
    table, *_ = people_beside_models()
    assert opposed_groups(table.select_tasks(np.arange(15))) is None
    (tmp_path / "a.csv").write_text("task,annotator,label\n1,a,x\n1,a,y\n1,b,x\n")
    assert opposed_groups(Annotations.read(tmp_path / "a.csv", on_duplicate="all")) is None
    with pytest.raises(DataError, match="is for classes"):
        opposed_groups(Annotations.from_arrays([0, 0], ["a", "b"], [1.0, 2.0], kind="regression"))


def test_the_note_names_both_groups_and_what_to_do():
    table, models, truth = people_beside_models()
    asked = np.unique(table.task_ids[~np.isin(table.annotators[table.annotator_ids], models)])
    robust, both = create("robust").fit(table), people_and_models(table, models).aggregation
    assert (robust.labels == truth)[asked].mean() < 0.6 < 0.75 < (both.labels == truth)[asked].mean()
    assert robust.posteriors[asked].max(axis=1).mean() > 0.9
    assert robust.notes == ()  # the method itself sees nothing
    (note,) = data_notes(table, "robust")
    assert "each agrees in itself: 4 annotators (ann, bo, cy, di) against 9 annotators (model0, " in note
    assert "model4 and 4 more). The second group has more votes on 100% of the tasks" in note
    assert "say who is a model (--annotator-table)" in note
    assert "opposed_groups" not in note  # who reads it may be on a command line
    assert data_notes(table, "robust", models_named=True) == ()
    assert data_notes(table, "people-and-models") == ()
