"""Writing of JSON lines of spans for `read_spans`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.drawn_spans import GOLD, DrawnSpan
from crowdzoo.data.tags import OUTSIDE, allowed_tags, spans_of
from crowdzoo.data.tokens import split_tokens
from crowdzoo.data.vocabulary import names_array
from crowdzoo.errors import DataError
from crowdzoo.files.text import is_text
from crowdzoo.reading.sentences.span_files import HEAD, aligned
from crowdzoo.reading.sentences.text_lines import integers_if_all, sorted_names, write_lines


def write_spans(sequences: CrowdSequences, path: str | os.PathLike[str]) -> Path:
    """Write a file for `read_spans`: for each sentence, one line per annotator, one for gold, or one without either.

    With texts, spans count characters, and tokens are written if `split_tokens` would give others. Tags that break the
    scheme are written as the spans they mean. Spans that overlap or are in pieces are written unchanged.

    Args:
        sequences: sentences to write.
        path: path of the file, which is written atomically; compressed if the name ends in .gz.

    Returns:
        The path. Reading the file gives equal sentences, with all answers to a sentence together.

    Raises:
        DataError: a token, text or name that is not valid UTF-8, names that are neither strings nor integers, or tokens
            of a text that are white space or have other characters between them.
    """
    gold = None if sequences.gold is None else sequences.gold_tags()
    crowd = sequences.annotations
    _, first = np.unique(crowd.task_ids * crowd.num_annotators + crowd.annotator_ids, return_index=True)
    first = np.sort(first)  # in the order of answers, not of annotator codes
    order = first[np.argsort(crowd.task_ids[first], kind="stable")]
    begins = np.searchsorted(crowd.task_ids[order], np.arange(1, len(sequences)))
    who_said = np.split(crowd.annotators[crowd.annotator_ids[order]], begins)

    for what in ("tasks", "annotators"):
        for name in getattr(sequences.annotations, what).tolist():
            if isinstance(name, bool) or not isinstance(name, (str, int)) or not is_text(str(name)):
                raise DataError(f"{what} hold {name!r}; a file holds names that are strings or integers, in UTF-8.")

    codes = {name: code for code, name in enumerate(crowd.annotators.tolist())}

    def lines() -> Iterator[dict[str, Any]]:
        if first := _head(sequences, gold):
            yield first
        for task, name in enumerate(sequences.annotations.tasks.tolist()):
            head, edges = _sentence_line(sequences, task, name), sequences.edges(task)
            answers = sequences.answers(task)
            rows = [({"annotator": who}, answers[who], codes[who]) for who in who_said[task].tolist()]
            if gold is not None and (truth := gold[task]) is not None:
                rows.append(({"gold": True}, truth, GOLD))
            for who, tags, code in rows:
                flat = (DrawnSpan(label, ((start, end),)) for label, start, end in spans_of(tags, sequences.scheme))
                spans = flat if sequences.drawn is None else sequences.drawn[task, code]
                yield {**head, **who, "spans": [span.entry(edges) for span in spans]}
            if not rows:
                yield head

    return write_lines(path, (json.dumps(line, ensure_ascii=False) + "\n" for line in lines()))


def _sentence_line(sequences: CrowdSequences, task: int, name: Any) -> dict[str, Any]:
    """Entries on the sentence that all lines of a task share."""
    tokens = list(sequences.tokens[task])
    head = {"task": name, "tokens": tokens}
    if sequences.texts is not None and sequences.offsets is not None:
        text, offsets = sequences.texts[task], sequences.offsets[task]
        head = {"task": name, "text": text}
        if split_tokens(text)[0] != tokens:
            places = aligned(text, tokens)
            if isinstance(places, str) or not np.array_equal(places, offsets):
                why = places if isinstance(places, str) else "are elsewhere than its offsets say."
                raise DataError(f"the tokens of task {name!r} {why}")
            head["tokens"] = tokens
    if not all(is_text(part) for part in (*tokens, head.get("text", ""))):
        raise DataError(f"task {name!r} holds half a character, which no file can.")
    return head


def _head(sequences: CrowdSequences, gold: list[list[str] | None] | None) -> dict[str, list[Any]]:
    """The first line: names that reading would miss or find in another order."""
    crowd = sequences.annotations
    used = {str(name) for name in crowd.annotators[np.unique(crowd.annotator_ids)].tolist()}
    tags = {sequences.classes[code] for code in np.unique(crowd.labels).tolist()}
    tags |= {tag for sentence in gold or () for tag in sentence or ()}
    types = {tag[2:] for tag in tags if tag != OUTSIDE}
    types |= {span.label for spans in (sequences.drawn or {}).values() for span in spans}
    head = {
        "tasks": names_array(integers_if_all([str(name) for name in crowd.tasks.tolist()]), "tasks").tolist(),
        "annotators": sorted_names(used).tolist(),
        "classes": allowed_tags(types, sequences.scheme),
    }
    own = {key: getattr(crowd, key).tolist() for key in HEAD}
    return {key: own[key] for key in HEAD if own[key] != head[key]}
