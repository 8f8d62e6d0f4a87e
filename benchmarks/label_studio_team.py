"""What `push` saves a team that annotates in Label Studio: answers until 95 and 97 % of the labels are correct.

    make engines                                            # brings Label Studio
    python benchmarks/label_studio_team.py                  # what results/label_studio_team.json does not have
    python benchmarks/label_studio_team.py --page           # the table of what is saved

The protocol. 300 tasks of four classes that are equally frequent, and eight annotators, each a user of a real server
with a token of their own, who answer what the server hands out through its API, and nothing else. Five are correct
with probability .85 and else say one of the other classes. One answers at random. One swaps two of the four classes,
and is else as good as these. One copies the answer of the first annotator where that one has answered the task, and is
else correct with probability .55. What an annotator says of a task is drawn once per seed, the same in both arms.

A round is forty turns in random order, five per annotator. After it the project is pulled, labels are made by `robust`,
and compared with the truth: a task without an answer counts as wrong.

- Own order: the project asks for three annotations per task. In a turn the annotator answers the next task of the
  project ("Label All Tasks"). When nobody is handed anything, the project asks for one annotation per task more. The
  arm ends when 97 % of the labels are correct.
- Next: the project asks for one annotation per task. After each round `push` sends `next`: at most forty questions,
  where a label put right is worth 60 answers (chosen in simulations without a server, on other seeds). In a turn the
  annotator is handed the next task of the view that is named after them; without such a view, or once it is empty, the
  next task of the project. The arm ends when no task is worth a further answer and all have one.

An annotator is flagged when the table of annotators has a serious note on them for the first time. A question reaches
the annotator who was meant if that annotator is the first to answer the task after it was pushed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.aggregation import Robust
from crowdzoo.kinds.page_parts import serious_notes
from crowdzoo.label_studio.outcome import Outcome
from crowdzoo.label_studio.project import Project
from crowdzoo.label_studio.pushing import MARK, NEXT, push
from crowdzoo.quality import annotator_table
from crowdzoo.reading.platforms.label_config import read_label_config

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "tests" / "label_studio"), str(HERE / "reproduce")]
from rows import Parts, grid, read, run  # noqa: E402  of benchmarks/reproduce
from server import CHOICES, LabelStudio, User, label_studio  # noqa: E402  of tests/label_studio

RESULTS = HERE / "results" / "label_studio_team.json"
SEEDS = (100, 101, 102)
NUMBER = 300  # tasks
CLASSES = ("a", "b", "c", "d")
TEAM = ("good1", "good2", "good3", "good4", "good5", "random", "swapper", "copyist")
EACH = 5  # turns of an annotator in a round
WORTH = 60.0
TARGETS = (0.95, 0.97)
CONFIG = CHOICES.format("".join(f'<Choice value="{name}"/>' for name in CLASSES))
(CONTROL,) = read_label_config(CONFIG)


def draw(seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """The true classes [N], and what each annotator says of each task [8, N]; the copyist's where nobody is copied."""
    rng, size = np.random.default_rng([59, seed]), len(CLASSES)
    truth = rng.integers(0, size, number)

    def says(seen: np.ndarray, correct: float) -> np.ndarray:
        return np.where(rng.random(number) < correct, seen, (seen + rng.integers(1, size, number)) % size)

    swapped = np.array([1, 0, *range(2, size)])[truth]
    answers = [says(truth, 0.85) for _ in range(5)]
    return truth, np.array([*answers, rng.integers(0, size, number), says(swapped, 0.85), says(truth, 0.55)])


def place_of(task: dict[str, Any]) -> int:
    """The place of a task of the server."""
    return int(task["data"]["text"].removeprefix("task "))


class Run:
    """One arm of one seed, on a server."""

    def __init__(self, seed: int, number: int, overlap: int):
        self.rng, self.overlap = np.random.default_rng([7, seed]), overlap
        self.truth, self.drawn = draw(seed, number)
        self.said = np.full(self.drawn.shape, -1)
        self.curve: list[tuple[int, float]] = []
        self.flagged: dict[str, list[Any]] = {}

    def start(self, studio: LabelStudio, users: list[User], folder: Path) -> Run:
        """Makes the project."""
        self.users, tasks = users, [{"data": {"text": f"task {place}"}} for place in range(len(self.truth))]
        self.server = studio.owner
        self.number = studio.project(CONFIG, tasks, "Team", maximum_annotations=self.overlap)
        self.project = Project(studio.url, self.number, studio.owner.token, folder=folder)
        return self

    def views(self) -> list[Any]:
        """The view of each annotator, or None."""
        views = self.server.json("GET", "/api/dm/views/", project=self.number)
        of_title = {view["data"]["title"]: view for view in views}
        return [of_title.get(f"{NEXT}{user.email}{MARK}") for user in self.users]

    def answer(self, who: int, view: Any) -> int | None:
        """Lets an annotator answer what the server hands out; the task's place."""
        task = self.users[who].next_task(self.number, view)
        if task is None:
            return None
        place = place_of(task)
        assert self.said[who, place] < 0
        is_copied = TEAM[who] == "copyist" and self.said[0, place] >= 0
        self.said[who, place] = self.said[0, place] if is_copied else self.drawn[who, place]
        self.users[who].choose(task["id"], CLASSES[self.said[who, place]])
        return place

    def raise_overlap(self) -> None:
        """Asks for one annotation per task more."""
        self.overlap += 1
        self.server.json("PATCH", f"/api/projects/{self.number}/", {"maximum_annotations": self.overlap})

    def names(self) -> tuple[dict[str, int], list[str]]:
        """Name of a task -> its place, and the names of the annotators."""
        places = {str(task["id"]): place_of(task) for task in self.project.store.tasks()}
        return places, [user.email for user in self.users]

    def measure(self) -> tuple[Any, Any]:
        """Aggregates; notes the accuracy and who is flagged."""
        crowd = self.project.annotations(classes=list(CLASSES))
        result = Robust().fit(crowd)
        place_by_name, names = self.names()
        places = np.array([place_by_name[str(name)] for name in crowd.tasks.tolist()])
        right = (result.labels == self.truth[places]) & (crowd.redundancy > 0)
        answers = int((self.said >= 0).sum())
        assert answers == len(crowd)
        self.curve.append((answers, float(right.sum() / len(self.truth))))
        table = annotator_table(crowd, result).to_pydict()
        table["notes"] = [[word.strip() for word in notes.split(",")] for notes in table["notes"]]
        for name, notes, is_serious in zip(table["annotator"], table["notes"], serious_notes(table), strict=True):
            who = names.index(str(name))
            if is_serious and TEAM[who] not in self.flagged:
                self.flagged[TEAM[who]] = [int((self.said[who] >= 0).sum()), answers, *notes]
        return crowd, result


