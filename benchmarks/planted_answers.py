"""Planted crowds of free texts and of regions, for `planted_crowds.py`: 4, 8 and 20 annotators, easy and hard tasks.

In a crowd of four one is planted, in one of eight two, in one of twenty four; there each task has five answers. The
honest err at rates from .7 to 1.4 of the usual one, more where the task is hard for all. In a crowd with a bad majority
(three of four, five of eight, 11 of 20) each is bad in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from crowdzoo import Annotations
from crowdzoo.data.regions import MarkedImage

SIZES = {4: (1, 3), 8: (2, 5), 20: (4, 11)}  # annotators: how many are planted, and how many as a majority
EACH = 5  # answers to a task
HEIGHT, WIDTH = 90, 120
WORDS = np.array([first + last for first in "bdfgklmnprst" for last in ("an", "el", "ick", "oor", "um", "y")])
OFTEN = 1 / np.arange(2, len(WORDS) + 2)
OFTEN /= OFTEN.sum()

Crowd = tuple[str, Annotations, dict[str, str], list[str]]
Plant = Callable[[list[Any], Any, Any], Any]  # of the true answers to all tasks, an honest answer, rng


def crowds(
    kind: str,
    seed: int,
    true: Callable[[Any], Any],
    honest: Callable[[Any, float, Any], Any],
    written: Callable[[Any], str | MarkedImage],
    plants: dict[str, Plant],
    levels: dict[str, float],
    tasks: int,
) -> Iterator[Crowd]:
    """Names, annotations, who is planted, and the true answers.

    Args:
        kind: of label.
        seed: of everything.
        true: the answer to a task, from rng.
        honest: what an honest annotator makes of it, with a rate of errors.
        written: an answer as annotations hold it.
        plants: by name.
        levels: name -> the usual rate of errors; annotators are planted at the first level.
        tasks: how many.
    """
    easy, names = next(iter(levels)), [*plants]
    for size, (few, many) in SIZES.items():
        cases = {f"clean, {level}": (level, list[str]()) for level in levels}
        cases |= {name: (easy, [name] * few) for name in plants}
        cases["a bad majority"] = (easy, [names[(place + seed) % len(names)] for place in range(many)])
        for case, (name, (level, bad)) in enumerate(cases.items()):
            rng = np.random.default_rng([seed, size, case])
            truth, hard, rows = [true(rng) for _ in range(tasks)], rng.gamma(4, 1 / 4, tasks), list[Any]()
            seen = rng.random((tasks, size)).argsort(axis=1).argsort(axis=1) < (EACH if size > 8 else size)
            for task, who in np.argwhere(seen).tolist():
                answer = honest(truth[task], min(levels[level] * hard[task] * (0.7 + 0.7 * who / (size - 1)), 0.8), rng)
                if who < len(bad):
                    answer = plants[bad[who]](truth, answer, rng)
                rows.append((task, f"{'b' if who < len(bad) else 'h'}{who}", written(answer)))
            columns = [list(column) for column in zip(*rows, strict=True)]
            table = Annotations.from_arrays(*columns, kind=kind)
            planted = {f"b{who}": plant for who, plant in enumerate(bad)}
            yield f"{size}, {name}", table, planted, [written(truth[task]) for task in table.tasks.tolist()]


def texts(seed: int) -> Iterator[Crowd]:
    """60 sentences of six to 14 words; an error is another word, often one that sounds alike, one more, or one less."""

    def any_word(rng: Any, number: int = 1) -> list[str]:
        return rng.choice(WORDS, number, p=OFTEN).tolist()

    def garbled(words: list[str], error: float, rng: Any) -> list[str]:
        tokens = []
        for word in words:
            draw = rng.random() / error
            alike = WORDS[(np.flatnonzero(word == WORDS)[0] + 1) % len(WORDS)]
            tokens += (
                [alike] if draw < 0.3 else any_word(rng) if draw < 0.6
                else [word, *any_word(rng)] if draw < 0.8 else [word] if draw > 1 else []
            )  # fmt: skip
        return tokens

    plants = {
        "random": lambda truth, answer, rng: truth[rng.integers(len(truth))],
        "empty": lambda truth, answer, rng: [],
        "careless": lambda truth, answer, rng: garbled(answer, 0.5, rng),
    }

    def true(rng: Any) -> list[str]:
        return any_word(rng, rng.integers(6, 15))

    def written(words: list[str]) -> str:
        return " ".join(words) or "um"

    yield from crowds("free-text", seed, true, garbled, written, plants, {"easy": 0.06, "fair": 0.15, "hard": 0.35}, 60)


def regions(seed: int, apart: float = 32, number: tuple[int, int] = (1, 7)) -> Iterator[Crowd]:
    """60 images of boxes; honest annotators shift edges, miss boxes and invent others.

    Up to `number` boxes, with sides of 12 to 26 pixels, are so far `apart`: with 32 they never touch.
    """

    def any_box(rng: Any) -> Any:
        sides = rng.uniform(12, 26, 2)
        return *rng.random(2) * ((WIDTH, HEIGHT) - sides), *sides

    def true(rng: Any) -> list[Any]:
        boxes: list[Any] = []
        for box in (any_box(rng) for _ in range(rng.integers(*number))):
            if all(abs(box[0] - other[0]) > apart or abs(box[1] - other[1]) > apart for other in boxes):
                boxes.append(box)
        return boxes

    def honest(boxes: list[Any], error: float, rng: Any) -> list[Any]:
        answer = []
        for box in boxes:
            if rng.random() >= error:
                noise = rng.normal(0, 0.04 + error / 5, 4) * np.tile(box[2:], 2)
                answer.append(np.array(box) + noise - [0, 0, *noise[:2]])
            if rng.random() < error / 2:
                answer.append(any_box(rng))
        return answer

    def moved(scale: float, by: float) -> Plant:
        place = by - (scale - 1) / 2
        return lambda truth, answer, rng: [
            (x + place * width, y + place * height, scale * width, scale * height) for x, y, width, height in answer
        ]

    def written(boxes: list[Any]) -> MarkedImage:
        inside = []
        for left, top, width, height in boxes:
            x, y = np.clip(left, 0, WIDTH - 3), np.clip(top, 0, HEIGHT - 3)
            inside.append([x, y, np.clip(left + width - x, 2, WIDTH - x), np.clip(top + height - y, 2, HEIGHT - y)])
        return MarkedImage.of((HEIGHT, WIDTH), [{"category": "cell", "bbox": [*map(float, box)]} for box in inside])

    plants = {
        "random": lambda truth, answer, rng: [any_box(rng) for _ in answer],
        "empty": lambda truth, answer, rng: [],
        "careless": lambda truth, answer, rng: [box for box in answer if rng.random() < 0.5],
        "wide": moved(1.5, 0),
        "narrow": moved(1 / 1.5, 0),
        "shifted": moved(1, 0.25),
        "invents": lambda truth, answer, rng: [*answer, *(any_box(rng) for _ in range(max(len(answer), 1)))],
    }
    yield from crowds("region", seed, true, honest, written, plants, {"easy": 0.05, "fair": 0.15, "hard": 0.3}, 60)
