"""Prodigy: the JSON lines of `prodigy db-out`.

Keys of each interface: https://prodi.gy/docs/api-interfaces, of a session: https://prodi.gy/docs/api-web-app.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Record, id_text, label_texts, span_of

_SHOWN = ("text", "html", "image", "audio", "video")
_OWN = (*_SHOWN, "label", "spans", "accept", "answer", "tokens", "options", "meta", "config", "key", "versions", "path")
_ANSWERS = ("accept", "reject", "ignore")
_TIME = re.compile(r"(^|-)\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$")


def _is_own(entry: Mapping[str, Any]) -> bool:
    return "answer" in entry and ("_input_hash" in entry or "_task_hash" in entry)


def _questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if isinstance(entry.get("accept"), list):
        yield "accept", "class"
    if isinstance(entry.get("spans"), list):
        yield "spans", "spans"
    if isinstance(label := entry.get("label"), str) and "accept" not in entry:
        yield label, "class"
    for name, value in entry.items():  # a text field, or a custom interface
        if name not in _OWN and not name.startswith("_") and isinstance(value, (str, int, float)):
            yield name, "other"


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    data = {name: entry[name] for name in _SHOWN if name in entry}
    task = entry.get("_input_hash", entry.get("_task_hash"))
    record = Record(id_text("_input_hash", task, "is missing. Export with `prodigy db-out`."), data)
    answer = entry.get("answer")
    if answer not in _ANSWERS:
        raise BadValue("answer", answer, f"is not one of {', '.join(_ANSWERS)}.")
    binary = not spans and question not in ("accept", *entry) and isinstance(entry.get("label"), str)
    if binary and entry["label"] != question:
        return record  # about another label
    if answer == "ignore" or (answer == "reject" and not binary):
        record.left_out.append(f"{answer}ed examples" if answer == "reject" else "ignored examples")
        return record
    who: str | None = None  # gold: examples of the recipe review, which keep the others' answers as versions
    if "versions" not in entry:
        said_by = entry.get("_annotator_id") or entry.get("_session_id") or file_annotator
        # unnamed sessions are named after their start time, so a person has a different one each day
        who = file_annotator if _TIME.search(str(said_by)) else id_text("_annotator_id", said_by, "is missing.")
    if spans:
        record.tokens = _tokens(entry.get("tokens"))
        record.answers.append((who, _spans(entry)))
        return record
    labels = label_texts(question, answer if binary else entry.get(question))
    record.add(who, labels, f"examples without an answer to '{question}'", time=entry.get("_timestamp"))
    return record


def _spans(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    spans = entry.get("spans")
    if not isinstance(spans, list):
        raise BadValue("spans", spans, "is not a list.")
    return [span_of(f"spans[{place}]", span) for place, span in enumerate(spans)]


def _tokens(tokens: Any) -> list[str] | None:
    """Words that annotators saw, whose edges are those of spans."""
    if not isinstance(tokens, list):
        return None
    # line breaks are tokens in Prodigy
    return [token["text"] for token in tokens if isinstance(token, dict) and str(token.get("text", "")).strip()]


PRODIGY = Platform(
    name="prodigy",
    title="Prodigy",
    suffixes=(".jsonl", ".json"),
    menu="Run `prodigy db-out DATASET > export.jsonl`.",
    is_own=_is_own,
    questions=_questions,
    read=_read,
)
