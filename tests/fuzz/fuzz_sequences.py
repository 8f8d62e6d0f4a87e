"""Fuzzing of the readers of sentences: columns, spans, word vectors; and what is written and read again."""

import functools
import json
import tempfile
from pathlib import Path

import numpy as np
from fuzz_annotations import TEXTS, VALUES, damaged, encoded, file_of
from hypothesis import strategies as st
from target import Target

from crowdzoo import Annotations
from crowdzoo.data.tags import allowed_tags, tags_of
from crowdzoo.reading.sentences.predicted_spans import read_predicted_spans
from crowdzoo.reading.sentences.word_vectors import read_word_vectors
from crowdzoo.sequences import CrowdSequences, read_conll, read_gold, read_spans, write_conll, write_spans

TOKENS = st.sampled_from(["Anna", "in", "Rome", "U.S.", "é", "😀", "a\u0301", "-DOCSTART-", "?", "\ufeff", "\u2028"])
NAMES = st.sampled_from(["ann", "bob", "1", "2", "10", "007", " c", "é"]) | st.integers(-3, 12)
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@st.composite
def columns(draw):
    """Sentences in columns: mostly sound."""
    width = draw(st.integers(1, 3))
    lines = []
    for _ in range(draw(st.integers(0, 3))):
        for _ in range(draw(st.integers(1, 4))):
            tags = [draw(st.sampled_from([*TAGS, "?"]) if draw(st.integers(0, 9)) else TEXTS) for _ in range(width)]
            lines.append(draw(st.sampled_from("\t ")).join([draw(TOKENS), *tags]))
        lines.append("")
    return encoded(draw(st.sampled_from(["\n", "\r\n"])).join(lines))


