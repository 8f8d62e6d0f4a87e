"""A simulated project of Zooniverse, from its export to the consensus: 3,000 subjects, 200 volunteers, 30 % anonymous.

Each subject is a photograph of 640 x 480 pixels with no animal, a lion or a gnu, of which there are one to four. Six
volunteers classify it, drawn by how active they are (log-normal, sigma 1). A volunteer names the right one of the three
with a probability of their own, from .55 to .98, else one of the others; says how many there are, rounded, with an
error of their own; and marks each animal with a rectangle and a point, misses some, shifts all by some pixels, and
invents a few. What the export holds is written in the form of Panoptes, and read by the commands.
"""

import csv
import json
import re

import numpy as np
import pytest
from csv_files import read_csv
from scipy.stats import spearmanr

from crowdzoo import Annotations
from crowdzoo.aggregation import create
from crowdzoo.commands.main import main

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
SUBJECTS, VOLUNTEERS, ANONYMOUS, EACH = 3000, 200, 60, 6
CLASSES, SIZE = np.array(["empty", "gnu", "lion"]), (480, 640)
SIDE, SHIFT = 60, 4.0  # of the rectangles, and the standard deviation of what volunteers shift them by, in pixels


class Project:
    """What is true, and what volunteers say."""

    def __init__(self):
        rng = self.rng = np.random.default_rng(61)
        self.species = rng.choice(3, SUBJECTS, p=[0.2, 0.5, 0.3])
        self.places = [self.apart(rng.integers(1, 5)) if species else np.empty((0, 2)) for species in self.species]
        self.numbers = np.array([len(places) for places in self.places])
        self.skill = rng.uniform(0.55, 0.98, VOLUNTEERS)
        self.noise = rng.uniform(0.2, 1.5, VOLUNTEERS)
        active = rng.lognormal(0, 1, VOLUNTEERS)
        chances = active / active.sum()
        self.who = np.array([rng.choice(VOLUNTEERS, EACH, replace=False, p=chances) for _ in range(SUBJECTS)])
        right = rng.random(self.who.shape) < self.skill[self.who]
        self.said = (self.species[:, None] + np.where(right, 0, rng.integers(1, 3, right.shape))) % 3
        self.counted = np.round(self.numbers[:, None] + rng.normal(0, self.noise[self.who])).clip(0, 10)
        self.names = [f"not-logged-in-{who:020x}" if who < ANONYMOUS else f"v{who}" for who in range(VOLUNTEERS)]

    def apart(self, number):
        """Left tops of rectangles that do not touch."""
        places = np.empty((0, 2))
        while len(places) < number:
            place = self.rng.uniform(0, (SIZE[1] - SIDE, SIZE[0] - SIDE))
            if (np.abs(places - place).max(axis=1, initial=0) > SIDE + 20).all() or not len(places):
                places = np.vstack([places, place])
        return places

    def marks(self, subject, who):
        """What a volunteer draws."""
        kept = [place for place in self.places[subject] if self.rng.random() < 0.5 + self.skill[who] / 2]
        kept += [self.rng.uniform(0, (SIZE[1] - SIDE, SIZE[0] - SIDE)) for _ in range(self.rng.random() < 0.05)]
        for place in kept:
            (left, top), (x, y) = place + self.rng.normal(0, SHIFT, 2), place + SIDE / 2 + self.rng.normal(0, SHIFT, 2)
            yield {"x": left, "y": top, "width": SIDE, "height": SIDE, "tool": 0, "tool_label": "animal"}
            yield {"x": x, "y": y, "tool": 1, "tool_label": "centre"}

    def write(self, path):
        """The export."""
        head = ["classification_id", "user_name", "user_id", "user_ip", "workflow_id", "workflow_name",
                "workflow_version", "created_at", "gold_standard", "expert", "metadata", "annotations", "subject_data",
                "subject_ids"]  # fmt: skip
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(head)
            for subject, of_subject in enumerate(self.who):
                data = {f"{9000 + subject}": {"retired": None, "Filename": f"{subject}.jpg"}}
                for place, who in enumerate(of_subject):
                    marks = [{"frame": 0, "details": [], **mark} for mark in self.marks(subject, who)]
                    size = {"naturalWidth": SIZE[1], "naturalHeight": SIZE[0]}
                    end = f"2026-03-01T10:00:{who % 50 + 5:02d}.000Z"
                    about = {"started_at": "2026-03-01T10:00:00.000Z", "finished_at": end, "subject_dimensions": [size]}
                    tasks = [("T0", CLASSES[self.said[subject, place]]), ("T1", float(self.counted[subject, place])),
                             ("T2", [mark for mark in marks if mark["tool"] == 0]),
                             ("T3", [mark for mark in marks if mark["tool"] == 1])]  # fmt: skip
                    name, is_anonymous = self.names[who], who < ANONYMOUS
                    answers = [{"task": task, "task_label": task, "value": value} for task, value in tasks]
                    rows.writerow([
                        1, name, "" if is_anonymous else who, name[-20:], 77, "animals", "12.34",
                        "2026-03-01 10:01:00 UTC", "", "", *map(json.dumps, (about, answers, data)), 9000 + subject,
                    ])  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = Project()
    project.path = tmp_path_factory.mktemp("zooniverse") / "classifications.csv"
    project.write(project.path)
    return project


