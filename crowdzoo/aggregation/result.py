"""Aggregation: the result of every algorithm for classes, and how far it is from the votes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import Columns, Result, check_classification, names_and_counts, warn_of_notes
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.confusions import Params, block_posteriors
from crowdzoo.aggregation.engine.labels import chance_correct, choose_labels
from crowdzoo.aggregation.engine.loops import compiled
from crowdzoo.aggregation.engine.soft_answers import has_confidence
from crowdzoo.aggregation.engine.soft_votes import SoftVotes
from crowdzoo.errors import DataError, short_repr

if TYPE_CHECKING:
    from crowdzoo.aggregation.result_files import ReadResult
    from crowdzoo.data.annotations import Annotations

CELLS = 2**24  # of the table of votes, which is computed for a batch of tasks at a time
FEW_CELLS = 2**16  # of that table if annotations are sorted by task
MOST_DIFFERENT = 0.2  # share of tasks that may differ from the votes without a note
LEAST_NAMED = 0.01  # share of annotations from which on a class that the result never assigns gets a note
ROUNDING = 1e-9  # of sums of probabilities
FAR, NEGATIVE = 1e-5, 1e-8  # tolerances for a sum of probabilities, and for one below 0


@compiled()
def _are_probabilities(rows):  # type: ignore[no-untyped-def]  # for Numba
    """Whether rows are probabilities that sum to 1; allocates no arrays, as there may be many rows."""
    for i in range(np.uint64(rows.shape[0])):
        total, least = 0.0, 0.0
        for k in range(np.uint64(rows.shape[1])):
            total += rows[i, k]
            least = min(least, rows[i, k])
        if not (abs(total - 1.0) <= FAR and least >= -NEGATIVE):
            return False
    return True


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Aggregation(Result):
    """Result of an aggregation: one label per task, and what was learned about the annotators.

    `to_parquet` writes `tasks.parquet` (task, label, probability, annotations, posteriors as a list in the order of the
    classes), `annotators.parquet` (annotator, annotations, accuracy, confusion and counts as lists of rows
    `[true][said]`) and `summary.json`. `annotator_frame` has `accuracy` if there are confusions and a class prior.

    With N tasks, R annotators, K classes:

    Attributes:
        posteriors: class probabilities, [N, K], rows sum to one. A task without annotations has the class prior.
        labels: class codes, int64 [N].
        confusions: P(annotator says l | truth k), `[annotator, true, said]`, [R, K, K], rows sum to one; None if the
            algorithm has no such model.
        class_prior: probability of each class, [K], or None.
        log_likelihood: log-probability (nats) of the annotations, without priors; None if there is no model.
        history: objective (nats, prior included) before the first iteration and after each; never falls.
        converged: whether the objective converged within the tolerance.
        num_iterations: number of iterations of the best start.
        tasks: names of the tasks, [N].
        annotators: names of the annotators, [R].
        classes: names of the classes, [K].
        annotations_per_task: int64 [N]; 0 marks the tasks whose answer is only the prior.
        annotations_per_annotator: int64 [R]; 0 marks the annotators whose matrix is only the prior.
        method: name of the method, as in `crowdzoo.aggregation.METHODS`.
        skills: one number per annotator, higher is better, [R]; its meaning depends on the method (see its class). None
            if the method has none.
        difficulty: one number per task, higher is harder, [N]; None if the method has none.
        effective_votes: number of independent votes that the annotations of each task are worth, [N]; None if the
            method treats annotators as independent.
        settled: probability that each label stays the same with many more answers of this crowd, [N]; None until
            `crowdzoo.quality.with_settled`, a command or a page adds it.
        answers_to_settle: about how many more answers settle each label, int64 [N], even if that is not worth the cost
            (see `crowdzoo.quality.worth_asking`); -1 if answers carry no information. None as for `settled`.
        counts: expected number of times that annotator r said l when the truth is k, `[annotator, true, said]`,
            [R, K, K], those of a prior included; a later fit uses them if this result is its prior. None if the method
            does not store them.
        class_counts: expected number of tasks of each class, [K], or None; as `counts`.
        confidence: whether annotations were weighted by their confidence; then those of new tasks are, too.
        accuracy_interval: estimated accuracy of the labels of tasks without gold, and the ends of its interval; None
            unless the result comes from `calibrate`.
        accepted: bool [N], labels that `crowdzoo.aggregation.accept` accepted; None before.
        error_bound: maximum share of wrong labels among the accepted ones, and the confidence; None before.
        notes: sentences on what to check before using the result; see `notes_against_votes`. Usually empty.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MajorityVote
        >>> task, annotator = [1, 1, 1, 2], ["ann", "bob", "cem", "ann"]
        >>> annotations = Annotations.from_arrays(task, annotator, ["cat", "cat", "dog", "dog"])
        >>> result = MajorityVote().fit(annotations)
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog']
        >>> result.posteriors.round(2).tolist()
        [[0.67, 0.33], [0.0, 1.0]]
        >>> result.accuracy([0, 0])  # the truth is "cat" both times
        0.5
    """

    posteriors: NDArray[np.float64]
    labels: NDArray[np.int64]
    confusions: NDArray[np.float64] | None = None
    class_prior: NDArray[np.float64] | None = None
    log_likelihood: float | None = None
    classes: NDArray[Any]
    annotations_per_task: NDArray[np.int64]
    annotations_per_annotator: NDArray[np.int64]
    difficulty: NDArray[np.float64] | None = None
    effective_votes: NDArray[np.float64] | None = None
    settled: NDArray[np.float64] | None = None
    answers_to_settle: NDArray[np.int64] | None = None
    counts: NDArray[np.float64] | None = None
    class_counts: NDArray[np.float64] | None = None
    confidence: bool = False
    accuracy_interval: tuple[float, float, float] | None = None
    accepted: NDArray[np.bool_] | None = None
    error_bound: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        method: str,
        annotations: Annotations,
        posteriors: NDArray[np.float64],
        labels: NDArray[np.int64] | None = None,
        params: Params | None = None,
        seed: int = 0,
        **fields: Any,
    ) -> Aggregation:
        """Creates the result for a table of annotations, adding its names and counts.

        Args:
            method: name of the method.
            annotations: N tasks, R annotators, K classes.
            posteriors: [N, K], rows sum to one.
            labels: int64 [N]. Default: the classes with the highest posteriors.
            params: confusions and class prior; None without such parameters, or if they are in `fields`.
            seed: seed of random ties if no labels are passed.
            **fields: other attributes by name, such as `history` and `skills`.

        Raises:
            DataError: posteriors have the wrong shape, or are not probabilities.

        Warns:
            VotesWarning: the labels are far from the votes, as explained in `notes`.
        """
        posteriors, shape = np.asarray(posteriors), (annotations.num_tasks, annotations.num_classes)
        if posteriors.shape != shape:
            raise DataError(f"{method}: posteriors must have shape {shape}, got {posteriors.shape}.")
        if not _are_probabilities(np.asarray(posteriors, np.float64)):
            sums = posteriors.sum(axis=1)
            wrong = ~(np.abs(sums - 1) <= FAR) | (posteriors < -NEGATIVE).any(axis=1)  # NaN is wrong, too
            row, nothing = int(wrong.argmax()), np.count_nonzero(~np.isfinite(sums))
            raise DataError(
                f"{method}: posteriors are not probabilities that sum to 1 in {wrong.sum():,} of {len(sums):,} rows, "
                f"of which {nothing:,} hold NaN or inf. First row {row}, task {short_repr(annotations.tasks[row])}: "
                f"{short_repr(posteriors[row].tolist())}, with the sum {sums[row]:.6g}."
            )
        if labels is None:
            labels = choose_labels(posteriors, np.arange(len(posteriors)), seed=seed)
        notes = notes_against_votes(annotations, labels)
        warn_of_notes(method, notes, stacklevel=4)
        if params is not None:
            fields |= {"confusions": params.confusions, "class_prior": params.class_prior}
        return cls(
            method=method,
            posteriors=posteriors,
            labels=labels,
            classes=np.asarray(annotations.classes),
            notes=notes,
            **names_and_counts(annotations),
            **fields,
        )

    @property
    def settled_share(self) -> float | None:
        """Mean of `settled` over the annotated tasks; None if unknown."""
        some = self.annotations_per_task > 0
        return None if self.settled is None or not some.any() else float(self.settled[some].mean())

    def accuracy(self, gold: ArrayLike) -> float:
        """Returns the share of tasks with the right label, in expectation over random ties.

        Args:
            gold: class codes, int [N], -1 where unknown (these tasks are left out).

        Raises:
            DataError: `gold` does not have one code per task, or all are unknown.
        """
        codes = np.asarray(gold)
        if codes.dtype.kind not in "iu":
            raise DataError(
                f"gold is one class code per task, got values of type {codes.dtype}. Convert names to codes: "
                "[result.classes.tolist().index(name) for name in names], in the order of result.tasks; -1 is unknown."
            )
        if codes.shape != self.labels.shape:
            raise DataError(f"gold is one class code per task, {self.labels.shape}, got shape {codes.shape}.")
        known = np.flatnonzero(codes >= 0)
        if not known.size:
            raise DataError("No task has a known class, so there is no accuracy.")
        return float(chance_correct(self.posteriors[known], codes[known]).mean())

    def annotator_accuracy(self) -> NDArray[np.float64] | None:
        """Expected accuracy of each annotator, sum over k of prior[k] * confusion[r, k, k], [R]; None if unknown."""
        if self.confusions is None or self.class_prior is None:
            return None
        return np.einsum("rkk,k->r", self.confusions, self.class_prior)

    def posteriors_of(self, annotations: Annotations) -> NDArray[np.float64]:
        """Returns class probabilities of other tasks with the same annotators, using their fitted confusion matrices.

        Applies Bayes' rule with `confusions` and `class_prior` (Dawid & Skene 1979, eq. 2.5) without fitting. If this
        result was fitted with `confidence=True`, annotations are weighted by their confidence, or fully if missing.

        Args:
            annotations: M tasks, with the annotators and classes of this result in the same order.

        Returns:
            [M, K], rows sum to one; the class prior for tasks without annotations.

        Raises:
            DataError: this result has no confusion matrices or class prior, or its annotators or classes differ; or a
                confidence that is used is outside 0 to 1.
        """
        if self.confusions is None or self.class_prior is None:
            raise DataError(f"{self.method} has no confusion matrices and class prior to apply to other tasks.")
        check_classification(annotations, "posteriors_of")
        for name in ("annotators", "classes"):
            if not np.array_equal(getattr(self, name), getattr(annotations, name)):
                raise DataError(f"The annotations have other {name} than this result.")
        params = Params.from_probabilities(self.confusions, self.class_prior)
        block = whole_block(annotations)
        if self.confidence and has_confidence(annotations):
            return SoftVotes(annotations, [block], "posteriors_of").posteriors(params)
        return block_posteriors(block, params)

    @classmethod
    def _read(cls, stored: ReadResult) -> dict[str, Any]:
        tasks, annotators, _ = cls.files
        classes = stored.list_of_names("classes")
        size = len(classes)
        interval = stored.optional_list("accuracy_interval", 3) if "accuracy_interval" in stored.summary else None
        bound = stored.optional_list("error_bound", 2) if "error_bound" in stored.summary else None
        return {
            "posteriors": stored.numbers(tasks, "posteriors", size),
            "labels": stored.codes(tasks, "label_code", size),
            "confusions": stored.optional(annotators, "confusion", size, size),
            "class_prior": stored.optional_list("class_prior", size),
            "log_likelihood": stored.value("log_likelihood", float, int, None),
            "classes": classes,
            **stored.names_and_counts(tasks, annotators),
            "difficulty": stored.optional(tasks, "difficulty"),
            "effective_votes": stored.optional(tasks, "effective_votes"),
            "settled": stored.optional(tasks, "settled"),
            "answers_to_settle": (
                stored.numbers(tasks, "answers_to_settle", whole=True)
                if stored.has(tasks, "answers_to_settle")
                else None
            ),
            "counts": stored.optional(annotators, "counts", size, size),
            "class_counts": (stored.optional_list("class_counts", size) if "class_counts" in stored.summary else None),
            "confidence": stored.value("confidence", bool) if "confidence" in stored.summary else False,
            "accuracy_interval": None if interval is None else (interval[0], interval[1], interval[2]),
            "accepted": stored.flags(tasks, "accepted") if stored.has(tasks, "accepted") else None,
            "error_bound": None if bound is None else (bound[0], bound[1]),
        }

    def _answer_columns(self) -> Columns:
        return {
            "task": self.tasks,
            "label": self.classes[self.labels],
            "label_code": self.labels,
            "probability": self.posteriors[np.arange(len(self.labels)), self.labels],
            "settled": self.settled,
            "accepted": self.accepted,
            "annotations": self.annotations_per_task,
            "answers_to_settle": self.answers_to_settle,
            "posteriors": self.posteriors,
            "difficulty": self.difficulty,
            "effective_votes": self.effective_votes,
        }

    def _of_annotators(self) -> Columns:
        return {
            "accuracy": self.annotator_accuracy(),
            "skill": self.skills,
            "confusion": self.confusions,
            "counts": self.counts,
        }

    def _more(self) -> dict[str, Any]:
        return {
            "classes": self.classes.tolist(),
            "class_prior": None if self.class_prior is None else self.class_prior.tolist(),
            "log_likelihood": self.log_likelihood,
            **({} if self.class_counts is None else {"class_counts": self.class_counts.tolist()}),
            **({"confidence": True} if self.confidence else {}),
            **({} if self.accuracy_interval is None else {"accuracy_interval": list(self.accuracy_interval)}),
            **({} if self.error_bound is None else {"error_bound": list(self.error_bound)}),
        }


def with_median_labels(aggregation: Aggregation) -> Aggregation:
    """Uses the median of each task's probabilities as its label, for ordered classes such as grades.

    The most probable class is right most often; the median minimises the expected number of steps from the truth (the
    mean absolute error).

    Args:
        aggregation: result for N tasks with ordered classes.

    Returns:
        The aggregation with other `labels`, and without the attributes about the old ones: `settled`,
        `answers_to_settle`, `accuracy_interval`, `accepted` and `error_bound`.

    Raises:
        DataError: not a result for classes.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MajorityVote, with_median_labels
        >>> labels = ["low", "low", "mid", "high", "high", "low"]
        >>> answers = Annotations.from_arrays([0] * 5 + [1], [*range(5), 0], labels, classes=["low", "mid", "high"])
        >>> result = with_median_labels(MajorityVote().fit(answers))
        >>> str(result.classes[result.labels[0]])
        'mid'
    """
    if aggregation.kind != "classification":
        raise DataError(f"with_median_labels needs labels of kind classification, got {aggregation.kind}.")
    labels = (np.cumsum(aggregation.posteriors, axis=1) >= 0.5 - ROUNDING).argmax(axis=1)
    return replace(
        aggregation,
        labels=labels,
        settled=None,
        answers_to_settle=None,
        accuracy_interval=None,
        accepted=None,
        error_bound=None,
    )


# === How far a result is from the votes: what a method that ran to one class looks like ===


def notes_against_votes(annotations: Annotations, labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Returns sentences on what to check before using a result; usually none.

    One note is for labels of more than a fifth of the annotated tasks that are not among the classes with the most
    votes. Another is for a class with two or more annotations, and at least a hundredth of all, that no task gets. Both
    may be right, if better annotators overrule a majority with the same errors. More often the method collapsed.

    Args:
        annotations: N tasks, K classes.
        labels: class codes, int64 [N].
    """
    num_classes = annotations.num_classes
    notes = different_note(annotations, labels, "tasks", "tasks whose class is known")
    num_votes, num_labels = (np.bincount(codes, minlength=num_classes) for codes in (annotations.labels, labels))
    sentence = "is the label of no task, although {:.1%} of the annotations name it"
    return notes + empty_note(annotations, num_votes, num_labels, sentence)


