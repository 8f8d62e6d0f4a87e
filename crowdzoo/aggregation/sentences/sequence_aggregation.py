"""SequenceAggregation: one tagged sentence out of many annotators' ones; what every sequence method gives back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.result import _lists, _names
from crowdzoo.aggregation.result_files import ReadResult, write_result
from crowdzoo.errors import DataError
from crowdzoo.sequences.tags import Span, TagSet, spans_of

if TYPE_CHECKING:
    import pyarrow as pa

    from crowdzoo.sequences.crowd_sequences import CrowdSequences
    from crowdzoo.tables.annotations import Annotations

__all__ = ["SequenceAggregation", "SequenceTable"]

FILES = ("tokens.parquet", "annotators.parquet", "summary.json")
TAGS_FILE = "tags.txt"


@dataclass(frozen=True, eq=False)
class SequenceTable:
    """Sentences one after the other, as the methods' arithmetic takes them: T tokens, A annotations.

    Attributes:
        annotations: as they came.
        tag_set: the K classes as tags.
        starts: where each sentence begins, and the end of the last, int64 [N + 1].
        tokens: token of each annotation, counted through all sentences, int64 [A]; rising.
        annotators: int64 [A]; rising within a token.
        labels: int64 [A].
        previous: what the same annotator said of the token before, int64 [A]; K at the first token.
        words: code of each token's text, int64 [T]; None where there is no text.
        num_words: how many different words, 0 without text.
    """

    annotations: Annotations
    tag_set: TagSet
    starts: NDArray[np.int64]
    tokens: NDArray[np.int64]
    annotators: NDArray[np.int64]
    labels: NDArray[np.int64]
    previous: NDArray[np.int64]
    words: NDArray[np.int64] | None
    num_words: int

    @classmethod
    def of(cls, sequences: CrowdSequences | Annotations, method: str, scheme: str = "BIO") -> SequenceTable:
        """Makes the table.

        Args:
            sequences: with its own scheme; or annotations of kind "sequence" alone: then a sentence has as many tokens
                as were labelled, none where nobody labelled it, and there is no text.
            method: for the message.
            scheme: of annotations alone.

        Raises:
            DataError: another kind of annotations, classes that are no tags of the scheme, or a sentence that an
                annotator labelled in part.
        """
        from crowdzoo.sequences.crowd_sequences import CrowdSequences
        from crowdzoo.tables.annotations import Annotations

        if isinstance(sequences, CrowdSequences):
            crowd, tag_set, starts = sequences.annotations, sequences.tag_set, sequences.starts
            codes: dict[str, int] = {}
            words = np.array(
                [codes.setdefault(word, len(codes)) for tokens in sequences.tokens for word in tokens], np.int64
            )
        else:
            crowd, words, codes = sequences, None, {}
            if not isinstance(crowd, Annotations) or crowd.kind != "sequence" or crowd.positions is None:
                what = f"kind {crowd.kind!r}" if isinstance(crowd, Annotations) else repr(type(crowd).__name__)
                raise DataError(f"{method} takes CrowdSequences, or annotations of kind 'sequence'. Received: {what}.")
            tag_set = TagSet([str(name) for name in np.asarray(crowd.classes).tolist()], scheme)
            lengths = np.zeros(crowd.num_tasks, np.int64)
            np.maximum.at(lengths, crowd.task_ids, crowd.positions + 1)
            starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        num_classes = len(tag_set.classes)
        token = starts[crowd.task_ids] + np.asarray(crowd.positions)
        # by annotator within a sentence, the row before is the token before
        order = np.lexsort((np.asarray(crowd.positions), crowd.annotator_ids, crowd.task_ids))
        previous = np.full(len(crowd), num_classes, np.int64)
        inner = np.asarray(crowd.positions)[order] > 0
        said = crowd.labels[order]
        if len(order):
            who, where = crowd.annotator_ids[order], token[order]
            follows = np.zeros(len(order), bool)
            follows[1:] = (who[1:] == who[:-1]) & (where[1:] == where[:-1] + 1)
            if (inner & ~follows).any() or not _whole(crowd, starts):
                raise DataError(f"{method}: an annotator of a sentence labels each of its tokens once.")
            before = np.concatenate([[num_classes], said[:-1]])
            previous[order] = np.where(inner, before, num_classes)
        by_token = np.lexsort((crowd.annotator_ids, token))
        return cls(
            crowd,
            tag_set,
            starts,
            token[by_token],
            crowd.annotator_ids[by_token],
            crowd.labels[by_token],
            previous[by_token],
            words,
            len(codes),
        )

    @property
    def num_tokens(self) -> int:
        """T, tokens that nobody labelled included."""
        return int(self.starts[-1])

    @property
    def firsts(self) -> NDArray[np.bool_]:
        """Which tokens begin a sentence, bool [T]."""
        firsts = np.zeros(self.num_tokens, bool)
        firsts[self.starts[:-1][np.diff(self.starts) > 0]] = True
        return firsts

    def as_classification(self) -> Annotations:
        """Every token as a task of its own, 0 to T-1."""
        crowd = self.annotations
        from crowdzoo.tables.annotations import Annotations

        return Annotations(
            "classification",
            self.tokens,
            self.annotators,
            self.labels,
            np.arange(self.num_tokens),
            crowd.annotators,
            crowd.classes,
        )


def _whole(crowd: Annotations, starts: NDArray[np.int64]) -> bool:
    """Whether every annotator of a sentence labelled as many tokens as it has."""
    pairs, rows = np.unique(crowd.task_ids * max(crowd.num_annotators, 1) + crowd.annotator_ids, return_counts=True)
    return bool((rows == np.diff(starts)[pairs // max(crowd.num_annotators, 1)]).all())


@dataclass(frozen=True, eq=False)
class SequenceAggregation:
    """The tags of every sentence, and what was learnt about the annotators.

    With N sentences of T tokens together, R annotators, K classes:

    Attributes:
        posteriors: class probabilities of each token, sentence after sentence, [T, K], rows sum to one.
        starts: where each sentence begins, and the end of the last, int64 [N + 1].
        labels: class codes, int64 [T]. They may differ from the most probable class of a token: see the method.
        confusions: P(annotator says l | truth k), `[annotator, true, said]`, [R, K, K], rows sum to one, or None.
        transitions: P(class of a token | class of the token before), `[before, after]`, [K, K], rows sum to one, or
            None where the method has no such model.
        first: P(class of the first token), [K], or None.
        reliability: one number an annotator, higher is better, [R]; what it measures is the method's. None where it
            has none.
        log_likelihood: log probability (nats) of the annotations (and words, where they are modelled), or None.
        history: the objective (nats) before the first iteration and after each; never falls.
        converged: whether the objective stood still within the tolerance.
        num_iterations: how many there were.
        tasks: names of the sentences, [N].
        annotators: names, [R].
        classes: names of the tags, [K].
        annotators_per_task: int64 [N]; 0 marks the sentences whose answer is only the prior.
        tasks_per_annotator: int64 [R]; 0 marks the annotators of whom only the prior is known.
        method: the algorithm's name, as in `crowdzoo.aggregation.create(..., kind="sequence")`.
        scheme: "BIO" or "IOBES".
    """

    posteriors: NDArray[np.float64]
    starts: NDArray[np.int64]
    labels: NDArray[np.int64]
    confusions: NDArray[np.float64] | None
    transitions: NDArray[np.float64] | None
    first: NDArray[np.float64] | None
    reliability: NDArray[np.float64] | None
    log_likelihood: float | None
    history: tuple[float, ...]
    converged: bool
    num_iterations: int
    tasks: NDArray[Any]
    annotators: NDArray[Any]
    classes: NDArray[Any]
    annotators_per_task: NDArray[np.int64]
    tasks_per_annotator: NDArray[np.int64]
    method: str
    scheme: str

    @classmethod
    def of(
        cls,
        method: str,
        table: SequenceTable,
        posteriors: NDArray[np.float64],
        labels: NDArray[np.int64],
        *,
        confusions: NDArray[np.float64] | None = None,
        transitions: NDArray[np.float64] | None = None,
        first: NDArray[np.float64] | None = None,
        reliability: NDArray[np.float64] | None = None,
        log_likelihood: float | None = None,
        history: tuple[float, ...] = (),
        converged: bool = True,
        num_iterations: int = 1,
    ) -> SequenceAggregation:
        """The result for a table: adds its names and counts to what was found (see the attributes)."""
        crowd = table.annotations
        begins = np.asarray(crowd.positions) == 0  # one row a (task, annotator)
        return cls(
            posteriors=posteriors,
            starts=table.starts,
            labels=labels,
            confusions=confusions,
            transitions=transitions,
            first=first,
            reliability=reliability,
            log_likelihood=log_likelihood,
            history=history,
            converged=converged,
            num_iterations=num_iterations,
            tasks=crowd.tasks,
            annotators=crowd.annotators,
            classes=np.asarray(crowd.classes),
            annotators_per_task=np.bincount(crowd.task_ids[begins], minlength=crowd.num_tasks),
            tasks_per_annotator=np.bincount(crowd.annotator_ids[begins], minlength=crowd.num_annotators),
            method=method,
            scheme=table.tag_set.scheme,
        )

    def __len__(self) -> int:
        return len(self.tasks)

    def tags_of(self, task: int) -> list[str]:
        """Tags of a sentence, [T_i].

        Args:
            task: its code.
        """
        return [str(self.classes[code]) for code in self.labels[self.starts[task] : self.starts[task + 1]].tolist()]

    def spans_of(self, task: int) -> list[Span]:
        """Spans of a sentence, by its code."""
        return spans_of(self.tags_of(task), self.scheme)

    def tags(self) -> list[list[str]]:
        """Tags of all sentences, N lists."""
        return [self.tags_of(task) for task in range(len(self))]

    def codes(self) -> list[NDArray[np.int64]]:
        """Class codes of all sentences, N arrays int64 [T_i], as `CrowdSequences.gold` holds them."""
        return np.split(self.labels, self.starts[1:-1]) if len(self) else []

    def to_conll(self, path: str | os.PathLike[str], sequences: CrowdSequences) -> Path:
        """Writes tokens and tags in two columns, as `read_gold` reads them.

        Args:
            path: of the file, which appears when it is complete; compressed where the name ends in .gz.
            sequences: the sentences that were aggregated.

        Returns:
            The path.

        Raises:
            DataError: other sentences, or a token that no line can hold.
        """
        from crowdzoo.sequences.conll_files import write_tags

        if not np.array_equal(sequences.starts, self.starts) or not np.array_equal(
            sequences.annotations.tasks, self.tasks
        ):
            raise DataError("to_conll: these are not the sentences that were aggregated.")
        return write_tags(sequences, self.tags(), path)

    def to_parquet(self, folder: str | os.PathLike[str], sequences: CrowdSequences | None = None) -> Path:
        """Writes a folder that appears whole or not at all.

        `tokens.parquet` (task, position, label, label_code, probability, posteriors as a list in the order of the
        classes), `annotators.parquet` (annotator, tasks, reliability, confusion as a list of rows `[true][said]`) and
        `summary.json` (everything else).

        Args:
            folder: is made, with its parents. An earlier result there is replaced.
            sequences: the sentences that were aggregated: adds their tokens and tags in columns, `tags.txt` (see
                `to_conll`).

        Returns:
            The folder.

        Raises:
            DataError: the folder holds other files; they are left alone. Or other sentences.
        """
        tables = (self._tokens_table(), self._annotators_table())
        tags = None if sequences is None else partial(self.to_conll, sequences=sequences)
        return write_result(folder, FILES, tables, self._summary(), {TAGS_FILE: tags})

    @classmethod
    def from_parquet(cls, folder: str | os.PathLike[str]) -> SequenceAggregation:
        """Reads what `to_parquet` wrote; every array comes back as it was.

        Raises:
            DataError: a file is missing.
        """
        found = ReadResult(folder, FILES, "a sequence aggregation")
        tokens, annotators, summary = FILES
        classes, tasks = found.list_of_names("classes"), found.list_of_names("tasks")
        count = len(classes)

        def optional(column: str, *shape: int) -> NDArray[np.float64] | None:
            return found.numbers(annotators, column, *shape) if found.has(annotators, column) else None

        def listed(key: str, *shape: int) -> NDArray[np.float64] | None:
            return None if found.value(key, list, None) is None else found.list_of_numbers(key, *shape)

        labels = found.codes(tokens, "label_code", count)
        starts = found.list_of_numbers("starts", len(tasks) + 1, whole=True)
        if starts[0] != 0 or starts[-1] != len(labels) or (np.diff(starts) < 0).any():
            raise DataError(f"{Path(folder) / summary}: 'starts' does not fit the {len(labels):,} tokens of {tokens}.")
        return cls(
            posteriors=found.numbers(tokens, "posteriors", count),
            starts=starts,
            labels=labels,
            confusions=optional("confusion", count, count),
            transitions=listed("transitions", count, count),
            first=listed("first", count),
            reliability=optional("reliability"),
            log_likelihood=found.value("log_likelihood", float, int, None),
            history=tuple(found.list_of_numbers("history", None).tolist()),
            converged=found.value("converged", bool),
            num_iterations=found.value("num_iterations", int),
            tasks=_names(tasks),
            annotators=_names(found.names(annotators, "annotator").tolist()),
            classes=_names(classes),
            annotators_per_task=found.list_of_numbers("annotators_per_task", len(tasks), whole=True),
            tasks_per_annotator=found.numbers(annotators, "tasks", whole=True),
            method=found.value("method", str),
            scheme=found.value("scheme", str),
        )

    def _tokens_table(self) -> pa.Table:
        import pyarrow as pa

        lengths = np.diff(self.starts)
        chosen = self.posteriors[np.arange(len(self.labels)), self.labels] if self.posteriors.size else []
        return pa.table(
            {
                "task": pa.array(np.repeat(self.tasks, lengths)),
                "position": pa.array(np.arange(len(self.labels)) - np.repeat(self.starts[:-1], lengths), pa.int64()),
                "label": pa.array(self.classes[self.labels]),
                "label_code": pa.array(self.labels, pa.int64()),
                "probability": pa.array(chosen, pa.float64()),
                "posteriors": _lists(self.posteriors),
            }
        )

    def _annotators_table(self) -> pa.Table:
        import pyarrow as pa

        columns = {"annotator": pa.array(self.annotators), "tasks": pa.array(self.tasks_per_annotator, pa.int64())}
        if self.reliability is not None:
            columns["reliability"] = pa.array(self.reliability, pa.float64())
        if self.confusions is not None:
            columns["confusion"] = _lists(self.confusions)
        return pa.table(columns)

    def _summary(self) -> dict[str, Any]:
        def listed(array: NDArray[Any] | None) -> Sequence[Any] | None:
            return None if array is None else array.tolist()

        return {
            "method": self.method,
            "scheme": self.scheme,
            "classes": listed(self.classes),
            "tasks": listed(self.tasks),
            "starts": listed(self.starts),
            "annotators_per_task": listed(self.annotators_per_task),
            "transitions": listed(self.transitions),
            "first": listed(self.first),
            "log_likelihood": self.log_likelihood,
            "converged": self.converged,
            "num_iterations": self.num_iterations,
            "history": list(self.history),
        }
