"""Crowds with planted annotators, of which is known who answers how, and what the page says of them."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from crowdzoo import Annotations
from crowdzoo.aggregation import MultiLabel
from crowdzoo.data.crowd_sequences import sentence_annotations
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.page_parts import FLAGS
from crowdzoo.report.report_page import report_page
from crowdzoo.sequences import CrowdSequences, TagSet, allowed_tags, tags_of

NONE = "(none)"
HONEST = (0.92, 0.87, 0.82, 0.78, 0.74, 0.7, 0.85, 0.8)
Planted = dict[str, Callable[..., Any]]  # annotator -> what answers for them; all others are honest


class Crowd(NamedTuple):
    """What annotators said, by what is planted; and the true classes."""

    name: str
    annotations: Any
    gold: np.ndarray | None = None


# === Classes ===


def classes(seed: int) -> Iterator[Crowd]:
    """Eight honest annotators, and those who are planted, on 200 tasks of four classes; some crowds are smaller."""
    names = np.array(["ape", "bat", "cat", "dog"], object)

    def crowd(
        name: str,
        planted: Planted,
        *,
        size: int = 4,
        tasks: int = 200,
        each: int | None = None,
        prior: tuple[float, ...] | None = None,
        honest: tuple[float, ...] = HONEST,
        confused: tuple[int, int] | None = None,
    ) -> Crowd:
        rng = np.random.default_rng([seed, len(name), size, tasks])
        truth = rng.choice(size, tasks, p=prior)
        said = {}
        for number, skill in enumerate(honest):
            wrong = (truth + rng.integers(1, size, tasks)) % size
            own = np.where(rng.random(tasks) < skill, truth, wrong)
            if confused is not None:
                both = np.isin(own, confused) & (rng.random(tasks) < 0.4)
                own = np.where(both, sum(confused) - own, own)
            said[f"h{number}"] = own
        for who, answer in planted.items():
            said[who] = answer(truth, said, rng)
        rows, columns, labels = [], [], []
        for who, own in said.items():
            # each task is labelled by some of the crowd
            here = np.arange(tasks) if each is None else np.flatnonzero(rng.random(tasks) < each / len(said))
            here = here[own[here] >= 0]
            rows.append(here), columns.append(np.full(len(here), who, object)), labels.append(names[own[here]])
        annotations = Annotations.from_arrays(
            np.concatenate(rows), np.concatenate(columns), np.concatenate(labels),
            tasks=np.arange(tasks), classes=names[:size],
        )  # fmt: skip
        return Crowd(name, annotations, truth)

    def at_random(truth, said, rng):
        return rng.integers(0, truth.max() + 1, len(truth))

    def always(code):
        return lambda truth, said, rng: np.full(len(truth), code)

    def swaps(one, other, skill=0.9):
        def answer(truth, said, rng):
            own = np.where(rng.random(len(truth)) < skill, truth, at_random(truth, said, rng))
            return np.select([own == one, own == other], [other, one], own)

        return answer

    def copies(whom):
        return lambda truth, said, rng: np.where(rng.random(len(truth)) < 0.98, said[whom], at_random(truth, said, rng))

    def flags(code):
        return lambda truth, said, rng: np.where(
            (truth == code) & (rng.random(len(truth)) < 0.9) | (rng.random(len(truth)) < 0.01), code, -1
        )

    spammers = {"r0": at_random, "r1": at_random}
    yield crowd(
        "clean, one class of nine in ten", {}, size=2, prior=(0.9, 0.1), honest=tuple(0.5 + s / 2 for s in HONEST)
    )
    yield crowd("clean, shared confusion", {}, confused=(1, 2))
    yield crowd("random spammers", spammers)
    yield crowd("random spammers, three a task", spammers, each=3, tasks=400)
    yield crowd("constant spammers, a frequent class", {"c0": always(0)}, size=3, prior=(0.7, 0.2, 0.1))
    yield crowd("a swapper", {"s0": swaps(0, 1)})
    yield crowd("a swapper, three a task", {"s0": swaps(0, 1)}, each=3, tasks=400)
    yield crowd("a swapper and random spammers", {"s0": swaps(0, 1), **spammers})
    yield crowd("a swapper who errs", {"s0": swaps(2, 3, 0.75)})
    yield crowd("the opposite, two classes", {"o0": swaps(0, 1)}, size=2)
    yield crowd("copies", {"k0": copies("h3"), "k1": copies("h3")})
    yield crowd("bots of one source", {"b0": at_random, "b1": copies("b0"), "b2": copies("b0")})
    yield crowd("a flagger and a constant spammer", {"f0": flags(0), "c0": always(0)})


# === Ratings ===


def ratings(seed: int) -> Iterator[Crowd]:
    """Eight honest annotators, and those who are planted, rate 150 tasks; deviations of 1 (truth) and .4 to .9."""

    def crowd(name: str, planted: Planted, each: float = 1.0) -> Crowd:
        rng = np.random.default_rng([seed, len(name)])
        truth = rng.normal(5, 1, 150)
        said = {
            f"h{number}": truth + rng.normal(0, 0.05) + rng.normal(0, error, 150)
            for number, error in enumerate(np.linspace(0.4, 0.9, 8))
        }
        for who, answer in planted.items():
            said[who] = answer(truth, said, rng)
        given = np.stack([*said.values()], axis=1)
        given[rng.random(given.shape) >= each] = np.nan
        annotations = Annotations.from_dense(given, kind="regression", annotators=np.array([*said], object))
        return Crowd(name, annotations)

    def biased(by):
        return lambda truth, said, rng: truth + by + rng.normal(0, 0.5, len(truth))

    def copies(whom):
        return lambda truth, said, rng: said[whom].copy()

    yield crowd("clean, half of the tasks each", {}, 0.5)
    yield crowd("biased, half of the tasks each", {"d0": biased(-0.8), "d1": biased(0.8)}, 0.5)
    yield crowd("copies", {"k0": copies("h3"), "k1": copies("h3")})


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
            found = []
            for kind, start, end in spans:
                if rng.random() < 0.08:
                    continue
                if rng.random() < 0.06:
                    kind = types[rng.integers(3)]
                if kind in types[:2] and rng.random() < confused:
                    kind = types[1 - types.index(kind)]
                if rng.random() < 0.06:
                    end += 1
                found.append((kind, start, end))
            return found

        answers = {f"h{each}": honest for each in range(6)} | planted
        tag_set = TagSet(allowed_tags(types))
        said = [{} for _ in range(number)]
        rows = []
        for task, spans in enumerate(truth):
            for code, (who, answer) in enumerate(answers.items()):
                own = said[task][who] = said[task]["h1"] if answer is None else answer(spans, rng)
                rows.append((task, code, tag_set.codes(tags_of(own, length))))
        annotations = sentence_annotations(rows, np.arange(number), np.array([*answers], object), tag_set.classes)
        tokens = [[f"w{place}" for place in range(length)]] * number
        return Crowd(name, CrowdSequences(tokens, annotations))

    def at_random(spans, rng):
        starts = np.flatnonzero(rng.random(4) < 0.4) * 3
        return [(types[rng.integers(3)], int(start), int(start + rng.integers(1, 4))) for start in starts]

    def sloppy(spans, rng):
        return [(kind, start, end + 1 if rng.random() < 0.48 else end) for kind, start, end in spans]

    def swaps(spans, rng):
        other = {"LOC": "ORG", "ORG": "LOC", "PER": "PER"}
        return [(other[kind] if rng.random() < 0.93 else kind, start, end) for kind, start, end in spans]

    yield crowd("clean, shared confusion", {}, confused=0.4)
    yield crowd("sloppy edges", {"e0": sloppy})
    yield crowd("swapped types", {"s0": swaps})
    yield crowd("swapped types and random spammers", {"s0": swaps, "r0": at_random})
    yield crowd("copies", {"k0": None, "k1": None})


# === Preferences ===


def preferences(seed: int) -> Iterator[Crowd]:
    """Eight honest annotators judge 150 pairs each of 25 tasks, and a ninth copies one of them."""
    name = "copies"
    rng = np.random.default_rng([seed, len(name)])
    scores = rng.normal(0, 1.5, 25)
    pairs = np.array([(one, other) for one in range(25) for other in range(25) if one != other])
    said = {}
    for who in (*(f"h{each}" for each in range(8)), "k0"):
        shown = pairs[rng.choice(len(pairs), 150, replace=False)]
        odds = scores[shown[:, 0]] - scores[shown[:, 1]]
        said[who] = shown, np.where(rng.random(150) < 1 / (1 + np.exp(-1.5 * odds)), "left", "right")
    said["k0"] = said["h3"]
    left, right = np.concatenate([shown for shown, _ in said.values()]).T
    who, labels = np.repeat([*said], 150), np.concatenate([given for _, given in said.values()])
    yield Crowd(name, Annotations.from_arrays(left, who, labels, kind="preference", right=right))


# === Several labels ===


def labels(seed: int) -> Iterator[Crowd]:
    """Seven honest annotators, and those who are planted, give 150 tasks any of four labels."""
    names = np.array(["art", "law", "map", "war"], object)

    def crowd(name: str, planted: Planted) -> Crowd:
        rng = np.random.default_rng([seed, len(name)])
        truth = rng.random((150, 4)) < (0.5, 0.35, 0.3, 0.25)
        said = {f"h{number}": truth ^ (rng.random(truth.shape) < error)
                for number, error in enumerate(np.linspace(0.05, 0.2, 7))}  # fmt: skip
        for who, answer in planted.items():
            said[who] = answer(truth, said, rng)
        rows = [
            (task, who, str(label))
            for who, own in said.items()
            for task in range(150)
            for label in (names[own[task]] if own[task].any() else [NONE])
        ]
        columns = [list(column) for column in zip(*rows, strict=True)]
        annotations = Annotations.from_arrays(*columns, on_duplicate="all")
        return Crowd(name, annotations)

    def at_random(truth, said, rng):
        return rng.random(truth.shape) < truth.mean(axis=0)

    def one_reversed(truth, said, rng):
        own = truth ^ (rng.random(truth.shape) < 0.05)
        own[:, 1] ^= True
        return own

    def two_swapped(truth, said, rng):
        return (truth ^ (rng.random(truth.shape) < 0.05))[:, [1, 0, 2, 3]]

    yield crowd("random spammers", {"r0": at_random, "r1": at_random})
    yield crowd("one label reversed", {"o0": one_reversed})
    yield crowd("two labels exchanged", {"s0": two_swapped})
    yield crowd("copies", {"k0": lambda truth, said, rng: said["h3"].copy()})


KINDS = {"classes": classes, "ratings": ratings, "sentences": sentences, "preferences": preferences, "labels": labels}


# === What is said of them ===


def page_of(crowd: Crowd, kind: str, method: str | None = None) -> Any:
    """The page on a crowd as the command makes it."""
    if kind == "multi-label":
        aggregator: Any = MultiLabel(kind_of("classification").aggregation, none=NONE)
    else:
        aggregator = kind_of(kind).create_aggregator(method, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return report_page(crowd.annotations, aggregator.fit(crowd.annotations), bootstrap=0, curve=0)


def named(crowd: Crowd, kind: str, method: str | None = None) -> dict[str, set[str]]:
    """Annotators with a serious note, and the notes."""
    table = page_of(crowd, kind, method).numbers.tables["annotators"].values
    found = {
        str(name): {note for note in notes if FLAGS[note].serious}
        for name, notes in zip(table["annotator"], table["notes"], strict=True)
    }
    return {name: notes for name, notes in found.items() if notes}
