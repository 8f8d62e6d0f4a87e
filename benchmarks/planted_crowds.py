"""Who is named: crowds with planted annotators, and what the page, `crowdzoo quality` and `crowdzoo next` say of them.

    python benchmarks/planted_crowds.py --again                  # all kinds of labels, three seeds; four minutes
    python benchmarks/planted_crowds.py --again --rows classes   # only these
    python benchmarks/planted_crowds.py --print                  # the table of the saved results

A planted annotator is named *rightly* where the page has a note for what was planted, and does not advise to leave out
whoever exchanges classes, has a bias or sloppy edges; *for another reason* where it has another note, or advises that;
else *missed*. An honest annotator with a serious note is named *wrongly*, but for who is
copied and named for that. Definitions are warnings that a pair of classes (types) is unclear: rightly where the whole
crowd confuses the pair, else wrongly. For texts and regions the table has the crowds most of whom are bad, and in how
many of them the page warns that answers do not say who is right.

Of classes the table also has in how many crowds somebody is to be left out, where that harms accuracy, and what it adds
to it in all, in points; whom `quality` lists and the page does not name, or the other way round; and the questions of
`next` to annotators whom the page advises to leave out.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent / "reproduce"))
import planted_answers
from rows import Parts, run

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.data.crowd_sequences import sentence_annotations
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.page_parts import FLAGS
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.report.page import report_page
from crowdzoo.sequences import CrowdSequences, TagSet, allowed_tags, tags_of

RESULTS = Path(__file__).parent / "results" / "planted_crowds.json"
SEEDS = range(3)
NONE = "(none)"
HARM = 0.2  # points of accuracy
HONEST = (0.92, 0.87, 0.82, 0.78, 0.74, 0.7, 0.85, 0.8)
# What is planted -> notes that name it, and whether leaving out is right; None: either may be
RIGHT: dict[str, tuple[tuple[str, ...], bool | None]] = {
    "random": (("random", "vague", "apart", "far"), None),
    "constant": (("same", "constant", "silent", "random", "left", "right"), None),
    "swaps": (("exchange",), False),
    "opposite": (("exchange", "against", "label"), None),
    "biased": (("bias",), False),
    "edges": (("edges",), False),
    "copy": (("copy",), None),
    "bot": (("copy", "random", "vague", "apart"), None),
    "empty": (("random", "apart", "far"), None),
    "careless": (("far",), None),
    "invents": (("far",), None),
    **dict.fromkeys(("misses", "noisy"), (("far",), None)),
    "weak": (("far", "random", "vague"), None),
    "equal": (("equal",), None),
    **dict.fromkeys(("wide", "narrow", "shifted"), (("extent",), None)),
}  # fmt: skip


@dataclass(frozen=True)
class Crowd:
    """A crowd of which is known who answers how.

    Attributes:
        name: what is planted.
        annotations: what annotators said.
        planted: annotator -> kind of `RIGHT`; all others are honest.
        unclear: pairs of classes that the whole crowd confuses.
        gold: true classes; None of other kinds.
        copied: honest annotators whom others copy: answers do not tell them from the copies.
    """

    name: str
    annotations: Any
    planted: dict[str, str] = field(default_factory=dict)
    unclear: frozenset[frozenset[str]] = frozenset()
    gold: np.ndarray | None = None
    copied: frozenset[str] = frozenset()


Planted = dict[str, tuple[str, Any]]  # annotator -> kind of `RIGHT` or "honest", and how answers are made


def plant(kind: str, answer: Any, *names: str) -> Planted:
    """Annotators of these names, who answer alike."""
    return dict.fromkeys(names, (kind, answer))


def crowd_of(name: str, annotations: Any, planted: Planted, copied: str = "h3", **known: Any) -> Crowd:
    """A crowd with what is known of it; `copied` is whom those copy who do."""
    kinds = {who: kind for who, (kind, _) in planted.items() if kind != "honest"}
    return Crowd(name, annotations, kinds, copied=frozenset([copied] if "copy" in kinds.values() else []), **known)


# === Classes ===


def classes(seed: int) -> Iterator[Crowd]:
    """Eight honest annotators, and those who are planted, on 200 tasks of four classes; some crowds are smaller."""
    names = np.array(["ape", "bat", "cat", "dog", "eel", "fox", "gnu", "hen"], object)

    def crowd(
        name: str,
        planted: Planted,
        *,
        size: int = 4,
        tasks: int = 200,
        per_task: int | None = None,
        prior: tuple[float, ...] | None = None,
        honest: tuple[float, ...] = HONEST,
        confused: tuple[int, int] | None = None,
    ) -> Crowd:
        rng = np.random.default_rng([seed, len(name), size, tasks])
        truth = rng.choice(size, tasks, p=prior)
        answers = {}
        for number, skill in enumerate(honest):
            wrong = (truth + rng.integers(1, size, tasks)) % size
            own = np.where(rng.random(tasks) < skill, truth, wrong)
            if confused is not None:
                both = np.isin(own, confused) & (rng.random(tasks) < 0.4)
                own = np.where(both, sum(confused) - own, own)
            answers[f"h{number}"] = own
        for who, (_, answer) in planted.items():
            answers[who] = answer(truth, answers, rng)
        rows, columns, labels = [], [], []
        for who, own in answers.items():
            # each task is labelled by some of the crowd
            here = np.arange(tasks) if per_task is None else np.flatnonzero(rng.random(tasks) < per_task / len(answers))
            here = here[own[here] >= 0]
            rows.append(here), columns.append(np.full(len(here), who, object)), labels.append(names[own[here]])
        annotations = Annotations.from_arrays(
            np.concatenate(rows), np.concatenate(columns), np.concatenate(labels),
            tasks=np.arange(tasks), classes=names[:size],
        )  # fmt: skip
        unclear = frozenset() if confused is None else frozenset([frozenset(names[list(confused)].tolist())])
        return crowd_of(name, annotations, planted, unclear=unclear, gold=truth)

    def at_random(truth, answers, rng):
        return rng.integers(0, truth.max() + 1, len(truth))

    def always(code):
        return lambda truth, answers, rng: np.full(len(truth), code)

    def mostly(code):
        return lambda truth, answers, rng: np.where(rng.random(len(truth)) < 0.95, code, at_random(truth, answers, rng))

    def swaps(first, second, skill=0.9):
        def answer(truth, answers, rng):
            own = np.where(rng.random(len(truth)) < skill, truth, at_random(truth, answers, rng))
            return np.select([own == first, own == second], [second, first], own)

        return answer

    def copies(whom):
        return lambda truth, answers, rng: np.where(
            rng.random(len(truth)) < 0.98, answers[whom], at_random(truth, answers, rng)
        )

    def flags(code):
        return lambda truth, answers, rng: np.where(
            (truth == code) & (rng.random(len(truth)) < 0.9) | (rng.random(len(truth)) < 0.01), code, -1
        )

    def skilled_at(skill, answers=None):
        """Right so often, on so many of the tasks."""

        def answer(truth, said, rng):
            own = np.where(rng.random(len(truth)) < skill, truth, at_random(truth, said, rng))
            return np.where(rng.permutation(len(truth)) < (answers or len(truth)), own, -1)

        return answer

    spammers = plant("random", at_random, "r0", "r1")
    constant = plant("constant", always(0), "c0")
    constants = constant | plant("constant", mostly(2), "c1")
    swapper = plant("swaps", swaps(0, 1), "s0")
    flagger = plant("honest", flags(0), "f0")
    skilled = tuple(0.5 + skill / 2 for skill in HONEST)
    yield crowd("clean", {})
    yield crowd("clean, two classes", {}, size=2)
    yield crowd("clean, one class of nine in ten", {}, size=2, prior=(0.9, 0.1), honest=skilled)
    yield crowd("clean, three a task", {}, per_task=3)
    yield crowd("clean, shared confusion", {}, confused=(1, 2))
    yield crowd("random spammers", spammers)
    yield crowd("random spammers, two classes", spammers, size=2)
    yield crowd("random spammers, three a task", spammers, per_task=3, tasks=400)
    yield crowd("constant spammers", constants)
    yield crowd("constant spammers, two classes", constant | plant("constant", mostly(1), "c1"), size=2)
    yield crowd("constant spammers, three a task", constants, per_task=3, tasks=400)
    yield crowd("constant spammers, a frequent class", constant, size=3, prior=(0.7, 0.2, 0.1))
    yield crowd("a swapper", swapper)
    yield crowd("a swapper, three classes", plant("swaps", swaps(1, 2), "s0"), size=3)
    yield crowd("a swapper, three a task", swapper, per_task=3, tasks=400)
    yield crowd("a swapper and random spammers", swapper | spammers)
    many = swapper | plant("random", at_random, "r0", "r1", "r2")
    yield crowd("a swapper among many classes", many, size=8, tasks=400, per_task=5)
    yield crowd("a swapper who errs", plant("swaps", swaps(2, 3, 0.75), "s0"))
    yield crowd("the opposite, two classes", plant("opposite", swaps(0, 1), "o0"), size=2)
    yield crowd("copies", plant("copy", copies("h3"), "k0", "k1"))
    yield crowd("bots of one source", plant("bot", at_random, "b0") | plant("bot", copies("b0"), "b1", "b2"))
    yield crowd("a weak one", plant("weak", skilled_at(0.28), "w0"))
    yield crowd("weak, two classes", plant("weak", skilled_at(0.1), "w0"), size=2, honest=skilled)
    yield crowd("17 answers", plant("honest", skilled_at(0.4, 17), "f0", "f1", "f2", "f3"))
    yield crowd("17 answers, two classes", plant("honest", skilled_at(0.3, 17), "f0", "f1", "f2", "f3"), size=2)
    yield crowd("a flagger", flagger)
    yield crowd("a flagger and a constant spammer", flagger | constant)


# === Ratings ===


def ratings(seed: int) -> Iterator[Crowd]:
    """Eight honest annotators, and those who are planted, rate 150 tasks; deviations of 1 (truth) and .4 to .9."""

    def crowd(name: str, planted: Planted, share: float = 1.0) -> Crowd:
        rng = np.random.default_rng([seed, len(name)])
        truth = rng.normal(5, 1, 150)
        answers = {
            f"h{number}": truth + rng.normal(0, 0.05) + rng.normal(0, error, 150)
            for number, error in enumerate(np.linspace(0.4, 0.9, 8))
        }
        for who, (_, answer) in planted.items():
            answers[who] = answer(truth, answers, rng)
        matrix = np.stack([*answers.values()], axis=1)
        matrix[rng.random(matrix.shape) >= share] = np.nan
        annotations = Annotations.from_dense(matrix, kind="regression", annotators=np.array([*answers], object))
        return crowd_of(name, annotations, planted)

    def at_random(truth, answers, rng):
        return rng.normal(5, 1, len(truth))

    def biased(by):
        return lambda truth, answers, rng: truth + by + rng.normal(0, 0.5, len(truth))

    def upside_down(truth, answers, rng):
        return 10 - biased(0)(truth, answers, rng)

    yield crowd("clean", {})
    yield crowd("clean, half of the tasks each", {}, 0.5)
    yield crowd("random spammers", plant("random", at_random, "r0", "r1"))
    yield crowd("constant spammers", plant("constant", lambda truth, answers, rng: np.full(len(truth), 5.0), "c0"))
    both = plant("biased", biased(-0.8), "d0") | plant("biased", biased(0.8), "d1")
    yield crowd("biased", both)
    yield crowd("biased, half of the tasks each", both, 0.5)
    yield crowd("the scale upside down", plant("opposite", upside_down, "o0"))
    yield crowd("a noisy one", plant("noisy", lambda truth, answers, rng: truth + rng.normal(0, 1.8, len(truth)), "n0"))
    yield crowd("copies", plant("copy", lambda truth, answers, rng: answers["h3"].copy(), "k0", "k1"))


# === Sentences ===


def sentences(seed: int) -> Iterator[Crowd]:
    """Six honest annotators, and those who are planted, mark spans of three types in 150 sentences of 14 tokens."""
    types, length, number = ["LOC", "ORG", "PER"], 14, 150

    def crowd(name: str, planted: Planted, confused: float = 0.0) -> Crowd:
        rng = np.random.default_rng([seed, len(name)])
        truth = []
        for _ in range(number):
            starts = np.flatnonzero(rng.random(3) < 0.6) * 4 + 1
            truth.append([(types[rng.integers(3)], int(start), int(start + rng.integers(1, 4))) for start in starts])

        def honest(spans, rng):
            spans_found = []
            for kind, start, end in spans:
                if rng.random() < 0.08:
                    continue
                if rng.random() < 0.06:
                    kind = types[rng.integers(3)]
                if kind in types[:2] and rng.random() < confused:
                    kind = types[1 - types.index(kind)]
                if rng.random() < 0.06:
                    end += 1
                spans_found.append((kind, start, end))
            return spans_found

        answers = {f"h{place}": honest for place in range(6)} | {who: answer for who, (_, answer) in planted.items()}
        tag_set = TagSet(allowed_tags(types))
        answers_by_task = [{} for _ in range(number)]
        rows = []
        for task, spans in enumerate(truth):
            for code, (who, answer) in enumerate(answers.items()):
                own = answers_by_task[task][who] = answers_by_task[task]["h1"] if answer is None else answer(spans, rng)
                rows.append((task, code, tag_set.codes(tags_of(own, length))))
        annotations = sentence_annotations(rows, np.arange(number), np.array([*answers], object), tag_set.classes)
        tokens = [[f"w{place}" for place in range(length)]] * number
        unclear = frozenset([frozenset(types[:2])]) if confused else frozenset()
        return crowd_of(name, CrowdSequences(tokens, annotations), planted, copied="h1", unclear=unclear)

    def at_random(spans, rng):
        starts = np.flatnonzero(rng.random(4) < 0.4) * 3
        return [(types[rng.integers(3)], int(start), int(start + rng.integers(1, 4))) for start in starts]

    def sloppy(spans, rng):
        return [(kind, start, end + 1 if rng.random() < 0.48 else end) for kind, start, end in spans]

    def swaps(spans, rng):
        other = {"LOC": "ORG", "ORG": "LOC", "PER": "PER"}
        return [(other[kind] if rng.random() < 0.93 else kind, start, end) for kind, start, end in spans]

    yield crowd("clean", {})
    yield crowd("clean, shared confusion", {}, confused=0.4)
    yield crowd("random spammers", plant("random", at_random, "r0", "r1"))
    yield crowd("nothing marked", plant("constant", lambda spans, rng: [], "c0"))
    yield crowd("sloppy edges", plant("edges", sloppy, "e0"))

    def misses(spans, rng):
        return [span for span in spans if rng.random() < 0.41]

    yield crowd("one who misses spans", plant("misses", misses, "m0"))
    yield crowd("swapped types", plant("swaps", swaps, "s0"))
    yield crowd("swapped types and random spammers", plant("swaps", swaps, "s0") | plant("random", at_random, "r0"))
    yield crowd("copies", plant("copy", None, "k0", "k1"))


# === Preferences ===


def preferences(seed: int) -> Iterator[Crowd]:
    """Eight honest annotators, and those who are planted, judge 150 pairs each of 25 tasks."""

    def crowd(name: str, planted: Planted) -> Crowd:
        rng = np.random.default_rng([seed, len(name)])
        scores = rng.normal(0, 1.5, 25)
        answers = {f"h{number}": None for number in range(8)} | {who: answer for who, (_, answer) in planted.items()}
        columns: list[list[Any]] = [[], [], [], []]
        pairs = np.array(
            [(left_task, right_task) for left_task in range(25) for right_task in range(25) if left_task != right_task]
        )
        answered: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for who, answer in answers.items():
            shown_pairs = pairs[rng.choice(len(pairs), 150, replace=False)]
            odds = scores[shown_pairs[:, 0]] - scores[shown_pairs[:, 1]]
            left = rng.random(150) < 1 / (1 + np.exp(-1.5 * odds))
            if planted.get(who, ("",))[0] == "copy":
                shown_pairs, left = answered["h3"]
            elif answer is not None:
                left = answer(left, rng)
            answered[who] = shown_pairs, left
            words = np.where(left, "left", "right") if left.dtype == bool else left
            answer_columns = shown_pairs[:, 0], shown_pairs[:, 1], [who] * 150, words
            for column, values in zip(columns, answer_columns, strict=True):
                column += list(values)
        annotations = Annotations.from_arrays(columns[0], columns[2], columns[3], kind="preference", right=columns[1])
        return crowd_of(name, annotations, planted)

    def at_random(left, rng):
        return rng.random(len(left)) < 0.5

    def always(left, rng):
        return rng.random(len(left)) < 0.97

    yield crowd("clean", {})
    yield crowd("random spammers", plant("random", at_random, "r0", "r1"))
    yield crowd("always the left", plant("constant", always, "c0"))

    def equal(left, rng):
        return np.where(rng.random(len(left)) < 0.8, "equal", np.where(left, "left", "right"))

    yield crowd("the opposite", plant("opposite", lambda left, rng: ~left, "o0"))
    yield crowd("calls pairs equal", plant("equal", equal, "e0"))
    yield crowd("copies", plant("copy", None, "k0"))


# === Several labels ===


def labels(seed: int) -> Iterator[Crowd]:
    """Seven honest annotators, and those who are planted, give 150 tasks any of four labels."""
    names = np.array(["art", "law", "map", "war"], object)

    def crowd(name: str, planted: Planted) -> Crowd:
        rng = np.random.default_rng([seed, len(name)])
        truth = rng.random((150, 4)) < (0.5, 0.35, 0.3, 0.25)
        answers = {f"h{number}": truth ^ (rng.random(truth.shape) < error)
                for number, error in enumerate(np.linspace(0.05, 0.2, 7))}  # fmt: skip
        for who, (_, answer) in planted.items():
            answers[who] = answer(truth, answers, rng)
        rows = [
            (task, who, str(label))
            for who, own in answers.items()
            for task in range(150)
            for label in (names[own[task]] if own[task].any() else [NONE])
        ]
        columns = [list(column) for column in zip(*rows, strict=True)]
        annotations = Annotations.from_arrays(*columns, on_duplicate="all")
        return crowd_of(name, annotations, planted)

    def at_random(truth, answers, rng):
        return rng.random(truth.shape) < truth.mean(axis=0)

    def constant(truth, answers, rng):
        return np.broadcast_to(np.array([True, True, False, False]), truth.shape)

    def one_reversed(truth, answers, rng):
        own = truth ^ (rng.random(truth.shape) < 0.05)
        own[:, 1] ^= True
        return own

    def two_swapped(truth, answers, rng):
        return (truth ^ (rng.random(truth.shape) < 0.05))[:, [1, 0, 2, 3]]

    yield crowd("clean", {})
    yield crowd("random spammers", plant("random", at_random, "r0", "r1"))
    yield crowd("constant spammers", plant("constant", constant, "c0"))
    yield crowd("one label reversed", plant("opposite", one_reversed, "o0"))
    yield crowd("two labels exchanged", plant("swaps", two_swapped, "s0"))
    yield crowd("copies", plant("copy", lambda truth, answers, rng: answers["h3"].copy(), "k0"))


# === Free texts and regions ===


def answers_of(crowds: Callable[[int], Iterator[Any]]) -> Callable[[int], Iterator[Crowd]]:
    """Crowds of `planted_answers`; by seeds 0 to 2 the limits were chosen that the page has, so these are others."""
    return lambda seed: (Crowd(*crowd[:3]) for crowd in crowds(seed + 3))


KINDS: dict[str, tuple[Any, ...]] = {
    "classes": (classes, "classification"),
    "classes, by vote": (classes, "classification", "majority-vote"),
    "ratings": (ratings, "regression"),
    "sentences": (sentences, "sequence"),
    "preferences": (preferences, "preference"),
    "labels": (labels, "multi-label"),
    "texts": (answers_of(planted_answers.texts), "free-text"),
    "regions": (answers_of(planted_answers.regions), "region"),
}


# === What is said of them ===


def page_of(crowd: Crowd, kind: str, method: str | None = None) -> Any:
    """The page on a crowd as the command makes it."""
    if kind == "multi-label":
        from crowdzoo.aggregation import MultiLabel

        aggregator: Any = MultiLabel(kind_of("classification").aggregation.default, none=NONE)
    else:
        aggregator = kind_of(kind).aggregation.create(method, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return report_page(crowd.annotations, aggregator.fit(crowd.annotations), bootstrap=0, curve=0)


def said_of(page: Any) -> dict[str, tuple[set[str], bool]]:
    """Annotators with a serious note: the notes, and whether the page advises to leave them out."""
    table = page.numbers.tables["annotators"].values
    advice = page.numbers.leave_out
    advised = set() if advice is None or advice["advised"] is False else {*advice["annotators"]}
    flags = {}
    for name, notes in zip(table["annotator"], table["notes"], strict=True):
        serious = {note for note in notes if FLAGS[note].serious}
        if serious:
            flags[str(name)] = serious, str(name) in advised
    return flags


def counted(crowd: Crowd, kind: str, method: str | None = None) -> dict[str, float]:
    """Who is named, rightly and wrongly."""
    page = page_of(crowd, kind, method)
    named = said_of(page)
    counts = {"planted": len(crowd.planted), "rightly": 0, "another reason": 0, "missed": 0}
    for who, planted in crowd.planted.items():
        reasons, leave = RIGHT[planted]
        if who not in named:
            counts["missed"] += 1
            continue
        notes, advised = named[who]
        right = bool(notes & set(reasons)) and (leave is None or advised == leave)
        counts["rightly" if right else "another reason"] += 1
    as_copies = {who for who in crowd.copied if named.get(who, ({},))[0] == {"copy"}}
    counts["wrongly"] = len(set(named) - set(crowd.planted) - as_copies)
    pairs = {
        frozenset(warned.about.split(" / ")) for warned in page.numbers.warnings
        if re.search("definition", warned.finding)
    }  # fmt: skip
    counts |= {
        "unclear": len(crowd.unclear), "definitions, rightly": len(pairs & crowd.unclear),
        "definitions, wrongly": len(pairs - crowd.unclear),
    }  # fmt: skip
    if kind in ("free-text", "region"):
        warned, bad = any(warning.key == "hardly" for warning in page.numbers.warnings), "majority" in crowd.name
        counts |= {"bad majorities": bad, "warned": warned and bad, "warned wrongly": warned and not bad}
    if kind == "classification":
        left_out = {who for who, (_, leave) in named.items() if leave}
        counts |= gained(crowd, method, left_out)
        counts |= {} if method else commands_of(crowd, {*named}, left_out)
    return counts


def gained(crowd: Crowd, method: str | None, gone: set[str]) -> dict[str, float]:
    """What following the advice does to the accuracy."""
    stays = np.array([str(name) not in gone for name in crowd.annotations.annotators])
    accuracy = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in (slice(None), stays[crowd.annotations.annotator_ids]):
            part = crowd.annotations.select_rows(np.arange(len(crowd.annotations))[rows])
            result = kind_of("classification").aggregation.create(method, seed=0).fit(part)
            accuracy.append(result.accuracy(crowd.gold))
    gain = 100 * (accuracy[1] - accuracy[0])
    return {"advised": int(bool(gone)), "harmed": int(gain < -HARM), "points gained": round(gain, 2)}


def commands_of(crowd: Crowd, named: set[str], left_out: set[str]) -> dict[str, int]:
    """How far `quality` and `next` say the same as the page."""
    with tempfile.TemporaryDirectory() as folder:
        place, batch = Path(folder) / "answers.csv", Path(folder) / "batch.csv"
        write_annotations(crowd.annotations, place)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            assert cli.main(["quality", str(place), "--bootstrap", "0"]) == 0
            cli.main(["next", str(place), "--budget", "60", "--per-annotator", "60", "--out", str(batch)])
        lists = re.findall(
            r"^annotators (?:of|who|to)[^\n]*\n(.*?)(?:\n\n|\Z)", out.getvalue().split("\nnext,")[0], re.S | re.M
        )
        listed = {line.split()[0] for part in lists for line in part.splitlines()[2:]}
        rows = list(csv.DictReader(batch.read_text().splitlines())) if batch.exists() else []
    return {
        "quality differs": len(listed ^ named),
        "questions": len(rows),
        "questions to those left out": sum(row["annotator"] in left_out for row in rows),
    }


def measure(name: str) -> Iterator[dict[str, float]]:
    """Counts of a kind of labels, over all crowds and seeds."""
    crowds, *kind = KINDS[name]
    total: dict[str, float] = {}
    for seed in SEEDS:
        for crowd in crowds(seed):
            for key, number in {"crowds": 1, **counted(crowd, *kind)}.items():
                total[key] = round(total.get(key, 0.0) + number, 2)
    yield total


PARTS: Parts = {"who is named": {name: partial(measure, name) for name in KINDS}}

if __name__ == "__main__":
    run(RESULTS, PARTS, __doc__, keras=False)
