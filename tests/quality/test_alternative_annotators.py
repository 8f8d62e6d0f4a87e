"""The alternative annotator test against one written in loops, and on people and models of known skill."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.quality import alternative_annotator_test, class_agreement

PEOPLE = ["ann", "bo", "cy", "di"]


def crowd(skills, tasks=120, share=1.0, seed=0, classes=3):
    """Annotations by name -> probability of the right answer; other answers are drawn among the other classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=tasks)
    rows = []
    for name, skill in skills.items():
        for task in np.flatnonzero(rng.random(tasks) < share):
            wrong = (truth[task] + rng.integers(1, classes)) % classes
            rows.append((task, name, truth[task] if rng.random() < skill else wrong))
    task, name, label = zip(*rows, strict=True)
    return Annotations.from_arrays(task, name, label, classes=np.arange(classes))


def in_loops(annotations, model, epsilon, level, least):
    """Names and figures of the people, as the paper's section 3 puts it."""
    names = annotations.annotators[annotations.annotator_ids]
    pairs = zip(annotations.task_ids.tolist(), names, strict=True)
    said = dict(zip(pairs, annotations.labels.tolist(), strict=True))
    found = []
    for person in PEOPLE:
        wins, losses = [], []
        for task in range(annotations.num_tasks):
            others = [said[task, name] for name in PEOPLE if name != person and (task, name) in said]
            if not others or (task, person) not in said or (task, model) not in said:
                continue
            of_model = np.mean([other == said[task, model] for other in others])
            of_person = np.mean([other == said[task, person] for other in others])
            wins.append(of_model >= of_person)
            losses.append(of_person >= of_model)
        difference = np.array(losses, float) - np.array(wins, float) - epsilon
        if len(difference) < least:
            continue
        p = stats.ttest_1samp(difference, 0, alternative="less").pvalue
        found.append((person, len(wins), np.mean(wins), np.mean(losses), p))
    # Benjamini and Yekutieli, step up
    ps = np.array([row[-1] for row in found])
    rank, harmonic = ps.argsort().argsort() + 1, sum(1 / i for i in range(1, len(ps) + 1))
    passing = [r for r, p in zip(rank, ps, strict=True) if p <= r * level / (len(ps) * harmonic)]
    return found, rank <= max(passing, default=0)


@pytest.mark.parametrize(("share", "epsilon"), [(1.0, 0.2), (0.6, 0.1), (0.5, 0.0), (0.6, 0.15)])
def test_it_is_the_papers(share, epsilon):
    skills = dict(zip([*PEOPLE, "model"], [0.9, 0.7, 0.6, 0.8, 0.75], strict=True))
    for seed in range(3):
        annotations = crowd(skills, tasks=130, share=share, seed=seed)
        (found,) = alternative_annotator_test(annotations, ["model"], epsilon=epsilon, least_tasks=20)
        expected, won = in_loops(annotations, "model", epsilon, 0.05, 20)
        table = found.people.to_pydict()
        assert table["annotator"] == [row[0] for row in expected]
        assert table["tasks"] == [row[1] for row in expected]
        np.testing.assert_allclose(table["advantage"], [row[2] for row in expected])
        np.testing.assert_allclose(table["person_advantage"], [row[3] for row in expected])
        assert table["won"] == won.tolist()
        assert found.winning_rate == won.mean()
        assert found.passes == (won.mean() >= 0.5)


def test_too_few_tasks_are_no_verdict():
    """As good as the people: 40 tasks cannot tell, as many as it says can."""
    skills = {**dict.fromkeys(PEOPLE, 0.75), "model": 0.75}
    (few,) = alternative_annotator_test(crowd(skills, tasks=40, seed=1), ["model"])
    assert (few.passes, few.decided) == (False, False)
    assert 40 < few.tasks_needed < 2000
    assert "too few tasks to decide" in repr(few)
    passed = [
        alternative_annotator_test(crowd(skills, tasks=int(few.tasks_needed), seed=seed), ["model"])[0].passes
        for seed in range(2, 12)
    ]
    assert sum(passed) >= 6
    (guess,) = alternative_annotator_test(crowd({**skills, "model": 1 / 3}, tasks=300), ["model"])
    assert (guess.passes, guess.decided) == (False, True)


def test_the_tasks_that_are_needed_by_hand():
    """One person, mean -.2 and deviation s: (z(.95) + z(.8))^2 s^2 / .04 tasks."""
    rng = np.random.default_rng(0)
    labels = np.stack([rng.integers(0, 2, 60) for _ in range(3)], axis=1)
    annotations = Annotations.from_dense(labels, annotators=["ann", "bo", "model"], classes=[0, 1])
    (found,) = alternative_annotator_test(annotations, ["model"], epsilon=0.2)
    ann, bo, model = labels.T
    needed = []
    for person, other in ((ann, bo), (bo, ann)):
        wins, losses = [], []
        for own, of_other, of_model in zip(person, other, model, strict=True):
            wins.append((of_other == of_model) >= (of_other == own))
            losses.append((of_other == own) >= (of_other == of_model))
        excess = np.array(losses, float) - np.array(wins, float) - 0.2
        level = 0.05 * 1 / (2 * 1.5)  # the smaller of two p-values, by Benjamini and Yekutieli
        errors = stats.norm.isf(level) + stats.norm.ppf(0.8)
        needed.append(np.ceil((errors * excess.std(ddof=1) / excess.mean()) ** 2))
    assert found.tasks_needed == np.median(needed)


