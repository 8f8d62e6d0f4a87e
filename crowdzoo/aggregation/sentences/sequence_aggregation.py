"""SequenceAggregation: the result of every method for sequences."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Columns, Result, warn_of_notes
from crowdzoo.aggregation.result import different_note, empty_classes
from crowdzoo.data.drawn_spans import DrawnSpan, side_by_side
from crowdzoo.data.tags import Span, spans_of
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from crowdzoo.aggregation.result_files import ReadResult
    from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
    from crowdzoo.data.crowd_sequences import CrowdSequences

TAGS_FILE = "tags.txt"
SPAN_COLUMNS = ("task", "start", "end", "label", "share", "label_share", "text", "fragments")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SequenceAggregation(Result):
    """Result for sentences: the tags of each sentence, and what was learned about the annotators.

    `to_parquet` writes `tokens.parquet` (task, position, label, label_code, probability, posteriors as a list in the
    order of the classes), `annotators.parquet` (annotator, tasks, skill, confusion as a list of rows
    `[true][said]`) and `summary.json`. If there are `spans`, `spans.jsonl` has them, and so has a table that is written
    as a file of its own.

    With N sentences of T tokens together, R annotators, K classes:

    Attributes:
        posteriors: class probabilities of the tokens of all sentences, concatenated, [T, K], rows sum to one.
        starts: where each sentence begins, and the end of the last, int64 [N + 1].
        labels: class codes, int64 [T]. They may differ from a token's most probable class, depending on the method.
        confusions: P(annotator says l | truth k), `[annotator, true, said]`, [R, K, K], rows sum to one, or None.
        transitions: P(class of a token | class of the previous token), `[before, after]`, [K, K], rows sum to one, or
            None if the method has no such model.
        first: P(class of the first token), [K], or None.
        skills: one number per annotator, higher is better, [R]; its meaning depends on the method. None if the method
            has none.
        log_likelihood: log-probability (nats) of the annotations (and words, if they are modelled), or None.
        history: objective (nats) before the first iteration and after each; never falls.
        converged: whether the objective converged within the tolerance.
        num_iterations: number of iterations.
        tasks: names of the sentences, [N].
        annotators: names of the annotators, [R].
        classes: names of the tags, [K].
        annotators_per_task: int64 [N]; 0 marks the sentences whose answer is only the prior.
        tasks_per_annotator: int64 [R]; 0 marks the annotators whose estimates are only the prior.
        method: name of the method, as in `crowdzoo.aggregation.create(..., kind="sequence")`.
        scheme: "BIO" or "IOBES".
        spans: the resulting spans, in the order of the text, if the method uses drawn spans: task, start and end in the
            text (in tokens if there is no text), label, share of those who saw the sentence who have a span there,
            label_share of these who gave it the label, text, and fragments as in files of spans (None for a span in one
            piece). The labels represent the `outermost` of them. None: the labels represent all.
        notes: sentences on what to check before using the result; see `notes_against_tags`. Usually empty.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import SpanMajorityVote
        >>> task, position, annotator = [1] * 9, [0, 1, 2] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> tags = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "O", "B-PER", "O"]
        >>> annotations = Annotations.from_arrays(task, annotator, tags, position=position, kind="sequence")
        >>> result = SpanMajorityVote().fit(annotations)
        >>> result.tags_of(0)
        ['B-PER', 'I-PER', 'O']
        >>> result.spans_of(0)
        [Span(type='PER', start=0, end=2)]
    """

    posteriors: NDArray[np.float64]
    starts: NDArray[np.int64]
    labels: NDArray[np.int64]
    confusions: NDArray[np.float64] | None = None
    transitions: NDArray[np.float64] | None = None
    first: NDArray[np.float64] | None = None
    log_likelihood: float | None = None
    classes: NDArray[Any]
    annotators_per_task: NDArray[np.int64]
    tasks_per_annotator: NDArray[np.int64]
    scheme: str
    spans: list[dict[str, Any]] | None = None

    files: ClassVar[tuple[str, str, str]] = ("tokens.parquet", "annotators.parquet", "summary.json")
    kind: ClassVar[str] = "sequence"
    answered: ClassVar = (["task", "position"], "label", "agg_label")

    @classmethod
    def of(
        cls,
        method: str,
        table: SequenceTable,
        posteriors: NDArray[np.float64],
        labels: NDArray[np.int64],
        **fields: Any,
    ) -> SequenceAggregation:
        """Creates the result for a table, adding its names and counts.

        Args:
            method: name of the method.
            table: N sentences, R annotators, K classes.
            posteriors: class probabilities, [T, K].
            labels: class codes, int64 [T].
            **fields: other attributes by name, such as `confusions` and `history`.

        Warns:
            VotesWarning: the labels are far from the votes, as explained in `notes`.
        """
        notes = notes_against_tags(table, labels)
        warn_of_notes(method, notes, stacklevel=4)
        crowd = table.annotations
        begins = np.asarray(crowd.positions) == 0  # one row per (task, annotator)
        return cls(
            method=method,
            posteriors=posteriors,
            starts=table.starts,
            labels=labels,
            tasks=crowd.tasks,
            annotators=crowd.annotators,
            classes=np.asarray(crowd.classes),
            annotators_per_task=np.bincount(crowd.task_ids[begins], minlength=crowd.num_tasks),
            tasks_per_annotator=np.bincount(crowd.annotator_ids[begins], minlength=crowd.num_annotators),
            scheme=table.tag_set.scheme,
            notes=notes,
            **fields,
        )

    def __len__(self) -> int:
        return len(self.tasks)

    def tags_of(self, task: int) -> list[str]:
        """Returns the tags of a sentence, [T_i].

        Args:
            task: code of the sentence.
        """
        return [str(self.classes[code]) for code in self.labels[self.starts[task] : self.starts[task + 1]].tolist()]

    def spans_of(self, task: int) -> list[Span]:
        """Returns the spans of a sentence, given its code."""
        return spans_of(self.tags_of(task), self.scheme)

    def tags(self) -> list[list[str]]:
        """Returns the tags of all sentences, N lists."""
        return [self.tags_of(task) for task in range(len(self))]

    def drawn(self, sequences: CrowdSequences) -> list[tuple[DrawnSpan, ...]]:
        """Returns the spans of all sentences in tokens: `spans`, or those of the labels if `spans` is None.

        Args:
            sequences: the sentences that were aggregated.
        """
        if self.spans is None:
            return [side_by_side(self.spans_of(task)) for task in range(len(self))]
        spans_of_task: dict[Any, list[DrawnSpan]] = {name: [] for name in self.tasks.tolist()}
        tasks = {name: task for task, name in enumerate(spans_of_task)}
        for row in self.spans:
            firsts, lasts = (list(side) for side in zip(*sequences.edges(tasks[row["task"]]), strict=True))
            pieces = row["fragments"] or [(row["start"], row["end"])]
            tokens = tuple((firsts.index(start), lasts.index(end) + 1) for start, end in pieces)
            spans_of_task[row["task"]].append(DrawnSpan(row["label"], tokens))
        return [tuple(spans) for spans in spans_of_task.values()]

    def codes(self) -> list[NDArray[np.int64]]:
        """Returns the class codes of all sentences, N arrays int64 [T_i], as in `CrowdSequences.gold`."""
        return np.split(self.labels, self.starts[1:-1]) if len(self) else []

    def to_conll(self, path: str | os.PathLike[str], sequences: CrowdSequences) -> Path:
        """Writes tokens and tags in two columns, for `read_gold`.

        Args:
            path: path of the file, which appears when it is complete; compressed if the name ends in .gz.
            sequences: the sentences that were aggregated.

        Returns:
            The path.

        Raises:
            DataError: other sentences, or a token that a line cannot represent.
        """
        from crowdzoo.reading.sentences.conll_files import write_tags

        if not np.array_equal(sequences.starts, self.starts) or not np.array_equal(
            sequences.annotations.tasks, self.tasks
        ):
            raise DataError("to_conll: these are not the sentences that were aggregated.")
        return write_tags(sequences, self.tags(), path)

    def to_parquet(self, folder: str | os.PathLike[str], sequences: CrowdSequences | None = None) -> Path:
        """Writes a folder in a single step; see `Result.to_parquet`.

        Args:
            folder: folder to create, with its parents. An earlier result there is replaced.
            sequences: the sentences that were aggregated; with them the folder also holds `tags.txt` (`to_conll`).

        Returns:
            The folder.

        Raises:
            DataError: the folder contains other files, which are left unchanged, or the sentences are others.
        """
        tags = None if sequences is None else partial(self.to_conll, sequences=sequences)
        return self._write(folder, {TAGS_FILE: tags})

    def _write(self, folder: Any, more: Mapping[str, Any] | None = None, file_format: str = "parquet") -> Path:
        name = f"spans.{file_format.replace('parquet', 'jsonl')}"
        write = None if self.spans is None else self.write
        return super()._write(folder, {**(more or {}), name: write}, file_format)

    def _alone(self) -> pa.Table:
        import pyarrow as pa

        if self.spans is None:
            return super()._alone()
        return pa.table({name: [row[name] for row in self.spans] for name in SPAN_COLUMNS})

    @classmethod
    def _read(cls, stored: ReadResult) -> dict[str, Any]:
        tokens, annotators, summary = cls.files
        classes, tasks = stored.list_of_names("classes"), stored.list_of_names("tasks")
        count = len(classes)
        labels = stored.codes(tokens, "label_code", count)
        starts = stored.list_of_numbers("starts", len(tasks) + 1, whole=True)
        if starts[0] != 0 or starts[-1] != len(labels) or (np.diff(starts) < 0).any():
            raise DataError(f"{stored.folder / summary}: 'starts' does not fit the {len(labels):,} tokens of {tokens}.")
        return {
            "posteriors": stored.numbers(tokens, "posteriors", count),
            "starts": starts,
            "labels": labels,
            "confusions": stored.optional(annotators, "confusion", count, count),
            "transitions": stored.optional_list("transitions", count, count),
            "first": stored.optional_list("first", count),
            "log_likelihood": stored.value("log_likelihood", float, int, None),
            "tasks": tasks,
            "classes": classes,
            "annotators_per_task": stored.list_of_numbers("annotators_per_task", len(tasks), whole=True),
            "tasks_per_annotator": stored.numbers(annotators, "tasks", whole=True),
            "scheme": stored.value("scheme", str),
            "spans": stored.value("spans", list, None) if "spans" in stored.summary else None,
        }

    def _answer_columns(self) -> Columns:
        lengths = np.diff(self.starts)
        return {
            "task": np.repeat(self.tasks, lengths),
            "position": np.arange(len(self.labels)) - np.repeat(self.starts[:-1], lengths),
            "label": self.classes[self.labels],
            "label_code": self.labels,
            "probability": self.posteriors[np.arange(len(self.labels)), self.labels],
            "posteriors": self.posteriors,
        }

    def _annotator_columns(self) -> Columns:
        return {
            "annotator": self.annotators,
            "tasks": self.tasks_per_annotator,
            "skill": self.skills,
            "confusion": self.confusions,
        }

    def _more(self) -> dict[str, Any]:
        lists = ("classes", "tasks", "starts", "annotators_per_task", "transitions", "first")
        return {
            "kind": self.kind,
            "scheme": self.scheme,
            **{name: None if getattr(self, name) is None else getattr(self, name).tolist() for name in lists},
            "log_likelihood": self.log_likelihood,
            **({} if self.spans is None else {"spans": self.spans}),
        }


def notes_against_tags(table: SequenceTable, labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Returns sentences on what to check before using a result; usually none. See `notes_against_votes`.

    One note is for tags of more than a fifth of the annotated tokens that are not among those with the most votes,
    another for a type that no span has although at least a hundredth of the annotators' spans, and at least two, have
    it.

    Args:
        table: T tokens, K classes.
        labels: class codes, int64 [T].
    """
    notes = different_note(table.as_classification(), labels, "tokens", "sentences whose spans are known")
    types = table.tag_set.types
    annotated_spans = table.said_spans()[1]
    label_spans = table.tag_set.span_table(labels, table.firsts)
    counts = (np.bincount(spans.types, minlength=len(types)) for spans in (annotated_spans, label_spans))
    for code, share, num_others in empty_classes(*counts):
        more = f", as {num_others} more such types" if num_others else ""
        notes += (f"No span is of type {types[code]!r}, although {share:.1%} of the annotators' spans are{more}.",)
    return notes