def own_order(run: Run) -> dict[str, Any]:
    """The server's own order."""
    while True:
        done = [run.answer(who, None) for who in turns(run)]
        if any(place is not None for place in done):
            run.measure()
            if run.curve[-1][1] >= max(TARGETS):
                break
        elif run.overlap == len(TEAM):
            break
        else:
            run.raise_overlap()
    return record(run)


def turns(run: Run) -> list[int]:
    """Whose turns a round has."""
    order: list[int] = run.rng.permutation(np.repeat(np.arange(len(TEAM)), EACH)).tolist()
    return order


def by_next(run: Run) -> dict[str, Any]:
    """The questions of `push`."""
    reached = answered = questions = 0
    asked: dict[int, int] = {}
    seconds = []
    while True:
        views, idle = run.views(), set[int]()
        for who in turns(run):
            if who in idle:  # was handed nothing in this round
                continue
            place = None if views[who] is None else run.answer(who, views[who])
            if place is None:
                place = run.answer(who, None)
            if place is None:
                idle.add(who)
            if place in asked:
                answered += 1
                reached += asked.pop(place) == who
        begin = time.perf_counter()
        crowd, result = run.measure()
        outcome = Outcome(control=CONTROL, crowd=crowd, aggregation=result, number=EACH * len(TEAM), worth=WORTH)
        pulled = time.perf_counter()
        if outcome.is_done:
            break
        push(run.project, outcome, {"next"})
        seconds.append([pulled - begin, time.perf_counter() - pulled])
        chosen, (place_by_name, names) = outcome.questions, run.names()
        asked = {
            place_by_name[str(crowd.tasks[task])]: names.index(str(crowd.annotators[who]))
            for task, who in zip(chosen.tasks, chosen.annotators, strict=True)
        }
        questions += len(asked)
    return {
        **record(run),
        "stopped": run.curve[-1][0],
        "accuracy there": round(run.curve[-1][1], 4),
        "questions": questions,
        "answered": answered,
        "reached": reached,
        "flagged": run.flagged,
        "seconds of a round": [round(statistics.median(part), 2) for part in zip(*seconds, strict=True)],
    }


def record(run: Run) -> dict[str, Any]:
    """Answers until each target, or None; the curve; and the number of answers by each annotator."""
    until = {
        f"{target:.0%}": next((number for number, share in run.curve if share >= target), None) for target in TARGETS
    }
    own = {name: int(number) for name, number in zip(TEAM, (run.said >= 0).sum(axis=1), strict=True)}
    return {**until, "curve": [[number, round(share, 4)] for number, share in run.curve], "own answers": own}


def arms(seed: int) -> Iterator[dict[str, Any]]:
    """Both arms of a seed."""
    with tempfile.TemporaryDirectory() as name, label_studio(Path(name, "server")) as studio:
        users, folder = [studio.user(f"{member}@example.com") for member in TEAM], Path(name)
        by_choice = by_next(Run(seed, NUMBER, 1).start(studio, users, folder / "next"))
        yield {"own": own_order(Run(seed, NUMBER, 3).start(studio, users, folder / "own")), "next": by_choice}


def show_table() -> None:
    """Prints the saved results as Markdown."""
    rows = []
    for seed, row in read(RESULTS)["server"].items():
        own, chosen = row["runs"][0]["own"], row["runs"][0]["next"]
        cells = [str(arm[target]) for target in ("95%", "97%") for arm in (own, chosen)]
        flags = [str(chosen["flagged"].get(name, ["never"])[0]) for name in ("random", "swapper", "copyist")]
        share = chosen["reached"] / max(chosen["answered"], 1)
        wrong = ", ".join(name for name in chosen["flagged"] if name.startswith("good")) or "none"
        stop = f"{chosen['stopped']} ({chosen['accuracy there']:.1%})"
        rows.append([seed, *cells, stop, f"{share:.0%}", *flags, wrong])
    header = (
        "seed", "95 %: own order", "next", "97 %: own order", "next", "stopped (correct)", "reached", "random flagged",
        "swapper", "copyist", "others flagged",
    )  # fmt: skip
    print(grid(header, rows))


PARTS: Parts = {"server": {str(seed): partial(arms, seed) for seed in SEEDS}}

if __name__ == "__main__":
    run(RESULTS, PARTS, __doc__, show_table, keras=False)