def run(project, command, *words):
    assert main([command, str(project.path), "--platform", "panoptes", *words]) == 0


def test_labels_match_the_truth_and_so_does_what_is_said_of_them(project, tmp_path, capsys):
    accuracy, probability = {}, {}
    for method in ("robust", "one-coin"):
        run(project, "aggregate", "--field", "T0", "--method", method, "--out", str(tmp_path / f"{method}.csv"))
        assert re.search(r"annotations +18,000\ntasks +3,000\nannotators +200\n", capsys.readouterr().out)
        rows = {int(row["task"]) - 9000: row for row in read_csv(tmp_path / f"{method}.csv")}
        labels = [rows[subject]["label"] for subject in range(SUBJECTS)]
        accuracy[method] = np.mean(labels == CLASSES[project.species])
        probability[method] = np.mean([float(row["probability"]) for row in rows.values()])
    votes = np.array([np.bincount(said, minlength=3) for said in project.said])
    ties = votes == votes.max(axis=1, keepdims=True)
    majority = (ties / ties.sum(axis=1, keepdims=True))[np.arange(SUBJECTS), project.species].mean()
    print(f"labels: accuracy {accuracy}, of votes {majority:.4f}; mean probability {probability}")
    assert 1 - max(accuracy.values()) < 1 - min(accuracy.values()) < 0.75 * (1 - majority)
    # volunteers of one-coin err as those here do; robust allows for errors that they share, as in most real crowds
    assert probability["one-coin"] == pytest.approx(accuracy["one-coin"], abs=0.005)
    assert probability["robust"] < accuracy["robust"]


def test_volunteers_are_told_apart_also_without_an_account(project):
    crowd = Annotations.read(project.path, platform="panoptes", field="T0")
    assert sum(str(name).startswith("not-logged-in-") for name in crowd.annotators) == ANONYMOUS
    who = np.array([project.names.index(str(name)) for name in crowd.annotators])
    np.testing.assert_array_equal(crowd.seconds, who[crowd.annotator_ids] % 50 + 5)
    result = create("one-coin").fit(crowd)
    often = result.annotations_per_annotator >= 30
    rho = spearmanr(result.skills[often], project.skill[who][often]).statistic
    anonymous = often & (who < ANONYMOUS)
    rho_anonymous = spearmanr(result.skills[anonymous], project.skill[who][anonymous]).statistic
    print(f"volunteers: rho of skills {rho:.3f}, of the anonymous {rho_anonymous:.3f} ({anonymous.sum()} of them)")
    assert min(rho, rho_anonymous) > 0.85


def test_counts_come_closer_to_the_truth_than_their_mean(project, tmp_path):
    run(project, "aggregate", "--kind", "regression", "--field", "T1", "--out", str(tmp_path / "counts.csv"))
    ratings = {int(row["task"]) - 9000: float(row["estimate"]) for row in read_csv(tmp_path / "counts.csv")}
    errors = np.array([ratings[subject] for subject in range(SUBJECTS)]) - project.numbers
    of_means = project.counted.mean(axis=1) - project.numbers
    error, of_mean = np.sqrt(np.mean(errors**2)), np.sqrt(np.mean(of_means**2))
    print(f"counts: root mean squared error {error:.3f}, of means {of_mean:.3f}")
    assert error < 0.85 * of_mean


def found_of(marked, centres):
    """How many of the true centres are within 20 pixels of a mark of their own, how many marks, how far they are."""
    far, found = [], 0
    for centre in centres:
        gaps = np.linalg.norm(np.reshape(marked, (-1, 2)) - centre, axis=1)
        if gaps.min(initial=np.inf) < 20:
            found, far = found + 1, [*far, gaps.min()]
    return found, len(marked), far


@pytest.mark.parametrize("field", ["T2", "T3"])
def test_drawings_come_to_the_true_places(project, field):
    pytest.importorskip("pycocotools")
    crowd = Annotations.read(project.path, platform="panoptes", kind="region", field=field)
    result = create("objects", kind="region").fit(crowd)
    consensus = dict(zip((np.asarray(result.tasks).astype(int) - 9000).tolist(), result.marked, strict=True))
    answers = [(subject, crowd.values[code]) for subject, code in zip(
        crowd.tasks[crowd.task_ids].astype(int) - 9000, crowd.labels, strict=True)]  # fmt: skip
    scores = {}
    for what, images in (("consensus", list(consensus.items())), ("volunteers", answers)):
        total, right, drawn, far = 0, 0, 0, []
        for subject, image in images:
            centres = project.places[subject] + SIDE / 2
            middles = [region.shape[:2] if len(region.shape) == 2 else np.add(region.shape[:2], SIDE / 2)
                       for region in image.regions]  # fmt: skip
            found, number, gaps = found_of(middles, centres)
            total, right, drawn, far = total + len(centres), right + found, drawn + number, far + gaps
        scores[what] = 2 * right / (total + drawn), np.mean(far)
    print(f"{field}: F1 {scores['consensus'][0]:.4f}, pixels {scores['consensus'][1]:.2f}; a volunteer's {scores}")
    assert scores["consensus"][0] > 0.99 > 0.93 > scores["volunteers"][0]
    # the mean of five draws of a standard deviation of 4 in x and y is off by 4 sqrt(pi / 2) / sqrt(5) = 2.2, one by 5
    assert scores["consensus"][1] < 2.8 < 4.8 < scores["volunteers"][1]
