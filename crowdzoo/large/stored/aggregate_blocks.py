"""aggregate_blocks: labels of the tasks of stored blocks, written part by part."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.aggregation.against_votes import AgainstVotes, warn_of_notes
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes.glad import difficulty
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.engine.threads import in_threads, num_threads
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.aggregation.result_files import check_result_folder, table_of, write_table, write_tables
from crowdzoo.checks.constraints import TABLE_FORMATS, Choice
from crowdzoo.files.json import FORMAT_VERSION
from crowdzoo.files.writing import atomic_file, atomic_folder, scratch_folder
from crowdzoo.large.forms.base import BlockPosteriors, Form
from crowdzoo.large.forms.forms import method_of
from crowdzoo.large.stored.fit_blocks import fit_blocks
from crowdzoo.large.stored.stored_blocks import StoredBlocks

if TYPE_CHECKING:
    import pyarrow as pa

WHERE = "out of core"


@dataclass(frozen=True, eq=False, repr=False)
class StoredAggregation:
    """An aggregation whose answers are in files.

    Attributes:
        path: the folder, which `Aggregation.from_parquet` reads where it fits into memory, or the file of tasks.
        learnt: what was learnt of annotators and classes (`confusions`, `class_prior`, `reliability`, `history`,
            `annotator_frame`, ...); an `Aggregation` of no tasks.
        num_tasks: N.
        num_annotated: number of tasks that have annotations.
        num_annotations: A.
        num_rejected: number of rows that were left out when the annotations were read.
        labelled: number of tasks that have each class as label, int64 [K].
    """

    path: Path
    learnt: Aggregation
    num_tasks: int
    num_annotated: int
    num_annotations: int
    num_rejected: int
    labelled: np.ndarray

    def __repr__(self) -> str:
        learnt, stopped = self.learnt, "" if self.learnt.converged else ", not converged"
        return (
            f"<StoredAggregation: {learnt.method}, {self.num_tasks:,} tasks, {len(learnt.annotators):,} annotators, "
            f"{len(learnt.classes):,} classes{stopped}>"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """See `Aggregation`."""
        return self.learnt.notes


def check_streams(aggregator: Any) -> None:
    """Refuses a method that does not stream.

    Raises:
        ConfigError: names the methods that do.
    """
    method_of(aggregator, 1, 1, WHERE)


def aggregate_blocks(
    blocks: StoredBlocks, aggregator: Any, path: str | os.PathLike[str], file_format: str = "parquet"
) -> StoredAggregation:
    """What `aggregator.fit(annotations).write(path)` does, with annotations and answers on disk.

    Memory: a block with its posteriors for each thread (some 100 MB), and 8 K**2 bytes an annotator for the parameters
    and for each thread's counts (one-coin and GLAD: 16).

    Args:
        blocks: N tasks, R annotators, K classes.
        aggregator: a MajorityVote, DawidSkene, OneCoinDawidSkene, GLAD or IBCC.
        path: see `crowdzoo.aggregation.base.Result.write`.
        file_format: see there.

    Returns:
        What was learnt, and where the answers are. Equal to the result in memory but for rounding.

    Raises:
        ConfigError: the method does not stream, or an unknown format.
        DataError: the folder holds other files; a method that takes one label by an annotator of a task, and repeats.

    Warns:
        ConvergenceWarning: `max_iter` was not enough.
        VotesWarning: the labels are far from the votes.
    """
    Choice(TABLE_FORMATS).checked("", "file_format", file_format)
    path = Path(path)
    form = method_of(aggregator, blocks.num_annotators, blocks.num_classes, WHERE)
    nobody = _nobody(blocks)
    check_classification(nobody, aggregator.title)
    alone = path.suffix[1:] in TABLE_FORMATS
    if not alone:
        check_result_folder(path)
    with scratch_folder(path) as scratch:
        run, states = fit_blocks(form, blocks, scratch)
        if run.history:
            aggregator.warn_unless_converged(run, blocks.num_annotations)
        answers = _Answers(form, blocks, run, states, nobody)
        if alone:
            with atomic_file(path) as file:
                write_tables(answers.tables(), file, path.suffix[1:])
            result = answers.result(path)
        else:
            with atomic_folder(path, replace=True) as fresh:
                with open(fresh / f"tasks.{file_format}", "wb") as file:
                    write_tables(answers.tables(), file, file_format)
                result = answers.result(path)
                _write_rest(result, fresh, file_format)
    warn_of_notes(result.learnt.method, result.notes, stacklevel=3)
    return result


def _nobody(blocks: StoredBlocks) -> Any:
    """A table without rows, of the same annotators and classes."""
    from crowdzoo.data.annotations import Annotations

    nothing = np.empty(0, np.int64)
    return Annotations(
        kind="classification",
        task_ids=nothing,
        annotator_ids=nothing,
        labels=nothing,
        tasks=nothing,
        annotators=blocks.annotators,
        classes=blocks.classes,
        repeats=blocks.repeats,
    )


class _Answers:
    """The answers of all tasks, block by block, and what there is to say of them once all have gone by."""

    def __init__(self, form: Form, blocks: StoredBlocks, run: Run[Any], states: Any, nobody: Any):
        self.form, self.blocks, self.states = form, blocks, states
        self.answer = form.answers(run.params)
        empty = np.empty(0)
        nothing = BlockPosteriors(empty.astype(np.int64), np.empty((0, blocks.num_classes)), empty.astype(int), empty)
        self.like = form.result(nobody, run, nothing)
        self.against = AgainstVotes(0, 0, *(np.zeros(blocks.num_classes, np.int64) for _ in range(2)))
        self.log_likelihood = 0.0

    def tables(self) -> Iterator[pa.Table]:
        """The table of tasks, in parts."""
        names = self.blocks.task_names()
        threads = num_threads()
        for begin in range(0, len(self.blocks), threads):
            places = range(begin, min(begin + threads, len(self.blocks)))
            parts = in_threads(self._answer_some, places, threads)
            for answer, tasks in zip(itertools.chain(*parts), itertools.islice(names, len(places)), strict=True):
                found, counts, sizes = answer
                self.against += counts
                self.log_likelihood += found.log_likelihood
                part = replace(
                    self.like,
                    tasks=tasks,
                    posteriors=found.posteriors,
                    labels=found.labels,
                    annotations_per_task=sizes,
                    difficulty=None if found.state is None else difficulty(found.state),
                )
                yield table_of(part._answer_columns())
        if not len(self.blocks):
            yield table_of(self.like._answer_columns())

    def _answer_some(self, places: Sequence[int]) -> list[tuple[BlockPosteriors, AgainstVotes, np.ndarray]]:
        found = []
        for _, block in self.blocks.ahead(places):
            tasks = slice(block.tasks[0], block.tasks[-1] + 1)
            answer = self.answer(block, None if self.states is None else np.asarray(self.states[tasks]))
            against = AgainstVotes.of(block, answer.labels, self.blocks.num_classes)
            found.append((answer, against, np.diff(block.starts)))
        return found

    def result(self, path: Path) -> StoredAggregation:
        """Once all parts have gone by."""
        blocks = self.blocks
        learnt = replace(
            self.like,
            annotations_per_annotator=blocks.annotations_per_annotator,
            notes=self.against.notes(np.asarray(blocks.classes)),
        )
        if "log_likelihood" in self.form.also_found:
            learnt = replace(learnt, log_likelihood=self.log_likelihood)
        sizes = blocks.num_tasks, self.against.tasks, blocks.num_annotations, blocks.num_rejected
        return StoredAggregation(path, learnt, *sizes, self.against.given)


def _write_rest(result: StoredAggregation, folder: Path, file_format: str) -> None:
    """Writes all of a result's folder but the table of tasks."""
    with open(folder / f"annotators.{file_format}", "wb") as file:
        write_table(table_of(result.learnt._annotator_columns()), file, file_format)
    summary = result.learnt._summary() | {
        "num_tasks": result.num_tasks,
        "num_annotations": result.num_annotations,
        "num_tasks_without_annotations": result.num_tasks - result.num_annotated,
    }
    summary["format_version"] = FORMAT_VERSION
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