def empty_note(
    annotations: Annotations, num_votes: NDArray[np.int64], num_labels: NDArray[np.int64], sentence: str
) -> tuple[str, ...]:
    """Note on the most voted class that a result never assigns, and the number of other such classes; or none.

    Args:
        annotations: K classes.
        num_votes: votes per class, [K].
        num_labels: labels per class in the result, [K].
        sentence: text on the class, with braces for its share of the votes.
    """
    for code, share, num_others in empty_classes(num_votes, num_labels):
        more = (
            "; so is 1 more class" if num_others == 1 else f"; so are {num_others} more classes" if num_others else ""
        )
        return (f"Class {np.asarray(annotations.classes).tolist()[code]!r} {sentence.format(share)}{more}.",)
    return ()


def different_note(annotations: Annotations, labels: NDArray[np.int64], unit: str, known: str) -> tuple[str, ...]:
    """Note on labels that differ from the plurality of the votes on more than a fifth of the tasks; or none.

    Args:
        annotations: N tasks, K classes.
        labels: class codes, int64 [N].
        unit: plural noun for tasks.
        known: gold labels to compare with, for the message.
    """
    outvoted = _outvoted(annotations.task_ids, annotations.labels, labels, annotations.num_classes)
    different, tasks = np.count_nonzero(outvoted), np.count_nonzero(annotations.redundancy)
    if different <= MOST_DIFFERENT * tasks:
        return ()
    return (
        f"The labels differ from the plurality of the votes on {different / tasks:.0%} of the annotated {unit} "
        f"({different:,} of {tasks:,}): compare with majority-vote, or with {known}.",
    )