@st.composite
def span_lines(draw):
    """Lines of spans: mostly sound."""
    lines = []
    texts = draw(st.lists(st.lists(TOKENS, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=3))
    if draw(st.integers(0, 3)) == 0:
        keys = st.sampled_from(["tasks", "annotators", "classes"])
        lines.append(draw(st.dictionaries(keys, st.lists(NAMES) | VALUES, max_size=3)))
    for _ in range(draw(st.integers(0, 5))):
        task = draw(st.integers(0, len(texts) - 1))
        start = draw(st.integers(0, 6))
        span = {"start": start, "end": start + draw(st.integers(0, 6)), "label": draw(st.sampled_from(["PER", "LOC"]))}
        row = {"task": task, "text": texts[task], "annotator": draw(NAMES), "spans": [span] * draw(st.integers(0, 1))}
        if draw(st.integers(0, 3)) == 0:
            row |= draw(st.dictionaries(st.sampled_from([*row, "gold", "tokens", "x"]), VALUES, max_size=2))
        lines.append(row if draw(st.integers(0, 9)) else draw(VALUES))
    return encoded("\n".join(json.dumps(line, ensure_ascii=False) for line in lines))


def reads(name, *readers):
    def check(content):
        for reader in readers:
            with file_of(content, name) as path:
                reader(path)

    return check


@st.composite
def sequences(draw):
    """Sentences with names in any order, used or not."""
    kinds = st.integers(-5, 20), st.sampled_from(["ann", "bob", "1", "2", "10", "007", "é"])
    lists = st.sampled_from([st.lists(kind, min_size=1, max_size=4, unique=True) for kind in kinds])
    tasks, annotators = draw(draw(lists)), draw(draw(lists))
    classes = allowed_tags(draw(st.sets(st.sampled_from(["PER", "LOC", "X"]), max_size=3)), "BIO")
    classes = draw(st.permutations(classes)) if draw(st.booleans()) else classes
    types = [name[2:] for name in classes if name.startswith("B-")]
    code = {name: number for number, name in enumerate(classes)}
    tokens = [draw(st.lists(st.sampled_from(["Anna", "in", "Rome", "é"]), min_size=1, max_size=4)) for _ in tasks]

    def tags(length):
        found = []
        while len(found) < length:
            kind = draw(st.sampled_from([None, *types]))
            many = draw(st.integers(1, length - len(found)))
            found += ["O"] if kind is None else [f"B-{kind}", *[f"I-{kind}"] * (many - 1)]
        return [code[tag] for tag in found]

    rows = [
        (task, who, place, label)
        for task in range(len(tasks))
        for who in range(len(annotators))
        if draw(st.booleans())
        for place, label in enumerate(tags(len(tokens[task])))
    ]
    table = np.array(rows, np.int64).reshape(-1, 4)

    def named(values):
        array = np.empty(len(values), object if isinstance(values[0], str) else np.int64)
        array[:] = values
        return array

    crowd = Annotations(
        "sequence", table[:, 0], table[:, 1], table[:, 3], named(tasks), named(annotators), named(classes),
        positions=table[:, 2],
    )  # fmt: skip
    gold = [np.array(tags(len(each))) for each in tokens] if draw(st.booleans()) else None
    return CrowdSequences(tokens, crowd, gold)


def comes_back(given):
    """What is written as spans and read again is equal; of columns all but the names of tasks."""
    with tempfile.TemporaryDirectory() as folder:
        assert read_spans(write_spans(given, Path(folder) / "s.jsonl")) == given
        classes = list(given.classes)
        gold = None if given.gold is None else Path(folder) / "g.txt"
        path = write_conll(given, Path(folder) / "c.txt", gold=gold)
        names = given.annotations.annotators.tolist()
        found = read_conll(path, gold=gold, annotators=names, classes=classes)
    assert found.tokens == given.tokens
    assert found.annotations.annotators.tolist() == names
    for task in range(len(given)):
        assert found.answers(task) == given.answers(task)
    assert (None if found.gold is None else found.gold_tags()) == (None if given.gold is None else given.gold_tags())


def vectors(path):
    return read_word_vectors(path, ["anna", "in", "rome"], 2)


VECTORS = st.lists(st.lists(TOKENS | TEXTS | st.sampled_from(["1", "2.5"]), min_size=1, max_size=5).map(" ".join)).map(
    lambda lines: encoded("\n".join(lines))
)


def predicted(path):
    """Spans of a tagger in two sentences, which are within them and do not overlap."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [f'{{"task": "{task}", "annotator": "a", "text": "Anna met Bob", "spans": []}}' for task in ("a", "1")]
        file = Path(folder) / "s.jsonl"
        file.write_text("\n".join(rows) + "\n")
        crowd = read_spans(file)
    spans = read_predicted_spans(path, crowd)
    assert spans.keys() <= {"a", "1"}
    return [tags_of(of_task, 3) for of_task in spans.values()]


CELLS = st.sampled_from(["a", "1", "0", "4", "12", "-1", "1e9", "PER", "B-PER", "", "nan", "x y", "2.5"])
PREDICTED = st.lists(st.lists(CELLS, min_size=4, max_size=4).map(",".join)).map(
    lambda lines: encoded("\n".join(["task,start,end,type", *lines]))
)
TARGETS = {
    "predicted-spans": Target(damaged(PREDICTED), reads("p.csv", predicted), 40),
    "conll": Target(damaged(columns()), reads("c.txt", read_conll, read_gold), 40),
    "conll-fixed-tags": Target(
        damaged(columns()), reads("c.txt", lambda path: read_conll(path, on_bad_tags="mend")), 20
    ),
    "spans": Target(damaged(span_lines()), reads("s.jsonl", read_spans), 40),
    "spans-widened": Target(
        damaged(span_lines()), reads("s.jsonl", functools.partial(read_spans, on_bad_tags="mend")), 40
    ),
    "sentences-come-back": Target(sequences(), comes_back, 30),
    "word-vectors": Target(damaged(VECTORS), reads("v.txt", vectors), 20),
}
