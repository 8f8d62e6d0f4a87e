"""What `push` saves a team that annotates in Label Studio: answers until 95 and 97 % of the labels are correct.

    make engines                                            # brings Label Studio
    python benchmarks/label_studio_team.py                  # what results/label_studio_team.json does not have
    python benchmarks/label_studio_team.py --seeds 200 --repeat
    python benchmarks/label_studio_team.py --replay         # in memory, by the rules of the server's queue; more seeds
    python benchmarks/label_studio_team.py --print          # the tables of what is saved

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

import argparse
import json
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo import Annotations
from crowdzoo.aggregation import Robust
from crowdzoo.kinds.page_parts import serious_notes
from crowdzoo.label_studio.outcome import Outcome
from crowdzoo.label_studio.project import Project
from crowdzoo.label_studio.pushing import MARK, NEXT, push
from crowdzoo.quality import annotator_table
from crowdzoo.reading.platforms.label_config import read_label_config

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "tests" / "label_studio"), str(HERE / "reproduce")]
from rows import grid  # noqa: E402  of benchmarks/reproduce
from server import CHOICES, LabelStudio, User, label_studio  # noqa: E402  of tests/label_studio

RESULTS = HERE / "results" / "label_studio_team.json"
SEEDS = (100, 101, 102)
REPLAYED = tuple(range(200, 220))
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

    def hand_out(self, who: int, view: Any) -> int | None:
        """The place of the task that the server hands out."""
        self.task = self.users[who].next_task(self.number, view)
        return None if self.task is None else int(self.task["data"]["text"].removeprefix("task "))

    def answer(self, who: int, view: Any) -> int | None:
        """Lets an annotator answer what is handed out; the task's place."""
        place = self.hand_out(who, view)
        if place is not None:
            assert self.said[who, place] < 0
            is_copied = TEAM[who] == "copyist" and self.said[0, place] >= 0
            self.said[who, place] = self.said[0, place] if is_copied else self.drawn[who, place]
            self.send(who, CLASSES[self.said[who, place]])
        return place

    def send(self, who: int, label: str) -> None:
        """Sends an answer to what was handed out."""
        self.users[who].choose(self.task["id"], label)

    def raise_overlap(self) -> None:
        """Asks for one annotation per task more."""
        self.overlap += 1
        self.server.json("PATCH", f"/api/projects/{self.number}/", {"maximum_annotations": self.overlap})

    def crowd(self) -> Any:
        """The answers, whose tasks and annotators have the names that `names` gives."""
        return self.project.annotations(classes=list(CLASSES))

    def names(self) -> tuple[dict[str, int], list[str]]:
        """Name of a task -> its place, and the names of the annotators."""
        tasks = {
            str(task["id"]): int(task["data"]["text"].removeprefix("task ")) for task in self.project.store.tasks()
        }
        return tasks, [user.email for user in self.users]

    def push(self, outcome: Outcome) -> None:
        """Sends the questions."""
        push(self.project, outcome, {"next"})

    def measure(self) -> tuple[Any, Any]:
        """Aggregates; notes the accuracy and who is flagged."""
        crowd = self.crowd()
        result = Robust().fit(crowd)
        place_of, names = self.names()
        places = np.array([place_of[str(name)] for name in crowd.tasks.tolist()])
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