def written(annotations, folder, *words):
    """The command on annotations in a file, with an output folder."""
    annotations.to_frame()[["task", "annotator", "label"]].to_csv(folder / "a.csv", index=False)
    return ["quality", str(folder / "a.csv"), "--bootstrap", "0", "--out", str(folder / "out"), *words]


@pytest.mark.parametrize("method", ["none", "robust", None])
def test_that_nobody_is_a_person_is_said_before_anything_is_printed_or_written(tmp_path, capsys, method):
    few = crowd({"gpt": 0.75, "good": 0.95}, tasks=40)
    words = written(few, tmp_path, "--models", "gpt,good", *(["--method", method] if method else []))
    assert cli.main(words) == DataError.exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert "no person labelled a task" in said.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_folder_has_the_test_and_the_agreement_of_classes(tmp_path, ending):
    annotations = crowd({**dict.fromkeys(PEOPLE, 0.75), "good": 0.95, "rare": 0.9}, tasks=200)
    names = annotations.annotators[annotations.annotator_ids]
    annotations = annotations.select_rows((names != "rare") | (annotations.task_ids < 10))
    words = written(annotations, tmp_path, "--models", "good,rare", "--format", ending, "--epsilon", "0.15")
    assert cli.main(words) == 0
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet}[ending]
    models, people, classes = (
        read(tmp_path / "out" / f"{name}.{ending}") for name in ("models", "model_people", "model_classes")
    )
    good, _ = alternative_annotator_test(annotations, ["good", "rare"], epsilon=0.15)
    assert models["model"].tolist() == ["good", "rare"]
    assert models["epsilon"].tolist() == [0.15, 0.15]
    assert models["shared"].tolist() == [200, 10]
    assert models["passes"].tolist() == [True, False]
    assert models["decided"].tolist() == [True, False]
    assert models["advantage"][0] == pytest.approx(good.advantage)
    assert np.isnan(models["winning_rate"][1])
    assert people["model"].tolist() == ["good"] * 4
    np.testing.assert_allclose(people["p_value"], good.people["p_value"].to_numpy())
    assert len(classes) == class_agreement(annotations, ["good", "rare"]).num_rows
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [each["passes"] for each in summary["models"]] == [True, False]
    assert summary["models"][1]["winning_rate"] is None
    assert cli.main([*words, "--force"]) == 0  # its own folder is replaced


def test_what_cannot_be_tested_is_refused():
    annotations = crowd({"ann": 0.8, "bo": 0.8, "model": 0.8}, tasks=5)
    with pytest.raises(DataError, match="no person labelled a task"):
        alternative_annotator_test(annotations, ["model", "ann", "bo"])
    with pytest.raises(ConfigError, match="name one annotator or more"):
        alternative_annotator_test(annotations, [])
    with pytest.raises(ConfigError, match="Did you mean 'model'"):
        alternative_annotator_test(annotations, ["modle"])
    with pytest.raises(ConfigError, match="epsilon"):
        alternative_annotator_test(annotations, ["model"], epsilon=2)
    ratings = Annotations.from_arrays([0, 0], ["a", "b"], [1.0, 2.0], kind="regression")
    with pytest.raises(DataError, match="is for classes"):
        alternative_annotator_test(ratings, ["a"])


def test_agreement_of_classes_by_hand(write, capsys):
    """Two people and a model on four tasks; the model says "b" too often."""
    rows = ["task,annotator,label"]
    for task, said in enumerate(["aab", "aab", "bbb", "ab-"]):
        rows += [f"{task},{who},{label}" for who, label in zip(("ann", "bo", "gpt"), said, strict=True) if label != "-"]
    path = write("a.csv", "\n".join(rows) + "\n")
    found = class_agreement(Annotations.read(path), ["gpt"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("gpt", "a", 4, 0, 0.0, None, 4 / 5),
        ("gpt", "b", 2, 6, 1.0, 2 / 6, 2 / 3),
    ]
    assert [*found[0]] == ["model", "class", "by_people", "by_model", "found", "confirmed", "people"]
    assert cli.main(["quality", str(path), "--bootstrap", "0", "--models", "gpt"]) == 0
    said = capsys.readouterr()
    assert ["gpt", "b", "2", "6", "1.000", "0.333", "0.667"] in [line.split() for line in said.out.splitlines()]
    with pytest.raises(ConfigError, match="unknown annotator 'gtp'"):
        class_agreement(Annotations.read(path), ["gtp"])