def empty_classes(num_votes: NDArray[np.int64], num_labels: NDArray[np.int64]) -> Iterator[tuple[int, float, int]]:
    """Finds the most voted class that a result never assigns although it has at least a hundredth of the votes.

    Args:
        num_votes: votes per class, [K].
        num_labels: labels per class in the result, [K].

    Yields:
        At most once: the class, its share of the votes, and the number of other such classes.
    """
    empty = np.flatnonzero((num_labels == 0) & (num_votes > 1) & (num_votes >= LEAST_NAMED * num_votes.sum()))
    if empty.size:
        code = int(empty[num_votes[empty].argmax()])
        yield code, num_votes[code] / num_votes.sum(), empty.size - 1


def _outvoted(
    task_ids: NDArray[np.int64], votes_of: NDArray[np.integer], labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.bool_]:
    """Marks tasks for whose label other classes have more votes, bool [N]."""
    ordered = bool((task_ids[1:] >= task_ids[:-1]).all())
    step = max(1, (FEW_CELLS if ordered else CELLS) // max(num_classes, 1))
    outvoted = np.zeros(len(labels), bool)
    votes = np.empty((min(step, len(labels)), num_classes), np.int32)
    for begin in range(0, len(labels), step):
        rows = slice(*np.searchsorted(task_ids, (begin, begin + step))) if ordered else slice(None)
        part = slice(begin, begin + step)
        _compare_votes(task_ids[rows], votes_of[rows], begin, labels[part], votes, outvoted[part])
    return outvoted


@compiled()
def _compare_votes(tasks, labels, begin, answers, votes, outvoted):  # type: ignore[no-untyped-def]  # for Numba
    """Sets `outvoted` for the tasks from `begin` on; `votes` is work space for as many tasks."""
    votes[:] = 0
    end = begin + len(answers)
    for row in range(len(tasks)):
        if begin <= tasks[row] < end:
            votes[tasks[row] - begin, labels[row]] += 1
    for task in range(len(answers)):
        own = votes[task, answers[task]]
        for k in range(votes.shape[1]):
            outvoted[task] |= votes[task, k] > own