class Replay(Run):
    """One arm of one seed in memory: the queue hands out the task with most answers, at random among equals."""

    def __init__(self, seed: int, number: int, overlap: int):
        super().__init__(seed, number, overlap)
        self.asked: dict[int, list[int]] = {}

    def views(self) -> list[Any]:
        """The tasks that each annotator is asked about, in order."""
        return [sorted(self.asked[who]) if who in self.asked else None for who in range(len(TEAM))]

    def hand_out(self, who: int, view: Any) -> int | None:
        """The place of the task that the queue, or a list of tasks, hands out."""
        counts = (self.said >= 0).sum(axis=0)
        if view is not None:
            return next((task for task in view if self.said[who, task] < 0), None)
        open_tasks = (counts < self.overlap) & (self.said[who] < 0)
        if not open_tasks.any():
            return None
        most = open_tasks & (counts == counts[open_tasks].max())
        return int(self.rng.choice(np.flatnonzero(most)))

    def send(self, who: int, label: str) -> None:
        """Sends nothing."""

    def raise_overlap(self) -> None:
        """Asks for one annotation per task more."""
        self.overlap += 1

    def crowd(self) -> Any:
        """The answers."""
        tasks, annotators = np.nonzero(self.said.T >= 0)
        return Annotations(
            kind="classification", task_ids=tasks, annotator_ids=annotators, labels=self.said[annotators, tasks],
            tasks=np.arange(len(self.truth)), annotators=np.array(TEAM, object), classes=np.array(CLASSES, object),
        )  # fmt: skip

    def names(self) -> tuple[dict[str, int], list[str]]:
        """Name of a task -> its place, and the names of the annotators."""
        return {str(place): place for place in range(len(self.truth))}, list(TEAM)

    def push(self, outcome: Outcome) -> None:
        """Keeps the questions."""
        chosen = outcome.questions
        self.asked = {}
        for task, who in zip(chosen.tasks.tolist(), chosen.annotators.tolist(), strict=True):
            self.asked.setdefault(who, []).append(task)


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


def by_next(run: Run, worth: float = WORTH) -> dict[str, Any]:
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
        outcome = Outcome(control=CONTROL, crowd=crowd, aggregation=result, number=EACH * len(TEAM), worth=worth)
        pulled = time.perf_counter()
        if outcome.is_done:
            break
        run.push(outcome)
        seconds.append([pulled - begin, time.perf_counter() - pulled])
        chosen, (place_of, names) = outcome.questions, run.names()
        asked = {
            place_of[str(crowd.tasks[task])]: names.index(str(crowd.annotators[who]))
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


def both(seed: int, number: int, studio: LabelStudio, users: list[User]) -> dict[str, Any]:
    """Both arms of a seed, on a server."""
    with tempfile.TemporaryDirectory() as folder:
        by_choice = by_next(Run(seed, number, 1).start(studio, users, Path(folder, "next")))
        own = own_order(Run(seed, number, 3).start(studio, users, Path(folder, "own")))
    return {"own": own, "next": by_choice}


def replayed(seed: int, number: int, worth: float = WORTH) -> dict[str, Any]:
    """Both arms of a seed, in memory."""
    return {"own": own_order(Replay(seed, number, 3)), "next": by_next(Replay(seed, number, 1), worth)}


def tables(saved: dict[str, Any]) -> str:
    """The saved results as Markdown."""
    rows = []
    for seed, arms in sorted(saved.items()):
        own, chosen = arms["own"], arms["next"]
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
    return grid(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--replay", action="store_true", help="in memory")
    parser.add_argument("--repeat", action="store_true", help="also seeds that are saved")
    parser.add_argument("--print", action="store_true", help="only the tables")
    arguments = parser.parse_args()
    saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"server": {}, "replay": {}}
    part = "replay" if arguments.replay else "server"
    seeds = REPLAYED if arguments.replay and arguments.seeds == SEEDS else arguments.seeds
    seeds = [seed for seed in seeds if arguments.repeat or str(seed) not in saved[part]]
    if not arguments.print:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            if part == "server" and seeds:
                studio = stack.enter_context(label_studio(Path(folder)))
                users = [studio.user(f"{name}@example.com") for name in TEAM]
            for seed in seeds:
                saved[part][str(seed)] = (
                    replayed(seed, NUMBER) if part == "replay" else both(seed, NUMBER, studio, users)
                )
                RESULTS.write_text(json.dumps(saved, indent=1, sort_keys=True) + "\n")
    for name, runs in saved.items():
        print(f"{name}:\n\n{tables(runs)}")


if __name__ == "__main__":
    main()
